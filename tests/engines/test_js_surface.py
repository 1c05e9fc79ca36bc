"""
What an agent in JavaScript may ask for, and how the answers look to it.
"""

from __future__ import annotations

from typing import Any

import pytest

from runner.kernel.abi import OPERATIONS, DeliveryKind, Status
from runner.kernel.slice import LogLine
from runner.kernel.state import LastSnapshot, Restored
from tests.engines.driver import NOW_MS, Failed, Interpreter, Living, Refusal, Request, value_of

pytestmark = pytest.mark.js

USAGE = {"calls": 1, "input_tokens": 3, "output_tokens": 4}
CHAT = {"text": "fine", "stop": "end", "model": "m", "usage": USAGE}


def asked(js: Interpreter, expression: str, answer: Any = None) -> tuple[Request, Any]:
    """
    The one call that an expression makes, and what it is worth when that is answered.
    """
    text = f"""
    import * as agent from "agent";
    const {{ llm, tool, memory }} = agent;
    export const run = async () => {expression};
    """
    seen: list[Request] = []

    def reply(request: Request) -> Any:
        seen.append(request)
        return answer

    value = js.load(text).instance().message(None, reply)
    assert len(seen) == 1
    return seen[0], value


# -- the model ---------------------------------------------------------------------------------------------


def test_a_chat_gives_the_final_text(js: Interpreter) -> None:
    """
    Of the messages, only roles and contents leave.
    """
    request, value = asked(js, 'llm.chat([{ role: "user", content: "hi", more: 1 }])', CHAT)
    assert (request.operation, request.request) == (
        "llm.chat",
        {"messages": [{"role": "user", "content": "hi"}]},
    )
    assert value == "fine"


def test_a_text_is_a_message_of_the_users(js: Interpreter) -> None:
    """
    For short.
    """
    request, _ = asked(js, 'llm.chat("hi")', CHAT)
    assert request.request == {"messages": [{"role": "user", "content": "hi"}]}


def test_the_options_of_a_chat_have_the_names_of_the_language(js: Interpreter) -> None:
    """
    And go out by those of the ABI.
    """
    options = '{ tools: ["t"], system: "s", model: "m", maxTokens: 9, provider: "p", onToken() {} }'
    request, _ = asked(js, f'llm.chat("hi", {options})', CHAT)
    assert request.request == {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": ["t"],
        "system": "s",
        "model": "m",
        "max_tokens": 9,
        "provider": "p",
        "stream": True,
    }


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('llm.chat("hi", { temperature: 1 })', "TypeError: unknown option 'temperature' of a chat"),
        ("llm.chat(5)", "TypeError: messages must be an array of { role, content }"),
        ("llm.chat([null])", None),
    ],
)
def test_a_chat_that_makes_no_sense_is_refused_before_it_is_sent(
    js: Interpreter, expression: str, message: str | None
) -> None:
    """
    Where the agent can see it.
    """
    text = f'import {{ llm }} from "agent"; export const run = async () => {expression};'
    living = js.load(text).instance()
    if message is None:
        living.deliver()
        assert living.calls[0].request == {"messages": [{}]}
        return
    with pytest.raises(Failed) as caught:
        living.message()
    assert caught.value.message == message


def test_parts_of_an_answer_come_before_it(js: Interpreter) -> None:
    """
    To a callback, which may stand in the options' place.
    """
    living = js.load("""
    import { llm, log } from "agent";
    export const run = async (form) => {
      const parts = [];
      const f = (text) => { parts.push(text); log(text); };
      const forms = [() => llm.chat("x", f), () => llm.chat("x", {}, f), () => llm.chat("x", { onToken: f })];
      const text = await forms[form]();
      return [text, parts];
    };
    """).instance()
    for form in range(3):
        living.deliver(form)
        call = living.calls[0].number
        for part in ("a", "b", "c"):
            living.part(call, {"text": part})
        assert living.log_texts[-3:] == ["a", "b", "c"]
        assert value_of(living.answer(call, CHAT)) == ["fine", ["a", "b", "c"]]


def test_an_error_in_the_callback_ends_the_call(js: Interpreter) -> None:
    """
    And is the chat's.
    """
    living = js.load("""
    import { llm } from "agent";
    export const run = () => llm.chat("x", () => { throw new RangeError("enough"); });
    """).instance()
    living.deliver()
    result = living.part(1, {"text": "a"})
    assert result.cancelled == (1,)
    with pytest.raises(Failed, match="RangeError: enough"):
        value_of(result)


