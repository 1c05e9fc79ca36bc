"""
Agents that were written for KaozKit: they run as they are.
"""

from __future__ import annotations

import pytest

from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.state import Restored
from tests.engines.driver import NOW_MS, Failed, Interpreter, Refusal, Request

pytestmark = pytest.mark.js

USAGE = {"calls": 1, "input_tokens": 10, "output_tokens": 5}


def faux(request: Request) -> object:
    """
    A model that repeats, tools that add, and notes that are there.
    """
    asked = request.request
    match request.operation:
        case "llm.chat":
            text = f"echo: {asked['messages'][-1]['content']}"
            return {"text": text, "stop": "end", "model": asked.get("provider", "faux"), "usage": USAGE}
        case "tool.call":
            return str(sum(asked["arguments"].values()))
        case "tool.list":
            return [{"name": "add", "description": "adds", "input_schema": {}}]
        case "memory.save":
            return {"id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}
        case "memory.search":
            return [{"id": "1", "title": asked["query"], "content": "c", "score": 0.5}][: asked["limit"]]
        case "llm.providers":
            return [{"id": "a", "name": "A", "model": "m"}, {"id": "b", "name": "B"}]
        case _:
            return None


ONE_SHOT = """
// Uses the global host, as the first examples do.
export async function run(input) {
  host.log("researching", input.topic);
  const tools = await host.tool.list();
  const sum = await host.tool.call("add", { a: 1, b: 2 });
  let streamed = "";
  const answer = await host.llm.chat(
    [{ role: "system", content: "be brief" }, { role: "user", content: input.topic }],
    { tools: tools.map((tool) => tool.name) },
    (token) => { streamed += token; },
  );
  const id = await host.memory.save(input.topic, answer);
  const found = await host.memory.search(input.topic);
  const usage = host.usage();
  return { answer, sum, id, found: found.length, usage, missing: undefined };
}
export default { run() { return "not this one"; } };
"""


def test_a_one_shot_agent_with_the_global_host(js: Interpreter) -> None:
    """
    `run` wins over `default`; what is undefined leaves the result.
    """
    living = js.load(ONE_SHOT).instance()
    assert living.message({"topic": "owls"}, faux) == {
        "answer": "echo: owls",
        "sum": "3",
        "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "found": 1,
        "usage": {"chatCalls": 1, "promptTokens": 10, "completionTokens": 5},
    }
    assert living.log_texts == ["researching owls"]


RESIDENT = """
import { llm, tool, memory, log, usage } from "kaoz/host";
import { schedule, every, cancel, snapshot, restored, lastSnapshot } from "kaoz/host";

let count = 0;
let restores = 0;
export default {
  async onMessage(text) {
    count += 1;
    if (text === "checkpoint") return snapshot("asked");
    return { count, restores, reply: await llm.chat([{ role: "user", content: text }]) };
  },
  onEvent(event) { return `heard ${event.type}`; },
  onTick(payload) { log("tick", payload); },
  onRestore({ count: times }) { restores = times; },
};
"""


def test_a_resident_agent_with_an_object_of_handlers(js: Interpreter) -> None:
    """
    Counts, checkpoints, and goes on after a restore that it hears of once.
    """
    agent = js.load(RESIDENT)
    assert agent.answer == {"handlers": ["message", "event", "tick", "restore"]}
    living = agent.instance(keeps_snapshots=True)
    assert living.message("hi", faux) == {"count": 1, "restores": 0, "reply": "echo: hi"}
    assert living.message({"type": "mail"}, kind=DeliveryKind.EVENT) == "heard mail"
    assert living.message("t", kind=DeliveryKind.TICK) is None
    assert living.message("checkpoint") is True
    assert living.steps[-1].snapshot_reason == "asked"
    again = agent.thaw(living.freeze(), restored=Restored(1, 1, NOW_MS), keeps_snapshots=True)
    told = {"count": 1, "generation": 1, "at_ms": NOW_MS}
    assert again.message(told, kind=DeliveryKind.RESTORE) is None
    assert again.message("hi", faux) == {"count": 3, "restores": 1, "reply": "echo: hi"}


def test_a_plain_function_takes_messages(js: Interpreter) -> None:
    """
    The shortest of all agents.
    """
    living = js.load(
        "export default async (text) => (await host.llm.chat([{ role: 'user', content: text }])).length;"
    )
    assert living.instance().message("four", faux) == len("echo: four")


def test_an_agent_composes_providers(js: Interpreter) -> None:
    """
    One model's answer is another one's question.
    """
    living = js.load("""
    import { provider, providers } from "kaoz/host";
    export async function run(input) {
      const known = await providers();
      const [one, other] = known.map(({ id, model }) => provider(id, { model }));
      const prompt = await one.chat([{ role: "user", content: input }]);
      return other.chat([{ role: "user", content: prompt }]);
    }
    """).instance()
    assert living.message("x", faux) == "echo: echo: x"


def test_a_tools_error_rejects(js: Interpreter) -> None:
    """
    With the tool's words, unlike inside of a chat.
    """
    living = js.load("""
    export async function run() {
      try {
        await host.tool.call("broken", {});
      } catch (error) {
        return `tool said: ${error.message}`;
      }
    }
    """).instance()
    assert (
        living.message(None, lambda _: Refusal(Status.FAILED, "upstream", "no paper"))
        == "tool said: no paper"
    )


def test_callback_timers_run_beside_deliveries(js: Interpreter) -> None:
    """
    What they wait for is no part of any; `cancel` inside one stops it.
    """
    living = js.load("""
    let times = 0;
    export default (x) => {
      if (x === "count") return times;
      const handle = host.every(100, async () => {
        await host.memory.save("t", "c");
        times += 1;
        if (times === 2) host.cancel(handle);
      });
      return "armed";
    };
    """).instance()
    assert living.message("go") == "armed"
    timer = living.calls[0].number
    for _ in range(2):
        living.part(timer, None)
        living.answer(living.calls[-1].number, {"id": "1"})
    assert living.calls == ()
    assert living.message("count") == 2


def test_there_are_no_other_agents(js: Interpreter) -> None:
    """
    And an agent can ask.
    """
    living = js.load("""
    import { available, Thread } from "kaoz/thread";
    export const run = (x) => x ? new Thread("child") : available();
    """).instance()
    assert living.message() is False
    with pytest.raises(Failed, match="HostError: this host starts no other agents"):
        living.message(True)


SUITE = """
import { equal, deepEqual, throws, rejects, runSuites, AssertionError } from "kaoz/test";
const good = {
  adds() { equal(1 + 1, 2); },
  async compares() { deepEqual({ a: [1, new Map([[1, 2]])] }, { a: [1, new Map([[1, 2]])] }); },
  throwing() { throws(() => { throw new TypeError("bad"); }, /bad/); throws(() => null.x, TypeError); },
  async rejecting() {
    await rejects(Promise.reject(new Error("no")), "no");
    await rejects(async () => { throw 1; });
  },
  _helper() { throw new Error("not a test"); },
};
const bad = { fails() { equal(1, 2); }, leaks() {} };
export async function run(which) {
  if (which === "good") return runSuites([{ name: "good", module: good }]);
  if (which === "none") return runSuites([{ name: "none", module: {} }]);
  try {
    await runSuites([{ name: "bad", module: bad }, { name: "good", module: good }], {
      afterEach: () => (which === "leak" ? ["a handle"] : []),
    });
  } catch (error) {
    return { isAssertion: error instanceof AssertionError, message: error.message, report: error.report };
  }
}
"""


def test_suites_run_inside_of_an_agent(js: Interpreter) -> None:
    """
    Each failure has its line in the log; no tests at all are a failure.
    """
    living = js.load(SUITE).instance()
    assert living.message("good") == {"passed": 4, "failed": 0, "failures": []}
    told = living.message("bad")
    assert told["report"] == {
        "passed": 5,
        "failed": 1,
        "failures": [{"suite": "bad", "test": "fails", "message": "AssertionError: expected 2, got 1"}],
    }
    assert told["isAssertion"] is True
    assert living.log_texts == ["bad: fails: AssertionError: expected 2, got 1"]
    assert living.message("leak")["report"]["failed"] == 6
    with pytest.raises(Failed, match="there are no tests"):
        living.message("none")


def test_payloads_are_data_whatever_they_look_like(js: Interpreter) -> None:
    """
    Quotes, line separators and emoji come back as they were.
    """
    text = "'\"`\\ \u2028\u2029 ${x} 😀 </script> \x00"
    assert js.load("export const run = (x) => x;").instance().message({"text": text}) == {"text": text}
