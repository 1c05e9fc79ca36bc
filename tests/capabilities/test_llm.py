"""
Asking a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import anyio
import pytest

from runner.capabilities import asking
from runner.capabilities.asking import Purse
from runner.capabilities.base import CallResult
from runner.capabilities.standard import standard_handlers
from runner.capabilities.usage import UsageMeter
from runner.codec import Value
from runner.errors import ProviderError
from runner.kernel.abi import Status
from runner.memory.notes import InMemoryNotes
from runner.package.fields import FieldProblem
from runner.policy.budgets import Charge
from runner.policy.grants import Grants
from runner.providers.base import Message, ModelRequest, Stop, StreamEvent, TextDelta, Usage
from runner.providers.script import Events, Fault, Reply, Script, Step
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider

ASK: dict[str, Value] = {"messages": [{"role": "user", "content": "hi there"}]}
USED = {"calls": 1, "input_tokens": 2, "output_tokens": 2}


class Recording:
    """
    A provider that yields what it was given and remembers what it was asked.
    """

    def __init__(self, *events: StreamEvent | Exception, name: str = "scripted") -> None:
        self.name = name
        self.events = events
        self.asked: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        The events, or the error among them.
        """
        self.asked.append(request)
        try:
            for event in self.events:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed += 1


class Agent:
    """
    One instance's `llm` handlers, its meter, and the parts that were streamed to it.
    """

    def __init__(self, *providers: Any, grants: Grants | None = None) -> None:
        self.usage = UsageMeter()
        self.parts: list[Value] = []
        self.handlers = standard_handlers(
            providers={provider.name: provider for provider in providers},
            default_model=SCRIPTED_MODEL,
            grants=grants or Grants(),
            notes=InMemoryNotes(),
            purse=Purse(usage=self.usage),
        )

    def call(self, operation: str, request: Value) -> CallResult:
        """
        The result of one call.
        """

        async def emit(part: Value) -> None:
            self.parts.append(part)

        return anyio.run(self.handlers.handle, operation, request, emit)


def says(*texts: str) -> Recording:
    """
    A provider that says these pieces and what they cost.
    """
    return Recording(*map(TextDelta, texts), Usage(2, 2), Stop("end"))


def test_chat_answers_with_text_stop_model_and_usage() -> None:
    """
    In the shape of the ABI.
    """
    assert Agent(says("Hel", "lo.")).call("llm.chat", ASK) == CallResult(
        Status.OK, {"text": "Hello.", "stop": "end", "model": "scripted/default", "usage": USED}
    )


def test_complete_answers_with_content() -> None:
    """
    None at all when the model said nothing.
    """
    ending = {"stop": "end", "model": "scripted/default", "usage": USED}
    assert Agent(says("Hel", "lo.")).call("llm.complete", ASK) == CallResult(
        Status.OK, {"content": [{"type": "text", "text": "Hello."}], **ending}
    )
    assert Agent(says()).call("llm.complete", ASK) == CallResult(Status.OK, {"content": [], **ending})


def test_the_provider_is_asked_what_the_guest_asked() -> None:
    """
    The model without the provider's name.
    """
    provider = says("x")
    request = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": ""},
        ],
        "system": "be kind",
        "model": "scripted/big/model:1",
        "max_tokens": 5,
        "tools": [],
        "stream": False,
    }
    assert Agent(provider).call("llm.chat", request).payload["model"] == "scripted/big/model:1"
    assert provider.asked == [
        ModelRequest(
            messages=(Message("system", "s"), Message("user", "u"), Message("assistant", "")),
            model="big/model:1",
            system="be kind",
            max_tokens=5,
        )
    ]


def test_parts_are_emitted_only_when_they_are_asked_for() -> None:
    """
    The whole answer comes at the end all the same.
    """
    agent = Agent(says("a", "b"))
    assert agent.call("llm.chat", ASK).payload["text"] == "ab"
    assert agent.parts == []
    assert agent.call("llm.chat", {**ASK, "stream": True}).payload["text"] == "ab"
    assert agent.parts == [{"text": "a"}, {"text": "b"}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": []}, "messages: expected at least 1, found 0"),
        ({"messages": "hi"}, "messages: expected a list, found text"),
        ({"messages": [1]}, "messages[0]: expected a map, found an integer"),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            'messages[0].role: expected "system", "user" or "assistant"',
        ),
        ({"messages": [{"role": "user"}]}, "messages[0].content: missing"),
        (
            {"messages": [*ASK["messages"], {"role": "user", "content": None}]},
            "messages[1].content: expected text or a list, found null",
        ),
        ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "messages[0].name: unknown key"),
        ({"temperature": 1.0}, "temperature: unknown key"),
        ({"system": 1}, "system: expected text, found an integer"),
        ({"model": "gpt"}, 'model: expected a model such as "scripted/default"'),
        ({"model": "scripted/a b"}, 'model: expected a model such as "scripted/default"'),
        ({"model": "*/*"}, 'model: expected a model such as "scripted/default"'),
        ({"max_tokens": 0}, "max_tokens: expected an integer of one or more"),
        ({"stream": 1}, "stream: expected true or false, found an integer"),
        ({"tools": ["shell"]}, "tools[0]: no tool named 'shell' is granted"),
        ({"tools": [1]}, "tools[0]: expected text, found an integer"),
    ],
)
@pytest.mark.parametrize("operation", ["llm.chat", "llm.complete"])
def test_a_request_of_a_wrong_shape_reaches_no_provider(operation: str, change: Any, message: str) -> None:
    """
    And the message says where the fault is.
    """
    provider = says("x")
    agent = Agent(provider)
    assert agent.call(operation, {**ASK, **change}) == CallResult(
        Status.INVALID, {"kind": "invalid", "message": message}
    )
    assert (provider.asked, agent.usage.calls) == ([], 0)


