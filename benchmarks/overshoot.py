"""
How late an end comes: hostile guests beyond their wall deadline, and Ctrl-C for one that spins.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agents import GUESTS, SEED, message
from benchmarks.report import Figure, figure, run
from runner import codec
from runner.errors import DeadlineExceeded
from runner.kernel.admission import MAX_FUNCTION_CALLS
from runner.kernel.engine import assemble_wat
from runner.kernel.machine import Machine
from runner.package.agent import AgentPackage
from runner.package.manifest import Manifest
from runner.policy.grants import Grants
from runner.wiring.host import Host
from runner.wiring.prepare import prepare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_LIMIT_MS = 200
_ROUNDS = 9
_BAR_MS = 100
_BAR_INTERRUPT_MS = 300
_BOMB_BYTES = 1_000_000
_LIMITS = {"timeout_ms": _LIMIT_MS, "fuel": 1 << 60, "memory_bytes": 4 << 20}

_FRAME = """(module
  (import "agent" "now" (func $now (result i64)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (func (export "runner_abi_v1")) (func (export "agent_start"))
  (func (export "agent_wake") (param i32 i32 i32))
  BODY)"""

# A list of a million small numbers, which is no list of so many items, decoded and refused again and again.
_BOMB = f"""
  (func (export "agent_deliver") (param $n i32) (param i32 i32) (local $at i32)
    (i32.store8 (i32.const 0) (i32.const 0x9a))
    (i32.store (i32.const 1) (i32.const {int.from_bytes(_BOMB_BYTES.to_bytes(4, "big"), "little")}))
    (loop $again
      (drop (call $reply (local.get $n) (i32.const 0) (i32.const {_BOMB_BYTES + 5})))
      (br $again)))"""

_ROW = f"""
  (func $row {"(drop (call $now))" * MAX_FUNCTION_CALLS})
  (func (export "agent_deliver") (param i32 i32 i32) (loop $again (call $row) (br $again)))"""

_SPIN = '(func (export "agent_deliver") (param i32 i32 i32) (loop $again (br $again)))'

_FILL = """
  (func (export "agent_deliver") (param i32 i32 i32)
    (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 2097152)) (br $again)))"""


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Overshoot of each guest, and the time from a signal to the end of the process.
    """
    del options
    host = Host()
    figures = [
        figure(f"beyond a deadline of {_LIMIT_MS} ms, {name}", "ms", _overshoots_ms(host, body), _BAR_MS)
        for name, body in (
            ("spinning", _SPIN),
            ("filling memory", _FILL),
            ("asking the host in a loop", _ROW),
            ("handing over CBOR bombs", _BOMB),
        )
    ]
    figures.append(figure("Ctrl-C to the end of the process", "ms", _interrupts_ms(), _BAR_INTERRUPT_MS))
    return figures


def _overshoots_ms(host: Host, body: str) -> list[float]:
    manifest = Manifest(name="hostile", language="wat", entry="hostile.wat")
    package = AgentPackage(manifest, assemble_wat(_FRAME.replace("BODY", body)), Path("hostile.wat"))
    prepared = prepare(host, package, grants=Grants.parse(), limits=_LIMITS, on_log=lambda _line: None)
    machine = Machine(prepared.program, prepared.image, prepared.limits, entropy=SEED)
    return [_overshoot_ms(host, machine, number) for number in range(1, _ROUNDS + 1)]


def _overshoot_ms(host: Host, machine: Machine, number: int) -> float:
    started_s = time.perf_counter()
    with host.ticker.guest_runs():
        result = machine.step(message(number, codec.decode(b"\xf6")))
    took_ms = (time.perf_counter() - started_s) * 1000
    assert isinstance(result.failure, DeadlineExceeded), result.failure
    return took_ms - _LIMIT_MS


def _interrupts_ms() -> list[float]:
    runner = shutil.which("runner", path=str(Path(sys.executable).parent)) or "runner"
    command = [runner, "run", str(GUESTS / "hostile_spinner"), "--max-fuel", "900G", "--timeout", "60s"]
    return [_interrupt_ms(command) for _ in range(_ROUNDS)]


def _interrupt_ms(command: list[str]) -> float:
    heed: Callable[[], object] = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    with subprocess.Popen(command, preexec_fn=heed, stderr=subprocess.DEVNULL) as process:  # noqa: PLW1509
        # Until it spins: a second of processor time is more than its start takes.
        while _processor_s(process.pid) < 1:
            time.sleep(0.01)
        started_s = time.perf_counter()
        process.send_signal(signal.SIGINT)
        process.wait()
        return (time.perf_counter() - started_s) * 1000


def _processor_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    run("overshoot", __doc__.strip(), measure)
