"""
Where a command's time went.
"""

from __future__ import annotations

import time


class Stopwatch:
    """
    Wall times by name, in milliseconds.
    """

    def __init__(self) -> None:
        self._started_s = self._lap_s = time.monotonic()
        self.laps_ms: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """
        Note the time since the lap before, or since the start.
        """
        now_s = time.monotonic()
        self.laps_ms[name] = round((now_s - self._lap_s) * 1000, 3)
        self._lap_s = now_s

    def report(self, guest_ms: float) -> dict[str, float]:
        """
        All laps, the guest's own time, and the total.
        """
        total_ms = round((time.monotonic() - self._started_s) * 1000, 3)
        return {**self.laps_ms, "guest": round(guest_ms, 3), "total": total_ms}
