"""
The JavaScript engine as an agent that is still unloaded, then as the agent that it has loaded.
"""

from __future__ import annotations

from typing import Any

import pytest

from runner.kernel.abi import DeliveryKind
from tests.engines.driver import Failed, Interpreter

pytestmark = pytest.mark.js


def refused(js: Interpreter, modules: str | dict[str, str], entry: str | None = None) -> dict[str, Any]:
    """
    The data of the failure that a load ends in.
    """
    with pytest.raises(Failed) as caught:
        js.load(modules, entry)
    return caught.value.data


# -- check -------------------------------------------------------------------------------------------------


def test_a_check_tells_the_imports_of_a_module_in_order_and_each_once(js: Interpreter) -> None:
    """
    Static imports and what is exported from elsewhere, as they are written.
    """
    text = (
        'import a from "./a.js"; export * from "agent";\n'
        'import { b } from "./b.js"; export { c } from "./a.js";'
    )
    assert js.check("x.js", text) == {"imports": ["./a.js", "agent", "./b.js"]}


def test_a_check_does_not_run_the_module(js: Interpreter) -> None:
    """
    Nor does it look for what is imported.
    """
    assert js.check("x.js", 'import "no such thing"; throw new Error("ran");') == {
        "imports": ["no such thing"]
    }


def test_a_check_leaves_nothing_behind(js: Interpreter) -> None:
    """
    A load in the same instance sees the module anew.
    """
    engine = js.fresh()
    engine.message({"check": {"name": "agent.js", "text": "export const run = () => 1;"}})
    modules = [{"name": "agent.js", "text": "export const run = () => 2;"}]
    engine.message({"load": {"name": "test", "modules": modules, "entry": "agent.js"}})
    assert engine.message() == 2


def test_a_check_of_what_is_no_javascript_says_where(js: Interpreter) -> None:
    """
    With line and column of the author's file.
    """
    with pytest.raises(Failed) as caught:
        js.check("lib/x.js", "export const a = 1;\nexport const b = ;\n")
    data = caught.value.data
    assert (data["kind"], data["file"], data["line"], data["column"]) == ("syntax", "lib/x.js", 2, 18)
    assert caught.value.message == "SyntaxError: unexpected token in expression: ';'"


# -- entry points ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "handlers"),
    [
        ("export const run = (x) => ['run', x];", ["run"]),
        ("export const run = (x) => ['run', x]; export default (x) => ['default', x];", ["run"]),
        ("export default (x) => ['default', x];", ["message"]),
        ("export default { onMessage: (x) => ['message', x], run: (x) => ['no', x] };", ["message"]),
        ("export default { run: (x) => ['method', x] };", ["run"]),
        ("globalThis.run = (x) => ['global', x];", ["run"]),
        ("export default class { static onMessage() {} }", ["message"]),
    ],
)
def test_a_message_finds_its_handler(js: Interpreter, text: str, handlers: list[str]) -> None:
    """
    `run` before `default`, and a global `run` last.
    """
    agent = js.load(text)
    assert agent.answer == {"handlers": handlers}
    if "class" not in text:
        assert agent.instance().message("x")[1] == "x"


def test_each_kind_of_delivery_has_its_handler(js: Interpreter) -> None:
    """
    Methods of the default export, called on it.
    """
    agent = js.load("""
    export default {
      name: "me",
      onMessage(x) { return [this.name, "message", x]; },
      async onEvent(x) { return [this.name, "event", x]; },
      onTick(x) { return [this.name, "tick", x]; },
      onRestore(x) { return [this.name, "restore", x]; },
    };
    """)
    assert agent.answer == {"handlers": ["message", "event", "tick", "restore"]}
    living = agent.instance()
    kinds = (DeliveryKind.MESSAGE, DeliveryKind.EVENT, DeliveryKind.TICK, DeliveryKind.RESTORE)
    words = [living.message(1, kind=kind)[1] for kind in kinds]
    assert words == ["message", "event", "tick", "restore"]


def test_a_kind_without_a_handler_fails_and_the_next_message_does_not(js: Interpreter) -> None:
    """
    But a restore that nobody handles is null.
    """
    living = js.load("export const run = () => 1;").instance()
    with pytest.raises(Failed, match=r"^TypeError: no handler for 'event'$"):
        living.message(kind=DeliveryKind.EVENT)
    assert living.message(kind=DeliveryKind.RESTORE) is None
    assert living.message() == 1


def test_an_agent_without_an_entry_point_is_refused(js: Interpreter) -> None:
    """
    By the name of what it lacks.
    """
    data = refused(js, "export const walk = 1;")
    assert (data["kind"], data["message"]) == ("entry", "agent does not define run(input)")


