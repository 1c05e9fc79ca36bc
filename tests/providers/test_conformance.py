"""
Every adapter, over the real protocol and the real SDK, held to the port.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from runner.errors import ContextOverflow, ProviderError, RequestUnsupported
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
    ToolSpec,
    Usage,
)
from runner.providers.checked import Checked
from tests.providers.dialects import ANTHROPIC, CANARY, COMPATIBLE, OLLAMA, OPENAI, WIRES, Wire
from tests.providers.servers import Answer, Cut, Server, Stall, Wait, serving

ASK = ModelRequest(model="some-model", messages=(Message("user", "héllo"),))

every_dialect = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.kind)


async def follow(provider: Provider, request: ModelRequest = ASK) -> list[StreamEvent]:
    """
    All events of one request, held against the port.
    """
    return [event async for event in Checked(provider.name).follow(provider.stream(request))]


def ask(wire: Wire, *answers: Answer, request: ModelRequest = ASK) -> tuple[list[StreamEvent], Server]:
    """
    The events of one request to a server with these answers.
    """

    async def scenario() -> tuple[list[StreamEvent], Server]:
        async with serving(*answers) as server:
            return await follow(wire.provider(server.origin), request), server

    return anyio.run(scenario)


def failure(wire: Wire, *answers: Answer, request: ModelRequest = ASK) -> tuple[ProviderError, Server]:
    """
    The failure of one request to a server with these answers.
    """

    async def scenario() -> tuple[ProviderError, Server]:
        async with serving(*answers) as server:
            with pytest.raises(ProviderError) as caught:
                await follow(wire.provider(server.origin), request)
            return caught.value, server

    return anyio.run(scenario)


def in_time(scenario: Callable[[], Awaitable[None]]) -> None:
    """
    Run a scenario whose server and client wait for each other.
    """

    async def bounded() -> None:
        with anyio.fail_after(20):
            await scenario()

    anyio.run(bounded)


def text_of(events: list[StreamEvent]) -> str:
    """
    The text that came.
    """
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@every_dialect
def test_an_answer_comes_in_order_with_usage_and_stop(wire: Wire) -> None:
    """
    Pieces as they were sent, then what it cost by one convention, then the end.
    """
    events, server = ask(wire, wire.says("Hé", "llo ", "wörld"))
    fresh, read, written, output, reasoning = wire.counts
    usage = Usage(10, output, read, written, reasoning)
    assert events == [TextDelta("Hé"), TextDelta("llo "), TextDelta("wörld"), usage, Stop("end")]
    assert usage.fresh_tokens == fresh
    assert [(got.method, got.path) for got in server.received] == [("POST", wire.path)]


@every_dialect
def test_a_stream_may_be_cut_anywhere(wire: Wire) -> None:
    """
    Chunks of one byte, so also within a character and within a line end.
    """
    whole = wire.says("Hé", "llo 🎈").steps[0]
    assert isinstance(whole, bytes)
    events, _ = ask(wire, wire.answer(*(bytes([byte]) for byte in whole)))
    assert text_of(events) == "Héllo 🎈"
    assert events[-1] == Stop("end")


@every_dialect
def test_other_line_ends_and_comments_are_understood(wire: Wire) -> None:
    """
    Carriage returns, and what keeps a connection alive.
    """
    whole = wire.says("a", "b").steps[0]
    assert isinstance(whole, bytes)
    alive = b": keep-alive\r\n\r\n" if wire.kind != "ollama" else b"\r\n"
    events, _ = ask(wire, wire.answer(alive, whole.replace(b"\n", b"\r\n"), alive))
    assert text_of(events) == "ab"


@every_dialect
def test_pieces_are_handed_on_as_they_come(wire: Wire) -> None:
    """
    The first is here before the server sends the second.
    """

    async def scenario() -> None:
        first_seen = anyio.Event()
        answer = wire.answer(
            wire.write(*wire.begin, wire.text("one")),
            Wait(first_seen),
            wire.write(wire.text("two"), *wire.end("end")),
        )
        async with serving(answer) as server:
            texts = []
            async for event in wire.provider(server.origin).stream(ASK):
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                    first_seen.set()
            assert texts == ["one", "two"]

    in_time(scenario)


@pytest.mark.parametrize(
    ("wire", "stop"),
    [
        *((wire, stop) for wire in WIRES for stop in ("end", "max_tokens")),
        *((wire, "refusal") for wire in (ANTHROPIC, OPENAI, COMPATIBLE)),
        (ANTHROPIC, "stop_sequence"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_the_end_has_its_reason(wire: Wire, stop: str) -> None:
    """
    As the provider says it, in our words.
    """
    events, _ = ask(wire, wire.says("so far", stop=stop))
    assert events[-1] == Stop(stop)  # type: ignore[arg-type]


@every_dialect
def test_a_tool_call_is_whole(wire: Wire) -> None:
    """
    Its arguments may come in pieces; what is handed on is an object.
    """
    pieces = ('{"ci', 'ty": "Zür', 'ich", "n": 2}')
    written = wire.write(
        *wire.begin,
        wire.text("Let me see."),
        *wire.call("call_1", "weather", pieces),
        *wire.end("tool_calls"),
    )
    events, _ = ask(wire, wire.answer(written))
    assert events[-1] == Stop("tool_calls")
    calls = [event for event in events if isinstance(event, ToolCall)]
    expected_id = "call_1" if wire.names_calls else "call-1"
    assert calls == [ToolCall(expected_id, "weather", {"city": "Zürich", "n": 2})]


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI, COMPATIBLE], ids=lambda wire: wire.kind)
@pytest.mark.parametrize("pieces", [('{"a": ',), ("[1]",), ('{"a": 1e999}',), ('{"a": "\\ud800"}',)])
def test_arguments_that_are_no_object_are_refused(wire: Wire, pieces: tuple[str, ...]) -> None:
    """
    Cut off, of another shape, or such that no payload can carry them.
    """
    written = wire.write(*wire.begin, *wire.call("call_1", "weather", pieces), *wire.end("tool_calls"))
    error, _ = failure(wire, wire.answer(written))
    assert error.message.startswith(f"provider {wire.kind}: sent ")
    assert not error.retryable


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.kind)
def test_two_calls_of_one_identity_are_refused(wire: Wire) -> None:
    """
    Nobody could say which result is whose.
    """
    call = wire.call("call_1", "weather", ("{}",))
    again = call[1:] if wire is ANTHROPIC else call
    written = wire.write(*wire.begin, *call, *again, *wire.end("tool_calls"))
    error, _ = failure(wire, wire.answer(written))
    assert error.message == f"provider {wire.kind}: called a tool without an identity of its own"


@every_dialect
@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (403, False), (404, False), (408, True), (409, True), (413, False),
     (429, True), (500, True), (502, True), (503, True), (529, True)],
)  # fmt: skip
def test_a_refusal_has_its_status(wire: Wire, status: int, retryable: bool) -> None:
    """
    And says whether the same request may succeed later; the SDK asked once.
    """
    error, server = failure(wire, wire.refuses(status, f"no, {CANARY} at http://127.0.0.1/x is no good."))
    words = "" if status in (401, 403) else ": no, [key] at [address] is no good"
    assert error.message == f"provider {wire.kind}: HTTP status {status}{words}"
    assert (error.status, error.retryable, error.retry_after_ms) == (status, retryable, None)
    assert len(server.received) == 1


@every_dialect
@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [("2", 2000), ("0.5", 500), ("Thu, 01 Jan 1970 00:00:07 GMT", 7000), ("soon", None), ("-1", None),
     ("nan", None), ("inf", None), ("9" * 400, None)],
)  # fmt: skip
def test_retry_after_is_read(wire: Wire, value: str, expected_ms: int | None) -> None:
    """
    Seconds or a date; what is neither says nothing.
    """
    error, _ = failure(wire, wire.refuses(429, retry_after=value))
    assert error.retry_after_ms == expected_ms


@every_dialect
def test_a_conversation_that_is_too_long_is_told_apart(wire: Wire) -> None:
    """
    A shorter one may be answered, so it is an error of its own.
    """
    refusal = Answer(
        status=400,
        headers={"content-type": "application/json"},
        steps=(json.dumps(wire.overflow).encode(),),
    )
    error, _ = failure(wire, refusal)
    assert isinstance(error, ContextOverflow)
    assert (error.status, error.retryable) == (400, False)
    assert error.message == f"provider {wire.kind}: the conversation is longer than the model can read"


@every_dialect
def test_an_error_in_the_middle_is_one(wire: Wire) -> None:
    """
    What it says may be read by a guest.
    """
    said = wire.error("overloaded_error", f"Overloaded, {CANARY}")
    error, _ = failure(wire, wire.answer(wire.write(*wire.begin, wire.text("so"), said)))
    assert error.message == f"provider {wire.kind}: failed: Overloaded, [key]"
    assert error.retryable is (wire is not OLLAMA)


@every_dialect
def test_a_stream_without_an_end_is_no_answer(wire: Wire) -> None:
    """
    It may have been going to say more.
    """
    error, _ = failure(wire, wire.answer(wire.write(*wire.begin, wire.text("so"))))
    assert error.message == f"provider {wire.kind}: the answer broke off"
    assert error.retryable


@every_dialect
def test_a_stream_of_nothing_is_no_answer(wire: Wire) -> None:
    """
    Neither is one with no event at all.
    """
    error, _ = failure(wire, wire.answer())
    assert error.message == f"provider {wire.kind}: the answer broke off"


@every_dialect
def test_a_connection_that_breaks_is_told(wire: Wire) -> None:
    """
    After some text, or before the first byte.
    """
    for steps in ((wire.write(*wire.begin, wire.text("so")), Cut()), (Cut(),)):
        error, _ = failure(wire, wire.answer(*steps))
        assert error.message == f"provider {wire.kind}: the connection broke"
        assert error.retryable


@every_dialect
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "sent what is not JSON"),
        ("[]", "sent what is no JSON object"),
        ('{"type": NaN}', "sent what is not JSON"),
        ("[" * 100_000, "sent what is not JSON"),
        ("9" * 5_000, "sent what is not JSON"),
    ],
    ids=["cut", "list", "nan", "deep", "number"],
)
def test_what_is_no_event_is_an_error(wire: Wire, data: str, problem: str) -> None:
    """
    Never skipped.
    """
    error, _ = failure(wire, wire.answer(wire.write(*wire.begin, data)))
    assert error.message == f"provider {wire.kind}: {problem}"
    assert not error.retryable


@pytest.mark.parametrize(
    ("wire", "event", "problem"),
    [
        (ANTHROPIC, {"type": "message_delight"}, "the event message_delight, which it was not expected to"),
        (ANTHROPIC, {"type": "x y\n\x1b[31m"}, "the event x?y???31m, which it was not expected to"),
        (OPENAI, {"type": "response.shell"}, "the event response.shell, which it was not expected to"),
        (OPENAI, {"type": "response.output_item.added", "item": {"type": "mcp_call"}},
         "the item mcp_call, which it was not expected to"),
        (COMPATIBLE, {"object": "list"}, "the object list, which it was not expected to"),
        (COMPATIBLE, {"choices": [{"index": 1, "delta": {}}]}, "more answers than one"),
        (OLLAMA, {"message": {}}, "no answer to whether it is done"),
        (OLLAMA, {"message": {"content": 5}, "done": False}, "no text content"),
    ],
)  # fmt: skip
def test_an_unknown_event_is_an_error(wire: Wire, event: Any, problem: str) -> None:
    """
    What is not understood can't be known to be harmless.
    """
    error, _ = failure(wire, wire.answer(wire.write(*wire.begin, event)))
    assert error.message == f"provider {wire.kind}: sent {problem}"


@every_dialect
def test_text_that_is_not_utf8_is_an_error(wire: Wire) -> None:
    """
    Nothing is guessed.
    """
    written = wire.write(*wire.begin, wire.text("so")).replace(b"so", b"\xff")
    error, _ = failure(wire, wire.answer(written))
    assert error.message == f"provider {wire.kind}: sent text that is not UTF-8"
    half = wire.write(*wire.begin, wire.text("so")).replace(b'"so"', b'"\\ud800"')
    error, _ = failure(wire, wire.answer(half))
    assert error.message == f"provider {wire.kind}: sent text that is not UTF-8"


@every_dialect
def test_a_line_that_is_too_long_is_given_up(wire: Wire) -> None:
    """
    Before all of it is in memory.
    """
    piece = b"x" * (1 << 20)
    error, _ = failure(wire, wire.answer(b"data: ", *[piece] * 5))
    assert error.message == f"provider {wire.kind}: sent a line that is too long"


@every_dialect
def test_an_answer_that_is_too_long_is_given_up(wire: Wire) -> None:
    """
    Text, or nothing, without end.
    """
    text = wire.write(wire.text("x" * 900_000))
    error, _ = failure(wire, wire.answer(wire.write(*wire.begin), *[text] * 3, Stall()))
    assert error.message == f"provider {wire.kind}: the answer is too long"
    filler = (b": x\n" if wire is not OLLAMA else b"\n\n\n\n") * (1 << 18)
    error, _ = failure(wire, wire.answer(*[filler] * 33, Stall()))
    assert error.message == f"provider {wire.kind}: the answer is too long"


@every_dialect
def test_what_is_no_stream_is_not_read_as_one(wire: Wire) -> None:
    """
    A page of some gateway, or a body that was packed.
    """
    page = Answer(headers={"content-type": "text/html"}, steps=(b"<html>",))
    error, _ = failure(wire, page)
    assert error.message == f"provider {wire.kind}: answered with text/html in place of a stream"
    packed = Answer(headers={"content-type": wire.content_type, "content-encoding": "gzip"}, steps=(b"x",))
    error, _ = failure(wire, packed)
    assert error.message == f"provider {wire.kind}: sent an encoding that was not asked for"


@every_dialect
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(wire: Wire, status: int) -> None:
    """
    The place that it names gets no request, so no key either.
    """

    async def scenario() -> None:
        async with serving(wire.says("caught")) as elsewhere:
            target = f"{elsewhere.origin}{wire.path}"
            async with serving(wire.refuses(status, location=target)) as server:
                with pytest.raises(ProviderError) as caught:
                    await follow(wire.provider(server.origin))
            assert elsewhere.received == []
        assert (
            caught.value.message == f"provider {wire.kind}: HTTP status {status}: redirects are not followed"
        )
        assert not caught.value.retryable

    in_time(scenario)


@every_dialect
def test_a_proxy_of_the_environment_is_not_used(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nor anything else that an SDK would take from there.
    """

    async def scenario() -> None:
        async with serving(wire.says("caught")) as elsewhere, serving(wire.says("right")) as server:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
                monkeypatch.setenv(name, elsewhere.origin)
            for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST"):
                monkeypatch.setenv(name, elsewhere.origin)
            for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID"):
                monkeypatch.setenv(name, "sk-of-the-environment")
            for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
                monkeypatch.setenv(name, "X-Leak: sk-of-the-environment")
            events = await follow(wire.provider(server.origin))
            assert text_of(events) == "right"
            events = await follow(wire.provider(server.origin, key=None))
            assert text_of(events) == "right"
            assert elsewhere.received == []
            assert "sk-of-the-environment" not in repr(server.received)

    in_time(scenario)


