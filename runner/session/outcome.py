"""
How a delivery ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.errors import RunnerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    The end of one delivery.

    Attributes:
        delivery: Its number.
        result: What the guest replied; `None` when it failed.
        failure: Why it failed, or `None`. The instance is as before the delivery then, unless the guest
            itself returned the error.
        fuel: Fuel charged for all its slices.
        guest_ms: Wall time of the guest's own execution.
        wall_ms: Wall time from its first slice to its end.
    """

    delivery: int
    result: Value = None
    failure: RunnerError | None = None
    fuel: int = 0
    guest_ms: float = 0.0
    wall_ms: float = 0.0

    def unwrap(self) -> Value:
        """
        The result.

        Raises:
            RunnerError: The failure, if there was one.
        """
        if self.failure is not None:
            raise self.failure
        return self.result
