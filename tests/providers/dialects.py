"""
What each dialect says over the wire, for tests that put the same question to all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runner.providers.base import Provider
from runner.providers.ollama import OllamaProvider
from runner.providers.origin import Endpoint, Key, parse_address
from runner.providers.sdk import SdkKind, SdkProvider
from tests.providers.servers import Answer, Step, ndjson, sse

CANARY = "sk-canary-7f3a9b1c5d"


@dataclass(frozen=True, kw_only=True)
class Wire:
    """
    One dialect.

    Attributes:
        kind: As in a profile.
        path: Where it is asked.
        write: Events as bytes.
        content_type: Of its streams.
        begin: Events before the first text.
        text: The event of a text.
        end: Events after the last text, by stop reason of ours.
        call: Events of a tool call: id, name, pieces of its arguments as JSON.
        error: The event that speaks of an error, by its kind and message.
        overflow: Body of the refusal of a conversation that is too long.
        usage: Fresh, read from a cache, put into one, written, of these reasoning; `None` where it can't say.
        error_body: Body of a refusal.
    """

    kind: str
    path: str
    write: Callable[..., bytes] = sse
    content_type: str = "text/event-stream; charset=utf-8"
    begin: tuple[Any, ...]
    text: Callable[[str], Any]
    end: Callable[[str], tuple[Any, ...]]
    call: Callable[[str, str, tuple[str, ...]], tuple[Any, ...]]
    error: Callable[[str, str], Any]
    overflow: Any
    counts: tuple[int | None, ...]
    base: str = ""
    names_calls: bool = True
    headers: dict[str, str] = field(default_factory=dict)

    def provider(self, origin: str, *, key: str | None = CANARY) -> Provider:
        """
        The adapter, bare, with a key that is bound to that origin.
        """
        address = parse_address(f"{origin}{self.base}")
        bound = None if key is None else Key(key, address.origin)
        if self.kind == "ollama":
            return OllamaProvider(self.kind, Endpoint(address, bound), now_s=lambda: 0.0)
        kinds: dict[str, SdkKind] = {
            "anthropic": "anthropic", "openai": "openai", "compatible": "compatible",
        }  # fmt: skip
        return SdkProvider(self.kind, kinds[self.kind], Endpoint(address, bound), now_s=lambda: 0.0)

    def answer(self, *steps: Step) -> Answer:
        """
        A stream that comes in these steps.
        """
        return Answer(steps=steps, headers={"content-type": self.content_type})

    def says(self, *texts: str, stop: str = "end") -> Answer:
        """
        A whole answer.
        """
        return self.answer(self.write(*self.begin, *map(self.text, texts), *self.end(stop)))

    def refuses(self, status: int, message: str = "no", **headers: str) -> Answer:
        """
        A refusal.
        """
        body = {"type": "error", "error": {"type": "some_error", "message": message}}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(
            status=status,
            headers={"content-type": "application/json", **names},
            steps=(json.dumps(body).encode(),),
        )


def _anthropic_end(stop: str) -> tuple[Any, ...]:
    reason = {"end": "end_turn", "tool_calls": "tool_use"}.get(stop, stop)
    close = () if stop == "tool_calls" else ({"type": "content_block_stop", "index": 0},)
    return (
        *close,
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}},
        },
        {"type": "message_stop"},
    )


def _anthropic_call(id_: str, name: str, pieces: tuple[str, ...]) -> tuple[Any, ...]:
    block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
    index = 1 + abs(hash(id_)) % 1000
    return (
        {"type": "content_block_start", "index": index, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": index},
    )


ANTHROPIC = Wire(
    kind="anthropic",
    path="/v1/messages",
    begin=(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": "some-model",
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 3,
                    "cache_creation_input_tokens": 2,
                    "output_tokens": 1,
                },
            },
        },
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ),
    text=lambda text: {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    },
    end=_anthropic_end,
    call=lambda id_, name, pieces: (
        {"type": "content_block_stop", "index": 0},
        *_anthropic_call(id_, name, pieces),
    ),
    error=lambda kind, message: {"type": "error", "error": {"type": kind, "message": message}},
    overflow={
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
    },
    counts=(5, 3, 2, 7, 2),
)


def _openai_end(stop: str) -> tuple[Any, ...]:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 17,
    }
    if stop == "max_tokens":
        cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": usage}
        return ({"type": "response.incomplete", "response": cut},)
    said = ({"type": "response.refusal.delta", "delta": "I can't."},) if stop == "refusal" else ()
    return (
        *said,
        {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage}},
    )


def _openai_call(id_: str, name: str, pieces: tuple[str, ...]) -> tuple[Any, ...]:
    item = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": ""}
    return (
        {"type": "response.output_item.added", "item": item},
        *({"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "item": item | {"arguments": "".join(pieces)}},
    )


OPENAI = Wire(
    kind="openai",
    path="/v1/responses",
    base="/v1",
    begin=(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.in_progress", "response": {"id": "r"}},
        {"type": "response.output_item.added", "item": {"type": "message", "role": "assistant"}},
        {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}},
    ),
    text=lambda text: {"type": "response.output_text.delta", "delta": text},
    end=_openai_end,
    call=_openai_call,
    error=lambda kind, message: {"type": "error", "code": kind, "message": message, "param": None},
    overflow={"error": {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "no"}},
    counts=(5, 3, 2, 7, 2),
)


def _chunk(delta: Any, reason: str | None = None) -> Any:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }


def _chat_end(stop: str) -> tuple[Any, ...]:
    reason = {"end": "stop", "max_tokens": "length", "refusal": "content_filter"}.get(stop, stop)
    usage = {
        "prompt_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "completion_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    tail = {"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage}
    return (_chunk({}, reason), tail, "[DONE]")


def _chat_call(id_: str, name: str, pieces: tuple[str, ...]) -> tuple[Any, ...]:
    first = {"index": 0, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
    return (
        _chunk({"tool_calls": [first]}),
        *(_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces),
    )


COMPATIBLE = Wire(
    kind="compatible",
    path="/v1/chat/completions",
    base="/v1",
    begin=(_chunk({"role": "assistant", "content": ""}),),
    text=lambda text: _chunk({"content": text}),
    end=_chat_end,
    call=_chat_call,
    error=lambda kind, message: {"error": {"type": kind, "message": message}},
    overflow={"error": {"message": "This model's maximum context length is 8 tokens.", "code": None}},
    counts=(5, 3, 2, 7, 2),
)


def _ollama_end(stop: str) -> tuple[Any, ...]:
    reason = {"max_tokens": "length"}.get(stop, "stop")
    return (
        {
            "model": "m",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": reason,
            "prompt_eval_count": 10,
            "eval_count": 7,
        },
    )


def _ollama_call(id_: str, name: str, pieces: tuple[str, ...]) -> tuple[Any, ...]:
    del id_
    call = {"function": {"name": name, "arguments": json.loads("".join(pieces))}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return ({"model": "m", "message": message, "done": False},)


OLLAMA = Wire(
    kind="ollama",
    path="/api/chat",
    write=ndjson,
    content_type="application/x-ndjson",
    begin=(),
    text=lambda text: {"model": "m", "message": {"role": "assistant", "content": text}, "done": False},
    end=_ollama_end,
    call=_ollama_call,
    error=lambda kind, message: {"error": message or kind},
    overflow={"error": "the input exceeds the context length"},
    counts=(None, None, None, 7, None),
    names_calls=False,
)

WIRES = (ANTHROPIC, OPENAI, COMPATIBLE, OLLAMA)
