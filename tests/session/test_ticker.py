"""
The clock behind wall deadlines, on a clock of the tests' own.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Final

from runner.kernel.engine import EPOCH_TICK_MS
from runner.session.ticker import Ticker

# Handlers run last first: what is registered before the ticker's module is imported looks after it has ended.
_LEAVES: Final = """
import atexit, threading
atexit.register(lambda: print([each.name for each in threading.enumerate()]))
from runner.kernel.engine import Engine
from runner.session.ticker import Ticker
for _ in range(3):
    with Ticker(Engine()).guest_runs():
        pass
print(sum(each.name == "runner-ticker" for each in threading.enumerate()))
"""


class CountingEngine:
    """
    Counts its ticks.
    """

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        """One more."""
        self.ticks += 1


class StillThread:
    """
    A thread that never gets to run.
    """

    def __init__(self, **settings: object) -> None:
        del settings

    def start(self) -> None:
        """Do nothing."""

    def join(self) -> None:
        """Over already."""


def test_time_that_passed_before_a_slice_began_is_not_held_against_it(monkeypatch):
    """A thread that is late catches up at the next beginning, before the slice sets its deadline."""
    now_s = [0.0]
    engine = CountingEngine()
    ticker = Ticker(engine, clock_s=lambda: now_s[0])  # type: ignore[arg-type]
    monkeypatch.setattr("runner.session.ticker.threading.Thread", StillThread)
    with ticker.guest_runs():
        assert engine.ticks == 0
        now_s[0] = 35 * EPOCH_TICK_MS / 1000 + 0.001
        with ticker.guest_runs():
            assert engine.ticks == 35
    now_s[0] = 1000.0
    with ticker.guest_runs():
        # Nothing ran in between, so no slice had to hear of that time.
        assert engine.ticks == 35


def test_the_epoch_moves_while_a_guest_runs(monkeypatch):
    """And by the time that has passed."""
    engine = CountingEngine()
    moved = threading.Event()
    monkeypatch.setattr(
        engine, "tick", lambda: moved.set() if engine.ticks == 4 else CountingEngine.tick(engine)
    )
    with Ticker(engine).guest_runs():  # type: ignore[arg-type]
        assert moved.wait(20)


def test_no_thread_is_left_when_no_guest_runs_any_more(monkeypatch):
    """One that an engine keeps for good would keep the engine; the next slice has a new one."""
    monkeypatch.setattr("runner.session.ticker._LINGER_TICKS", 1)
    engine = CountingEngine()
    ticker = Ticker(engine)  # type: ignore[arg-type]
    for _ in range(2):
        with ticker.guest_runs():
            thread = ticker._thread
            assert thread is not None
            moved = threading.Event()
            monkeypatch.setattr(engine, "tick", moved.set)
            assert moved.wait(20)
        thread.join()
        assert ticker._thread is None


def test_no_thread_is_left_when_the_interpreter_goes():
    """One that came back to it then would end the process by SIGSEGV, now and then."""
    command = [sys.executable, "-c", _LEAVES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["3", "['MainThread']"]