def test_one_turn_gives_all_of_the_answer(js: Interpreter) -> None:
    """
    With usage in the language's names.
    """
    content = [{"type": "tool_call", "id": "1", "name": "t", "arguments": {"a": 1}}]
    answer = {"content": content, "stop": "tool_calls", "model": "m", "usage": USAGE}
    request, value = asked(js, 'llm.complete("hi")', answer)
    assert request.operation == "llm.complete"
    usage = {"calls": 1, "inputTokens": 3, "outputTokens": 4}
    assert value == {"content": content, "stop": "tool_calls", "model": "m", "usage": usage}


def test_usage_is_known_at_once(js: Interpreter) -> None:
    """
    The sum of the agent's own answers; unknown once a provider did not tell.
    """
    living = js.load("""
    import { llm, usage } from "agent";
    export const run = async () => { const before = usage(); await llm.chat("x"); return [before, usage()]; };
    """).instance()
    zero = {"chatCalls": 0, "promptTokens": 0, "completionTokens": 0}
    one = {"chatCalls": 1, "promptTokens": 3, "completionTokens": 4}
    assert living.message(None, lambda _: CHAT) == [zero, one]
    untold = {**CHAT, "usage": {**USAGE, "output_tokens": None}}
    assert living.message(None, lambda _: untold)[1] == {
        "chatCalls": 2,
        "promptTokens": 6,
        "completionTokens": None,
    }


def test_a_named_provider_is_asked_by_name(js: Interpreter) -> None:
    """
    And the operator alone decides how.
    """
    request, value = asked(js, 'agent.provider("faux", { model: "m" }).chat("hi", { tools: ["t"] })', CHAT)
    assert request.request["provider"] == "faux"
    assert (request.request["model"], request.request["tools"], value) == ("m", ["t"], "fine")
    for option in ("apiKey", "baseURL"):
        text = f'export const run = () => host.provider("faux", {{ {option}: "x" }});'
        with pytest.raises(Failed, match=rf"HostError: provider\(\) takes no '{option}'"):
            js.load(text).instance().message()


@pytest.mark.parametrize(
    ("expression", "operation", "request_", "answer", "value"),
    [
        ("llm.usage()", "llm.usage", {}, USAGE, {"calls": 1, "inputTokens": 3, "outputTokens": 4}),
        ("agent.providers()", "llm.providers", {}, [{"id": "a", "name": "A"}], [{"id": "a", "name": "A"}]),
        ('tool.call("t", { a: 1 })', "tool.call", {"name": "t", "arguments": {"a": 1}}, "x", "x"),
        ('tool.call("t")', "tool.call", {"name": "t"}, {"y": 1}, {"y": 1}),
        ("tool.list()", "tool.list", {}, [], []),
        ('memory.save("t", "c")', "memory.save", {"title": "t", "content": "c"}, {"id": "7"}, "7"),
        ('memory.read("7")', "memory.read", {"id": "7"}, None, None),
        ("memory.list()", "memory.list", {}, [{"id": "7", "title": "t"}], [{"id": "7", "title": "t"}]),
        ('memory.search("q")', "memory.search", {"query": "q", "limit": 5}, [], []),
        ('memory.search("q", 2)', "memory.search", {"query": "q", "limit": 2}, [], []),
        ('memory.forget("7")', "memory.forget", {"id": "7"}, True, True),
    ],
)
def test_each_operation_asks_and_answers(
    js: Interpreter, expression: str, operation: str, request_: Any, answer: Any, value: Any
) -> None:
    """
    By its shape in the ABI.
    """
    request, result = asked(js, expression, answer)
    assert (request.operation, request.request, result) == (operation, request_, value)


def test_calls_overlap(js: Interpreter) -> None:
    """
    Their answers may come in any order.
    """
    living = js.load("""
    import { tool } from "agent";
    export const run = async () => Promise.all(["a", "b", "c"].map((name) => tool.call(name)));
    """).instance()
    living.deliver()
    for number in (3, 1):
        assert living.answer(number, f"answer {number}").reply is None
    assert value_of(living.answer(2, "answer 2")) == ["answer 1", "answer 2", "answer 3"]


# -- refusals ----------------------------------------------------------------------------------------------

