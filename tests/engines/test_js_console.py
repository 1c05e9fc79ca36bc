"""
How values look in the log.
"""

from __future__ import annotations

import pytest

from tests.engines.driver import Interpreter

pytestmark = pytest.mark.js


def logged(js: Interpreter, arguments: str) -> str:
    """
    What `console.log` makes of its arguments.
    """
    living = js.load(f"export const run = () => {{ console.log({arguments}); }};").instance()
    living.message()
    return "\n".join(living.log_texts)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("'a', 1, true, null, undefined, 5n, -0, Symbol('s')", "a 1 true null undefined 5n -0 Symbol(s)"),
        ("{ a: 1, 'b-c': 'x', [Symbol('k')]: 2 }", "{ a: 1, 'b-c': 'x', [Symbol(k)]: 2 }"),
        ("[1, 'it\\'s', [], {}]", "[ 1, \"it's\", [], {} ]"),
        ("[1, , 3, , ,]", "[ 1, <1 empty item>, 3, <2 empty items> ]"),
        ("[new Map([['a', { b: 1 }]]), new Set([1])]", "[ Map(1) { 'a' => { b: 1 } }, Set(1) { 1 } ]"),
        ("{ a: { b: { c: { d: 1 } } } }", "{ a: { b: { c: [Object] } } }"),
        ("(() => { const o = { x: 1 }; o.o = o; return o; })()", "<ref *1> { x: 1, o: [Circular *1] }"),
        ("[() => 1, function f() {}, class A {}]", "[ [Function (anonymous)], [Function: f], [class A] ]"),
        ("[class B extends Array {}]", "[ [class B extends Array] ]"),
        ("new (class Point { x = 1; })()", "Point { x: 1 }"),
        ("Object.create(null)", "[Object: null prototype] {}"),
        ("{ get a() { throw 1; }, set b(v) {} }", "{ a: [Getter], b: [Setter] }"),
        ("new Date(0), /x/g, new Uint8Array([1, 2])", "1970-01-01T00:00:00.000Z /x/g Uint8Array(2) [ 1, 2 ]"),
        ("Promise.resolve(1), new Promise(() => {})", "Promise { 1 } Promise { <pending> }"),
        ("'%s is %d and %i, %j %O %% %x', 'a', '1.5', '2.7', { b: 1 }, [1], 'more'",
         'a is 1.5 and 2, {"b":1} [ 1 ] % %x more'),
        ("'only %s'", "only %s"),
        ("['a\\nb', \"it's\"], 'a\\nb'", "[ 'a\\nb', \"it's\" ] a\nb"),
        ("Array.from({ length: 102 }, () => 0).length, new Array(3)", "102 [ <3 empty items> ]"),
        ("{ list: ['" + "x" * 40 + "', '" + "y" * 40 + "'] }",
         "{\n  list: [\n    '" + "x" * 40 + "',\n    '" + "y" * 40 + "'\n  ]\n}"),
    ],
)  # fmt: skip
def test_values_are_shown_as_in_node(js: Interpreter, arguments: str, text: str) -> None:
    """
    And showing one does nothing to it.
    """
    assert logged(js, arguments) == text


def test_a_proxy_is_not_looked_into(js: Interpreter) -> None:
    """
    Its traps may do anything.
    """
    assert (
        logged(js, "[new Proxy({ a: 1 }, { get() { throw 1; }, ownKeys() { throw 2; } })]") == "[ [Proxy] ]"
    )


def test_errors_are_shown_with_their_stack(js: Interpreter) -> None:
    """
    And their cause.
    """
    text = logged(js, "new TypeError('bad', { cause: 'why' })")
    assert text.splitlines()[:2] == ["TypeError: bad", "    at run (agent.js:1:44)"]
    assert "[cause]: 'why'" in text


def test_the_console_counts_groups_and_times(js: Interpreter) -> None:
    """
    With the clock of the slice.
    """
    living = js.load("""
    export const run = () => {
      console.group("outer"); console.log("in\\nside"); console.group(); console.warn("deep");
      console.groupEnd(); console.groupEnd(); console.log("out");
      console.count(); console.count("x"); console.count();
      console.time("t"); console.timeEnd("t"); console.assert(1 > 2, "no"); console.assert(true);
      console.dir({ a: 1 }); console.table([1]);
    };
    """).instance()
    living.message()
    assert living.log_texts == [
        "outer", "  in\n  side", "    deep", "out", "default: 1", "x: 1", "default: 2", "t: 0ms",
        "Assertion failed: no", "{ a: 1 }", "[ 1 ]",
    ]  # fmt: skip
