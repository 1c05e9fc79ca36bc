"""
The clock behind wall deadlines: moves the engine's epoch while guests run.
"""

from __future__ import annotations

import atexit
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
Ticks without a running guest after which the thread ends; a new one for each slice would cost more.
"""

_exiting: Final = threading.Event()
_threads: Final[set[threading.Thread]] = set()


@atexit.register
def _end_all() -> None:
    """
    End every thread before the interpreter goes: it unwinds the stacks of daemon threads that come back to it
    then, and the unwinder may meet compiled guests that are gone already, which ends the process by SIGSEGV.
    """
    _exiting.set()
    for thread in tuple(_threads):
        thread.join()


class Ticker:
    """
    One daemon thread for an engine while guests run; none is left when none has run for a while, so that
    engines can come and go.

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
        self._ticking = False
        self._ticked_s = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def guest_runs(self) -> Iterator[None]:
        """
        Hold while a slice runs; from any thread, any number at once.
        """
        with self._lock:
            if self._running or self._ticking:
                # The thread may be behind: a slice that begins now must not get ticks of the time before.
                self._catch_up()
            else:
                self._ticked_s = self._clock_s()
            self._running += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="runner-ticker", daemon=True)
                _threads.add(self._thread)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def _tick(self) -> None:
        with self._lock:
            self._ticking = True
        idle = 0
        while idle < _LINGER_TICKS and not _exiting.wait(_TICK_S):
            with self._lock:
                idle = 0 if self._running else idle + 1
                self._catch_up()
                if idle == _LINGER_TICKS:
                    self._thread, self._ticking = None, False
        _threads.discard(threading.current_thread())

    def _catch_up(self) -> None:
        """
        Move the epoch to now; whoever calls holds the lock.
        """
        now_s = self._clock_s()
        while self._ticked_s + _TICK_S <= now_s:
            self._ticked_s += _TICK_S
            self._engine.tick()
