"""
Restoring by heap size: from a warm image, and from a file that is read and verified first.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agents import machine_of, message, prepared_agent, with_heap
from benchmarks.report import Figure, figure, run, time_us
from benchmarks.snapshot import dirty, snapshot_of
from runner.kernel.machine import Machine
from runner.snapshot import read, write

if TYPE_CHECKING:
    import argparse

    from runner.wiring.prepare import Prepared

HEAPS_MIB = (2, 16, 64)
_BAR_MS = 0.5


def _from_file(prepared: Prepared, path: Path) -> None:
    Machine.thaw(prepared.program, prepared.image, prepared.limits, read(path).state)


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for each heap.
    """
    del options
    figures = []
    plain = prepared_agent()
    for heap_mib in HEAPS_MIB:
        prepared = with_heap(plain, heap_mib)
        machine = machine_of(prepared)
        machine.step(message(1))
        dirty(machine, 10)
        state = machine.freeze()
        program, limits = prepared.program, prepared.limits

        thaw = partial(Machine.thaw, program, limits=limits, state=state)
        took = [value / 1000 for value in time_us(partial(thaw, image=prepared.image), calls=100)]
        figures.append(figure(f"warm, {heap_mib} MiB heap, 10 own pages", "ms", took, _BAR_MS))
        overlay = prepared.image.overlay(state.mind)
        took = [value / 1000 for value in time_us(partial(thaw, image=overlay), calls=100)]
        figures.append(figure(f"warm, {heap_mib} MiB heap, own image", "ms", took, _BAR_MS))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.snap"
            write(path, snapshot_of(prepared, machine), sync=False)
            took = [value / 1000 for value in time_us(partial(_from_file, prepared, path), calls=20)]
            figures.append(figure(f"from file, {heap_mib} MiB heap, 10 own pages", "ms", took))
    return figures


if __name__ == "__main__":
    run("restore", __doc__.strip(), measure)
