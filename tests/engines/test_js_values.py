"""
Values that cross the boundary of the JavaScript engine, in both directions.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import codec
from tests.engines.driver import Failed, Interpreter, Living

pytestmark = pytest.mark.js

ECHO = "export const run = (value) => value;"
SHOW = """
const show = (v) => typeof v === "bigint" ? `${v}n` : Object.is(v, -0) ? "-0"
  : v instanceof Uint8Array ? `bytes ${v}` : typeof v === "object" && v ? JSON.stringify(v) : String(v);
export const run = (value) => `${typeof value} ${show(value)}`;
"""


@pytest.fixture(scope="module")
def echo(js: Interpreter) -> Living:
    """An agent that answers what it is told."""
    return js.load(ECHO).instance()


def told(js: Interpreter, expression: str) -> Any:
    """
    What an expression becomes outside.
    """
    return js.load(f"export const run = () => ({expression});").instance().message()


def refusal(js: Interpreter, expression: str) -> str:
    """
    The message for a value that has no form outside.
    """
    with pytest.raises(Failed) as caught:
        told(js, expression)
    return caught.value.message


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=True)
    | _TEXTS
    | st.binary(max_size=20)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=20,
)


def _as_the_language_has_it(value: Any) -> Any:
    """
    JavaScript does not tell whole floats from integers, and what leaves has no sign of zero.
    """
    if isinstance(value, list):
        return [_as_the_language_has_it(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_the_language_has_it(item) for key, item in value.items()}
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


@given(_VALUES)
@settings(max_examples=200)
def test_any_payload_comes_back_as_it_was(echo: Living, value: Any) -> None:
    """
    But for the sign of zero, and for whole floats, which JavaScript does not tell from integers.
    """
    assert codec.encode(echo.message(value)) == codec.encode(_as_the_language_has_it(value))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "object null"),
        (2**53 - 1, "number 9007199254740991"),
        (2**53, "bigint 9007199254740992n"),
        (-(2**53) + 1, "number -9007199254740991"),
        (-(2**53), "bigint -9007199254740992n"),
        (2**64 - 1, "bigint 18446744073709551615n"),
        (-(2**64), "bigint -18446744073709551616n"),
        (-(2**63) - 1, "bigint -9223372036854775809n"),
        (1.5, "number 1.5"),
        (-0.0, "number -0"),
        (math.nan, "number NaN"),
        (math.inf, "number Infinity"),
        (2.0**-22, "number 2.384185791015625e-7"),
        (b"\x00\xff", "object bytes 0,255"),
        ("ä😀\x00\u2028", "string ä😀\x00\u2028"),
        ({"__proto__": 1, "b": [True]}, 'object {"b":[true],"__proto__":1}'),
    ],
)
def test_payloads_become_values_of_the_language(js: Interpreter, value: Any, shown: str) -> None:
    """
    Integers beyond 2^53 are BigInt; bytes are a Uint8Array; no key is special.
    """
    assert js.load(SHOW).instance().message(value) == shown


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("undefined", None),
        ("[undefined, () => 1, Symbol('s'), NaN > 1]", [None, None, None, False]),
        ("{ a: undefined, b: () => 1, c: Symbol('s'), d: 1, [Symbol('k')]: 2 }", {"d": 1}),
        ("1e15", 10**15),
        ("1e300", 1e300),
        ("-0", 0),
        ("2n ** 64n - 1n", 2**64 - 1),
        ("-(2n ** 64n)", -(2**64)),
        ("-1n", -1),
        ("-10n", -10),
        ("0n", 0),
        ("'a\\ud800b\\udc00\\ud83d\\ude00'", "a\ufffdb\ufffd😀"),
        ("{ 'k\\ud800': 1 }", {"k\ufffd": 1}),
        ("new Uint8Array([1, 2]).subarray(1)", b"\x02"),
        ("new ArrayBuffer(3)", bytes(3)),
        ("new ArrayBuffer(0)", b""),
        ("new Uint8ClampedArray([300])", b"\xff"),
        ("new Float64Array([1, 2.5])", [1, 2.5]),
        ("new BigInt64Array([5n])", [5]),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("new URL('http://a/b')", "http://a/b"),
        ("{ toJSON: () => ({ toJSON: 1, x: 2 }) }", {"toJSON": 1, "x": 2}),
        ("[{ toJSON() {} }]", [None]),
        ("{ a: { toJSON() {} } }", {}),
        ("new (class A { x = 1; #y = 2; get z() { return 3; } })()", {"x": 1}),
        (
            "Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } })",
            {"own": 2},
        ),
        ("[1, , 3]", [1, None, 3]),
        ("Object.assign([1], { x: 2 })", [1]),
        ("new Error('x')", {}),
        (
            "{ b: 1, a: 2, aa: 3, '': 4, ä: 5, 10: 6, 9: 7 }",
            {"": 4, "9": 7, "a": 2, "b": 1, "10": 6, "aa": 3, "ä": 5},
        ),
        ("new Proxy({ a: 1 }, {})", {"a": 1}),
        ("new Proxy([1, 2], {})", [1, 2]),
        ("JSON.parse('{\"__proto__\": 1}')", {"__proto__": 1}),
    ],
)
def test_values_leave_as_json_would_have_them(js: Interpreter, expression: str, value: Any) -> None:
    """
    With bytes and large integers besides.
    """
    assert told(js, expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("() => 1", "TypeError: a function can't leave the agent"),
        ("Symbol('s')", "TypeError: a symbol can't leave the agent"),
        ("[Promise.resolve(1)]", "TypeError: a promise can't leave the agent: await it first"),
        ("new Map()", "TypeError: a Map can't leave the agent: Object.fromEntries(map) can"),
        ("{ a: new Set() }", "TypeError: a Set can't leave the agent: [...set] can"),
        ("2n ** 64n", "RangeError: an integer of more than 64 bits can't leave the agent"),
        ("-(2n ** 64n) - 1n", "RangeError: an integer of more than 64 bits can't leave the agent"),
        (
            "(() => { const a = {}; a.a = a; return a; })()",
            "RangeError: a value that contains itself, or is more than 64 levels deep, can't leave the agent",
        ),
        ("new Array(70000).fill(0)", "RangeError: a value of more than 65536 items can't leave the agent"),
        ("'x'.repeat(2 ** 21)", "RangeError: the reply is larger than this instance may send"),
        ("{ 'a\\ud800': 1, 'a\\ud801': 2 }", "TypeError: two keys of an object have the same text"),
        ("{ get a() { throw new TypeError('mine'); } }", "TypeError: mine"),
    ],
)
def test_what_has_no_form_outside_is_refused(js: Interpreter, expression: str, message: str) -> None:
    """
    With a word of what would help.
    """
    assert refusal(js, expression) == message


def test_the_bounds_of_a_payload_can_be_used_up(echo: Living) -> None:
    """
    64 levels, and as many items as the codec lets through.
    """
    deep: Any = 1
    for _ in range(64):
        deep = [deep]
    assert echo.message(deep) == deep
    wide = list(range(codec.MAX_ITEMS - 1))
    assert echo.message(wide) == wide


def test_an_array_that_shrinks_while_it_leaves(js: Interpreter) -> None:
    """
    A getter may do anything in between.
    """
    text = "const a = [1, { get x() { a.length = 0; return 2; } }, 3]; a"
    assert told(js, f"(() => {{ {text.replace('; a', '; return a')}; }})()") == [1, {"x": 2}, None]


def test_bytes_that_are_taken_away_while_they_leave(js: Interpreter) -> None:
    """
    Their buffer was transferred: an error, and the agent lives on.
    """
    living = js.load("""
    export const run = (go) => {
      if (!go) return "fine";
      const bytes = new Uint8Array([1]);
      return { get a() { bytes.buffer.transfer(); return 1; }, b: bytes };
    };
    """).instance()
    with pytest.raises(Failed):
        living.message(True)
    assert living.message(False) == "fine"


def test_large_payloads_pass_whole(js: Interpreter) -> None:
    """
    Ten megabytes in; as much out as a reply may hold.
    """
    living = js.load("export const run = (t) => [t.length, t.slice(0, 400000)];").instance()
    text = "ä'\"\\\u2028\x00😀" * 700_000
    length, part = living.message(text)
    assert length == 8 * 700_000
    assert part == text[: 7 * 50_000]
