"""
Opened, restored and forked over and over, a process grows by nothing.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.report import memory_kib
from runner.wiring import (
    Options,
    fork_named,
    inspect_named,
    remove_named,
    restore_named,
    run_named,
    send,
    snapshot_named,
)

GUESTS = Path(__file__).parents[2] / "guests"
WARM_UP = 5
SLACK_MAPS = 8
SLACK_KIB = 4096
KIB_PER_CYCLE = 8

OptionsFor = Callable[..., Options]


def usage() -> tuple[int, int, int]:
    """Mappings, resident KiB and descriptors of this process, once its threads have come to rest."""
    for thread in threading.enumerate():
        if thread.name == "runner-ticker":
            thread.join()
    gc.collect()
    maps = len(Path("/proc/self/maps").read_bytes().splitlines())
    return maps, memory_kib()["rss"], len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "cycles", [30, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_cycles_of_a_life_leave_nothing_behind_in_the_process(
    cycles: int, options: OptionsFor, state: Path, cache: Path, tmp_path: Path
):
    """Always the same memory digest; mappings, memory and descriptors stay where they were."""
    file = tmp_path / "origin.snap"
    run_named(GUESTS / "counter", "origin", "one", options(checkpoint="always"))
    snapshot_named("origin", file, state=state, cache=cache)
    origin = inspect_named("origin", state=state, cache=cache)["memory_digest"]

    def cycle() -> set[str]:
        fork_named("origin", "fork", state=state)
        forked = inspect_named("fork", state=state, cache=cache)["memory_digest"]
        restored = restore_named(file, "heir", None, options())
        ends = {send(name, "two", options()).memory_digest for name in ("fork", "heir")}
        assert {forked, restored.memory_digest} == {origin}
        remove_named(["fork", "heir"], state=state)
        return ends

    ends = set[str]()
    for _ in range(WARM_UP):
        ends |= cycle()
    maps, rss_kib, descriptors = usage()
    for _ in range(cycles):
        ends |= cycle()
    maps_after, rss_kib_after, descriptors_after = usage()
    assert len(ends) == 1
    assert descriptors_after == descriptors
    assert maps_after - maps <= SLACK_MAPS
    assert rss_kib_after - rss_kib <= SLACK_KIB + KIB_PER_CYCLE * cycles