TELLS = """
import { llm, tool, memory, HostError } from "agent";
export const run = async () => {
  try {
    await %s;
  } catch (error) {
    return [error instanceof HostError, error instanceof Error, error.name, error.kind, error.message];
  }
};
"""


EXPRESSIONS = {
    "llm.chat": 'llm.chat("x")',
    "llm.complete": 'llm.complete("x")',
    "llm.providers": "host.providers()",
    "llm.usage": "llm.usage()",
    "memory.forget": 'memory.forget("x")',
    "memory.list": "memory.list()",
    "memory.read": 'memory.read("x")',
    "memory.save": 'memory.save("x", "y")',
    "memory.search": 'memory.search("x")',
    "tool.call": 'tool.call("x")',
    "tool.list": "tool.list()",
}


def test_what_is_not_declared_is_refused(engine_js: bytes) -> None:
    """
    By name, as a rejection that can be caught.
    """
    assert EXPRESSIONS.keys() == {name for name in OPERATIONS if not name.startswith("agent.")}
    bare = Interpreter(engine_js, denied=frozenset(EXPRESSIONS))
    for operation, expression in EXPRESSIONS.items():
        told = bare.load(TELLS % expression).instance().message()
        assert told == [True, True, "HostError", "denied", f"{operation} is not granted"]


@pytest.mark.parametrize(
    ("refusal", "kind", "message"),
    [
        (Refusal(Status.FAILED, "upstream", "it broke"), "upstream", "it broke"),
        (Refusal(Status.NOT_FOUND, "not_found", "no such tool"), "not_found", "no such tool"),
        (Refusal(Status.LIMIT, "limit", "budget"), "limit", "budget"),
        (Refusal(Status.DENIED, "denied", "not to paris"), "denied", "not to paris"),
    ],
)
def test_a_call_that_fails_is_rejected_with_the_hosts_words(
    js: Interpreter, refusal: Refusal, kind: str, message: str
) -> None:
    """
    And its kind.
    """
    living = js.load(TELLS % 'tool.call("x")').instance()
    assert living.message(None, lambda _: refusal) == [True, True, "HostError", kind, message]


def test_a_host_error_that_nobody_catches_fails_the_delivery(js: Interpreter) -> None:
    """
    With the author's line.
    """
    living = js.load(
        'import { tool } from "agent";\nexport async function run() {\n  await tool.call("x");\n}'
    ).instance()
    with pytest.raises(Failed) as caught:
        living.message(None, lambda _: Refusal(Status.FAILED, "upstream", "it broke"))
    assert caught.value.message == "HostError: it broke"
    assert caught.value.data["kind"] == "upstream"


def test_more_calls_than_a_slice_may_make_are_refused(js: Interpreter) -> None:
    """
    The others go out.
    """
    living = js.load("""
    import { tool } from "agent";
    export const run = async () => {
      const all = await Promise.allSettled(Array.from({ length: 70 }, () => tool.call("x")));
      return all.filter((one) => one.status === "rejected").map((one) => one.reason.message);
    };
    """).instance()
    assert living.message(None, lambda _: 1) == ["tool.call: a limit of this instance was met"] * 6


# -- timers ------------------------------------------------------------------------------------------------


def test_timers_call_and_tick(js: Interpreter) -> None:
    """
    A function is called, a payload goes to `onTick`; outside any delivery.
    """
    living = js.load("""
    import { after, every, cancel, log } from "agent";
    let handle;
    export default {
      onMessage(x) {
        if (x === "stop") return cancel(handle);
        after(50, () => log("function"));
        after(-5, { some: "payload" });
        handle = every(100, "again");
        return typeof handle;
      },
      onTick(payload) { log("tick", payload); },
    };
    """).instance()
    assert living.message() == "number"
    assert [(call.operation, call.request) for call in living.calls] == [
        ("agent.after", {"delay_ms": 50}),
        ("agent.after", {"delay_ms": 0, "payload": {"some": "payload"}}),
        ("agent.every", {"interval_ms": 100, "payload": "again"}),
    ]
    living.answer(1, None)
    living.answer(2, {"some": "payload"})
    living.part(3, "again")
    living.part(3, "again")
    assert living.log_texts == ["function", "tick { some: 'payload' }", "tick again", "tick again"]
    assert living.message("stop") is True
    assert living.calls == ()
    assert living.message("stop") is False


