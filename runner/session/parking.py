"""
Calls that wait for a person, and what the person says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from runner.errors import ApprovalPending, EffectUncertain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.kernel.machine import Machine
    from runner.session.chronicle import Chronicle, Disposition
    from runner.session.crew import Crew
    from runner.session.pending import Pending


class Parking:
    """
    The parked calls of one instance, oldest first.

    Args:
        machine: The instance.
        crew: Where rulings are written.
        chronicle: What writes them down.
    """

    def __init__(self, machine: Machine, crew: Crew, chronicle: Chronicle) -> None:
        self._machine = machine
        self._crew = crew
        self._chronicle = chronicle
        self._calls: dict[int, None] = {}
        # Given up, and nobody knows whether they happened: no answer will come before a person has ruled.
        self._doubtful: dict[int, None] = {}

    def doubt(self, call: int) -> None:
        """
        Wait for a person to say what became of an effect that was given up.
        """
        self._doubtful[call] = None

    def add(self, calls: Iterable[int]) -> None:
        """
        Park calls.
        """
        self._calls.update(dict.fromkeys(calls))

    def give_up(self, calls: Iterable[int]) -> None:
        """
        Forget calls; does nothing for one that is not parked.
        """
        for call in calls:
            self._calls.pop(call, None)
            self._doubtful.pop(call, None)

    async def decide(
        self, call: int, verdict: Literal["allow", "deny"], *, rule: str, by: str
    ) -> Disposition:
        """
        Write down what a person says of a call; durable when this returns.

        Raises:
            ValueError: If the call is not parked.
            RunnerError: If it could not be written down.
        """
        if call not in self._calls:
            msg = f"call {call} does not wait for a decision"
            raise ValueError(msg)
        del self._calls[call]
        [parked] = [other for other in self._machine.calls if other.number == call]
        return await self._crew.do(partial(self._chronicle.decide, parked, verdict, rule=rule, by=by))

    def hold_up(self, pending: Pending | None) -> None:
        """
        Tell who waits for a delivery that only a person can move it on. It stays open.
        """
        if pending is None or pending.outcome is not None:
            return
        if self._doubtful:
            pending.settle(failure=EffectUncertain(self._chronicle.name, tuple(self._doubtful)))
        elif self._calls:
            pending.settle(failure=ApprovalPending(self._chronicle.name, tuple(self._calls)))
