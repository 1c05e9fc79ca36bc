"""
Patience with a provider: attempts, waits, deadlines, and another provider when all else failed.

An attempt is repeated only while nothing of an answer has come: what was handed on can't be taken back.
Clocks and chance come in from outside.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

import anyio

from runner.errors import ProviderError
from runner.providers.base import ModelRequest, Provider, Retry, Stop, StreamEvent
from runner.providers.checked import Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """
    How long to bear with a provider.

    Attributes:
        retries: Attempts beyond the first.
        idle_s: Longest silence: before the first byte, and between two events.
        total_s: Longest time for the whole answer, attempts and waits included.
        first_wait_s: Before the second attempt; doubled for each one after it.
        most_wait_s: No wait of our own choice is longer.
        most_asked_s: A provider that asks to be left alone for longer is not asked again.
    """

    retries: int = 2
    idle_s: float = 120.0
    total_s: float = 900.0
    first_wait_s: float = 0.5
    most_wait_s: float = 8.0
    most_asked_s: float = 60.0


PATIENCE: Final = Patience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """
    Time and chance.

    Attributes:
        now_s: A clock that only goes on.
        sleep: Waits for some seconds.
        chance: A number from 0 to 1, 1 excluded.
        scope: Cancels what is done in it after some seconds.
    """

    now_s: Callable[[], float] = anyio.current_time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random
    scope: Callable[[float], anyio.CancelScope] = anyio.move_on_after


CLOCKWORK: Final = Clockwork()


@dataclass(frozen=True, slots=True)
class Fallback:
    """
    Who answers in place of a provider.

    Attributes:
        provider: Patient on its own account.
        model: Its model.
    """

    provider: Provider
    model: str


class SteadyProvider:
    """
    A provider with patience around it.

    Guarantees what the port does, whatever the adapter does: its events are held against it.

    Args:
        inner: The adapter.
        patience: How long to bear with it.
        fallback: Says who is asked when it failed for good, without a word of an answer, in a way that is no
            fault of the request; `None` when nobody may be. Asked with the model that was wanted.
        clockwork: Time and chance.
    """

    def __init__(
        self,
        inner: Provider,
        patience: Patience = PATIENCE,
        *,
        fallback: Callable[[str], Fallback | None] | None = None,
        clockwork: Clockwork = CLOCKWORK,
    ) -> None:
        self._inner = inner
        self._patience = patience
        self._fallback = fallback
        self._clockwork = clockwork

    @property
    def name(self) -> str:
        """
        The adapter's.
        """
        return self._inner.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        As the port says; attempts that failed are seen as `Retry`.
        """
        end_s = self._clockwork.now_s() + self._patience.total_s
        for attempt in range(1, self._patience.retries + 2):
            said = False
            try:
                async with aclosing(self._attempt(request, end_s)) as events:
                    async for event in events:
                        said = True
                        yield event
                        if isinstance(event, Stop):
                            return
            except ProviderError as error:
                wait_s = None if said else self._wait_s(error, attempt, end_s)
                if wait_s is None:
                    if said or not error.retryable:
                        raise
                    other = self._fallback(request.model) if self._fallback else None
                    if other is None:
                        raise
                    yield self._note(error, attempt, 0.0)
                    break
                yield self._note(error, attempt, wait_s)
                await self._clockwork.sleep(wait_s)
        else:
            return
        async with aclosing(other.provider.stream(replace(request, model=other.model))) as events:
            async for event in events:
                yield event

    async def _attempt(self, request: ModelRequest, end_s: float) -> AsyncGenerator[StreamEvent, None]:
        """
        One attempt; silence and the end of all patience are failures of the provider.
        """
        checked = Checked(self.name)
        async with aclosing(self._inner.stream(request)) as raw, aclosing(checked.follow(raw)) as events:
            while True:
                left_s = end_s - self._clockwork.now_s()
                event: StreamEvent | None = None
                # Opened and closed between two events: a scope must not be left open at a `yield`.
                with self._clockwork.scope(max(0.0, min(self._patience.idle_s, left_s))) as scope:
                    event = await anext(events, None)
                if scope.cancelled_caught:
                    raise self._silence(left_s)
                if event is None:
                    return
                yield event

    def _silence(self, left_s: float) -> ProviderError:
        if left_s <= self._patience.idle_s:
            took = f"{self._patience.total_s:g} s"
            return ProviderError(self.name, f"the answer took longer than {took}")
        return ProviderError(self.name, f"sent nothing for {self._patience.idle_s:g} s", retryable=True)

    def _wait_s(self, error: ProviderError, attempt: int, end_s: float) -> float | None:
        """
        How long to wait before the next attempt; `None` when there is to be none.
        """
        patience = self._patience
        if not error.retryable or attempt > patience.retries:
            return None
        if error.retry_after_ms is not None:
            wait_s = error.retry_after_ms / 1000
            if wait_s > patience.most_asked_s:
                return None
        else:
            longest_s = min(patience.most_wait_s, patience.first_wait_s * 2 ** (attempt - 1))
            # Half of it by chance: those who failed together don't come back together.
            wait_s = longest_s * (1 + self._clockwork.chance()) / 2
        return wait_s if self._clockwork.now_s() + wait_s < end_s else None

    def _note(self, error: ProviderError, attempt: int, wait_s: float) -> Retry:
        return Retry(
            attempt=attempt,
            provider=self.name,
            problem=error.message,
            status=error.status,
            wait_ms=math.ceil(wait_s * 1000),
        )
