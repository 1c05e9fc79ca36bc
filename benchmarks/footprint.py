"""
Memory of idle instances: proportional set size and private dirty memory for each of N in one process.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from benchmarks.agents import machine_of, message, prepared_agent
from benchmarks.report import Figure, figure, memory_kib, run

if TYPE_CHECKING:
    import argparse

COUNTS = (1, 10, 100, 1000, 10_000)
_BAR_KIB = 16


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for each N up to `--most`.
    """
    prepared = prepared_agent(options.agent)
    # What the first instance of a process costs once is not the cost of an instance.
    machine_of(prepared).step(message(1))
    figures = []
    for count in (count for count in COUNTS if count <= options.most):
        gc.collect()
        before = memory_kib()
        held = [machine_of(prepared) for _ in range(count)]
        idle = memory_kib()
        for machine in held:
            machine.step(message(1))
        gc.collect()
        worked = memory_kib()
        # The bar is for many: with few, an allocation more or less of the process decides.
        bar = _BAR_KIB if count == COUNTS[-1] else None
        for name, after, limit in (("idle", idle, bar), ("after a delivery", worked, None)):
            for kind in ("pss", "private_dirty"):
                each = (after[kind] - before[kind]) / count
                figures.append(figure(f"{name}, N={count}, {kind}", "KiB", [each], limit))
                limit = None
        del held
    return figures


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", help="folder below guests/ (default: the C example)")
    parser.add_argument("--most", type=int, default=10_000, help="largest N (default 10000)")


if __name__ == "__main__":
    run("footprint", __doc__.strip(), measure, arguments=_arguments)
