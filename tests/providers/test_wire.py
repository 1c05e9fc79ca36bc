"""
Reading what strangers wrote, whatever it is: bounded, total, and the same however it is cut.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import ProviderError, RequestUnsupported
from runner.providers.base import Message, ModelRequest, Stop, ToolCall
from runner.providers.chat_api import ChatDialect
from runner.providers.checked import Checked
from runner.providers.dialect import Dialect, Said, body_of
from runner.providers.faults import of_status, retry_after_ms
from runner.providers.messages_api import MessagesDialect
from runner.providers.ollama_api import OllamaDialect
from runner.providers.origin import Endpoint, Key, parse_address
from runner.providers.responses_api import ResponsesDialect
from runner.providers.wire import Malformed, Node, json_object, lines, server_events
from tests.providers.dialects import CANARY, WIRES

DIALECTS: dict[str, Callable[[], Dialect]] = {
    "anthropic": MessagesDialect,
    "openai": ResponsesDialect,
    "compatible": ChatDialect,
    "ollama": OllamaDialect,
}
ASK = ModelRequest(model="m", messages=(Message("user", "hi"),))

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list | tuple) else set()


def _texts(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(_texts, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()


def known_events() -> list[Any]:
    """
    One of each event that the dialects know.
    """
    return [
        event
        for wire in WIRES
        for event in (
            *wire.begin,
            wire.text("a"),
            *wire.call("c", "t", ("{}",)),
            *wire.end("end"),
            wire.error("overloaded_error", "no"),
        )
        if isinstance(event, dict)
    ]


KEYS = sorted(_keys(known_events()))
WORDS = sorted(_texts(known_events()))
# Objects that are almost events: their keys and their words, in the wrong places.
almost = st.recursive(
    scalars | st.sampled_from(WORDS) | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
).filter(lambda value: isinstance(value, dict))
changed = st.sampled_from(known_events()).flatmap(
    lambda event: st.dictionaries(
        st.sampled_from(sorted(event) or ["type"]), almost | scalars, max_size=2
    ).map(lambda other: {**event, **other})
)


async def _pieces(data: bytes, cuts: list[int]) -> AsyncGenerator[bytes, None]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        yield data[start:end]


@given(st.text(alphabet="ab\r\n: é🎈"), st.lists(st.integers(0, 100), max_size=8))
def test_lines_are_the_same_however_a_stream_is_cut(text: str, cuts: list[int]) -> None:
    """
    Also within a character, and between the two halves of a line end.
    """

    async def read(where: list[int]) -> list[str]:
        return [line async for line in lines(_pieces(text.encode(), where))]

    assert anyio.run(read, cuts) == anyio.run(read, [])
    whole = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert anyio.run(read, cuts) == (whole if whole[-1] else whole[:-1])


@given(st.binary(max_size=200), st.lists(st.integers(0, 100), max_size=4))
def test_any_bytes_are_events_or_malformed(data: bytes, cuts: list[int]) -> None:
    """
    Nothing else is raised.
    """

    async def read() -> None:
        try:
            async for event in server_events(_pieces(data, cuts)):
                assert event.encode()
        except Malformed:
            pass

    anyio.run(read)


@given(st.text() | values.map(json.dumps))
def test_any_text_is_an_object_or_malformed(text: str) -> None:
    """
    Nothing else is raised.
    """
    with contextlib.suppress(Malformed):
        assert isinstance(json_object(text), Node)


@pytest.mark.parametrize("kind", DIALECTS)
@given(events=st.lists(almost | changed | st.sampled_from(known_events()), max_size=12))
def test_any_objects_are_events_or_an_error(kind: str, events: list[Any]) -> None:
    """
    Whatever comes of them can be handed to an agent.
    """
    dialect = DIALECTS[kind]()
    reader = dialect.reader("acme", ASK)

    async def read() -> AsyncGenerator[Any, None]:
        for event in events:
            for said in reader.take(Node(event)):
                yield said
                if isinstance(said, Stop):
                    return
        for said in reader.finish():
            yield said

    async def follow() -> None:
        try:
            async for said in Checked("acme").follow(read()):
                text = getattr(said, "text", None) or getattr(said, "data", None) or ""
                assert isinstance(text.encode(), bytes)
                if isinstance(said, ToolCall):
                    codec.encode([said.id, said.name, dict(said.arguments)])
        except (Malformed, Said, ProviderError):
            pass

    anyio.run(follow)


@given(
    st.integers(100, 999),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()),
    st.binary() | values.map(lambda value: json.dumps({"error": value}).encode()),
)
def test_any_refusal_is_an_error_without_key_and_address(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    """
    Whatever its body is.
    """
    address = parse_address("https://api.example.com/v1")
    endpoint = Endpoint(address, Key(CANARY, address.origin))
    quoting = body + json.dumps({"error": {"message": f"{CANARY} {address}"}}).encode()
    for sent in (body, quoting, quoting[len(body) :]):
        error = of_status("acme", endpoint, status, headers, sent, 0.0)
        assert CANARY not in error.message
        assert "example.com" not in error.message
        assert len(error.message) < 400
        assert error.message.isprintable()


@given(st.text())
def test_any_wait_that_is_asked_for_is_a_wait_or_none(text: str) -> None:
    """
    Never one before now.
    """
    waits_ms = retry_after_ms({"retry-after": text}, 0.0)
    assert waits_ms is None or waits_ms >= 0


@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("value", [b"bytes", float("nan"), {b"k": 1}])
def test_a_request_that_is_no_json_is_refused(kind: str, value: Any) -> None:
    """
    An agent's schema may have anything in it that a payload can carry.
    """
    request = ModelRequest(model="m", messages=ASK.messages, output_schema={"type": value})
    with pytest.raises(RequestUnsupported, match="has no words for a request that is no JSON"):
        body_of(DIALECTS[kind](), "acme", request)


def test_a_seal_of_anybody_s_is_no_crash() -> None:
    """
    A guest may have written it.
    """
    call = ToolCall("1", "t", {}, seal="{")
    request = ModelRequest(model="m", messages=(Message("assistant", (call,)),))
    with pytest.raises(RequestUnsupported):
        body_of(ChatDialect(), "acme", request)