def test_a_timer_of_no_time_is_none(js: Interpreter) -> None:
    """
    It is called at the end of the slice, after what promises have to do; the host hears nothing of it.
    """
    living = js.load("""
    export const run = async () => {
      const log = [];
      setTimeout(() => log.push("timer"), 0);
      Promise.resolve().then(() => log.push("promise")).then(() => log.push("promise"));
      await new Promise((resolve) => setTimeout(resolve));
      return log;
    };
    """).instance()
    assert living.message() == ["promise", "promise", "timer"]


def test_a_host_that_does_not_stay_has_no_timers(js: Interpreter) -> None:
    """
    Which is an error where the timer is set, and has the word that would help.
    """
    living = js.load("""
    export const run = (name) => {
      const set = globalThis[name] ?? host[name];
      return set === setTimeout || set === setInterval ? set(() => {}, 5) : set(5, "payload");
    };
    """).instance(keeps_timers=False)
    names = {"setTimeout": "after", "schedule": "after", "every": "every", "setInterval": "every"}
    for name, operation in names.items():
        with pytest.raises(Failed) as caught:
            living.message(name)
        message = f"agent.{operation}: timers need a resident host (resident mode)"
        assert (caught.value.data["kind"], caught.value.data["message"]) == ("unsupported", message)


def test_an_error_in_a_timer_is_logged(js: Interpreter) -> None:
    """
    There is nobody else to tell.
    """
    living = js.load("""
    export const run = () => {
      setTimeout(() => { throw new Error("sync"); }, 0);
      setTimeout(async () => { throw new Error("async"); }, 0);
      return 1;
    };
    """).instance()
    assert living.message() == 1
    assert [text.split("\n")[0] for text in living.log_texts] == ["Error: sync", "Error: async"]


def test_timers_of_the_web_are_timers(js: Interpreter) -> None:
    """
    `setTimeout`, `setInterval` and what clears them.
    """
    living = js.load("""
    const log = [];
    export const run = (x) => {
      if (x) return log;
      setTimeout((a, b) => log.push(a, b), 20, 1, 2);
      clearTimeout(setTimeout(() => log.push("never"), 0));
      clearInterval(setInterval(() => log.push("never"), 10));
      setInterval(() => log.push("again"), 10);
    };
    """).instance()
    living.message()
    first, second = living.calls
    living.answer(first.number, None)
    living.part(second.number, None)
    living.part(second.number, None)
    assert living.message(True) == [1, 2, "again", "again"]


# -- the instance's own affairs ----------------------------------------------------------------------------


def test_a_snapshot_is_asked_for(js: Interpreter) -> None:
    """
    At once, and false where none is kept.
    """
    agent = js.load("export const run = (reason) => host.snapshot(reason ?? undefined);")
    living = agent.instance(keeps_snapshots=True)
    assert living.message("why") is True
    assert living.steps[-1].snapshot_reason == "why"
    assert living.message() is True
    assert living.steps[-1].snapshot_reason == ""
    assert agent.instance().message() is False


def test_an_agent_knows_of_its_last_restore(js: Interpreter) -> None:
    """
    And hears of it when it wants to.
    """
    agent = js.load("""
    let heard = null;
    export default { onMessage: () => [host.restored(), heard], onRestore(x) { heard = x; } };
    """)
    living = agent.instance()
    assert living.message() == [None, None]
    again = agent.thaw(living.freeze(), restored=Restored(2, 5, NOW_MS))
    told = {"count": 2, "generation": 5, "at_ms": NOW_MS}
    assert again.message(told, kind=DeliveryKind.RESTORE) is None
    assert again.message() == [{"count": 2, "generation": 5, "at": NOW_MS}, told]


def test_an_agent_knows_what_became_of_its_last_snapshot(js: Interpreter) -> None:
    """
    Whether there is one, or why not.
    """
    living = js.load("export const run = () => host.lastSnapshot();").instance()
    assert living.message() is None
    living.machine.learn_snapshot(LastSnapshot(ok=True, size_bytes=77, at_ms=NOW_MS))
    assert living.message() == {"ok": True, "bytes": 77, "at": NOW_MS, "error": None}
    living.machine.learn_snapshot(LastSnapshot(ok=False, size_bytes=0, at_ms=NOW_MS, error="disk full"))
    assert living.message() == {"ok": False, "bytes": 0, "at": NOW_MS, "error": "disk full"}


