"""
Agents in JavaScript that use up whatever there is.

Each ends in an error of the language, or at a limit of the host's; and the next delivery is answered.
"""

from __future__ import annotations

import pytest

from runner.errors import RunnerError
from runner.kernel.limits import Limits
from runner.units import MIB
from tests.engines.driver import Failed, Interpreter, failure_of

pytestmark = pytest.mark.js

LIMITS = Limits(memory_bytes=64 * MIB, fuel=3_000_000_000)
PATIENT = Limits(memory_bytes=64 * MIB, fuel=100_000_000_000)
DEPTH = 100_000


def wrapped(body: str) -> str:
    """
    An agent that does something terrible, and then answers.
    """
    return f"""
    const N = {DEPTH};
    const caught = (f) => {{ try {{ f(); return "no error"; }} catch (error) {{ return error; }} }};
    export async function run(next) {{
      if (next) return "still here";
      {body}
    }}
    """


def told(js: Interpreter, body: str) -> str:
    """
    The error that the agent caught, as text; and the agent lives on.
    """
    living = js.load(wrapped(body)).instance(limits=LIMITS)
    text: str = living.message()
    assert living.message(True) == "still here"
    return text


OVERFLOW = "RangeError: Maximum call stack size exceeded"

DEEP_CALLS = {
    "a function": "const f = () => f() + 1; return `${caught(f)}`",
    "a getter": "const o = { get x() { return o.x + 1; } }; return `${caught(() => o.x)}`",
    "a constructor": "class A { constructor() { new A(); } } return `${caught(() => new A())}`",
    "an array's callback": "const f = () => [1].map(f); return `${caught(f)}`",
    "a comparator": "const f = () => [1, 2].sort(f); return `${caught(f)}`",
    "a replacement": "const f = () => 'a'.replace(/a/, f); return `${caught(f)}`",
    "a reviver": "const f = () => JSON.parse('1', f); return `${caught(f)}`",
    "a conversion": "const o = { toString() { return `${o}`; } }; return `${caught(() => `${o}`)}`",
    "a proxy's trap": "const p = new Proxy({}, { get() { return p.x; } }); return `${caught(() => p.x)}`",
    "a generator": "function* f() { yield* f(); } return `${caught(() => f().next())}`",
    "an async function": "const f = async () => { await f(); }; return f().catch(String)",
    "apply": "function f() { Reflect.apply(f, null, []); } return `${caught(f)}`",
    "hasInstance": "class A { static [Symbol.hasInstance](v) { return v instanceof A; } }"
    " return `${caught(() => 1 instanceof A)}`",
    "eval": "globalThis.f = () => (0, eval)('f()'); return `${caught(f)}`",
}

DEEP_TEXTS = {
    "parentheses": "'('.repeat(N) + '1' + ')'.repeat(N)",
    "arrays": "'['.repeat(N) + ']'.repeat(N)",
    "objects": "'({a:'.repeat(N) + '1' + '})'.repeat(N)",
    "blocks": "'{'.repeat(N) + '}'.repeat(N)",
    "unary operators": "'!'.repeat(N) + '1'",
    "typeof": "'typeof '.repeat(N) + '1'",
    "new": "'new '.repeat(N) + 'Object'",
    "arrow functions": "'a=>'.repeat(N) + '1'",
    "functions": "'(function(){'.repeat(N) + '})'.repeat(N)",
    "classes": "'(class {['.repeat(N) + '1' + ']=1})'.repeat(N)",
    "methods": "'({m(){'.repeat(N) + '}})'.repeat(N)",
    "conditions": "'1?'.repeat(N) + '1' + ':1'.repeat(N)",
    "powers": "'1**'.repeat(N) + '1'",
    "assignments": "'a='.repeat(N) + '1'",
    "templates": "'`${'.repeat(N) + '1' + '}`'.repeat(N)",
    "calls": "'isNaN('.repeat(N) + '1' + ')'.repeat(N)",
    "statements": "'if(1)'.repeat(N) + '1'",
    "parameters": "'(function(a='.repeat(N) + '1' + '){})'.repeat(N)",
    "await": "'(async()=>' + 'await '.repeat(N) + '1)'",
    "yield": "'(function*(){' + 'yield '.repeat(N) + '1})'",
}