def test_a_module_is_evaluated_once_and_its_state_lives_on(js: Interpreter) -> None:
    """
    From message to message.
    """
    agent = js.load('console.log("body"); let n = 0; export const run = () => ++n;')
    living = agent.instance()
    assert [living.message() for _ in range(3)] == [1, 2, 3]
    assert [line.message for line in agent.logs] == ["body"]
    assert living.logs == []


def test_an_answer_that_never_comes_is_noticed(js: Interpreter) -> None:
    """
    At the end of the slice, with a word that says why.
    """
    living = js.load("export const run = (wait) => wait ? new Promise(() => {}) : 'fine';").instance()
    with pytest.raises(Failed, match=r"^Error: the agent waits for something that will never come$"):
        living.message(True)
    assert living.message(False) == "fine"


def test_work_goes_on_after_the_reply(js: Interpreter) -> None:
    """
    In later wakes, which belong to no delivery.
    """
    living = js.load("""
    import { tool, log } from "agent";
    export function run() {
      (async () => { log(await tool.call("a")); log(await tool.call("b")); })();
      return "at once";
    }
    """).instance()
    assert living.message() == "at once"
    living.drain(lambda call: f"answer of {call.request['name']}")
    assert living.log_texts == ["answer of a", "answer of b"]


# -- loading -----------------------------------------------------------------------------------------------


def test_modules_import_one_another_in_circles(js: Interpreter) -> None:
    """
    As the language has it.
    """
    agent = js.load(
        {
            "agent.js": 'import { odd } from "./odd.js";\n'
            "export const even = (n) => n === 0 || odd(n - 1);\nexport const run = even;",
            "odd.js": 'import { even } from "./agent.js"; export const odd = (n) => n !== 0 && even(n - 1);',
        }
    )
    assert agent.instance().message(10) is True


def test_imports_are_what_the_host_has_resolved(js: Interpreter) -> None:
    """
    Whatever their names.
    """
    modules: list[dict[str, Any]] = [
        {
            "name": "agent.js",
            "text": 'export { run } from "odd name";',
            "imports": {"odd name": "lib/deep/x.js"},
        },
        {"name": "lib/deep/x.js", "text": 'import { y } from "../y.js"; export const run = () => y;'},
        {"name": "lib/y.js", "text": "export const y = 'found';"},
    ]
    assert js.load(modules).instance().message() == "found"


def test_modules_can_be_imported_at_run_time(js: Interpreter) -> None:
    """
    Those that the agent has; any other is refused.
    """
    living = js.load(
        {
            "agent.js": 'import "./b.js"; export const run = async (name) => (await import(name)).b;',
            "b.js": "export const b = 5;",
        }
    ).instance()
    assert living.message("./b.js") == 5
    with pytest.raises(Failed, match="ReferenceError: module 'fs' is not available to an agent"):
        living.message("fs")
    with pytest.raises(Failed, match="is not available to an agent"):
        living.message("runner:host")


@pytest.mark.parametrize(
    ("text", "kind", "message", "line"),
    [
        ("export const run = 1 +;", "syntax", "unexpected token in expression: ';'", 1),
        ('import x from "fs";', "import", "module 'fs' is not available to an agent", 0),
        ('import { y } from "agent";', "import", "Could not find export 'y' in module 'agent'", 0),
        ("\nthrow new RangeError('x');", "load", "x", 2),
        ("await new Promise(() => {});", "load", "the agent waits for something that will never come", 0),
        ("\n\nwhile (true);", "load", "does not finish loading", 1),
        ("let i = 0;\nfor (;;) i++;", "load", "does not finish loading", 1),
        ("const f = () => Promise.resolve().then(f); f();", "load", None, 0),
        ("const f = () => setTimeout(f, 0); f();", "load", None, 0),
        ("const f = () => f(); f();", "load", "Maximum call stack size exceeded", 1),
        ("const a = []; for (;;) a.push(new ArrayBuffer(1 << 20));", "load", "out of memory", 1),
        (
            "import { llm } from 'agent';\nawait llm.chat('x');",
            "load",
            "llm.chat: an agent can't ask anything while it loads",
            2,
        ),
        ("setTimeout(() => {}, 5);", "load", "agent.after: an agent can't ask anything while it loads", 1),
    ],
)
def test_a_load_that_fails_says_why_and_where(
    js: Interpreter, text: str, kind: str, message: str | None, line: int
) -> None:
    """
    By kind, file and line; of what does not end, the line where the function begins.
    """
    data = refused(js, text)
    assert (data["kind"], data["file"], data["line"]) == (kind, "agent.js", line)
    assert message is None or data["message"] == message


