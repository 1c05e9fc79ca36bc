"""
The dialect of Ollama's own chat endpoint: lines of JSON.

Input, in what reads: events that strangers wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, assert_never

from runner.errors import ProviderError, RequestUnsupported
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
    Dialect,
    Reader,
    Said,
    base64_of,
    conversation,
    dump,
    instructions,
    own_reasoning,
    refuse_effort,
    result_text,
)
from runner.providers.wire import Malformed, Node, payload

KIND: Final = "ollama"

_EFFORTS: Final = ("none", "low", "medium", "high")
_REASONING: Final = frozenset({"thinking"})
_STOPS: Final[dict[str, StopReason]] = {"stop": "end", "length": "max_tokens", "": "end"}


class OllamaDialect(Dialect):
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
        called = {
            part.id: part.name
            for message in request.messages
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        for message in conversation(request):
            messages += _assistant(message) if message.role == "assistant" else _user(name, message, called)
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
        if request.max_tokens is not None:
            body["options"] = {"num_predict": request.max_tokens}
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
            body["format"] = dict(request.output_schema)
        if request.effort is not None:
            body["think"] = False if request.effort == "none" else request.effort
        return body

    def reader(self, name: str, request: ModelRequest) -> OllamaReader:
        calls = sum(isinstance(part, ToolCall) for message in request.messages for part in message.parts)
        return OllamaReader(name, calls)


def _user(name: str, message: Message, called: dict[str, str]) -> Iterator[dict[str, Any]]:
    texts: list[str] = []
    images: list[str] = []
    for part in message.parts:
        match part:
            case ToolResult():
                tool = {"tool_name": called[part.call_id]} if part.call_id in called else {}
                yield {"role": "tool", "content": result_text(name, part), **tool}
            case TextPart():
                texts.append(part.text)
            case ImagePart():
                images.append(base64_of(part))
            case ToolCall() | Reasoning():
                raise RequestUnsupported(name, "such part in a message of role user")
            case _:
                assert_never(part)
    if texts or images:
        yield {"role": "user", "content": "".join(texts)} | ({"images": images} if images else {})


def _assistant(message: Message) -> Iterator[dict[str, Any]]:
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    calls = [
        {"function": {"name": part.name, "arguments": dict(part.arguments)}}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    if calls:
        said["tool_calls"] = calls
        for part in message.parts:
            own = own_reasoning(part, KIND, _REASONING) if isinstance(part, Reasoning) else None
            if own is not None:
                said["thinking"] = own.get("text", "")
    if calls or message.text:
        yield said


class OllamaReader(Reader):
    """
    Reads one stream of it.

    Args:
        name: The provider's.
        calls: Tool calls in the conversation so far. They have no names of their own here, so they are
            numbered.
    """

    def __init__(self, name: str, calls: int) -> None:
        self._name = name
        self._before = calls
        self._calls = 0
        self._thought: list[str] = []

    def take(self, event: Node) -> Iterator[StreamEvent]:
        if event.has("error"):
            raise Said(Node({"message": event.values["error"]}))
        message = event.node_or_none("message") or Node({})
        if message.text_or("content"):
            yield TextDelta(message.text("content"))
        if message.text_or("thinking"):
            self._thought.append(message.text("thinking"))
        for call in message.nodes("tool_calls"):
            function = call.node("function")
            self._calls += 1
            number = self._before + self._calls
            arguments = payload(function.node("arguments").values)
            yield ToolCall(f"call-{number}", function.text("name"), arguments)
        done = event.values.get("done")
        if not isinstance(done, bool):
            raise Malformed("no answer to whether it is done")
        if done:
            yield from self._stop(event)

    def finish(self) -> tuple[StreamEvent, ...]:
        return ()

    def _stop(self, event: Node) -> Iterator[StreamEvent]:
        reason = event.text_or("done_reason")
        if reason not in _STOPS:
            raise ProviderError(self._name, "ended its turn in a way that this host can't go on from")
        if self._thought:
            text = "".join(self._thought)
            yield Reasoning(KIND, dump({"type": "thinking", "text": text}), text)
        # It says nothing of its cache, and reasoning is among what was written.
        yield Usage(event.count("prompt_eval_count"), event.count("eval_count"))
        stop = _STOPS[reason]
        yield Stop("tool_calls" if self._calls and stop == "end" else stop)
