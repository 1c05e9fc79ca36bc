"""
Every adapter, over the real protocol and the real SDK, held to the port.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from runner.errors import ContextOverflow, ProviderError
from runner.providers import wire as wire_module
from runner.providers.base import (
    Stop,
    TextDelta,
    ToolCall,
    Usage,
)
from tests.providers.asking import ASK, ask, every_dialect, failure, follow, in_time, text_of
from tests.providers.dialects import ANTHROPIC, CANARY, COMPATIBLE, OLLAMA, OPENAI, WIRES, Wire
from tests.providers.servers import Answer, Cut, Stall, Wait, serving


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
    filler = ((b":" if wire is not OLLAMA else b" ") + b" " * 65_534 + b"\n") * 16
    error, _ = failure(wire, wire.answer(*[filler] * 33, Stall()))
    assert error.message == f"provider {wire.kind}: the answer is too long"


@every_dialect
def test_lines_without_end_are_given_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Empty ones take time and no room.
    """
    monkeypatch.setattr(wire_module, "MAX_LINES", 100)
    error, _ = failure(wire, wire.answer(b"\n" * 200, Stall()))
    assert error.message == f"provider {wire.kind}: sent more lines than any answer has"


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
