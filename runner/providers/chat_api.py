"""
The dialect of Chat Completions, as many servers speak it: what few of them have is left out where it can be,
and what they add to it is let be.

Input, in what reads: events that strangers wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from runner.errors import RequestUnsupported
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
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
    result_text,
    unknown,
)
from runner.providers.wire import Malformed, Node, json_map, json_object, payload

KIND: Final = "compatible"
DONE: Final = "[DONE]"

MAX_TOOL_CALLS: Final = 256
"""
More tools than any model calls in one turn.
"""

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_REASONING: Final = frozenset({"reasoning_content"})
_OBJECTS: Final = frozenset({"", "chat.completion.chunk"})
_STOPS: Final[dict[str, StopReason]] = {
    "stop": "end",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "refusal",
}


class ChatDialect(Dialect):
    """
    Speaks it.
    """

    kind = KIND

    def body(self, name: str, request: ModelRequest) -> dict[str, Any]:
        refuse_effort(name, request, _EFFORTS)
        messages: list[dict[str, Any]] = []
        above = instructions(request)
        if above is not None:
            messages.append({"role": "system", "content": above})
        for message in conversation(request):
            messages += _assistant(message) if message.role == "assistant" else _user(name, message)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.input_schema),
                    },
                }
                for tool in request.tools
            ]
        if request.output_schema is not None:
            schema = {"name": OUTPUT_NAME, "schema": dict(request.output_schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.effort is not None:
            body["reasoning_effort"] = request.effort
        return body

    def reader(self, name: str, request: ModelRequest) -> ChatReader:
        del name, request
        return ChatReader()


def _user(name: str, message: Message) -> Iterator[dict[str, Any]]:
    """
    Results first, each a message of its own: they must follow the calls at once.
    """
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case ToolResult():
                yield {"role": "tool", "tool_call_id": part.call_id, "content": result_text(name, part)}
            case TextPart():
                content.append({"type": "text", "text": part.text})
            case ImagePart():
                content.append({"type": "image_url", "image_url": {"url": data_url(part)}})
            case ToolCall() | Reasoning():
                raise RequestUnsupported(name, "such part in a message of role user")
            case _:
                assert_never(part)
    if content and all(piece["type"] == "text" for piece in content):
        # A list of texts is what fewer servers take.
        yield {"role": "user", "content": "".join(piece["text"] for piece in content)}
    elif content:
        yield {"role": "user", "content": content}


def _assistant(message: Message) -> Iterator[dict[str, Any]]:
    calls = [_call(part) for part in message.parts if isinstance(part, ToolCall)]
    said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if calls:
        said["tool_calls"] = calls
        # Servers want it again within a loop of tools, and refuse it elsewhere.
        for part in message.parts:
            own = own_reasoning(part, KIND, _REASONING) if isinstance(part, Reasoning) else None
            if own is not None:
                said["reasoning_content"] = own.get("text", "")
    if calls or message.text:
        yield said


def _call(part: ToolCall) -> dict[str, Any]:
    function = {"name": part.name, "arguments": dump(part.arguments)}
    call: dict[str, Any] = {"id": part.id, "type": "function", "function": function}
    if part.seal is not None:
        call["extra_content"] = json_object(part.seal).values
    return call


@dataclass(slots=True)
class _Call:
    """
    A tool call while it is written.
    """

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


class ChatReader(Reader):
    """
    Reads one stream of it.
    """

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._thought: list[str] = []
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._refused = False

    def take(self, event: Node) -> Iterator[StreamEvent]:
        if event.has("error"):
            error = event.values["error"]
            raise Said(Node(error) if isinstance(error, dict) else Node({"message": error}))
        kind = event.text_or("object")
        if kind not in _OBJECTS:
            raise unknown("the object", kind)
        choices = event.nodes("choices")
        if len(choices) > 1 or (choices and choices[0].count("index")):
            raise Malformed("more answers than one")
        for choice in choices:
            yield from self._choice(choice)
        used = event.node_or_none("usage")
        if used is not None:
            self._usage = _usage(used)

    def finish(self) -> Iterator[StreamEvent]:
        if self._reason is None:
            return
        if self._thought:
            text = "".join(self._thought)
            yield Reasoning(KIND, dump({"type": "reasoning_content", "text": text}), text)
        for _, call in sorted(self._calls.items()):
            # Cut off by a bound, it may be half of one, and nobody may use it.
            if self._reason != "length":
                seal = dump(payload(call.extra)) if call.extra else None
                yield ToolCall(call.id, call.name, json_map("".join(call.arguments) or "{}"), seal)
        if self._usage is not None:
            yield self._usage
        stop = "refusal" if self._refused else _STOPS[self._reason]
        # Some servers call tools and say that they stopped of themselves.
        yield Stop("tool_calls" if self._calls and stop == "end" else stop)

    def _choice(self, choice: Node) -> Iterator[StreamEvent]:
        delta = choice.node_or_none("delta") or Node({})
        said = [delta.text_or("content"), delta.text_or("refusal")]
        self._refused = self._refused or bool(said[1])
        for text in said:
            if text:
                yield TextDelta(text)
        self._thought.append(delta.text_or("reasoning_content") or delta.text_or("reasoning"))
        if not self._thought[-1]:
            self._thought.pop()
        for place, piece in enumerate(delta.nodes("tool_calls")):
            self._piece(piece, place)
        reason = choice.text_or("finish_reason")
        if reason:
            if reason not in _STOPS:
                raise unknown("the end", reason)
            self._reason = reason

    def _piece(self, piece: Node, place: int) -> None:
        index = piece.count("index")
        call = self._calls.setdefault(place if index is None else index, _Call())
        if len(self._calls) > MAX_TOOL_CALLS:
            raise Malformed("more tool calls than any turn has")
        kind = piece.text_or("type") or "function"
        if kind != "function":
            raise unknown("the call of a", kind)
        call.id = call.id or piece.text_or("id")
        function = piece.node_or_none("function") or Node({})
        call.name = call.name or function.text_or("name")
        call.arguments.append(function.text_or("arguments"))
        extra = piece.node_or_none("extra_content")
        if extra is not None:
            call.extra = extra.values


def _usage(used: Node) -> Usage:
    """
    Here what was read includes what came from a cache; who says nothing of a cache is not known to have none.
    """
    read, written = used.node_or_none("prompt_tokens_details"), used.node_or_none("completion_tokens_details")
    cached = read.count("cached_tokens") if read else used.count("prompt_cache_hit_tokens")
    put = read.count("cache_write_tokens") if read else None
    usage = Usage(
        input_tokens=used.count("prompt_tokens"),
        output_tokens=used.count("completion_tokens"),
        cache_read_tokens=cached,
        # Here only the servers that charge for it say it.
        cache_write_tokens=0 if put is None and cached is not None else put,
        reasoning_tokens=written.count("reasoning_tokens") if written else None,
    )
    if usage.fresh_tokens is not None and usage.fresh_tokens < 0:
        raise Malformed("more tokens from a cache than were read")
    return usage
