"""
Taking a snapshot: freeze, encode with all digests, and write, with and without waiting for the disk.
"""

from __future__ import annotations

import ctypes
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agents import machine_of, message, prepared_agent, with_heap
from benchmarks.report import Figure, figure, run, time_us
from runner.kernel.instance import Instance
from runner.kernel.machine import Machine, digest_of
from runner.kernel.state import PAGE_BYTES
from runner.snapshot import Snapshot, encode, write

if TYPE_CHECKING:
    import argparse

    from runner.wiring.prepare import Prepared

_BAR_MS = 1.0
CASES = ((2, 10), (2, 100), (16, 10), (64, 10), (64, 1000))


def dirty(machine: Machine, pages: int) -> None:
    """
    Write to `pages` pages of an instance, as a guest would, spread over its memory.
    """
    instance = machine._body  # noqa: SLF001 - stands for a guest's own stores
    assert isinstance(instance, Instance)
    step = machine.memory_bytes // PAGE_BYTES // (pages + 1) or 1
    for count in range(1, pages + 1):
        content = count.to_bytes(8, "little") * 64
        ctypes.memmove(instance.address + count * step * PAGE_BYTES + 64, content, len(content))


def snapshot_of(prepared: Prepared, machine: Machine) -> Snapshot:
    """
    A snapshot of an instance, as the command line takes it.
    """
    state = machine.freeze()
    return Snapshot(
        agent=prepared.package.name,
        code_digest=prepared.admitted.code_digest,
        image_digest=prepared.image.digest,
        imports=prepared.admitted.imports,
        limits=prepared.limits,
        position=1,
        created_at_ms=1_700_000_000_000,
        state=state,
        host={},
        memory_digest=digest_of(state.mind, prepared.image),
    )


def _take(prepared: Prepared, machine: Machine, path: Path, *, sync: bool) -> None:
    write(path, snapshot_of(prepared, machine), sync=sync)


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for each heap and number of dirty pages.
    """
    del options
    figures = []
    plain = prepared_agent()
    for heap_mib, pages in CASES:
        prepared = with_heap(plain, heap_mib)
        machine = machine_of(prepared)
        machine.step(message(1))
        dirty(machine, pages)
        name = f"{heap_mib} MiB heap, {pages} dirty pages"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.snap"

            take = partial(_take, prepared, machine, path)
            bar = _BAR_MS if (heap_mib, pages) == CASES[0] else None
            took = [value / 1000 for value in time_us(partial(take, sync=False), calls=30)]
            figures.append(figure(f"{name}, without fsync", "ms", took, bar))
            took = [value / 1000 for value in time_us(partial(take, sync=True), rounds=5, calls=5)]
            figures.append(figure(f"{name}, with fsync", "ms", took))
        size = len(encode(snapshot_of(prepared, machine))) / 1024
        figures.append(figure(f"{name}, file", "KiB", [size]))
    return figures


if __name__ == "__main__":
    run("snapshot", __doc__.strip(), measure)
