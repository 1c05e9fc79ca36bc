"""
The dialect of OpenAI's Responses API, without any state over there.

Input, in what reads: events that strangers wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, assert_never

from runner.errors import ProviderError
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Part,
    Reasoning,
    Stop,
    StopReason,
    StreamEvent,
    TextDelta,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from runner.providers.dialect import (
    OUTPUT_NAME,
    Dialect,
    Reader,
    Said,
    conversation,
    data_url,
    dump,
    instructions,
    own_reasoning,
    refuse_effort,
    unknown,
)
from runner.providers.wire import Malformed, Node, json_map, payload

KIND: Final = "openai"

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_REASONING: Final = frozenset({"reasoning"})
# The others refuse a request that asks for their sealed reasoning.
_REASONS: Final = re.compile(r"(?:o\d|gpt-[5-9]|gpt-\d\d)")
_ITEMS: Final = frozenset({"message", "function_call", "reasoning"})
_LET_BE: Final = frozenset(
    {
        "response.created", "response.in_progress", "response.queued", "response.content_part.added",
        "response.content_part.done", "response.output_text.done", "response.refusal.done",
        "response.function_call_arguments.delta", "response.function_call_arguments.done",
        "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
        "response.reasoning_text.delta", "response.reasoning_text.done",
        "response.output_text.annotation.added",
    }
)  # fmt: skip
"""
Events that say what another says whole.
"""

_CUTS: Final[dict[str, StopReason]] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


class ResponsesDialect(Dialect):
    """
    Speaks it.
    """

    kind = KIND

    def body(self, name: str, request: ModelRequest) -> dict[str, Any]:
        refuse_effort(name, request, _EFFORTS)
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for message in conversation(request) for item in _items(message)],
            "store": False,
            "stream": True,
        }
        above = instructions(request)
        if above is not None:
            body["instructions"] = above
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema),
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.output_schema is not None:
            body["text"] = {
                "format": {
                    "type": "json_schema",
                    "name": OUTPUT_NAME,
                    "schema": dict(request.output_schema),
                    "strict": True,
                }
            }
        if request.effort is not None:
            body["reasoning"] = {"effort": request.effort}
        if request.effort is not None or _REASONS.match(request.model):
            body["include"] = ["reasoning.encrypted_content"]
        return body

    def reader(self, name: str, request: ModelRequest) -> ResponsesReader:
        del request
        return ResponsesReader(name)


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """
    Items of the flat list that a conversation is here: neighbouring texts and pictures make one message.
    """
    content: list[dict[str, Any]] = []
    for part in message.parts:
        piece = _content(part, message.role)
        if piece is not None:
            content.append(piece)
            continue
        if content:
            yield {"type": "message", "role": message.role, "content": content}
            content = []
        item = _item(part)
        if item is not None:
            yield item
    if content:
        yield {"type": "message", "role": message.role, "content": content}


def _content(part: Part, role: str) -> dict[str, Any] | None:
    match part:
        case TextPart():
            return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
        case ImagePart():
            return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
        case ToolCall() | ToolResult() | Reasoning():
            return None
        case _:
            assert_never(part)


def _item(part: Part) -> dict[str, Any] | None:
    match part:
        case ToolCall():
            arguments = dump(part.arguments)
            return {
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": arguments,
            }
        case ToolResult():
            output: Any = part.content
            if not isinstance(output, str):
                output = [_content(inner, "user") for inner in output]
            return {"type": "function_call_output", "call_id": part.call_id, "output": output}
        case Reasoning():
            return own_reasoning(part, KIND, _REASONING)
        case _:
            return None


class ResponsesReader(Reader):
    """
    Reads one stream of it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls = 0
        self._refused = False

    def take(self, event: Node) -> Iterator[StreamEvent]:
        kind = event.text("type")
        if kind in _LET_BE:
            return
        match kind:
            case "response.output_text.delta":
                yield TextDelta(event.text("delta"))
            case "response.refusal.delta":
                self._refused = True
                yield TextDelta(event.text("delta"))
            case "response.output_item.added":
                _kind_of(event.node("item"))
            case "response.output_item.done":
                yield from self._item(event.node("item"))
            case "response.completed":
                yield from _used(event.node("response"))
                yield Stop("refusal" if self._refused else "tool_calls" if self._calls else "end")
            case "response.incomplete":
                yield from self._cut(event.node("response"))
            case "response.failed":
                raise Said(event.node("response").node_or_none("error") or Node({}))
            case "error":
                raise Said(event.node_or_none("error") or _spoken(event))
            case _:
                raise unknown("the event", kind)

    def finish(self) -> tuple[StreamEvent, ...]:
        return ()

    def _item(self, item: Node) -> Iterator[StreamEvent]:
        kind = _kind_of(item)
        if kind == "function_call":
            self._calls += 1
            yield ToolCall(
                item.text("call_id"), item.text("name"), json_map(item.text_or("arguments") or "{}")
            )
        elif kind == "reasoning":
            # Its place in a list that nobody stores is all that its other keys say.
            kept = {
                key: item.values[key]
                for key in ("type", "id", "summary", "encrypted_content")
                if item.values.get(key) is not None
            }
            if "encrypted_content" in kept:
                text = "\n\n".join(part.text_or("text") for part in item.nodes("summary"))
                yield Reasoning(KIND, dump(payload(kept)), text)

    def _cut(self, response: Node) -> Iterator[StreamEvent]:
        details = response.node_or_none("incomplete_details") or Node({})
        reason = details.text_or("reason")
        if reason not in _CUTS:
            raise ProviderError(self._name, "ended its turn in a way that this host can't go on from")
        yield from _used(response)
        yield Stop(_CUTS[reason])


def _kind_of(item: Node) -> str:
    kind = item.text("type")
    if kind not in _ITEMS:
        raise unknown("the item", kind)
    return kind


def _spoken(event: Node) -> Node:
    # Its own `type` says only that it is an error.
    return Node({key: value for key, value in event.values.items() if key != "type"})


def _used(response: Node) -> Iterator[Usage]:
    """
    Here what was read includes what came from a cache.
    """
    used = response.node_or_none("usage")
    if used is None:
        return
    read, written = used.node_or_none("input_tokens_details"), used.node_or_none("output_tokens_details")
    usage = Usage(
        input_tokens=used.count("input_tokens"),
        output_tokens=used.count("output_tokens"),
        cache_read_tokens=read.count("cached_tokens") if read else None,
        cache_write_tokens=read.count("cache_write_tokens") if read else None,
        reasoning_tokens=written.count("reasoning_tokens") if written else None,
    )
    if usage.fresh_tokens is not None and usage.fresh_tokens < 0:
        raise Malformed("more tokens from a cache than were read")
    yield usage
