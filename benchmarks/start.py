"""
Starting: `runner --help`, a cold `runner run`, and a warm instance of a compiled agent.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agents import GUESTS, machine_of, message, prepared_agent
from benchmarks.report import Figure, figure, run, time_us

if TYPE_CHECKING:
    import argparse

_RUNS = 15


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for processes and for instances.
    """
    del options
    runner = shutil.which("runner", path=str(Path(sys.executable).parent)) or "runner"
    with tempfile.TemporaryDirectory() as cache:
        environment = {"PATH": str(Path(runner).parent), "RUNNER_CACHE": str(Path(cache) / "cache")}
        hello = [runner, "run", str(GUESTS / "hello"), "hi"]
        first = [_process_ms(hello, environment)]
        again = [_process_ms(hello, environment) for _ in range(_RUNS)]
        helped = [_process_ms([runner, "--help"], environment) for _ in range(_RUNS)]
    bare = [_process_ms([sys.executable, "-c", "pass"], {}) for _ in range(_RUNS)]
    prepared = prepared_agent()

    def delivered() -> None:
        machine_of(prepared).step(message(1))

    start = [value / 1000 for value in time_us(lambda: machine_of(prepared))]
    first_step = [value / 1000 for value in time_us(delivered)]
    return [
        figure("python -c pass", "ms", bare),
        figure("runner --help", "ms", helped, 150),
        figure("runner run guests/hello, first", "ms", first),
        figure("runner run guests/hello, later", "ms", again, 250),
        figure("warm instance", "ms", start, 0.3),
        figure("warm instance and its first slice", "ms", first_step),
    ]


def _process_ms(command: list[str], environment: dict[str, str]) -> float:
    started_s = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - started_s) * 1000


if __name__ == "__main__":
    run("start", __doc__.strip(), measure)
