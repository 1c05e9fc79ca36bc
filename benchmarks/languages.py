"""
Agents in JavaScript and Python: memory of many instances, snapshots, starting, and what a cold run takes.
"""

from __future__ import annotations

import gc
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.agents import GUESTS, machine_of, message, prepared_agent
from benchmarks.report import Figure, figure, memory_kib, run, time_us
from benchmarks.snapshot import snapshot_of
from runner import codec
from runner.build.engines import EngineLanguage, engine_module
from runner.build.engines.store import ENGINES_VARIABLE
from runner.cache import BlobCache, default_cache_root
from runner.errors import InternalError
from runner.journal.pages import compress
from runner.kernel.abi import Status
from runner.kernel.machine import Machine, Wake
from runner.kernel.state import Answer
from runner.snapshot import encode

if TYPE_CHECKING:
    import argparse

    from runner.codec import Value
    from runner.kernel.step import StepResult
    from runner.wiring.prepare import Prepared

_DELIVERIES: Final = 20
_NOW_MS: Final = 1_700_000_000_000
_RUNS: Final = 11
_ANSWERS: Final[dict[str, Value]] = {
    "llm.chat": {
        "text": "And what do you do there all day?",
        "stop": "end",
        "model": "scripted/default",
        "usage": {"calls": 1, "input_tokens": 10, "output_tokens": 8},
    },
    "memory.search": [],
}


class Bars(NamedTuple):
    """
    What is promised of a language.

    Attributes:
        guest: The agent that is measured.
        idle_kib: Of an idle instance.
        worked_kib: Of one after 20 deliveries.
        first_kib: Its first snapshot.
        next_kib: What its second snapshot adds: the pages that it does not share with the first.
    """

    guest: str
    idle_kib: float
    worked_kib: float
    first_kib: float
    next_kib: float


LANGUAGES: Final[dict[EngineLanguage, Bars]] = {
    "js": Bars("assistant", 16, 180, 60, 12),
    "python": Bars("interviewer", 16, 80, 16, 6),
}


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for each language.
    """
    chosen = [options.language] if options.language else list(LANGUAGES)
    # A process for each: what one has given back would else be what the next one takes.
    context = multiprocessing.get_context("spawn")
    figures: list[Figure] = []
    for language in chosen:
        with context.Pool(1) as pool:
            figures += pool.apply(_measure, (language, options.instances))
    return figures


def _measure(language: EngineLanguage, instances: int) -> list[Figure]:
    bars = LANGUAGES[language]
    prepared = prepared_agent(bars.guest)
    converse(machine_of(prepared), 1)
    return [
        *_memory(language, bars, prepared, instances),
        *_snapshots(language, bars, prepared),
        figure(
            f"{language}: warm instance",
            "ms",
            [value / 1000 for value in time_us(lambda: machine_of(prepared))],
            1,
        ),
        figure(
            f"{language}: a delivery with its calls",
            "ms",
            [value / 1000 for value in time_us(lambda: converse(machine_of(prepared), 1), calls=30)],
        ),
        *_cold(language, bars),
    ]


def converse(machine: Machine, deliveries: int, first: int = 1) -> None:
    """
    Deliver messages one after the other, and answer every call at once.

    Raises:
        InternalError: If a delivery fails.
    """
    for number in range(first, first + deliveries):
        results = [machine.step(message(number, f"This is what I say in message {number}."))]
        while results:
            result = results.pop()
            if result.failure or (result.reply and not result.reply.ok):
                raise InternalError(f"the delivery failed: {result}")
            results += [_answer(machine, call.number, call.operation) for call in result.calls]


def _answer(machine: Machine, call: int, operation: str) -> StepResult:
    answer = Answer(call, Status.OK, codec.encode(_ANSWERS[operation]))
    return machine.step(Wake(answer, _NOW_MS))


def _memory(language: EngineLanguage, bars: Bars, prepared: Prepared, instances: int) -> list[Figure]:
    gc.collect()
    before = memory_kib()
    held = [machine_of(prepared) for _ in range(instances)]
    gc.collect()
    idle = memory_kib()
    for machine in held:
        converse(machine, _DELIVERIES)
    gc.collect()
    worked = memory_kib()
    return [
        figure(
            f"{language}: {name}, N={instances}, pss", "KiB", [(now["pss"] - before["pss"]) / instances], bar
        )
        for name, now, bar in (
            ("idle", idle, bars.idle_kib),
            (f"after {_DELIVERIES} deliveries", worked, bars.worked_kib),
        )
    ]


def _snapshots(language: EngineLanguage, bars: Bars, prepared: Prepared) -> list[Figure]:
    machine, numbers = machine_of(prepared), count(1)
    converse(machine, 1, next(numbers))
    first = snapshot_of(prepared, machine)
    converse(machine, 1, next(numbers))
    second = snapshot_of(prepared, machine)
    before, after = first.state.mind.pages, second.state.mind.pages
    changed = {index: page for index, page in after.items() if before.get(index) != page}
    return [
        figure(f"{language}: first snapshot", "KiB", [len(encode(first)) / 1024], bars.first_kib),
        figure(f"{language}: pages that it holds", "pages", [len(before)]),
        figure(f"{language}: what the next one adds", "KiB", [_stored_kib(changed)], bars.next_kib),
        figure(f"{language}: pages that it adds", "pages", [len(changed)]),
    ]


def _stored_kib(pages: dict[int, bytes]) -> float:
    """
    What a store keeps for pages that it has not yet, each compressed for itself.
    """
    return sum(len(compress(page)) for page in pages.values()) / 1024


def _cold(language: EngineLanguage, bars: Bars) -> list[Figure]:
    runner = shutil.which("runner", path=str(Path(sys.executable).parent)) or "runner"
    with tempfile.TemporaryDirectory() as cache:
        # Making the engine is no part of any run but the first.
        engine = engine_module(language, BlobCache(default_cache_root()))
        (Path(cache) / f"{language}.wasm").write_bytes(engine)
        environment = {
            "PATH": str(Path(runner).parent),
            "RUNNER_CACHE": str(Path(cache) / "cache"),
            ENGINES_VARIABLE: cache,
        }
        built = Path(cache) / "agent.wasm"
        _process_ms([runner, "build", str(GUESTS / bars.guest), "-o", str(built)], environment)
        command = [runner, "run", str(built), "hello", "--allow", "memory"]
        first = _process_ms(command, environment)
        again = [_process_ms(command, environment) for _ in range(_RUNS)]
        source = [*command[:2], str(GUESTS / bars.guest), *command[3:]]
        _process_ms(source, environment)
        unbuilt = [_process_ms(source, environment) for _ in range(_RUNS)]
    return [
        figure(f"{language}: cold run of a built agent, first", "ms", [first]),
        figure(f"{language}: cold run of a built agent, later", "ms", again, 300),
        figure(f"{language}: cold run of a folder, later", "ms", unbuilt),
    ]


def _process_ms(command: list[str], environment: dict[str, str]) -> float:
    started_s = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - started_s) * 1000


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--language", choices=list(LANGUAGES), help="only this one")
    parser.add_argument("--instances", type=int, default=1000, help="how many live at once (default 1000)")


if __name__ == "__main__":
    run("languages", __doc__.strip(), measure, arguments=_arguments)