def test_a_failure_in_an_imported_module_names_its_file(js: Interpreter) -> None:
    """
    Its syntax, and what it throws.
    """
    entry = 'import "./lib/b.js"; export const run = 1;'
    data = refused(js, {"agent.js": entry, "lib/b.js": "\nlet let = 1;"})
    assert (data["kind"], data["file"], data["line"]) == ("syntax", "lib/b.js", 2)
    data = refused(js, {"agent.js": entry, "lib/b.js": "\nnull.x;"})
    assert (data["kind"], data["file"], data["line"], data["name"]) == ("load", "lib/b.js", 2, "TypeError")


def test_top_level_await_of_what_needs_no_host(js: Interpreter) -> None:
    """
    Promises and zero timers.
    """
    living = js.load(
        "const x = await new Promise((r) => setTimeout(r, 0, 7)); export const run = () => x;"
    ).instance()
    assert living.message() == 7


# -- tests -------------------------------------------------------------------------------------------------

SUITE = """
import { equal } from "agent/test";
import { run } from "./agent.js";
export const passes = () => equal(run(2), 4);
export async function fails() { equal(await run(2), 5); }
export const _helper = () => {};
export const notOne = 5;
"""


def test_suites_are_told_and_run_one_test_at_a_time(js: Interpreter) -> None:
    """
    Each in an instance of its own, if the host likes.
    """
    agent = js.load(
        {"agent.js": "export const run = (n) => n * 2;", "agent.test.js": SUITE}, suites=["agent.test.js"]
    )
    assert agent.answer == {"tests": [["agent.test.js", "fails"], ["agent.test.js", "passes"]]}
    assert agent.instance().message({"suite": "agent.test.js", "test": "passes"}) is None
    with pytest.raises(Failed) as caught:
        agent.instance().message({"suite": "agent.test.js", "test": "fails"})
    assert caught.value.message == "AssertionError: expected 5, got 4"
    assert (caught.value.data["file"], caught.value.data["line"]) == ("agent.test.js", 5)
    with pytest.raises(Failed, match="there is no test '_helper2'"):
        agent.instance().message({"suite": "agent.test.js", "test": "_helper2"})


# -- errors ------------------------------------------------------------------------------------------------

BROKEN = """export async function run(input) {
  return inner(input);
}
function inner(input) {
  return input.missing.field;
}
"""


def test_an_error_has_its_message_and_the_authors_lines(js: Interpreter) -> None:
    """
    And none of the engine's own.
    """
    with pytest.raises(Failed) as caught:
        js.load(BROKEN).instance().message({})
    data = caught.value.data
    assert caught.value.message == "TypeError: cannot read property 'field' of undefined"
    assert (data["name"], data["file"], data["line"], data["column"]) == ("TypeError", "agent.js", 5, 10)
    assert data["stack"] == "    at inner (agent.js:5:10)\n    at run (agent.js:2:16)"


@pytest.mark.parametrize(
    ("thrown", "message"),
    [
        ("'text'", "text"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("5n", "5"),
        ("Symbol('s')", "a symbol"),
        ("{}", "[object Object]"),
        ("Object.create(null)", ""),
        ("Object.assign(new Error('m'), { name: 'Mine' })", "Mine: m"),
        ("new Error()", "Error"),
        ("Object.defineProperty(new Error('m'), 'message', { get() { throw 1; } })", "Error"),
        ("new Proxy(new Error('m'), { get() { throw 1; } })", "Error"),
        ("new Error('x'.repeat(100000))", "Error: " + "x" * 4096),
        ("new Error('a\\ud800')", "Error: a\ufffd"),
    ],
)
def test_anything_can_be_thrown(js: Interpreter, thrown: str, message: str) -> None:
    """
    And is told as well as it can be.
    """
    living = js.load(f"export const run = () => {{ throw {thrown}; }};").instance()
    with pytest.raises(Failed) as caught:
        living.message()
    assert caught.value.message == message


def test_a_promise_that_is_rejected_while_nobody_looks_is_logged(js: Interpreter) -> None:
    """
    Unless somebody looks before the slice has ended.
    """
    living = js.load("""
    export function run() {
      Promise.reject(new Error("lost"));
      const caught = Promise.reject(new Error("found"));
      setTimeout(() => caught.catch(() => {}), 0);
      return 1;
    }
    """).instance()
    assert living.message() == 1
    assert living.log_texts == ["uncaught in a promise: Error: lost\n    at run (agent.js:3:26)"]
