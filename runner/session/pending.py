"""
A delivery on its way: its tallies and its time.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from runner.errors import DeadlineExceeded, RunnerError
from runner.session.outcome import Outcome

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.kernel.abi import DeliveryKind


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """
    A delivery that waits its turn or is open, by the monotonic clock.

    Attributes:
        number: Its number.
        kind: Why.
        payload: Deterministic CBOR.
        timeout_ms: Wall time that the guest's own execution may take.
        deadline_ms: Wall time that all of it may take from its first slice on, waiting included; or `None`.
        started_s: When its first slice began.
        guest_ms: Wall time of the guest's own execution so far.
        fuel: Fuel charged so far.
        outcome: How it ended; `None` before that, and when the session ended first.
        done: Set when nothing more will come.
    """

    number: int
    kind: DeliveryKind
    payload: bytes
    timeout_ms: int
    deadline_ms: int | None = None
    started_s: float = 0.0
    guest_ms: float = 0.0
    fuel: int = 0
    outcome: Outcome | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    def begin(self) -> None:
        """
        Its first slice begins now.
        """
        self.started_s = time.monotonic()

    def settle(self, *, result: Value = None, failure: RunnerError | None = None) -> None:
        """
        It has ended; whoever waits for it hears of it.
        """
        self.outcome = Outcome(
            delivery=self.number,
            result=result,
            failure=failure,
            fuel=self.fuel,
            guest_ms=self.guest_ms,
            wall_ms=self._spent_ms,
        )
        self.done.set()

    def go_on(self) -> None:
        """
        It has not ended after all: a person has ruled on what it waited for.
        """
        if self.outcome is not None:
            self.outcome, self.done = None, anyio.Event()

    @property
    def slice_ms(self) -> int:
        """
        How long its next slice may run: what is left of both bounds.
        """
        return max(1, math.ceil(self._left_ms))

    @property
    def patience_s(self) -> float:
        """
        How long it may still wait; for ever when it has no deadline.
        """
        if self.deadline_ms is None:
            return math.inf
        return max(0.0, (self.deadline_ms - self._spent_ms) / 1000)

    @property
    def is_overdue(self) -> bool:
        """
        Whether it has met one of its bounds.
        """
        return self._left_ms <= 0

    @property
    def deadline_error(self) -> DeadlineExceeded:
        """
        That no time is left, by the bound that is met first and as the owner stated it.
        """
        timeout_left_ms = self.timeout_ms - self.guest_ms
        if self.deadline_ms is not None and self.deadline_ms - self._spent_ms <= timeout_left_ms:
            limit, spent_ms, bound_ms = "deadline_ms", self._spent_ms, self.deadline_ms
        else:
            limit, spent_ms, bound_ms = "timeout_ms", self.guest_ms, self.timeout_ms
        return DeadlineExceeded(limit, max(bound_ms, math.ceil(spent_ms)), bound_ms)

    @property
    def _left_ms(self) -> float:
        left_ms = self.timeout_ms - self.guest_ms
        return left_ms if self.deadline_ms is None else min(left_ms, self.deadline_ms - self._spent_ms)

    @property
    def _spent_ms(self) -> float:
        return (time.monotonic() - self.started_s) * 1000
