"""
The common frame of all benchmarks: measure, show, draw.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """
    One measured quantity.

    Attributes:
        name: What was measured.
        unit: Of all numbers here.
        minimum: Best run; load only adds.
        median: Typical run.
        maximum: Worst run.
        bar: The project's promise, or `None`.
    """

    name: str
    unit: str
    minimum: float
    median: float
    maximum: float
    bar: float | None = None

    @property
    def holds(self) -> bool | None:
        """
        Whether the median keeps the promise; `None` without one.
        """
        return None if self.bar is None else self.median <= self.bar


def figure(name: str, unit: str, values: Sequence[float], bar: float | None = None) -> Figure:
    """
    A figure over several runs.
    """
    return Figure(
        name=name,
        unit=unit,
        minimum=min(values),
        median=statistics.median(values),
        maximum=max(values),
        bar=bar,
    )


def time_us(action: Callable[[], object], *, rounds: int = 9, calls: int = 200) -> list[float]:
    """
    Microseconds for one call of `action`, averaged over `calls`, for each of `rounds`.
    """
    action()
    gc.collect()
    results = []
    for _ in range(rounds):
        started_ns = time.perf_counter_ns()
        for _ in range(calls):
            action()
        results.append((time.perf_counter_ns() - started_ns) / calls / 1000)
    return results


def memory_kib() -> dict[str, int]:
    """
    This process's proportional set size and private dirty memory (Linux, `smaps_rollup`).
    """
    wanted = {"Pss:": "pss", "Private_Dirty:": "private_dirty", "Rss:": "rss"}
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    fields = [line.split() for line in lines]
    return {wanted[field[0]]: int(field[1]) for field in fields if field[0] in wanted}


def machine() -> dict[str, Any]:
    """
    What the figures were taken on.
    """
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "model": _processor_model(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        "wasmtime": metadata.version("wasmtime"),
    }


def _processor_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def run(
    name: str,
    description: str,
    measure: Callable[[argparse.Namespace], list[Figure]],
    *,
    arguments: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    """
    The command line of one benchmark: `--json` for machines, otherwise a table and a picture.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--picture", type=Path, help="where to draw (default benchmarks/out/NAME.png)")
    if arguments:
        arguments(parser)
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        rows = [{**asdict(row), "holds": row.holds} for row in figures]
        print(json.dumps({"benchmark": name, "machine": machine(), "figures": rows}, indent=2))
    else:
        _print_table(name, figures)
    if options.picture or not options.json:
        _draw(name, figures, options.picture or OUT / f"{name}.png")


def _print_table(name: str, figures: list[Figure]) -> None:
    facts = machine()
    print(f"{name} on {facts['cores']} cores, {facts['model']}, load {facts['load'][0]}")
    width = max(len(row.name) for row in figures)
    for row in figures:
        bar = "" if row.bar is None else f"  bar {row.bar:g}: {'holds' if row.holds else 'FALLS SHORT'}"
        print(
            f"  {row.name:<{width}}  {row.median:>10.2f} {row.unit:<5}"
            f"  ({row.minimum:.2f} to {row.maximum:.2f}){bar}"
        )


def _draw(name: str, figures: list[Figure], path: Path) -> None:
    try:
        from matplotlib.figure import Figure as Sheet  # noqa: PLC0415 - an extra
    except ImportError:
        print("no picture: pip install 'wasm-agent-runner[bench]'")
        return
    units = list(dict.fromkeys(row.unit for row in figures))
    sheet = Sheet(figsize=(9, 1.2 + 0.4 * len(figures) + 0.6 * len(units)), layout="constrained")
    heights = [sum(row.unit == unit for row in figures) + 1 for unit in units]
    panels = sheet.subplots(len(units), squeeze=False, height_ratios=heights)
    for panel, unit in zip(panels[:, 0], units, strict=True):
        rows = [row for row in figures if row.unit == unit][::-1]
        names = [row.name for row in rows]
        spread = [
            [row.median - row.minimum for row in rows],
            [row.maximum - row.median for row in rows],
        ]
        panel.barh(names, [row.median for row in rows], xerr=spread, color="#4c78a8", ecolor="#999999")
        for index, row in enumerate(rows):
            if row.bar is not None:
                panel.plot([row.bar, row.bar], [index - 0.4, index + 0.4], color="#e45756", linewidth=2)
        panel.set_xlabel(unit)
    sheet.suptitle(f"{name}: median, spread, and the bar (red)")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.savefig(path, dpi=110)
    print(f"picture: {path}")
