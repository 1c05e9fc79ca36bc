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
    from collections.abc import Iterator

    from runner.kernel.engine import Engine

_TICK_S: Final = EPOCH_TICK_MS / 1000

_LINGER_TICKS: Final = 100
"""
Ticks without a running guest after which the thread sleeps; waking it for each slice would cost more.
"""


class Ticker:
    """
    One daemon thread for an engine, asleep while no guest runs.

    Late on a busy machine, never early: it moves the epoch by the time that has really passed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running = 0
        self._asleep = True
        self._wanted = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def guest_runs(self) -> Iterator[None]:
        """
        Hold while a slice runs; from any thread, any number at once.
        """
        with self._wanted:
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
        ticked_s = time.monotonic()
        while idle < _LINGER_TICKS:
            time.sleep(_TICK_S)
            idle = 0 if self._running else idle + 1
            while ticked_s + _TICK_S <= time.monotonic():
                ticked_s += _TICK_S
                self._engine.tick()
