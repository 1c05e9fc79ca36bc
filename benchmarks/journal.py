"""
Writing things down: commits of one instance and of a hundred, with and without waiting for the disk.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import Figure, figure, run, time_us
from runner import codec
from runner.journal import Journal, StateDirectory
from runner.journal.records import Born, Decision, Delivery, Intent, Receipt, Slice, Start, Wake
from runner.kernel.state import PAGE_BYTES, MachineState, Mind

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from runner.journal.records import Record

INSTANCES = 100
ROUNDS = 5
COMMITS = 30
HEAP_PAGES = 512
_COMMITS_PER_DELIVERY = 3
# A thousand deliveries a second over all instances, each of three commits.
_BAR_US = 1_000_000 / (1_000 * _COMMITS_PER_DELIVERY)
_DELIVERY_BAR_US = 2_000

BORN = Born(agent="bench", code_digest=bytes(32), image_digest=bytes(32), limits={"fuel": 1_000_000})
MESSAGE = codec.encode({"text": "What is the weather like in Paris?"})
ANSWER = codec.encode({"text": "It rains. " * 20, "stop": "end", "usage": {"calls": 1, "input_tokens": 12}})


def delivery_records(number: int) -> tuple[list[Record], list[Record], list[Record]]:
    """
    The three transactions of a delivery that makes one call.
    """
    key = f"bench-{number}-1"
    intent = Intent(number=number, operation="tool.call", request=MESSAGE)
    return (
        [
            Delivery(number=number, kind=1, payload=MESSAGE, now_ms=number),
            Slice(calls=(intent,), fuel=1000, digest=bytes(32)),
            Decision(call=number, verdict="allow", rule="granted", by="policy", at_ms=number),
            Start(call=number, execution=key, effect="effectful"),
        ],
        [Receipt(call=number, execution=key, status=0, payload=ANSWER)],
        [
            Wake(call=number, status=0, payload=ANSWER, now_ms=number),
            Slice(reply=(True, ANSWER), fuel=1000, digest=bytes(32)),
        ],
    )


def opened(state: StateDirectory, name: str) -> Journal:
    """
    A new instance, open for writing.
    """
    state.create(name, BORN, b"\0asm")
    return state.open(name, write=True)


def deliver(journal: Journal) -> None:
    """
    Write down one delivery.
    """
    for records in delivery_records(journal.position):
        journal.append(records)


def commit_together(journals: Sequence[Journal]) -> float:
    """
    Microseconds for a commit when all journals write at once, each from a thread of its own.
    """
    gate = threading.Barrier(len(journals) + 1)

    def write(journal: Journal) -> None:
        gate.wait()
        for _ in range(COMMITS // _COMMITS_PER_DELIVERY):
            deliver(journal)
        gate.wait()

    threads = [threading.Thread(target=write, args=(journal,)) for journal in journals]
    for thread in threads:
        thread.start()
    gate.wait()
    started_ns = time.perf_counter_ns()
    gate.wait()
    elapsed_us = (time.perf_counter_ns() - started_ns) / 1000
    for thread in threads:
        thread.join()
    return elapsed_us / (len(journals) * COMMITS)


def sync_us(folder: Path) -> list[float]:
    """
    What the disk itself takes to keep 4 KiB more of a file.
    """
    with (folder / "probe").open("wb", buffering=0) as file:

        def write() -> None:
            file.write(bytes(PAGE_BYTES))
            os.fsync(file.fileno())

        return time_us(write, rounds=ROUNDS, calls=20)


def measure_commits(folder: Path, *, sync: bool) -> list[Figure]:
    """
    Commits with or without waiting for the disk.
    """
    how = "with fsync" if sync else "without fsync"
    with StateDirectory(folder / how.replace(" ", "-"), sync=sync) as state:
        with opened(state, "alone") as journal:
            alone = time_us(partial(deliver, journal), rounds=ROUNDS, calls=20)
        journals = [opened(state, f"i{number}") for number in range(INSTANCES)]
        together = [commit_together(journals) for _ in range(ROUNDS)]
        for journal in journals:
            journal.close()
    bar = _DELIVERY_BAR_US if sync else None
    one = [value / _COMMITS_PER_DELIVERY for value in alone]
    return [
        figure(f"delivery with one call, three commits, {how}", "us", alone, bar),
        figure(f"commit, 1 instance, {how}", "us", one),
        figure(f"commit, {INSTANCES} instances, {how}", "us", together, _BAR_US if sync else None),
        figure(f"1 instance, {how}", "commits/s", [1_000_000 / value for value in one]),
        figure(f"{INSTANCES} instances, {how}", "commits/s", [1_000_000 / value for value in together]),
    ]


def measure_reading(folder: Path) -> list[Figure]:
    """
    Reading and checking records, and snapshots of a heap that changes by a page.
    """
    with StateDirectory(folder / "reading", sync=False) as state, opened(state, "long") as journal:
        for _ in range(200):
            deliver(journal)
        count = journal.position
        read = [value / count for value in time_us(lambda: list(journal.read()), rounds=ROUNDS, calls=3)]
        heap = {index: os.urandom(PAGE_BYTES) for index in range(HEAP_PAGES)}

        def checkpoint() -> int:
            heap[0] = os.urandom(PAGE_BYTES)
            memory = MachineState(Mind(HEAP_PAGES * PAGE_BYTES, heap, ()))
            return journal.put_snapshot(journal.position, memory, {}, bytes(32)).size_bytes

        checkpoint()
        taken = time_us(checkpoint, rounds=ROUNDS, calls=20)
        added_bytes = checkpoint()
        loaded = time_us(journal.latest_snapshot, rounds=ROUNDS, calls=5)
    return [
        figure("record, read and checked", "us", read),
        figure("snapshot of 2 MiB, one page changed, without fsync", "us", taken),
        figure("snapshot of 2 MiB, read and checked", "us", loaded),
        figure("snapshot of 2 MiB, one page changed", "KiB", [added_bytes / 1024]),
    ]


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    All figures.
    """
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        folder = Path(name)
        return [
            figure("4 KiB and fsync, the disk alone", "us", sync_us(folder)),
            *measure_commits(folder, sync=True),
            *measure_commits(folder, sync=False),
            *measure_reading(folder),
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Where to measure: a temporary directory may be in memory, and no disk at all.
    """
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default the temporary one)")


if __name__ == "__main__":
    run("journal", __doc__.strip(), measure, arguments=add_arguments)