@every_dialect
def test_the_key_goes_to_its_origin_and_nothing_tells_of_this_machine(wire: Wire) -> None:
    """
    As a bearer token; without a key there is no such header.
    """
    _, server = ask(wire, wire.says("a"))
    headers = server.received[0].headers
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert set(headers) <= {
        "accept", "accept-encoding", "anthropic-version", "authorization", "content-length", "content-type",
        "host", "user-agent", "connection",
    }  # fmt: skip
    assert headers["user-agent"] == "wasm-agent-runner"

    async def scenario() -> None:
        async with serving(wire.says("a")) as server:
            await follow(wire.provider(server.origin, key=None))
            assert "authorization" not in server.received[0].headers

    in_time(scenario)


@every_dialect
def test_nobody_there_is_told(wire: Wire) -> None:
    """
    Without saying where.
    """

    async def scenario() -> None:
        async with serving(wire.says("a")) as server:
            origin = server.origin
        with pytest.raises(ProviderError) as caught:
            await follow(wire.provider(origin))
        assert caught.value.message == f"provider {wire.kind}: can't be reached"
        assert caught.value.retryable

    in_time(scenario)


@every_dialect
def test_giving_up_closes_the_connection(wire: Wire) -> None:
    """
    By cancelling, and by closing the generator; the provider need not go on writing.
    """

    async def cancelled() -> None:
        async with serving(wire.answer(wire.write(*wire.begin, wire.text("so")), Stall())) as server:
            async with anyio.create_task_group() as group:
                group.start_soon(follow, wire.provider(server.origin))
                await server.stalled.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()

    async def closed() -> None:
        async with serving(wire.answer(wire.write(*wire.begin, wire.text("so")), Stall())) as server:
            events = wire.provider(server.origin).stream(ASK)
            assert await anext(events) == TextDelta("so")
            await events.aclose()
            await server.gone.wait()

    in_time(cancelled)
    in_time(closed)


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


