"""
Processes that share a state directory, and processes that are killed in the middle.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from runner.errors import InstanceBusy
from runner.journal import StateDirectory
from runner.journal.records import Decision, Delivery, Slice
from tests.journal.samples import filled, machine_state, page, records_of, turn

HOLDER: Final = """
import sys
from pathlib import Path
from runner.errors import InstanceBusy
from runner.journal import StateDirectory

state = StateDirectory(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    journal = state.open("one", write=True)
except InstanceBusy as busy:
    print("busy", busy.pid, flush=True)
else:
    print("holds", flush=True)
    sys.stdin.readline()
"""

RIVAL: Final = """
import os, sys
from pathlib import Path
from runner.errors import InstanceBusy
from runner.journal import StateDirectory
from runner.journal.records import Decision

root = Path(sys.argv[1])
alone = root.with_name("alone")
state = StateDirectory(root)
print("ready", flush=True)
sys.stdin.readline()
written = 0
while written < 40:
    try:
        journal = state.open("one", write=True)
    except InstanceBusy:
        continue
    with journal:
        os.close(os.open(alone, os.O_CREAT | os.O_EXCL))
        written += 1
        said = Decision(call=written, verdict="ask", rule="", by=sys.argv[2], at_ms=0)
        journal.append([said, said])
        os.unlink(alone)
print("done", flush=True)
"""

MAKER: Final = """
import sys
from pathlib import Path
from runner.journal import StateDirectory
from tests.journal.samples import filled

print("ready", flush=True)
sys.stdin.readline()
with StateDirectory(Path(sys.argv[1])) as state:
    for number in range(5):
        filled(state, f"{sys.argv[2]}{number}", 3)
    print("done", flush=True)
"""

WRITER: Final = """
import sys
from pathlib import Path
from runner import codec
from runner.journal import StateDirectory
from tests.journal.samples import machine_state, page, turn

state = StateDirectory(Path(sys.argv[1]))
journal = state.open("one", write=True)
print("holds", flush=True)
sys.stdin.readline()
while True:
    number = journal.position // 2 + 1
    journal.append(turn(number, codec.encode("x" * (number * 997 % 9000))))
    if number % 3 == 0:
        journal.put_snapshot(journal.position, machine_state({0: page(number), 1: page(-1)}), {}, b"d" * 32)
    if number % 7 == 0:
        state.gc(2)
    print(journal.position, flush=True)
"""


class Peer:
    """
    Another process.
    """

    def __init__(self, program: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    @property
    def pid(self) -> int:
        """
        Its number.
        """
        return self.process.pid

    def hear(self) -> str:
        """
        Its next line.
        """
        return self.output.readline().removesuffix("\n")

    def go_on(self) -> None:
        """
        Give it the line that it waits for.
        """
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """
        End it without warning.
        """
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """
    Ends what a failing test has started.
    """
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, program: str, *arguments: object, line: str = "ready") -> Peer:
    """
    A process that has said its first line.
    """
    peer = Peer(program, *arguments)
    stack.enter_context(peer.process)
    stack.callback(peer.process.kill)
    assert peer.hear() == line
    return peer


def test_of_processes_that_race_for_an_instance_one_writes(
    state: StateDirectory, root: Path, stack: ExitStack
) -> None:
    """
    The others are told who it is; while it stands still it keeps the lock, and once it is dead it does not.
    """
    filled(state, "one", 0)
    peers = [started(stack, HOLDER, root) for _ in range(4)]
    for peer in peers:
        peer.go_on()
    said = {peer.pid: peer.hear() for peer in peers}
    winners = [pid for pid, line in said.items() if line == "holds"]
    assert len(winners) == 1
    assert sorted(said.values()) == [f"busy {winners[0]}"] * 3 + ["holds"]
    winner = next(peer for peer in peers if peer.pid == winners[0])
    winner.process.send_signal(signal.SIGSTOP)
    with pytest.raises(InstanceBusy) as caught:
        state.open("one", write=True)
    assert caught.value.pid == state.names()[0].locked_by == winner.pid
    winner.kill()
    assert state.names()[0].locked_by is None
    with state.open("one", write=True) as journal:
        journal.append(turn(1))


def test_processes_that_take_turns_never_interleave(
    state: StateDirectory, root: Path, stack: ExitStack
) -> None:
    """
    Two write forty times each, whoever gets the lock; each time alone, and each append stays together.
    """
    filled(state, "one", 0)
    peers = [started(stack, RIVAL, root, f"rival {number}") for number in range(2)]
    for peer in peers:
        peer.go_on()
    for peer in peers:
        assert peer.hear() == "done"
    records = records_of(state, "one")[1:]
    assert records[::2] == records[1::2]
    for number in range(2):
        calls = [
            record.call
            for record in records[::2]
            if isinstance(record, Decision) and record.by == f"rival {number}"
        ]
        assert calls == list(range(1, 41))


def test_processes_that_make_a_state_at_once_share_it(root: Path, stack: ExitStack) -> None:
    """
    One makes it, the others wait; then they write side by side.
    """
    peers = [started(stack, MAKER, root, letter) for letter in "abcd"]
    for peer in peers:
        peer.go_on()
    for peer in peers:
        assert peer.hear() == "done"
    with StateDirectory(root) as state:
        rows = state.names()
        assert [row.name for row in rows] == [f"{letter}{number}" for letter in "abcd" for number in range(5)]
        assert {row.position for row in rows} == {7}


def test_a_killed_writer_leaves_a_whole_prefix_and_a_free_lock(
    state: StateDirectory, root: Path, stack: ExitStack
) -> None:
    """
    Again and again, at any instant: all that was reported is there, and snapshots are sound.
    """
    filled(state, "one", 0)
    rng = random.Random(7)
    for _ in range(10):
        writer = started(stack, WRITER, root, line="holds")
        assert state.names()[0].locked_by == writer.pid
        writer.go_on()
        reported = 0
        for _ in range(rng.randrange(1, 25)):
            reported = int(writer.hear())
        # Not where it has just reported, but somewhere on its way to the next report.
        select.select([], [], [], rng.random() * 0.004)
        writer.kill()
        assert state.names()[0].locked_by is None
        with state.open("one", write=True) as journal:
            records = [record for _, record in journal.read(1)]
            assert journal.position >= reported
            stored = journal.latest_snapshot()
        deliveries, slices = records[::2], records[1::2]
        assert [record.number for record in deliveries if isinstance(record, Delivery)] == [
            number + 1 for number in range(len(deliveries))
        ]
        assert [record.fuel for record in slices if isinstance(record, Slice)] == [
            number + 1 for number in range(len(deliveries))
        ]
        assert len(slices) == len(deliveries)
        if stored is not None:
            number = stored.position // 2
            assert stored.state == machine_state({0: page(number), 1: page(-1)})
    assert_no_page_is_lost(state, root)


def assert_no_page_is_lost(state: StateDirectory, root: Path) -> None:
    """
    Every page that is kept belongs to a snapshot, and every snapshot has its pages.
    """
    state.gc(3)
    with state.open("one", write=False) as journal:
        positions = journal.snapshots()
        held = [journal.latest_snapshot(position) for position in positions]
    contents = {content for stored in held if stored for content in stored.state.mind.pages.values()}
    connection = sqlite3.connect(root / "state.db")
    assert connection.execute("SELECT count(*) FROM pages").fetchone() == (len(contents),)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    assert positions
    assert os.listdir(root / "locks") == ["one"]
