"""
Admission and the kernel behind it against generated modules: every outcome is typed, or this exits with 1.

    python -m benchmarks.fuzz_modules --count 10000

What is admitted must validate, survive its own wire form, have the imports and exports that the engine sees,
boot under small limits, and come out of freeze and thaw the same: the same events, stepped on in the original
and in the copy, lead to the same digest.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import wasmtime

from benchmarks.modules import generate
from runner import codec
from runner.errors import InternalError, ModuleRejected, RunnerError
from runner.kernel.abi import EXPORTS, MEMORY_EXPORT, DeliveryKind, Status
from runner.kernel.admission import Admitted, admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, StepResult, Wake
from runner.kernel.program import Program
from runner.kernel.state import Answer
from runner.units import MIB

_LIMITS: Final = Limits(memory_bytes=4 * MIB, fuel=200_000, timeout_ms=5_000)
_SEED: Final = bytes(32)
_EVENTS: Final = 3
_NULL: Final = b"\xf6"


def outcome(engine: Engine, wasm: bytes) -> str:
    """
    What becomes of one module.

    Raises:
        Exception: Anything but a refusal is a bug, and so is an `AssertionError` of a check.
    """
    try:
        admitted = admit(wasm, engine.wasmtime)
    except ModuleRejected as error:
        return f"refused: {error.rule}"
    check_admitted(engine, wasm, admitted)
    program = Program(engine, admitted, engine.compile(admitted.code), frozenset(admitted.imports))
    try:
        image, _ = boot(program, _LIMITS)
    except InternalError:
        raise
    except RunnerError as error:
        return f"not booted: {error.kind}"
    machine = Machine(program, image, _LIMITS, entropy=_SEED)
    seen = [_advance(machine)]
    copy = Machine.thaw(program, image, _LIMITS, machine.freeze())
    for _ in range(_EVENTS):
        seen.append(_advance(machine))
        twin = _advance(copy)
        assert _facts(seen[-1]) == _facts(twin), (seen[-1], twin)
        assert machine.digest() == copy.digest(), "the copy went another way"
    return "ran: " + (seen[-1].failure.kind if seen[-1].failure else "no failure")


def check_admitted(engine: Engine, wasm: bytes, admitted: Admitted) -> None:
    """
    Hold what admission read against what the engine reads.
    """
    wire = codec.decode(codec.encode(admitted.to_wire()))
    assert Admitted.from_wire(wire) == admitted, "the wire form lost something"
    wasmtime.Module.validate(engine.wasmtime, admitted.code)
    before = wasmtime.Module(engine.wasmtime, wasm)
    imports = {f"{item.module}.{item.name}" for item in before.imports}
    assert tuple(sorted(imports)) == admitted.imports, imports
    after = wasmtime.Module(engine.wasmtime, admitted.code)
    found = {item.name: item.type for item in after.exports}
    expected = {
        MEMORY_EXPORT,
        *(entry.name for entry in EXPORTS if admitted.upgrades or not entry.optional),
        *(slot.export for slot in admitted.globals),
    }
    assert found.keys() == expected | ({admitted.start} if admitted.start else set()), found.keys()
    for slot in admitted.globals:
        kind = found[slot.export]
        assert isinstance(kind, wasmtime.GlobalType), slot
        assert kind.mutable, slot
        assert str(kind.content) == slot.type, slot
    named = {item.name for item in before.exports if _is_mutable(item.type)}
    assert len(named) <= len(admitted.globals), named
    memory = found[MEMORY_EXPORT]
    assert isinstance(memory, wasmtime.MemoryType)
    maximum = admitted.memory_max_bytes
    assert memory.limits.min << 16 == admitted.memory_min_bytes
    assert memory.limits.max == (None if maximum is None else maximum >> 16)


def _is_mutable(kind: object) -> bool:
    return isinstance(kind, wasmtime.GlobalType) and kind.mutable


def _advance(machine: Machine) -> StepResult:
    """
    The next event that the machine can take: an answer if it waits for one, else a delivery.
    """
    if machine.open_delivery:
        return machine.step(Wake(Answer(machine.calls[0].number, Status.OK, _NULL), now_ms=2))
    number = machine.last_delivery + 1
    return machine.step(Deliver(number, DeliveryKind.MESSAGE, codec.encode({"n": number}), now_ms=1))


def _facts(result: StepResult) -> tuple[object, ...]:
    failure = None if result.failure is None else result.failure.to_wire()
    return result.calls, result.cancelled, result.reply, result.logs, result.fuel, failure


def main() -> int:
    """
    Run, report, and say by the exit code whether all went well.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000, help="how many modules")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same modules")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    engine = Engine()
    counts: Counter[str] = Counter()
    failed: list[str] = []
    slowest_ms = 0.0
    for kind, wasm in generate(random.Random(options.seed), options.count):  # noqa: S311 - reproducible on purpose
        started = time.perf_counter()
        try:
            counts[f"{kind}, {outcome(engine, wasm)}"] += 1
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            counts[f"{kind}, UNTYPED {type(error).__name__}"] += 1
            failed.append(f"{_keep(wasm)}: {type(error).__name__}: {error}")
        slowest_ms = max(slowest_ms, (time.perf_counter() - started) * 1000)
    report = {
        "count": sum(counts.values()),
        "seed": options.seed,
        "outcomes": dict(counts.most_common()),
        "slowest_ms": round(slowest_ms),
        "untyped": failed,
    }
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        for name, number in counts.most_common():
            print(f"{number:8}  {name}")
        print(f"{report['count']:8}  in all; the slowest took {slowest_ms:.0f} ms")
        print("\n".join(failed))
    return 1 if failed else 0


def _keep(wasm: bytes) -> Path:
    with tempfile.NamedTemporaryFile(prefix="runner-fuzz-", suffix=".wasm", delete=False) as file:
        file.write(wasm)
    return Path(file.name)


if __name__ == "__main__":
    sys.exit(main())