DEEP_VALUES = {
    "JSON.parse of arrays": "JSON.parse('['.repeat(N) + ']'.repeat(N))",
    "JSON.parse of objects": "JSON.parse('{\"a\":'.repeat(N) + '1' + '}'.repeat(N))",
    "JSON.stringify": "JSON.stringify(nested)",
    "String": "String(nested)",
    "flat": "nested.flat(Infinity)",
    "structuredClone": "structuredClone(nested)",
    "keys of proxies": "Object.keys(proxied)",
    "properties of proxies": "Object.defineProperty(proxied, 'x', { value: 1, configurable: true })",
    "writes to proxies": "proxied.x = 1",
    "prototypes of proxies": "Object.getPrototypeOf(proxied)",
}
MAKE_NESTED = """
let nested = [], proxied = {};
for (let i = 0; i < N; i++) { nested = [nested]; proxied = new Proxy(proxied, {}); }
"""


@pytest.mark.parametrize("what", DEEP_CALLS)
def test_deep_recursion_is_a_range_error(js: Interpreter, what: str) -> None:
    """
    Long before the frames of WebAssembly come to their end.
    """
    assert told(js, DEEP_CALLS[what]) == OVERFLOW


@pytest.mark.parametrize("what", DEEP_TEXTS)
def test_deep_programs_are_a_range_error(js: Interpreter, what: str) -> None:
    """
    Of the parser's.
    """
    assert told(js, f"return `${{caught(() => eval({DEEP_TEXTS[what]}))}}`") == OVERFLOW


@pytest.mark.parametrize("what", DEEP_VALUES)
def test_deep_values_are_a_range_error(js: Interpreter, what: str) -> None:
    """
    Of whatever goes down into them.
    """
    assert told(js, f"{MAKE_NESTED} return `${{caught(() => {DEEP_VALUES[what]})}}`") == OVERFLOW


def test_deep_modules_are_a_range_error(js: Interpreter) -> None:
    """
    The author of one learns of it when the agent is built.
    """
    with pytest.raises(Failed) as caught:
        js.load(f"export const run = {'[' * DEPTH}{']' * DEPTH};")
    assert (caught.value.message, caught.value.data["kind"]) == (OVERFLOW, "syntax")
    with pytest.raises(Failed, match=OVERFLOW):
        js.check("a.js", "(" * DEPTH)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("const k = []; for (let i = 0; i < 3000; i++) k.push(new ArrayBuffer(512 * 1024))", "out of memory"),
        ("const k = []; for (;;) k.push({ a: 1 })", "out of memory"),
        ("const k = []; for (;;) k.push(() => k)", "out of memory"),
        ("const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })", "out of memory"),
        ("const s = []; for (let i = 0; ; i++) s.push('x'.repeat(1000) + i)", "out of memory"),
        ("let s = 'x'; for (;;) s += s", "string too long"),
        ("let a = [1]; for (;;) a = a.concat(a)", "out of memory"),
        ("new Array(4294967295).fill(1)", "out of memory"),
        ("new Uint8Array(2 ** 30)", "out of memory"),
        ("new Uint8Array(2 ** 31)", "invalid array buffer length"),
        ("'x'.repeat(2 ** 29).split('')", "out of memory"),
        ("2n ** (2n ** 40n)", "BigInt is too large"),
        ("/(?:a|b)*c/.test('ab'.repeat(1000000))", "out of memory in regexp execution"),
    ],
)
def test_memory_that_runs_out_is_an_error_of_the_language(js: Interpreter, what: str, kind: str) -> None:
    """
    Which can be caught; what was held is free again.
    """
    living = js.load(wrapped(f"return caught(() => {{ {what}; }}).message")).instance(limits=PATIENT)
    try:
        message = living.message()
    except Failed as failure:
        # There may be too little left to make even the answer.
        message, kind = failure.message, "InternalError: out of memory"
    assert message == kind
    for _ in range(3):
        assert living.message(True) == "still here"


def test_memory_that_is_kept_leaves_the_agent_able_to_answer(js: Interpreter) -> None:
    """
    With what is left; and it may let go of it.
    """
    living = js.load("""
    let kept = [];
    export const run = (what) => {
      if (what === "fill") for (;;) kept.push(new Uint8Array(512 * 1024));
      if (what === "drop") kept = [];
      return kept.length;
    };
    """).instance(limits=LIMITS)
    with pytest.raises(Failed, match="InternalError: out of memory"):
        living.message("fill")
    held = living.message()
    assert held > 100
    assert living.message("drop") == 0
    with pytest.raises(Failed, match="InternalError: out of memory"):
        living.message("fill")
    assert living.message() > 100