def test_a_model_that_is_not_granted_is_denied_with_the_flag() -> None:
    """
    Whether this host has its provider or not.
    """
    provider = Recording(name="other")
    agent = Agent(provider)
    for model in ("other/x", "nowhere/x"):
        assert agent.call("llm.chat", {**ASK, "model": model}) == CallResult(
            Status.DENIED,
            {"kind": "denied", "message": f"model {model} is not granted; add --allow llm:{model}"},
        )
    assert provider.asked == []


def test_a_model_that_a_rule_denies_is_denied_with_the_rule() -> None:
    """
    Also the host's own choice.
    """
    agent = Agent(says("x"), grants=Grants.parse(deny=["llm:scripted/def*"]))
    assert agent.call("llm.chat", ASK) == CallResult(
        Status.DENIED,
        {
            "kind": "denied",
            "message": "model scripted/default is not granted; remove --deny llm:scripted/def*",
        },
    )
    assert agent.call("llm.chat", {**ASK, "model": "scripted/x"}).status is Status.OK


def test_a_grant_for_one_operation_is_none_for_the_other() -> None:
    """
    The model is checked for the operation that asks.
    """
    agent = Agent(Recording(Stop("end"), name="other"), grants=Grants.parse(allow=["llm.complete:other/*"]))
    request = {**ASK, "model": "other/x"}
    assert agent.call("llm.complete", request).status is Status.OK
    assert agent.call("llm.chat", request).status is Status.DENIED


def test_a_provider_that_this_host_lacks_is_unsupported() -> None:
    """
    Once it is granted.
    """
    agent = Agent(grants=Grants.parse(allow=["llm"]))
    assert agent.call("llm.chat", {**ASK, "model": "nowhere/x"}) == CallResult(
        Status.UNSUPPORTED, {"kind": "unsupported", "message": "this host has no provider nowhere"}
    )


def test_a_provider_may_be_named_apart_from_its_model() -> None:
    """
    Under the same rules as `PROVIDER/MODEL`; without a model, its default.
    """
    provider = says("x")
    agent = Agent(provider)
    for more, model in (({}, "scripted/default"), ({"model": "a/b"}, "scripted/a/b")):
        answer = agent.call("llm.chat", {**ASK, "provider": "scripted", **more})
        assert answer.status is Status.OK
        assert isinstance(answer.payload, dict)
        assert answer.payload["model"] == model
    assert agent.call("llm.chat", {**ASK, "provider": "other"}).payload == {
        "kind": "denied",
        "message": "model other/default is not granted; add --allow llm:other/default",
    }
    assert agent.call("llm.chat", {**ASK, "provider": "no/slash"}).status is Status.INVALID


def test_an_agent_sees_the_providers_that_it_may_ask() -> None:
    """
    And no others.
    """
    both = (says("x"), Recording(name="other"))
    own = {"id": "scripted", "name": "scripted", "model": "default"}
    assert Agent(*both).call("llm.providers", {}) == CallResult(Status.OK, [own])
    assert Agent(*both, grants=Grants.parse(allow=["llm"])).call("llm.providers", {}) == CallResult(
        Status.OK, [{"id": "other", "name": "other", "model": "default"}, own]
    )
    assert Agent(*both, grants=Grants.parse(deny=["llm.chat"])).call("llm.providers", {}).payload == []


def test_a_provider_that_fails_is_an_answer() -> None:
    """
    What came before is part of no answer, though it may have been streamed.
    """
    agent = Agent(Recording(TextDelta("a"), ProviderError("scripted", "connection reset")))
    assert agent.call("llm.chat", {**ASK, "stream": True}) == CallResult(
        Status.FAILED, {"kind": "upstream", "message": "provider scripted: connection reset"}
    )
    assert agent.parts == [{"text": "a"}]


