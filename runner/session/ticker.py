"""
The clock behind wall deadlines: moves the engine's epoch while guests run.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from runner.kernel.engine import EPOCH_TICK_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner.kernel.engine import Engine

_TICK_S: Final = EPOCH_TICK_MS / 1000

_LINGER_TICKS: Final = 100
"""
Ticks without a running guest after which the thread sleeps; waking it for each slice would cost more.
"""


class Ticker:
    """
    One daemon thread for an engine, asleep while no guest runs.

    Late on a busy machine, never early: it moves the epoch by the time that has really passed, and what
    passed before a slice began is not held against it.

    Args:
        engine: Whose epoch it moves.
        clock_s: Seconds that never go back.
    """

    def __init__(self, engine: Engine, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock_s = clock_s
        self._running = 0
        self._asleep = True
        self._ticked_s = 0.0
        self._wanted = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def guest_runs(self) -> Iterator[None]:
        """
        Hold while a slice runs; from any thread, any number at once.
        """
        with self._wanted:
            if self._running or not self._asleep:
                # The thread may be behind: a slice that begins now must not get ticks of the time before.
                self._catch_up()
            else:
                self._ticked_s = self._clock_s()
            self._running += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="runner-ticker", daemon=True)
                self._thread.start()
            if self._asleep:
                self._wanted.notify()
        try:
            yield
        finally:
            with self._wanted:
                self._running -= 1

    def _tick(self) -> None:
        while True:
            with self._wanted:
                self._asleep = True
                self._wanted.wait_for(lambda: self._running)
                self._asleep = False
            self._tick_until_idle()

    def _tick_until_idle(self) -> None:
        idle = 0
        while idle < _LINGER_TICKS:
            time.sleep(_TICK_S)
            with self._wanted:
                idle = 0 if self._running else idle + 1
                self._catch_up()

    def _catch_up(self) -> None:
        """
        Move the epoch to now; whoever calls holds the condition.
        """
        now_s = self._clock_s()
        while self._ticked_s + _TICK_S <= now_s:
            self._ticked_s += _TICK_S
            self._engine.tick()
