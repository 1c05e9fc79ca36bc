"""
The adapters against a mock that others wrote: what we took the protocols to be is not all that is tested.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from llm_mock_api import MockServer
from llm_mock_api.types import reply as mock

from runner.errors import ProviderError
from runner.providers.base import (
    Message,
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.providers.asking import follow
from tests.providers.dialects import ANTHROPIC, COMPATIBLE, OPENAI, Wire

every_dialect = pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI, COMPATIBLE], ids=lambda wire: wire.kind)
# The server that it stands on says this of itself, and its threads end after the test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def ask(wire: Wire, prepare: Callable[[Any], None], request: ModelRequest) -> list[StreamEvent]:
    """
    The events of one request to a mock with these rules.
    """

    async def scenario() -> list[StreamEvent]:
        async with MockServer() as server:
            prepare(server)
            return await follow(wire.provider(server.url.rstrip("/")), request)

    return in_time(scenario)


def in_time(scenario: Callable[[], Awaitable[list[StreamEvent]]]) -> list[StreamEvent]:
    """
    What a scenario gives, unless it hangs.
    """

    async def bounded() -> list[StreamEvent]:
        with anyio.fail_after(20):
            return await scenario()

    return anyio.run(bounded)


HELLO = ModelRequest(model="some-model", messages=(Message("user", "hello"),))


@every_dialect
def test_a_text_arrives(wire: Wire) -> None:
    """
    Whole, with what it cost.
    """
    reply = mock.ReplyObject(text="Grüezi, wörld!", usage=mock.Usage(input=12, output=5))
    events = ask(wire, lambda server: server.when("hello").reply(reply), HELLO)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Grüezi, wörld!"
    (usage,) = [event for event in events if isinstance(event, Usage)]
    assert (usage.input_tokens, usage.output_tokens) == (12, 5)
    assert events[-1] == Stop("end")


@every_dialect
def test_a_tool_call_arrives(wire: Wire) -> None:
    """
    With its arguments as an object.
    """
    request = ModelRequest(
        model="some-model",
        messages=HELLO.messages,
        tools=(ToolSpec("weather", "Tells it.", {"type": "object", "properties": {}}),),
    )
    reply = mock.ReplyObject(tools=[mock.ToolCall(name="weather", args={"city": "Zürich"})])
    events = ask(wire, lambda server: server.when("hello").reply(reply), request)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.arguments) == ("weather", {"city": "Zürich"})
    assert events[-1] == Stop("tool_calls")


@every_dialect
@pytest.mark.parametrize(("status", "retryable"), [(429, True), (400, False)])
def test_a_refusal_arrives(wire: Wire, status: int, retryable: bool) -> None:
    """
    With its status and its words.
    """
    with pytest.raises(ProviderError) as caught:
        ask(wire, lambda server: server.next_error(status, "not now"), HELLO)
    assert (caught.value.status, caught.value.retryable) == (status, retryable)
    assert caught.value.message == f"provider {wire.kind}: HTTP status {status}: not now"