@every_dialect
def test_usage_that_is_not_said_is_unknown(wire: Wire) -> None:
    """
    Never zero.
    """
    if wire is OLLAMA:
        end: tuple[Any, ...] = ({"message": {"content": ""}, "done": True, "done_reason": "stop"},)
    else:
        end = tuple(_without_usage(event) for event in wire.end("end"))
    begin = tuple(_without_usage(event) for event in wire.begin)
    events, _ = ask(wire, wire.answer(wire.write(*begin, wire.text("a"), *end)))
    used = [event for event in events if isinstance(event, Usage)]
    assert used == ([Usage(None, None)] if wire is OLLAMA else [])


def _without_usage(event: Any) -> Any:
    if not isinstance(event, dict):
        return event
    return {key: _without_usage(value) for key, value in event.items() if key != "usage"}


@every_dialect
def test_a_provider_lists_its_models(wire: Wire) -> None:
    """
    Whatever it calls them.
    """
    models = [{"id": "a/b", "name": "a/b"}, {"id": "c:1", "name": "c:1"}]
    answer = Answer(
        headers={"content-type": "application/json"},
        steps=(json.dumps({"data": models, "models": models}).encode(),),
    )

    async def scenario() -> None:
        async with serving(answer) as server:
            provider: Any = wire.provider(server.origin)
            assert await provider.models() == ("a/b", "c:1")
            path = {"ollama": "/api/tags"}.get(wire.kind, "/v1/models")
            assert [(got.method, got.path) for got in server.received] == [("GET", path)]

    in_time(scenario)