def test_a_promise_chain_that_outgrows_memory_ends(js: Interpreter) -> None:
    """
    As an error of the delivery, not as one that waits for ever.
    """
    living = js.load(
        wrapped(
            "const all = []; const f = () => new Promise((r) => { all.push(r); f().then(r); }); return f();"
        )
    )
    with pytest.raises((Failed, RunnerError)):
        living.instance(limits=LIMITS).message()


@pytest.mark.parametrize(
    "body",
    [
        "while (true);",
        "for (;;) try { null.x; } catch {}",
        "/^(a+)+$/.test('a'.repeat(64) + 'b')",
        "const f = () => { Promise.resolve().then(() => {}).then(f); }; f(); await new Promise(() => {});",
        "const f = () => setTimeout(f, 0); f();",
        "const f = () => queueMicrotask(f); f();",
        "const a = []; a[4294967290] = 1; a.length = 4294967295; a.sort();",
        "'x'.repeat(1 << 20).replaceAll('x', () => { while (true); });",
        "Object.keys(new Proxy({}, { ownKeys() { while (true); } }));",
    ],
)
def test_what_never_ends_is_ended_by_fuel(js: Interpreter, body: str) -> None:
    """
    From outside, and as if it had never begun.
    """
    living = js.load(wrapped(body)).instance(limits=LIMITS)
    before = living.machine.digest()
    assert failure_of(living.message).kind == "limit"
    assert living.machine.digest() == before
    assert living.message(True) == "still here"


def test_a_comparator_may_lie(js: Interpreter) -> None:
    """
    And change what is sorted meanwhile.
    """
    body = """
    const a = Array.from({ length: 5000 }, (_, i) => i);
    a.sort(() => Math.random() - 0.5);
    a.sort((x, y) => { a.length = 0; a.push(x, y); return 1; });
    new Float64Array(5000).sort(() => -1);
    return `${a.length >= 0}`;
    """
    assert told(js, body) == "true"


# Such an agent can't even loop over a list any more.
PATCHED = """
const { ownKeys, defineProperty } = Reflect;
const classes = [Array, Map, Set, Promise, String, Object, Function, RegExp, Error, Symbol];
for (let i = 0; i < classes.length; i++) {
  const keys = ownKeys(classes[i].prototype);
  for (let k = 0; k < keys.length; k++) {
    if (keys[k] === "constructor") continue;
    defineProperty(classes[i].prototype, keys[k], { get() { throw "patched"; } });
  }
}
const names = ["JSON", "Map", "Promise", "Object", "Reflect", "Error", "BigInt", "console", "host"];
for (let i = 0; i < names.length; i++) globalThis[names[i]] = null;
"""


def test_an_agent_that_breaks_its_own_language_still_answers(js: Interpreter) -> None:
    """
    What it overwrites is its own: its deliveries still end.
    """
    living = js.load(f"""
    import {{ tool, log }} from "agent";
    export const run = (x) => {{
      if (x === "break") {{ {PATCHED} }}
      if (x === "call") tool.call("t", {{ a: 1 }});
      if (x === "throw") throw {{}};
      log("told");
      return {{ x, list: [1, 2] }};
    }};
    """).instance()
    assert living.message("break") == {"x": "break", "list": [1, 2]}
    assert living.message("again") == {"x": "again", "list": [1, 2]}
    assert living.message("call") == {"x": "call", "list": [1, 2]}
    assert living.calls[0].request == {"name": "t", "arguments": {"a": 1}}
    living.answer(1, "unheard")
    with pytest.raises(Failed):
        living.message("throw")
    assert living.message("last") == {"x": "last", "list": [1, 2]}


def test_an_agent_can_not_reach_the_engines_own_modules(js: Interpreter) -> None:
    """
    Neither by name nor through what it is handed.
    """
    for name in ("runner:host", "runner:main", "std", "os", "qjs:std", "node:fs", "fs"):
        with pytest.raises(Failed) as caught:
            js.load(f'import * as x from "{name}"; export const run = () => 1;')
        assert caught.value.data["message"] == f"module '{name}' is not available to an agent"
    living = js.load("""
    const names = ["std", "os", "bjson", "scriptArgs", "print", "load", "gc", "require", "process", "fetch",
      "WebAssembly", "navigator", "XMLHttpRequest", "Intl"];
    export const run = () => names.filter((name) => name in globalThis);
    """).instance()
    assert living.message() == []
