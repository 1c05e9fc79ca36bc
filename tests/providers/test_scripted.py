"""
The scripted provider.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import anyio
import pytest

from runner.codec import Value
from runner.errors import ProviderError
from runner.package.fields import FieldProblem
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Provider,
    Reasoning,
    Stop,
    StreamEvent,
    TextDelta,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from runner.providers.script import Answer, Events, Fault, FaultKind, Reply, Rule, Script, Step
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider


class Clock:
    """
    Remembers how long it was asked to sleep, and does not.
    """

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        """
        Note the delay.
        """
        self.slept_s.append(delay_s)


def user(text: str, *, system: str | None = None, max_tokens: int | None = None) -> ModelRequest:
    """
    A request with one user message.
    """
    return ModelRequest(
        messages=(Message("user", text),), model="default", system=system, max_tokens=max_tokens
    )


def turns(*answers: Answer) -> Script:
    """
    A script of turns alone.
    """
    return Script(turns=answers)


def events_of(provider: Provider, request: ModelRequest) -> list[StreamEvent]:
    """
    All events of one request.
    """

    async def ask() -> list[StreamEvent]:
        return [event async for event in provider.stream(request)]

    return anyio.run(ask)


def text_of(provider: Provider, request: ModelRequest) -> str:
    """
    The text of one request.
    """
    return "".join(event.text for event in events_of(provider, request) if isinstance(event, TextDelta))


def failure_of(provider: Provider, request: ModelRequest) -> tuple[ProviderError, list[StreamEvent]]:
    """
    The error that a request ends in, and the events before it.
    """
    events: list[StreamEvent] = []

    async def ask() -> None:
        async for event in provider.stream(request):
            events.append(event)  # noqa: PERF401 - they are wanted although the loop fails

    with pytest.raises(ProviderError) as caught:
        anyio.run(ask)
    return caught.value, events


def test_without_a_script_it_says_what_it_is_and_what_it_heard() -> None:
    """
    The first thing that a newcomer reads.
    """
    assert text_of(ScriptedProvider(), user("good morning")) == "(scripted) You said: good morning"
    assert SCRIPTED_MODEL == "scripted/default"


def test_the_same_request_gives_the_same_events() -> None:
    """
    Again, and from another provider.
    """
    provider = ScriptedProvider()
    first = events_of(provider, user("x"))
    assert events_of(provider, user("x")) == first
    assert events_of(ScriptedProvider(), user("x")) == first


def test_a_reply_comes_in_pieces_with_usage_and_stop() -> None:
    """
    Word by word; tokens are words, those of the system and of every message included.
    """
    provider = ScriptedProvider(turns(Reply(template="  one two\n three ")))
    request = ModelRequest(
        messages=(Message("user", "a b"), Message("assistant", "c")), model="default", system="d e"
    )
    assert events_of(provider, request) == [
        TextDelta("  one "),
        TextDelta("two\n "),
        TextDelta("three "),
        Usage(5, 3),
        Stop("end"),
    ]


def test_a_long_reply_comes_in_some_dozens_of_pieces() -> None:
    """
    An echo of a guest's megabyte must not become half a million events.
    """
    reply = "word " * 100_000
    events = events_of(ScriptedProvider(turns(Reply(template=reply))), user(""))
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) == 64
    assert "".join(pieces) == reply


def test_a_reply_of_nothing_but_space_is_no_text() -> None:
    """
    However long: it takes no time by its square.
    """
    provider = ScriptedProvider(turns(Reply(template="{input}")))
    assert events_of(provider, user(" " * 1_000_000)) == [Usage(0, 0), Stop("end")]


def test_max_tokens_cuts_a_reply_and_says_so() -> None:
    """
    As a real model does.
    """
    provider = ScriptedProvider(Script(rules=(Rule(answer=Reply(template="one two three")),)))
    assert events_of(provider, user("x", max_tokens=2)) == [
        TextDelta("one "),
        TextDelta("two "),
        Usage(1, 2),
        Stop("max_tokens"),
    ]
    assert events_of(provider, user("x", max_tokens=3))[-1] == Stop("end")


def test_a_template_has_the_input_and_the_number_of_the_request() -> None:
    """
    What the input says is not filled in again, and other braces stay.
    """
    provider = ScriptedProvider(Script(rules=(Rule(answer=Reply(template="{turn}:{input} {other} {}")),)))
    assert text_of(provider, user("{turn}")) == "1:{turn} {other} {}"
    assert text_of(provider, user("b")) == "2:b {other} {}"


def test_the_input_is_the_newest_user_message() -> None:
    """
    Or nothing, when there is none.
    """
    provider = ScriptedProvider(Script(rules=(Rule(answer=Reply(template="<{input}>")),)))
    messages = (Message("user", "old"), Message("user", "new"), Message("assistant", "x"))
    assert text_of(provider, ModelRequest(messages=messages, model="m")) == "<new>"
    assert text_of(provider, ModelRequest(messages=messages[2:], model="m")) == "<>"


def test_a_reply_reports_the_usage_that_the_script_says() -> None:
    """
    Unknown is unknown.
    """
    provider = ScriptedProvider(turns(Reply(template="x", usage=Usage(None, 7), stop="refusal")))
    assert events_of(provider, user("x")) == [TextDelta("x"), Usage(None, 7), Stop("refusal")]


def test_turns_come_first_and_rules_after_them() -> None:
    """
    The first rule that applies answers.
    """
    script = Script(
        turns=(Reply(template="turn"),),
        rules=(Rule(answer=Reply(template="rain"), contains="weather"), Rule(answer=Reply(template="what"))),
    )
    provider = ScriptedProvider(script)
    assert [text_of(provider, user(text)) for text in ("weather", "the weather", "Weather")] == [
        "turn",
        "rain",
        "what",
    ]


def test_a_script_that_is_used_up_fails() -> None:
    """
    A test double that made something up would hide the fault.
    """
    provider = ScriptedProvider(
        Script(turns=(Reply(template="x"),), rules=(Rule(answer=Reply(template="y"), contains="z"),))
    )
    events_of(provider, user("x"))
    error, events = failure_of(provider, user("x"))
    assert str(error) == "provider scripted: the script has no turn 2 and no rule that applies"
    assert (events, error.retryable) == ([], False)


def test_events_are_given_as_they_are_with_what_they_leave_out() -> None:
    """
    Usage and stop are added where the script has none.
    """
    provider = ScriptedProvider(
        turns(
            Events(steps=(Step(TextDelta("a b")),)),
            Events(steps=(Step(Usage(1, 2)), Step(TextDelta("a")))),
            Events(steps=(Step(TextDelta("a")), Step(Stop("stop_sequence")))),
        )
    )
    assert events_of(provider, user("x")) == [TextDelta("a b"), Usage(1, 2), Stop("end")]
    assert events_of(provider, user("x")) == [Usage(1, 2), TextDelta("a"), Stop("end")]
    assert events_of(provider, user("x")) == [TextDelta("a"), Usage(1, 1), Stop("stop_sequence")]


def test_delays_are_slept_before_their_events() -> None:
    """
    By the clock that the provider was given.
    """
    clock = Clock()
    script = turns(Events(steps=(Step(TextDelta("a"), 20), Step(TextDelta("b")), Step(Stop("end"), 5))))
    provider = ScriptedProvider(script, sleep=clock.sleep)
    events_of(provider, user("x"))
    assert clock.slept_s == [0.02, 0.005]


def test_a_reply_is_delayed_before_each_piece() -> None:
    """
    As a model that thinks between its words.
    """
    clock = Clock()
    events_of(ScriptedProvider(turns(Reply(template="a b", delay_ms=10)), sleep=clock.sleep), user("x"))
    assert clock.slept_s == [0.01, 0.01]


@pytest.mark.parametrize(
    ("kind", "message", "retryable"),
    [
        ("reset", "provider scripted: connection reset", True),
        ("malformed", "provider scripted: malformed event in the stream", False),
    ],
)
def test_a_fault_breaks_the_stream_where_it_stands(kind: FaultKind, message: str, retryable: bool) -> None:
    """
    Before the first byte, or after some text.
    """
    fault = Step(Fault(kind=kind))
    provider = ScriptedProvider(turns(Events(steps=(fault,)), Events(steps=(Step(TextDelta("a")), fault))))
    for expected in ([], [TextDelta("a")]):
        error, events = failure_of(provider, user("x"))
        assert (str(error), error.status, error.retryable, events) == (message, None, retryable, expected)


@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (408, True), (429, True), (529, True)]
)
def test_an_http_fault_carries_its_status(status: int, retryable: bool) -> None:
    """
    And whether the request may be tried again, and when.
    """
    fault = Fault(kind="http", status=status, retry_after_ms=1500)
    error, _ = failure_of(ScriptedProvider(turns(Events(steps=(Step(fault),)))), user("x"))
    assert str(error) == f"provider scripted: HTTP status {status}"
    assert (error.status, error.retryable, error.retry_after_ms) == (status, retryable, 1500)


def test_a_hang_ends_only_when_it_is_cancelled() -> None:
    """
    It sleeps for ever, on whatever clock.
    """
    clock = Clock()
    script = turns(Events(steps=(Step(Fault(kind="hang")),)))
    assert events_of(ScriptedProvider(script, sleep=clock.sleep), user("x")) == []
    assert clock.slept_s == [math.inf]

    async def ask() -> bool:
        with anyio.move_on_after(0) as scope:
            async for _ in ScriptedProvider(script).stream(user("x")):
                pass
        return scope.cancelled_caught

    assert anyio.run(ask)


def test_a_failed_request_uses_up_its_turn() -> None:
    """
    So that a retry meets the next one.
    """
    provider = ScriptedProvider(turns(Events(steps=(Step(Fault(kind="reset")),)), Reply(template="ok")))
    failure_of(provider, user("x"))
    assert text_of(provider, user("x")) == "ok"


def test_its_place_in_the_script_can_be_carried_elsewhere() -> None:
    """
    Another provider with the same script goes on where this one was.
    """
    script = turns(Reply(template="one"), Reply(template="two"))
    first, second = ScriptedProvider(script), ScriptedProvider(script)
    events_of(first, user("x"))
    assert first.to_wire() == {"again": [], "requests": 1}
    second.restore(first.to_wire())
    assert text_of(second, user("x")) == "two"
    with pytest.raises(FieldProblem, match=r"^requests: expected an integer of zero or more$"):
        second.restore({"again": [], "requests": -1})
    assert second.to_wire() == {"again": [], "requests": 2}


def test_a_request_that_is_being_answered_gets_its_turn_again_elsewhere() -> None:
    """
    A snapshot makes it again, and must not meet the turn after it; one that was cancelled has used its up.
    """
    script = turns(*(Reply(template=text) for text in ("one", "two", "three", "four")))
    first, second = ScriptedProvider(script), ScriptedProvider(script)

    async def freeze() -> None:
        cancelled, caught, over = (first.stream(user("x")) for _ in range(3))
        await anext(cancelled)
        await cancelled.aclose()
        await anext(caught)
        assert [event async for event in over]
        second.restore(first.to_wire())
        await caught.aclose()

    anyio.run(freeze)
    assert second.to_wire() == {"again": [2], "requests": 3}
    assert [text_of(second, user("x")) for _ in range(2)] == ["two", "four"]


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        ({"requests": 1}, "again: missing"),
        ({"again": [2], "requests": 1}, "again: expected numbers of requests, ascending"),
        ({"again": [1, 1], "requests": 1}, "again: expected numbers of requests, ascending"),
        ({"again": [0], "requests": 1}, "again[0]: expected an integer of one or more"),
        ({"again": [], "requests": 1 << 60}, "requests: expected at most 1000000000000000"),
    ],
)
def test_a_place_in_the_script_that_can_not_be_is_refused(wire: Value, problem: str) -> None:
    """
    Snapshots come from anyone.
    """
    with pytest.raises(FieldProblem, match=f"^{re.escape(problem)}$"):
        ScriptedProvider().restore(wire)


def test_a_script_file_is_followed(tmp_path: Path) -> None:
    """
    From the file to the text.
    """
    path = tmp_path / "s.toml"
    path.write_text('[[rules]]\nwhen.matches = "^[0-9]+$"\nreply = "{input} it is"\n', encoding="utf-8")
    assert text_of(ScriptedProvider.from_file(path), user("42")) == "42 it is"


def test_a_script_can_call_tools() -> None:
    """Each call has an id that no other has, and the answer ends with that."""
    call = ToolCall("", "add", {"a": 1})
    turn = Events(steps=(Step(call), Step(call), Step(ToolCall("mine", "add", {}))))
    events = [
        event
        for event in events_of(ScriptedProvider(Script(turns=(turn,))), user("go"))
        if not isinstance(event, Usage)
    ]
    assert events == [
        ToolCall("call-1-1", "add", {"a": 1}),
        ToolCall("call-1-2", "add", {"a": 1}),
        ToolCall("mine", "add", {}),
        Stop("tool_calls"),
    ]


def test_words_of_tool_results_are_counted() -> None:
    """They are read like any other."""
    asked = ModelRequest(
        model="default",
        messages=(
            Message("user", (TextPart("one two"), ToolResult("x", "three four"))),
            Message("user", (ToolResult("y", (TextPart("five"), ImagePart("image/png", b"!"))),)),
            Message("assistant", (ToolCall("z", "add", {}), Reasoning("scripted", "{}"))),
        ),
    )
    provider = ScriptedProvider(Script(turns=(Reply(template="yes"),)))
    assert Usage(5, 1) in events_of(provider, asked)
    assert asked.last_user_text == "one two"
