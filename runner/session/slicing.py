"""
The slices of one instance: each is computed by the crew, and written down before anything follows from it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from runner.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.kernel.machine import Input, Machine, StepResult
    from runner.session.chronicle import Chronicle, Disposition
    from runner.session.crew import Confirm, Crew
    from runner.session.pending import Pending
    from runner.session.ticker import Ticker

_FUEL_PER_S: Final = 2_000_000_000
"""
About what a guest burns, to tell how long its next slice will compute. A clock would count how long the last
one waited for others too.
"""


class Unwritten(Exception):
    """
    A slice could not be written down: no failure of its delivery, but the end of the session.

    Attributes:
        error: Why.
    """

    def __init__(self, error: RunnerError) -> None:
        super().__init__(error.message)
        self.error = error


class Slicer:
    """
    One instance's slices, one at a time.

    Args:
        machine: The instance.
        ticker: Clock of its engine.
        crew: Where slices are computed.
        chronicle: Where they are written down.
    """

    def __init__(self, machine: Machine, ticker: Ticker, crew: Crew, chronicle: Chronicle) -> None:
        self._machine = machine
        self._ticker = ticker
        self._crew = crew
        self._chronicle = chronicle
        self._last_fuel = 0

    async def step(self, event: Input, pending: Pending | None) -> tuple[StepResult, Disposition]:
        """
        Compute one slice; it is durable when this returns.

        Cancelled before it began, it never was; later than that, its end is waited for.

        Args:
            event: What the instance learns.
            pending: The open delivery, which is charged for it.

        Raises:
            Unwritten: If it could not be written down.
            RunnerError: If the machine did not take the input, and has not changed.
        """
        expected_s = self._last_fuel / _FUEL_PER_S
        result, guest_ms, disposition = await self._crew.do(
            partial(self._begin, event, pending), expected_s=expected_s
        )
        self._last_fuel = result.fuel
        if pending is not None:
            pending.guest_ms += guest_ms
            pending.fuel += result.fuel
        return result, disposition

    async def abandon(self, pending: Pending, failure: RunnerError) -> StepResult:
        """
        Give up the open delivery; that is durable when this returns.

        Raises:
            RunnerError: If it could not be written down.
        """
        result = self._machine.abandon(failure)
        await self._crew.do(partial(self._chronicle.abandon, pending.number, failure, result, self._machine))
        return result

    def _begin(self, event: Input, pending: Pending | None) -> Confirm[tuple[StepResult, float, Disposition]]:
        # Asked for now, and not when it was handed over: it may have waited for its turn.
        allowance_ms = pending.slice_ms if pending else self._machine.limits.timeout_ms
        with self._ticker.guest_runs():
            started_s = time.monotonic()
            result = self._machine.step(event, deadline_ms=allowance_ms)
            guest_ms = (time.monotonic() - started_s) * 1000
        with _told_apart():
            confirm = self._chronicle.slice(event, result, self._machine)

        def finish() -> tuple[StepResult, float, Disposition]:
            with _told_apart():
                return result, guest_ms, confirm()

        return finish


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except RunnerError as error:
        raise Unwritten(error) from error
