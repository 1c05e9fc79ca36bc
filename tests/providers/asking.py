"""
Putting one request to a server with given answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from runner.errors import ProviderError
from runner.providers.base import Message, ModelRequest, Provider, StreamEvent, TextDelta
from runner.providers.checked import Checked
from tests.providers.dialects import WIRES, Wire
from tests.providers.servers import Answer, Server, serving

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
