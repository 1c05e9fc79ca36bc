"""
The tool loop of `llm.chat`.
"""

from __future__ import annotations

from typing import Any

import pytest

from runner.errors import RequestUnsupported
from runner.kernel.abi import Status
from runner.policy.grants import Grants
from runner.providers.base import Message, Reasoning, Stop, TextDelta, TextPart, ToolCall, ToolResult, Usage
from runner.tools.base import ToolFailure
from tests.capabilities.doubles import Agent, Model, Shed, Turn, calls, says


def test_the_model_gets_what_came_of_its_tools_and_the_agent_its_final_text():
    """Both calls of the turn happen, and one more request is made."""
    model, shed = Model(calls("add", "add", text="let me see"), says("done")), Shed()
    agent = Agent(model=model, tools=[shed.tool("add")])
    result = agent.call(tools=["add"])
    assert result.status is Status.OK
    assert result.payload == {
        "text": "done",
        "stop": "end",
        "model": "scripted/default",
        "usage": {"calls": 2, "input_tokens": 4, "output_tokens": 4},
    }
    assert model.last == (
        Message("user", "hi there"),
        Message(
            "assistant",
            (TextPart("let me see"), ToolCall("c0", "add", {"n": 0}), ToolCall("c1", "add", {"n": 1})),
        ),
        Message("user", (ToolResult("c0", 'add did {"n": 0}'), ToolResult("c1", 'add did {"n": 1}'))),
    )


def test_the_model_hears_of_a_tool_that_failed():
    """The call goes on: what is to be done about it is the model's to say."""

    async def fail(arguments: object) -> Any:
        raise ToolFailure("failed", f"{arguments} is too much")

    model, shed = Model(calls("add"), says("sorry")), Shed()
    result = Agent(model=model, tools=[shed.tool("add", work=fail)]).call(tools=["add"])
    assert (result.status, result.payload["text"]) == (Status.OK, "sorry")
    assert model.results() == [("c0", "failed: {'n': 0} is too much", True)]


def test_the_model_hears_of_a_tool_that_is_not_there():
    """Also of one that is granted and was not offered."""
    model, shed = Model(calls("other", "rm"), says("sorry")), Shed()
    agent = Agent(model=model, tools=[shed.tool("add"), shed.tool("other")])
    assert agent.call(tools=["add"]).payload["text"] == "sorry"
    assert model.results() == [("c0", "no tool named 'other'", True), ("c1", "no tool named 'rm'", True)]
    assert shed.marks == []


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (["add", "nope"], "tools[1]: no tool named 'nope' is granted"),
        (["secret"], "tools[0]: no tool named 'secret' is granted"),
        (["add", "add"], "tools[1]: 'add' is there twice"),
    ],
)
def test_a_tool_that_the_agent_has_not_is_refused_before_anybody_is_asked(tools: list[Any], message: str):
    """Whether it does not exist or is not granted."""
    model, shed = Model(says("x")), Shed()
    grants = Grants.parse(["llm", "tool:add"])
    result = Agent(model=model, tools=[shed.tool("add"), shed.tool("secret")], grants=grants).call(
        tools=tools
    )
    assert result == (Status.INVALID, {"kind": "invalid", "message": message})
    assert model.asked == []


def test_tools_that_may_be_repeated_run_side_by_side_and_their_results_keep_the_order_of_the_calls():
    """However many of them."""
    model, shed = Model(calls(*["look"] * 12), says("done")), Shed()
    Agent(model=model, tools=[shed.tool("look")]).call(tools=["look"])
    assert shed.most == 8
    assert [name for name, _, _ in model.results()] == [f"c{index}" for index in range(12)]


def test_a_tool_that_may_not_be_repeated_runs_alone_and_in_its_turn():
    """Those before it have ended, and those after it have not begun."""
    model, shed = Model(calls("look", "send", "look"), says("done")), Shed()
    Agent(model=model, tools=[shed.tool("look"), shed.tool("send", "effectful")]).call(tools=["look", "send"])
    assert (shed.most, shed.marks) == (1, ["look 0", "send 1", "look 2"])


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_a_turn_that_was_cut_off_or_refused_executes_nothing(stop: Any):
    """A call in it may look whole and be none."""
    turn: Turn = [TextDelta("I will"), ToolCall("c0", "send", {"n": 0}), Usage(2, 2), Stop(stop)]
    shed = Shed()
    agent = Agent(model=Model(turn), tools=[shed.tool("send", "effectful")])
    assert (agent.call(tools=["send"]).payload["text"], shed.marks) == ("I will", [])
    assert agent.call(tools=["send"]).payload["stop"] == stop
    content = agent.call("llm.complete", tools=["send"]).payload["content"]
    assert content == [{"type": "text", "text": "I will"}]


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ([ToolCall("c0", "look", {"n": 0}), Stop("end")], "the turn calls tools and ends as if it did not"),
        ([TextDelta("x"), Stop("tool_calls")], "the turn ended for tools that it does not call"),
        (
            [ToolCall("c", "look", {"n": 0}), ToolCall("c", "look", {"n": 1}), Stop("tool_calls")],
            "two tool calls of a turn have the same id",
        ),
        ([ToolCall("c0", "look", {"n": 0}), Usage(1, 1)], "the answer broke off"),
    ],
)
def test_a_turn_that_contradicts_itself_is_none(turn: Any, message: str):
    """And nothing of it is executed."""
    shed = Shed()
    result = Agent(model=Model(turn), tools=[shed.tool("look")]).call(tools=["look"])
    assert result == (Status.FAILED, {"kind": "upstream", "message": f"provider scripted: {message}"})
    assert shed.marks == []


