"""
Processes that share a cache: one makes, the others wait, and one that dies is as if it had never been.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.cache import BlobCache, next_number
from runner.cache import lock as cache_lock

KEY = b"k" * 32

MAKER = """
import os, sys
from pathlib import Path
from runner.cache import BlobCache

root, journal, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def make():
    with journal.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    print("making", flush=True)
    # Whoever holds the other end of the pipe decides when this goes on.
    sys.stdin.readline()
    return b"compiled" * 1000

print("ready", flush=True)
if mode == "race":
    sys.stdin.readline()
path = BlobCache(root).get_or_make("code", b"k" * 32, make)
print(len(path.read_bytes()), flush=True)
"""

NUMBERER = """
import sys
from pathlib import Path
from runner.cache import BlobCache, next_number

cache = BlobCache(Path(sys.argv[1]))
print(*(next_number(cache, "generations", b"k") for _ in range(50)))
"""


class Maker:
    """
    A process that asks for the entry.
    """

    def __init__(self, root: Path, journal: Path, mode: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAKER, str(root), str(journal), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    def expect(self, line: str) -> None:
        """
        Wait until the process says it.
        """
        assert self.output.readline() == f"{line}\n"

    def go_on(self) -> None:
        """
        Give it the line that it waits for.
        """
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """
    Where each making leaves a line.
    """
    return tmp_path / "journal"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """
    Ends what a failing test has started.
    """
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, root: Path, journal: Path, mode: str) -> Maker:
    """
    A maker that has said that it is ready.
    """
    maker = Maker(root, journal, mode)
    stack.enter_context(maker.process)
    stack.callback(maker.process.kill)
    maker.expect("ready")
    return maker


def test_four_processes_that_race_make_an_entry_once(tmp_path: Path, journal: Path, stack: ExitStack) -> None:
    """
    They all start before any of them may finish; three are given what the fourth has made.
    """
    makers = [started(stack, tmp_path / "cache", journal, "race") for _ in range(4)]
    for maker in makers:
        maker.go_on()
    outputs = [maker.output for maker in makers]
    speaking, _, _ = select.select(outputs, [], [])
    assert len(speaking) == 1
    winner = makers[outputs.index(speaking[0])]
    winner.expect("making")
    winner.go_on()
    for maker in makers:
        maker.expect("8000")
    assert len(journal.read_text().splitlines()) == 1


def test_a_process_killed_while_it_makes_leaves_the_entry_to_the_next(
    tmp_path: Path, journal: Path, stack: ExitStack
) -> None:
    """
    The one that waits meanwhile gets the lock from the dead, finds nothing half made, and makes it.
    """
    root = tmp_path / "cache"
    first = started(stack, root, journal, "at once")
    first.expect("making")
    second = started(stack, root, journal, "at once")
    assert BlobCache(root).get("code", KEY) is None
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second.expect("making")
    second.go_on()
    second.expect("8000")
    assert journal.read_text().split() == [str(first.process.pid), str(second.process.pid)]
    path = BlobCache(root).get("code", KEY)
    assert path is not None
    assert sorted(os.listdir(path.parent)) == [path.name, f"{path.name}.lock", f"{path.name}.size"]


def test_another_key_need_not_wait(tmp_path: Path, journal: Path, stack: ExitStack) -> None:
    """
    The lock is the entry's.
    """
    root = tmp_path / "cache"
    first = started(stack, root, journal, "at once")
    first.expect("making")
    assert BlobCache(root).get_or_make("code", b"other", lambda: b"x").read_bytes() == b"x"
    first.go_on()
    first.expect("8000")


def test_threads_of_one_process_make_an_entry_once(tmp_path: Path) -> None:
    """
    With one cache between them.
    """
    cache = BlobCache(tmp_path / "cache")
    made: list[int] = []
    gate = threading.Barrier(4)

    def make() -> bytes:
        made.append(1)
        return b"compiled"

    def ask() -> Path:
        gate.wait()
        return cache.get_or_make("code", KEY, make)

    with ThreadPoolExecutor(4) as pool:
        paths = [future.result() for future in [pool.submit(ask) for _ in range(4)]]
    assert len(set(paths)) == 1
    assert made == [1]


def test_numbers_are_given_once_across_processes(tmp_path: Path) -> None:
    """
    Two processes draw fifty each; together they have drawn one to a hundred.
    """
    root = tmp_path / "cache"
    processes = [
        subprocess.Popen([sys.executable, "-c", NUMBERER, str(root)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    drawn = [[int(number) for number in process.communicate()[0].split()] for process in processes]
    assert sorted(drawn[0] + drawn[1]) == list(range(1, 101))
    assert all(numbers == sorted(numbers) for numbers in drawn)
    assert next_number(BlobCache(root), "generations", b"k") == 101
    assert next_number(BlobCache(root), "generations", b"other") == 1


def test_without_flock_whoever_creates_the_file_holds_the_lock(tmp_path: Path) -> None:
    """
    The next one sleeps until it is gone.
    """
    path = tmp_path / "lock"
    naps: list[float] = []
    first = ExitStack()
    first.enter_context(cache_lock._hold_by_presence(path))
    assert path.exists()

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            first.close()

    with cache_lock._hold_by_presence(path, nap):
        assert path.exists()
    assert naps == [0.05] * 3
    assert not path.exists()


def test_without_flock_a_lock_of_the_dead_is_broken(tmp_path: Path) -> None:
    """
    One that is older than any making takes.
    """
    path = tmp_path / "lock"
    path.write_bytes(b"")
    os.utime(path, (0, 0))

    def nap(_: float) -> None:
        pytest.fail("it was abandoned")

    with cache_lock._hold_by_presence(path, nap):
        assert path.exists()
    assert not path.exists()


def test_without_flock_a_lock_that_goes_away_while_it_is_looked_at_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Between the attempt and the look at its age its holder may let go.
    """
    path = tmp_path / "lock"
    path.write_bytes(b"")
    look = cache_lock._is_abandoned

    def look_too_late(path: Path) -> bool:
        path.unlink()
        return look(path)

    monkeypatch.setattr(cache_lock, "_is_abandoned", look_too_late)
    with cache_lock._hold_by_presence(path, lambda _: None):
        assert path.exists()