def test_a_stream_that_ends_without_a_stop_is_a_failure() -> None:
    """
    Half an answer must not pass for a whole one.
    """
    agent = Agent(Recording(TextDelta("a"), Usage(1, 1)))
    assert agent.call("llm.chat", ASK) == CallResult(
        Status.FAILED, {"kind": "upstream", "message": "provider scripted: the answer broke off"}
    )


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A provider can't fill the host's memory.
    """
    monkeypatch.setattr(asking, "MAX_ANSWER_CHARACTERS", 3)
    provider = Recording(TextDelta("ab"), TextDelta("cd"), Stop("end"))
    assert Agent(provider).call("llm.chat", ASK) == CallResult(
        Status.FAILED, {"kind": "upstream", "message": "provider scripted: the answer is too long"}
    )
    assert provider.closed == 1


def test_a_stream_is_closed_at_its_stop() -> None:
    """
    Nothing that follows is read, and nothing is left open.
    """
    provider = Recording(Stop("refusal"), TextDelta("x"))
    payload = Agent(provider).call("llm.chat", ASK).payload
    assert (payload["text"], payload["stop"], provider.closed) == ("", "refusal", 1)


def test_usage_adds_up_and_unknown_stays_unknown() -> None:
    """
    A sum with an unknown part is not known; zero would be a lie.
    """
    provider = says("x")
    agent = Agent(provider)
    assert agent.call("llm.usage", {}).payload == {"calls": 0, "input_tokens": 0, "output_tokens": 0}
    agent.call("llm.chat", ASK)
    agent.call("llm.complete", ASK)
    assert agent.call("llm.usage", {}).payload == {"calls": 2, "input_tokens": 4, "output_tokens": 4}
    provider.events = (Usage(5, None), Stop("end"))
    assert agent.call("llm.chat", ASK).payload["usage"] == {
        "calls": 1,
        "input_tokens": 5,
        "output_tokens": None,
    }
    assert agent.call("llm.usage", {}).payload == {"calls": 3, "input_tokens": 9, "output_tokens": None}
    provider.events = (Usage(1, 1), Stop("end"))
    agent.call("llm.chat", ASK)
    assert agent.call("llm.usage", {}).payload == {"calls": 4, "input_tokens": 10, "output_tokens": None}


def test_a_provider_that_says_nothing_of_usage_leaves_it_unknown() -> None:
    """
    For the call and for the sum.
    """
    agent = Agent(Recording(Stop("end")))
    unknown = {"calls": 1, "input_tokens": None, "output_tokens": None}
    assert agent.call("llm.chat", ASK).payload["usage"] == unknown
    assert agent.call("llm.usage", {}).payload == unknown


@pytest.mark.parametrize(
    ("events", "used"),
    [
        ((ProviderError("p", "HTTP status 429", status=429),), (1, 0, 0)),
        ((ProviderError("p", "connection reset"),), (1, None, None)),
        ((TextDelta("a"), ProviderError("p", "connection reset")), (1, None, None)),
        ((Usage(3, None), TextDelta("a"), ProviderError("p", "connection reset")), (1, 3, None)),
        ((TextDelta("a"), ProviderError("p", "odd", status=500)), (1, None, None)),
    ],
)
def test_a_request_that_failed_is_counted_with_what_is_known_of_its_cost(
    events: Any, used: tuple[int, int | None, int | None]
) -> None:
    """
    A refusal by status costs nothing; of a broken stream nobody knows.
    """
    agent = Agent(Recording(*events))
    assert agent.call("llm.chat", ASK).status is Status.FAILED
    assert (
        agent.usage.calls,
        agent.usage.total.input_tokens,
        agent.usage.total.output_tokens,
    ) == used


def test_a_request_that_is_cancelled_is_counted_and_closed() -> None:
    """
    A guest may give a call up; the provider may bill it all the same.
    """
    provider = ScriptedProvider(
        Script(turns=(Events(steps=(Step(Fault(kind="hang")),)), Reply(template="ok")))
    )
    agent = Agent(provider)

    async def give_up() -> bool:
        async def emit(part: Value) -> None:
            raise AssertionError(part)

        with anyio.move_on_after(0) as scope:
            await agent.handlers.handle("llm.chat", ASK, emit)
        return scope.cancelled_caught

    assert anyio.run(give_up)
    assert agent.usage.to_wire() == {"calls": 1, "input_tokens": None, "output_tokens": None}
    assert agent.call("llm.chat", ASK).payload["text"] == "ok"


def test_the_totals_survive_their_wire_form() -> None:
    """
    And what is none is refused.
    """
    meter = UsageMeter()
    meter.add(Usage(5, None, 2), "scripted/default", 7)
    assert UsageMeter.from_state(meter.to_state()) == replace(meter, charged=Charge(0, 0, 0, 0))
    older = UsageMeter.from_state({"calls": 3, "input_tokens": 5, "output_tokens": None})
    assert older.to_wire() == {"calls": 3, "input_tokens": 5, "output_tokens": None}
    with pytest.raises(FieldProblem, match=r"^input_tokens: expected an integer, found text$"):
        UsageMeter.from_state({"calls": 1, "input_tokens": "x", "output_tokens": 1})
    with pytest.raises(FieldProblem, match=r"^output_tokens: missing$"):
        UsageMeter.from_state({"calls": 1, "input_tokens": 1})
