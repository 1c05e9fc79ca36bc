"""
The dialect of Anthropic's Messages API.

Input, in what reads: events that strangers wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from runner.errors import ContextOverflow, ProviderError
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
    Dialect,
    Reader,
    Said,
    base64_of,
    conversation,
    dump,
    instructions,
    own_reasoning,
    refuse_effort,
    unknown,
)
from runner.providers.wire import Malformed, Node, json_map

KIND: Final = "anthropic"

DEFAULT_MAX_TOKENS: Final = 8_192
"""
This API has no bound of its own: whoever asks must name one.
"""

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_REASONING: Final = frozenset({"thinking", "redacted_thinking"})
_STOPS: Final[dict[str, StopReason]] = {
    "end_turn": "end",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
_OVERFLOW: Final = "model_context_window_exceeded"


class MessagesDialect(Dialect):
    """
    Speaks it.
    """

    kind = KIND

    def body(self, name: str, request: ModelRequest) -> dict[str, Any]:
        refuse_effort(name, request, _EFFORTS)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": [said for message in conversation(request) if (said := _message(message))["content"]],
            "stream": True,
        }
        system = instructions(request)
        if system is not None:
            body["system"] = system
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.input_schema),
                }
                for tool in request.tools
            ]
        output: dict[str, Any] = {}
        if request.output_schema is not None:
            output["format"] = {"type": "json_schema", "schema": dict(request.output_schema)}
        if request.effort is not None:
            output["effort"] = request.effort
        if output:
            body["output_config"] = output
        return body

    def reader(self, name: str, request: ModelRequest) -> MessagesReader:
        del request
        return MessagesReader(name)


def _message(message: Message) -> dict[str, Any]:
    blocks = [block for part in message.parts if (block := _block(part)) is not None]
    return {"role": message.role, "content": blocks}


def _block(part: Part) -> dict[str, Any] | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            source = {"type": "base64", "media_type": part.media_type, "data": base64_of(part)}
            return {"type": "image", "source": source}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": dict(part.arguments)}
        case ToolResult():
            content: Any = part.content
            if not isinstance(content, str):
                content = [_block(inner) for inner in content]
            block = {"type": "tool_result", "tool_use_id": part.call_id, "content": content}
            return block | ({"is_error": True} if part.is_error else {})
        case Reasoning():
            return own_reasoning(part, KIND, _REASONING)
        case _:
            assert_never(part)


@dataclass(slots=True)
class _Block:
    """
    A block while it is written.
    """

    kind: str
    start: Node
    pieces: list[str] = field(default_factory=list)
    seals: list[str] = field(default_factory=list)

    def end(self) -> Iterator[StreamEvent]:
        if self.kind == "tool_use":
            written = "".join(self.pieces)
            arguments = json_map(written) if written else json_map(dump(self.start.node("input").values))
            yield ToolCall(self.start.text("id"), self.start.text("name"), arguments)
        elif self.kind == "thinking":
            text = self.start.text_or("thinking") + "".join(self.pieces)
            seal = self.start.text_or("signature") + "".join(self.seals)
            yield Reasoning(KIND, dump({"type": self.kind, "thinking": text, "signature": seal}), text)
        elif self.kind == "redacted_thinking":
            yield Reasoning(KIND, dump({"type": self.kind, "data": self.start.text("data")}))


class MessagesReader(Reader):
    """
    Reads one stream of it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = False
        self._blocks: dict[int, _Block] = {}
        self._used: dict[str, Any] = {}
        self._reason: str | None = None

    def take(self, event: Node) -> Iterator[StreamEvent]:
        kind = event.text("type")
        if kind == "error":
            raise Said(event.node("error"))
        if kind == "ping":
            return
        if kind == "message_start":
            if self._begun:
                raise Malformed("a second beginning")
            self._begun = True
            self._count(event.node("message").node_or_none("usage"))
            return
        if not self._begun:
            raise Malformed("an answer without a beginning")
        match kind:
            case "content_block_start":
                yield from self._start(event)
            case "content_block_delta":
                yield from self._delta(event)
            case "content_block_stop":
                yield from self._block(event, take_out=True).end()
            case "message_delta":
                self._reason = event.node("delta").text_or("stop_reason") or self._reason
                self._count(event.node_or_none("usage"))
            case "message_stop":
                yield from self._stop()
            case _:
                raise unknown("the event", kind)

    def finish(self) -> tuple[StreamEvent, ...]:
        return ()

    def _start(self, event: Node) -> Iterator[StreamEvent]:
        index, start = event.index("index"), event.node("content_block")
        kind = start.text("type")
        if kind not in ("text", "tool_use", *_REASONING):
            raise unknown("the block", kind)
        if index in self._blocks:
            raise Malformed("two blocks in one place")
        self._blocks[index] = _Block(kind, start)
        if kind == "text" and start.text_or("text"):
            yield TextDelta(start.text("text"))

    def _delta(self, event: Node) -> Iterator[StreamEvent]:
        block, delta = self._block(event), event.node("delta")
        kind = delta.text("type")
        match (block.kind, kind):
            case ("text", "text_delta"):
                yield TextDelta(delta.text("text"))
            case ("tool_use", "input_json_delta"):
                block.pieces.append(delta.text("partial_json"))
            case ("thinking", "thinking_delta"):
                block.pieces.append(delta.text("thinking"))
            case ("thinking", "signature_delta"):
                block.seals.append(delta.text("signature"))
            case _:
                raise unknown("the delta", kind)

    def _block(self, event: Node, *, take_out: bool = False) -> _Block:
        index = event.index("index")
        if index not in self._blocks:
            raise Malformed("a piece of no block")
        return self._blocks.pop(index) if take_out else self._blocks[index]

    def _count(self, usage: Node | None) -> None:
        """
        Take in what is said of tokens; what comes later holds.
        """
        if usage is not None:
            self._used.update({key: value for key, value in usage.values.items() if value is not None})

    def _stop(self) -> Iterator[StreamEvent]:
        if self._blocks:
            raise Malformed("an end in the middle of a block")
        if self._reason == _OVERFLOW:
            raise ContextOverflow(self._name)
        if self._reason is None:
            raise Malformed("an end without a reason")
        if self._reason not in _STOPS:
            raise ProviderError(self._name, "ended its turn in a way that this host can't go on from")
        if self._used:
            yield _usage(Node(self._used))
        yield Stop(_STOPS[self._reason])


def _usage(used: Node) -> Usage:
    """
    Here what was read excludes what a cache had to do with.
    """
    read, written = used.count("cache_read_input_tokens"), used.count("cache_creation_input_tokens")
    fresh = used.count("input_tokens")
    details = used.node_or_none("output_tokens_details")
    return Usage(
        # A server that says nothing of a cache has none to speak of.
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=used.count("output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=details.count("thinking_tokens") if details else None,
    )
