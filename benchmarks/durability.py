"""
What it costs to survive: deliveries of named instances, alone and a hundred at once, and rounds of approvals.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from benchmarks.journal import sync_us
from benchmarks.report import Figure, figure, run
from runner.capabilities.asking import Purse
from runner.capabilities.standard import standard_handlers
from runner.journal import StateDirectory
from runner.kernel.abi import DeliveryKind
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider
from runner.wiring.host import Host
from runner.wiring.named import give_birth, open_life, session_of
from runner.wiring.options import Options

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterator

    from runner.session.session import Session

INSTANCES = 100
APPROVALS = 40
ROUNDS = 5
_ALONE = 100
_EACH = 10
_WAITS = 6
_DELIVERY_BAR_MS = 2
# A thousand deliveries a second.
_TOGETHER_BAR_MS = 1
_GROWTH_BAR = 1.5

# Calls a tool so often, one call after the other, whatever it is answered; then replies null.
ERRANDS = r"""(module
  (import "tool" "call" (func $tool (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\f6")
  ;; {{"name": "errand", "arguments": {{}}}}
  (data (i32.const 16) "\a2\64name\66errand\69arguments\a0")
  (global $delivery (mut i32) (i32.const 0))
  (global $left (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func $next
    (if (global.get $left)
      (then (drop (call $tool (i32.const 16) (i32.const 24))))
      (else (drop (call $reply (global.get $delivery) (i32.const 0) (i32.const 1))))))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (global.set $left (i32.const {calls}))
    (call $next))
  (func (export "agent_wake") (param i32 i32 i32)
    (global.set $left (i32.sub (global.get $left) (i32.const 1)))
    (call $next)))"""


def write_agent(folder: Path, calls: int) -> Path:
    """
    An agent that makes so many calls in each delivery.
    """
    path = folder / f"errands-{calls}.wat"
    path.write_text(ERRANDS.format(calls=calls))
    return path


@asynccontextmanager
async def live(state: StateDirectory, host: Host, name: str, options: Options) -> AsyncIterator[Session]:
    """
    A named instance, as a command has it.
    """
    provider = ScriptedProvider()
    life = await open_life(state, host, name, provider, write=True)
    try:
        handlers = standard_handlers(
            providers={provider.name: provider},
            default_model=SCRIPTED_MODEL,
            grants=life.prepared.grants,
            notes=life.held.notes,
            purse=Purse(usage=life.held.usage),
        )
        async with session_of(life, host, options, handlers) as session:
            yield session
    finally:
        life.journal.close()


async def deliver(session: Session, count: int) -> None:
    """
    One delivery after the other.
    """
    for _ in range(count):
        outcome = await session.deliver(DeliveryKind.MESSAGE, "go")
        assert outcome.failure is None


async def deliver_alone_ms(state: StateDirectory, host: Host, options: Options) -> list[float]:
    """
    Milliseconds for a delivery with one call, in each of some rounds.
    """
    took = []
    async with live(state, host, "alone", options) as session:
        await deliver(session, 5)
        for _ in range(ROUNDS):
            started_s = time.perf_counter()
            await deliver(session, _ALONE)
            took.append((time.perf_counter() - started_s) / _ALONE * 1000)
    return took


async def deliver_together_ms(
    state: StateDirectory, host: Host, options: Options
) -> tuple[list[float], list[float]]:
    """
    Milliseconds per delivery while all instances of a process deliver, in each of some rounds: by the clock,
    and of the processors.
    """
    took, worked = [], []
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(live(state, host, f"i{number}", options))
            for number in range(INSTANCES)
        ]
        for _ in range(ROUNDS):
            started_s, before_s = time.perf_counter(), time.process_time()
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(deliver, session, _EACH)
            took.append((time.perf_counter() - started_s) / (INSTANCES * _EACH) * 1000)
            worked.append((time.process_time() - before_s) / (INSTANCES * _EACH) * 1000)
    return took, worked


def measure_deliveries(folder: Path, *, sync: bool) -> list[Figure]:
    """
    Deliveries with or without waiting for the disk.
    """
    how = "with fsync" if sync else "without fsync"
    options = Options(cache=folder / "cache", allow=("tool",))
    host = Host(options.cache)
    package = host.load(write_agent(folder, 1))
    with StateDirectory(folder / how.replace(" ", "-"), sync=sync) as state:
        for name in ("alone", *(f"i{number}" for number in range(INSTANCES))):
            give_birth(state, host, package, name, options, ())
        alone = anyio.run(partial(deliver_alone_ms, state, host, options))
        together, worked = anyio.run(partial(deliver_together_ms, state, host, options))
        with on_one_core():
            apart, apart_worked = anyio.run(partial(deliver_together_ms, state, host, options))
    hundred = f"{INSTANCES} instances, {how}"
    return [
        figure(f"delivery with one call, {how}", "ms", alone, None if sync else _DELIVERY_BAR_MS),
        figure(f"delivery with one call, {hundred}", "ms", together, _TOGETHER_BAR_MS),
        figure(f"processor time of it, {hundred}", "ms", worked),
        figure(f"delivery with one call, {hundred}, on one core", "ms", apart),
        figure(f"processor time of it, {hundred}, on one core", "ms", apart_worked),
        figure(hundred, "deliveries/s", [1000 / value for value in together]),
        figure(f"{hundred}, on one core", "deliveries/s", [1000 / value for value in apart]),
    ]


@contextmanager
def on_one_core() -> Iterator[None]:
    """
    Threads that begin meanwhile share one core, where the system can say so: they wait for each other with
    less work than across two.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class Commands:
    """
    The command line, a process for each command.
    """

    def __init__(self, folder: Path) -> None:
        self._environment = os.environ | {
            "RUNNER_STATE": str(folder / "approvals"),
            "RUNNER_CACHE": str(folder / "cache"),
        }

    def __call__(self, *words: str, status: int = 0) -> None:
        """
        Run one that ends with this exit status.
        """
        command = [sys.executable, "-m", "runner.cli", *words]
        done = subprocess.run(
            command, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert done.returncode == status, done.stderr.decode()


def approve_ms(commands: Commands, agent: Path, name: str) -> list[float]:
    """
    Milliseconds for each round: a process that approves, and one that goes on until the next question.
    """
    commands("run", str(agent), "go", "--as", name, "--allow", "tool", "--ask", "tool", status=_WAITS)
    took = []
    for call in range(1, APPROVALS + 1):
        started_s = time.perf_counter()
        commands("approve", name, str(call))
        commands("resume", name, status=_WAITS if call < APPROVALS else 0)
        took.append((time.perf_counter() - started_s) * 1000)
    return took


def measure_approvals(folder: Path, lives: int) -> list[Figure]:
    """
    Whether a late round takes longer than an early one.
    """
    commands, agent = Commands(folder), write_agent(folder, APPROVALS)
    rounds = [approve_ms(commands, agent, f"life-{number}") for number in range(lives)]
    growth = [took[APPROVALS - 1] / took[1] for took in rounds]
    return [
        figure("round 2 of approvals, two processes", "ms", [took[1] for took in rounds]),
        figure(f"round {APPROVALS} of approvals, two processes", "ms", [took[-1] for took in rounds]),
        figure(f"round {APPROVALS} / round 2", "times", growth, _GROWTH_BAR),
    ]


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    All figures.
    """
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        folder = Path(name)
        return [
            figure("4 KiB and fsync, the disk alone", "ms", [value / 1000 for value in sync_us(folder)]),
            *measure_deliveries(folder, sync=False),
            *measure_deliveries(folder, sync=True),
            *measure_approvals(folder, options.lives),
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Where to measure: a temporary directory may be in memory, and no disk at all.
    """
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default the temporary one)")
    parser.add_argument("--lives", type=int, default=3, help="how often 40 approvals are given")


if __name__ == "__main__":
    run("durability", __doc__.strip(), measure, arguments=add_arguments)
