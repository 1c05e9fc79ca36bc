"""
An adapter's events, held against the port: an adapter is trusted no more than the provider behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from runner.errors import ProviderError
from runner.providers.base import (
    STOP_REASONS,
    Reasoning,
    Retry,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
)
from runner.units import MIB

MAX_TEXT_CHARACTERS: Final = 2 * MIB
MAX_HIDDEN_CHARACTERS: Final = 8 * MIB
"""
Of reasoning, with what seals it, and of tool calls.
"""

MAX_TOOL_CALLS: Final = 256
_MAX_NAME_CHARACTERS: Final = 256


class Checked:
    """
    One stream, while it is held against the port.

    Args:
        name: The provider's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._text = 0
        self._hidden = 0
        self._ids: set[str] = set()
        self._counted = False
        self._stopped = False

    async def follow(self, events: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
        """
        The same events, as long as they keep to the port.

        Raises:
            ProviderError: If they don't, or end without a `Stop`.
        """
        async for event in events:
            self._take(event)
            yield event
            if self._stopped:
                return
        raise ProviderError(self._name, "the answer broke off", retryable=True)

    def _take(self, event: object) -> None:
        # Not by its type: an adapter may be anybody's.
        match event:
            case TextDelta():
                self._text += len(event.text)
                self._bound(self._text, MAX_TEXT_CHARACTERS)
            case Reasoning():
                self._hidden += len(event.data) + len(event.text)
                self._bound(self._hidden, MAX_HIDDEN_CHARACTERS)
            case ToolCall():
                self._take_call(event)
            case Usage():
                if self._counted:
                    raise self._broken("counted twice")
                self._counted = True
            case Stop():
                if event.reason not in STOP_REASONS:
                    raise self._broken("ended for no reason")
                self._stopped = True
            case Retry():
                raise self._broken("tried again by itself")
            case _:
                raise self._broken("sent what is no event")

    def _take_call(self, call: ToolCall) -> None:
        if not call.id or len(call.id) > _MAX_NAME_CHARACTERS or call.id in self._ids:
            raise self._broken("called a tool without an identity of its own")
        if not call.name or len(call.name) > _MAX_NAME_CHARACTERS:
            raise self._broken("called a tool without a name")
        self._ids.add(call.id)
        if len(self._ids) > MAX_TOOL_CALLS:
            raise self._broken("called more tools than any turn has")

    def _bound(self, size: int, bound: int) -> None:
        if size > bound:
            raise self._broken("the answer is too long")

    def _broken(self, problem: str) -> ProviderError:
        return ProviderError(self._name, problem)