OLD = """
let count = 0;
export default {
  onMessage: () => ++count,
  async onHandOver(info) { return { count, to: info.to_version, list: await Promise.all([1, 2]) }; },
};
"""
NEW = """
let count = 0;
export const run = () => count;
export function onTakeOver({ state, from_version }) {
  count = state.count * 100;
  return [from_version, state.list];
}
"""
TO = {"to_agent": "a", "to_version": "2", "to_code": b"", "to_image": b""}
FROM = {"from_agent": "a", "from_version": "1", "from_code": b"", "from_image": b""}


def test_an_agent_hands_over_to_its_successor(js: Interpreter) -> None:
    """
    All that the one says reaches the other.
    """
    old, new = js.load(OLD), js.load(NEW)
    assert old.answer == {"handlers": ["message", "hand_over"]}
    assert new.answer == {"handlers": ["run", "take_over"]}
    before = old.instance()
    assert [before.message() for _ in range(2)] == [1, 2]
    state = before.message(TO, kind=DeliveryKind.HAND_OVER)
    assert state == {"count": 2, "to": "2", "list": [1, 2]}
    after = Living(before.machine.upgraded(new.program, new.image, new.limits))
    assert after.message({**FROM, "state": state}, kind=DeliveryKind.UPGRADE) == ["1", [1, 2]]
    assert after.message() == 200


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", DeliveryKind.HAND_OVER, "TypeError: the agent has no onHandOver, so it can't be upgraded"),
        ("", DeliveryKind.UPGRADE, "TypeError: the agent has no onTakeOver, so it can't take over"),
        (
            "export const onHandOver = () => host.tool.call('t');",
            DeliveryKind.HAND_OVER,
            "HostError: tool.call is not available here",
        ),
        (
            "export const onHandOver = () => new Promise(() => {});",
            DeliveryKind.HAND_OVER,
            "Error: an agent is upgraded at once: it can't wait for anything meanwhile",
        ),
        (
            "export const onTakeOver = () => host.tool.call('t');",
            DeliveryKind.UPGRADE,
            "Error: an agent is upgraded at once: it can't wait for anything meanwhile",
        ),
    ],
)
def test_an_upgrade_that_can_not_be_says_why(
    js: Interpreter, text: str, kind: DeliveryKind, message: str
) -> None:
    """
    And the agent lives on.
    """
    living = js.load(f"{text} export const run = () => 'still here';").instance()
    with pytest.raises(Failed) as caught:
        living.message(TO, kind=kind)
    assert caught.value.message == message
    assert living.message() == "still here"


def test_the_clock_is_the_slices(js: Interpreter) -> None:
    """
    `Date`, `performance` and `console.time` alike; the time zone is UTC.
    """
    living = js.load("""
    const loaded = Date.now();
    export const run = () => {
      const now = new Date();
      return [loaded, Date.now(), now.toISOString(), performance.now(), now.getTimezoneOffset()];
    };
    """).instance()
    living.now_ms = 1_700_000_000_123
    assert living.message() == [0, living.now_ms, "2023-11-14T22:13:20.123Z", living.now_ms, 0]


def test_the_log_has_levels(js: Interpreter) -> None:
    """
    By the log's own functions, and by those of the console.
    """
    living = js.load("""
    import { log } from "agent";
    export const run = () => {
      log("a", { b: [1] }); log.debug("d"); log.info("i"); log.warning("w"); log.error("e");
      console.debug("d"); console.log("l"); console.info("i"); console.warn("w"); console.error("e");
    };
    """).instance()
    living.message()
    assert [(line.level.name, line.message) for line in living.logs] == [
        ("INFO", "a { b: [ 1 ] }"), ("DEBUG", "d"), ("INFO", "i"), ("WARNING", "w"), ("ERROR", "e"),
        ("DEBUG", "d"), ("INFO", "l"), ("INFO", "i"), ("WARNING", "w"), ("ERROR", "e"),
    ]  # fmt: skip


def test_long_lines_are_cut_into_several(js: Interpreter) -> None:
    """
    Nothing is lost, and no character cut in two.
    """
    living = js.load("export const run = (text) => console.log(text);").instance()
    text = "aä😀" * 1500
    living.message(text)
    assert "".join(living.log_texts) == text
    assert all(len(line.message.encode()) <= 4096 - 8 for line in living.logs)
    assert isinstance(living.logs[0], LogLine)
