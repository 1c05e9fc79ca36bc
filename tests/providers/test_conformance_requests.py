"""
What adapters say to a provider: whole conversations, in its own words.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.errors import RequestUnsupported
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Reasoning,
    Stop,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from tests.providers.asking import ASK, ask, every_dialect, failure
from tests.providers.dialects import ANTHROPIC, COMPATIBLE, OLLAMA, OPENAI, WIRES, Wire

PNG = ImagePart("image/png", b"\x89PNG")
LONG = ModelRequest(
    model="some-model",
    system="Be brief.",
    max_tokens=50,
    effort="high",
    output_schema={"type": "object"},
    tools=(ToolSpec("weather", "Tells it.", {"type": "object", "properties": {}}),),
    messages=(
        Message("system", "Be kind."),
        Message("user", (TextPart("Look: "), PNG)),
        Message(
            "assistant",
            (
                Reasoning("anthropic", '{"type":"thinking","thinking":"hm","signature":"s1"}', "hm"),
                Reasoning("openai", '{"type":"reasoning","summary":[],"encrypted_content":"e1"}'),
                Reasoning("compatible", '{"type":"reasoning_content","text":"hm"}', "hm"),
                Reasoning("ollama", '{"type":"thinking","text":"hm"}', "hm"),
                TextPart("I'll see."),
                ToolCall("c1", "weather", {"city": "Bern"}),
            ),
        ),
        Message("user", (ToolResult("c1", "rain", is_error=True), TextPart("And?"))),
    ),
)


def _functions() -> list[dict[str, Any]]:
    function = {"name": "weather", "description": "Tells it.", "parameters": dict(LONG.tools[0].input_schema)}
    return [{"type": "function", "function": function}]


EXPECTED: dict[str, dict[str, Any]] = {
    "anthropic": {
        "model": "some-model",
        "max_tokens": 50,
        "stream": True,
        "system": "Be brief.\n\nBe kind.",
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "high"},
        "tools": [
            {
                "name": "weather",
                "description": "Tells it.",
                "input_schema": {"type": "object", "properties": {}},
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look: "},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s1"},
                    {"type": "text", "text": "I'll see."},
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "rain", "is_error": True},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    },
    "openai": {
        "model": "some-model",
        "max_output_tokens": 50,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.\n\nBe kind.",
        "reasoning": {"effort": "high"},
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
        },
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Tells it.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look: "},
                    {
                        "type": "input_image",
                        "image_url": "data:image/png;base64,iVBORw==",
                        "detail": "auto",
                    },
                ],
            },
            {"type": "reasoning", "summary": [], "encrypted_content": "e1"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I'll see."}],
            },
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Bern"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
        ],
    },
    "compatible": {
        "model": "some-model",
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        },
        "tools": _functions(),
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look: "},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                ],
            },
            {
                "role": "assistant",
                "content": "I'll see.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
                    }
                ],
                "reasoning_content": "hm",
            },
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "user", "content": "And?"},
        ],
    },
    "ollama": {
        "model": "some-model",
        "stream": True,
        "options": {"num_predict": 50},
        "think": "high",
        "format": {"type": "object"},
        "tools": _functions(),
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "Look: ", "images": ["iVBORw=="]},
            {
                "role": "assistant",
                "content": "I'll see.",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Bern"}}}],
                "thinking": "hm",
            },
            {"role": "tool", "content": "rain", "tool_name": "weather"},
            {"role": "user", "content": "And?"},
        ],
    },
}


@every_dialect
def test_a_whole_conversation_is_said_in_the_provider_s_words(wire: Wire) -> None:
    """
    The body, and that the same request gives the same bytes: prompt caches live by it.
    """
    bodies = [ask(wire, wire.says("a"), request=LONG)[1].received[0] for _ in range(2)]
    assert bodies[0].json == EXPECTED[wire.kind]
    assert bodies[0].body == bodies[1].body


@every_dialect
def test_the_beginning_of_a_conversation_keeps_its_bytes(wire: Wire) -> None:
    """
    What is added comes after what was there.
    """
    key = "input" if wire is OPENAI else "messages"
    longer = ModelRequest(
        model=LONG.model, system=LONG.system, messages=(*LONG.messages, Message("assistant", "Rain."))
    )
    before = ask(wire, wire.says("a"), request=LONG)[1].received[0].json[key]
    after = ask(wire, wire.says("a"), request=longer)[1].received[0].json[key]
    assert json.dumps(after)[: len(json.dumps(before)) - 1] == json.dumps(before)[:-1]


@pytest.mark.parametrize(
    ("wire", "request_", "feature"),
    [
        (ANTHROPIC, ModelRequest(model="m", messages=ASK.messages, effort="minimal"),
         "effort minimal; it has low, medium, high, xhigh, max"),
        (OLLAMA, ModelRequest(model="m", messages=ASK.messages, effort="max"),
         "effort max; it has none, low, medium, high"),
        (COMPATIBLE, ModelRequest(model="m", messages=(Message("user", (ToolResult("c", (PNG,)),)),)),
         "pictures in tool results"),
        (OLLAMA, ModelRequest(model="m", messages=(Message("user", (ToolResult("c", (PNG,)),)),)),
         "pictures in tool results"),
    ],
)  # fmt: skip
def test_what_a_provider_has_not_is_refused_before_anything_is_sent(
    wire: Wire, request_: ModelRequest, feature: str
) -> None:
    """
    The server hears nothing.
    """
    error, server = failure(wire, wire.says("a"), request=request_)
    assert isinstance(error, RequestUnsupported)
    assert error.message == f"provider {wire.kind}: has no {feature}"
    assert server.received == []


THOUGHTS: dict[str, tuple[Any, ...]] = {
    "anthropic": (
        {"type": "content_block_start", "index": 7, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "thinking_delta", "thinking": "h"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "thinking_delta", "thinking": "m"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "signature_delta", "signature": "s1"}},
        {"type": "content_block_stop", "index": 7},
    ),
    "openai": (
        {"type": "response.reasoning_summary_text.delta", "delta": "h"},
        {
            "type": "response.output_item.done",
            "item": {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "e1",
                "status": "completed",
            },
        },
    ),
    "compatible": (
        {"choices": [{"index": 0, "delta": {"reasoning_content": "h"}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "m"}}]},
    ),
    "ollama": (
        {"message": {"thinking": "h"}, "done": False},
        {"message": {"thinking": "m"}, "done": False},
    ),
}


@every_dialect
def test_reasoning_goes_round(wire: Wire) -> None:
    """
    What a model thought on its way to a tool call is sent back as it came, and to nobody else.
    """
    written = wire.write(
        *wire.begin, *THOUGHTS[wire.kind], *wire.call("c1", "weather", ("{}",)), *wire.end("tool_calls")
    )
    events, _ = ask(wire, wire.answer(written))
    (thought,) = [event for event in events if isinstance(event, Reasoning)]
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (thought.made_by, thought.text) == (wire.kind, "hm")
    next_request = ModelRequest(
        model="some-model",
        messages=(
            *ASK.messages,
            Message("assistant", (thought, call)),
            Message("user", (ToolResult(call.id, "rain"),)),
        ),
    )
    for other in WIRES:
        _, server = ask(other, other.says("a"), request=next_request)
        body = server.received[0].body.decode()
        assert ("hm" in body) is (other is wire)
        if wire in (ANTHROPIC, OPENAI):
            assert (('"s1"' in body) or ('"e1"' in body)) is (other is wire)


def test_a_seal_on_a_tool_call_goes_round() -> None:
    """
    A server may want to see again what it put beside a call.
    """
    sealed = {"google": {"thought_signature": "sig"}}
    call = {
        "index": 0,
        "id": "c1",
        "function": {"name": "weather", "arguments": "{}"},
        "extra_content": sealed,
    }
    written = COMPATIBLE.write(
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}, *COMPATIBLE.end("end")
    )
    events, _ = ask(COMPATIBLE, COMPATIBLE.answer(written))
    called = next(event for event in events if isinstance(event, ToolCall))
    # It said that it stopped of itself; that it called a tool is what counts.
    assert events[-1] == Stop("tool_calls")
    request = ModelRequest(model="m", messages=(*ASK.messages, Message("assistant", (called,))))
    _, server = ask(COMPATIBLE, COMPATIBLE.says("a"), request=request)
    assert server.received[0].json["messages"][1]["tool_calls"][0]["extra_content"] == sealed