def test_a_model_that_never_ends_is_stopped_and_the_agent_sees_that():
    """Tools of the turn that was the last are not used: nobody would hear of it."""
    model, shed = Model(calls("look", text="again")), Shed()
    result = Agent(model=model, tools=[shed.tool("look")]).call(tools=["look"], max_turns=3)
    assert (result.payload["text"], result.payload["stop"]) == ("again", "max_turns")
    assert (len(model.asked), len(shed.marks)) == (3, 2)
    Agent(model=model, tools=[shed.tool("look")]).call(tools=["look"])
    assert len(model.asked) == 3 + 20


def test_one_turn_hands_tool_calls_to_the_agent():
    """Which may answer them in its next request, reasoning and all."""
    thought = Reasoning("scripted", "opaque", "hm")
    turn: Turn = [
        thought,
        TextDelta("see"),
        ToolCall("c0", "look", {"n": 0}, "seal"),
        Usage(2, 2),
        Stop("tool_calls"),
    ]
    model, shed = Model(turn, says("done")), Shed()
    agent = Agent(model=model, tools=[shed.tool("look")])
    answer = agent.call("llm.complete", tools=["look"])
    assert answer.payload["stop"] == "tool_calls"
    assert answer.payload["content"] == [
        {"type": "reasoning", "made_by": "scripted", "data": "opaque", "text": "hm"},
        {"type": "text", "text": "see"},
        {"type": "tool_call", "id": "c0", "name": "look", "arguments": {"n": 0}, "seal": "seal"},
    ]
    assert shed.marks == []
    conversation = [
        {"role": "user", "content": [{"type": "image", "media_type": "image/png", "data": b"png"}]},
        {"role": "assistant", "content": answer.payload["content"]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "id": "c0", "content": "42", "is_error": False}],
        },
    ]
    agent.call("llm.complete", tools=["look"], messages=conversation)
    assert model.last[1].parts == (thought, TextPart("see"), ToolCall("c0", "look", {"n": 0}, "seal"))
    assert model.last[2].parts == (ToolResult("c0", "42"),)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "tool", "content": "x"}, 'messages[0].role: expected "system", "user" or "assistant"'),
        (
            {"role": "user", "content": [{"type": "video"}]},
            (
                "messages[0].content[0].type: expected "
                '"text", "image", "tool_call", "tool_result" or "reasoning"'
            ),
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_result", "id": "x", "content": "y"}]},
            "messages[0].content[0].type: tool_result is nothing that a message of role assistant may have",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "cache": True}]},
            "messages[0].content[0].cache: unknown key",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "id": "x", "content": [{"type": "tool_call"}]}],
            },
            "messages[0].content[0].content[0].id: missing",
        ),
    ],
)
def test_a_message_that_says_what_it_may_not_is_refused(message: Any, problem: str):
    """No role and no key is guessed at."""
    model = Model(says("x"))
    result = Agent(model=model).call(messages=[message])
    assert result == (Status.INVALID, {"kind": "invalid", "message": problem})
    assert model.asked == []


def test_what_a_request_asks_of_the_model_reaches_the_provider():
    """Structured output, effort, bound, and tools as the registry describes them."""
    model, shed = Model(says("x")), Shed()
    schema = {"type": "object"}
    agent = Agent(model=model, tools=[shed.tool("look")])
    agent.call(tools=["look"], response_schema=schema, effort="low", max_tokens=7)
    [request] = model.asked
    assert (request.output_schema, request.effort, request.max_tokens) == (schema, "low", 7)
    assert [(tool.name, tool.description) for tool in request.tools] == [("look", "Does look.")]


def test_what_a_model_has_not_is_a_refusal_of_its_own():
    """Nothing was sent, and nothing is counted but the call."""
    agent = Agent(model=Model([RequestUnsupported("scripted", "effort max")]))
    result = agent.call(effort="max")
    assert result == (
        Status.UNSUPPORTED,
        {"kind": "unsupported", "message": "provider scripted: has no effort max"},
    )
    assert agent.usage.to_wire() == {"calls": 1, "input_tokens": 0, "output_tokens": 0}


def test_what_the_model_says_is_streamed_from_every_turn():
    """Not only from the last."""
    agent = Agent(model=Model(calls("look", text="first "), says("second")), tools=[Shed().tool("look")])
    agent.call(tools=["look"], stream=True)
    assert agent.parts == [{"text": "first "}, {"text": "second"}]


def test_a_later_request_begins_with_all_of_the_one_before_it():
    """So a provider's cache of prompts serves: nothing in front of what is new has changed."""
    model = Model(calls("look"), calls("look", "look"), says("done"))
    Agent(model=model, tools=[Shed().tool("look")]).call(tools=["look"], system="be kind")
    for earlier, later in zip(model.asked, model.asked[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert (later.system, later.tools, later.model) == (earlier.system, earlier.tools, earlier.model)


def test_a_persona_stands_above_whatever_the_agent_says_there():
    """In one text, persona first, and the agent's own after a blank line."""
    model = Model(says("x"))
    agent = Agent(model=model, persona="You are Rex.")
    agent.call(
        messages=[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        system="Be brief.",
    )
    agent.call("llm.complete")
    first, second = model.asked
    assert first.system == "You are Rex.\n\nBe brief.\n\nBe kind."
    assert first.messages == (Message("user", "hi"),)
    assert second.system == "You are Rex."
