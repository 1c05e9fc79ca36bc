"""
Every import against hostile arguments: every answer is one that the ABI documents, or this exits with 1.

    python -m benchmarks.fuzz_imports --count 10000

Pointers, lengths and numbers lean to the edges of the memory and of 32 bits; what lies in the memory is
random bytes, payloads, damaged payloads and bombs. Nothing may succeed outside the memory, no exception may
come out of a step, and the host may not allocate more than a bound for any of it.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import time
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from typing import Final

from runner import codec
from runner.kernel.abi import IMPORTS, WASM_PAGE_BYTES, DeliveryKind, Entry, Status
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, assemble_wat
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, StepResult
from runner.kernel.program import Program
from runner.units import MIB, show_bytes

ALLOCATION_BOUND_BYTES: Final = 24 * MIB
"""
For one slice: a request of a megabyte, its copy, and as many small objects as a payload may have items.
"""

_PAGES: Final = 24
_MEMORY_BYTES: Final = _PAGES * WASM_PAGE_BYTES
_LIMITS: Final = Limits(fuel=1 << 50)
_NOW_MS: Final = 1_700_000_000_000
_LIFE: Final = 100
_SHOWN: Final = 20
_ORDER: Final = struct.Struct("<6i")
_ANSWER: Final = struct.Struct("<q")
_ANSWER_AT: Final = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """
    One import called in one slice.

    Attributes:
        entry: Which.
        args: With what, as `i32`.
        aimed: Whether the first argument is replaced by the open delivery, or a call in flight.
        times: How often.
        place: Where the guest puts `blob` first.
        blob: What lies in the memory.
    """

    entry: Entry
    args: tuple[int, ...]
    aimed: bool
    times: int
    place: int
    blob: bytes

    def __str__(self) -> str:
        """
        Enough to do it again.
        """
        shown = self.blob[:40].hex()
        return (
            f"{self.entry.operation}{self.args} x{self.times}, {len(self.blob)} bytes {shown} at {self.place}"
        )


class Hostile:
    """
    The guest that makes attempts: it reads an order, takes a blob, and calls.
    """

    def __init__(self) -> None:
        engine = Engine()
        admitted = admit(assemble_wat(_text()), engine.wasmtime)
        granted = frozenset(entry.operation for entry in IMPORTS)
        self._program = Program(engine, admitted, engine.compile(admitted.code), granted)
        self._image, _ = boot(self._program, _LIMITS)
        self._machine = self._fresh()

    def _fresh(self) -> Machine:
        return Machine(
            self._program,
            self._image,
            _LIMITS,
            entropy=bytes(32),
            keeps_snapshots=True,
            keeps_timers=True,
        )

    def attempt(self, attempt: Attempt) -> str:
        """
        Make one attempt, and say how it ended.

        Raises:
            AssertionError: If the answer is none that the ABI documents, or the instance is not well.
        """
        if self._machine.last_delivery >= _LIFE:
            self._machine = self._fresh()
        machine = self._machine
        number = machine.last_delivery + 1
        args = [*attempt.args, 0, 0, 0][:3]
        if attempt.aimed:
            # The guest's first call of a slice has the next number.
            args[0] = machine.freeze().next_call if attempt.entry.name == "cancel" else number
        order = _ORDER.pack(IMPORTS.index(attempt.entry), *args, attempt.times, attempt.place)
        digest = machine.digest()
        result = machine.step(Deliver(number, DeliveryKind.MESSAGE, order + attempt.blob, _NOW_MS))
        assert result.failure is None, f"the slice failed: {result.failure}"
        pages = machine.freeze().mind.pages
        (answer,) = _ANSWER.unpack_from(pages[0], _ANSWER_AT)
        if machine.open_delivery:
            machine.abandon(ValueError())  # type: ignore[arg-type]
            assert machine.digest() == digest, "an abandoned delivery left something"
        return _judge(attempt, answer, result, number)


def _text() -> str:
    """
    The guest: it reads its order at 0, and the last answer lies at 64 in the end. An import may write over
    either, so both are kept out of memory meanwhile. Two calls are in flight: one may be cancelled.
    """
    imports, cases = [], []
    for index, entry in enumerate(IMPORTS):
        params = "".join(f" {param.wasm}" for param in entry.params)
        imports.append(
            f'(import "{entry.capability}" "{entry.name}"'
            f" (func ${entry.operation} (param{params}) (result {entry.result})))"
        )
        args = "".join(f" (local.get $arg{place})" for place in range(len(entry.params)))
        call = f"(call ${entry.operation}{args})"
        widened = call if entry.result == "i64" else f"(i64.extend_i32_s {call})"
        cases.append(f"(if (i32.eq (local.get $op) (i32.const {index})) (then (return {widened})))")
    order = " ".join(f"(i32.load (i32.const {place}))" for place in range(0, _ORDER.size, 4))
    return f"""(module {" ".join(imports)}
      (memory (export "memory") {_PAGES} {_PAGES})
      (data (i32.const 128) "\\a0")
      (func (export "runner_abi_v1"))
      (func (export "agent_start"))
      (func $do (param $op i32) (param $arg0 i32) (param $arg1 i32) (param $arg2 i32) (result i64)
        {" ".join(cases)} (unreachable))
      (func $try (param $op i32) (param $arg0 i32) (param $arg1 i32) (param $arg2 i32)
          (param $times i32) (param $place i32) (result i64) (local $answer i64)
        (drop (call $agent.take (local.get $place) (i32.const -1)))
        (loop $again
          (local.set $answer
            (call $do (local.get $op) (local.get $arg0) (local.get $arg1) (local.get $arg2)))
          (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
        (local.get $answer))
      (func (export "agent_deliver") (param i32 i32 i32) (local $answer i64)
        (i32.store8 (i32.const 128) (i32.const 0xa0))
        (drop (call $llm.usage (i32.const 128) (i32.const 1)))
        (drop (call $llm.usage (i32.const 128) (i32.const 1)))
        (drop (call $agent.take (i32.const 0) (i32.const {_ORDER.size})))
        (local.set $answer (call $try {order}))
        (i64.store (i32.const {_ANSWER_AT}) (local.get $answer)))
      (func (export "agent_wake") (param i32 i32 i32)))"""


def _judge(attempt: Attempt, answer: int, result: StepResult, number: int) -> str:
    """
    Name the outcome.

    Raises:
        AssertionError: If the ABI does not have it.
    """
    entry, args = attempt.entry, attempt.args
    if answer < 0 or (answer == 0 and Status.OK in entry.statuses):
        assert answer in entry.statuses, f"answered {answer}"
        if answer == Status.OK and entry.params and entry.params[-1].name == "len":
            assert _inside(args), "succeeded outside the memory"
        return f"{entry.operation} {Status(answer).name}"
    if entry.makes_call:
        assert answer == result.calls[-1].number, f"answered {answer}, and made {result.calls[-1]}"
        assert _inside(args), "succeeded outside the memory"
        return f"{entry.operation} call"
    bounds = {
        "take": len(attempt.blob),
        "now": _NOW_MS,
        "snapshot": 1,
        "restored": 1,
        "last_snapshot": 1,
    }
    assert answer <= bounds[entry.name], f"answered {answer} in delivery {number}"
    return f"{entry.operation} value"


def _inside(args: tuple[int, ...]) -> bool:
    ptr, length = (value & 0xFFFF_FFFF for value in args[-2:])
    return ptr + length <= _MEMORY_BYTES


# -- what is tried --------------------------------------------------------------------------------

_EDGES: Final = tuple(
    edge + offset
    for edge in (0, 64, 128, 4096, 65_536, 1 << 20, _MEMORY_BYTES, 1 << 31, 0x7FFF_FFFF, 1 << 32)
    for offset in (-2, -1, 0, 1)
)
_BOMBS: Final = (
    b"\x9a\x00\x00\xff\xf0" + b"\x80" * 0xFFF0,
    b"\x9a\x00\x00\xff\xf0" + b"\xa0" * 0xFFF0,
    b"\x9a\x00\x0f\xff\xf0" + bytes(0xFFFF0),
    b"\x81" * 70_000,
    b"\xa1\x61a" * 30_000,
    b"\xc1" * 70_000,
    b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x9b\x00\x00\x00\x00\xff\xff\xff\xff",
    codec.encode({f"{index:05}": [] for index in range(32_000)}),
    codec.encode("é" * 500_000),
    codec.encode({"message": "x" * 4000}),
)


def attempts(chance: random.Random, count: int) -> list[Attempt]:
    """
    Reproducible from the state of `chance`; every import gets its share.
    """
    return [_attempt(chance, IMPORTS[index % len(IMPORTS)]) for index in range(count)]


def _attempt(chance: random.Random, entry: Entry) -> Attempt:
    blob = _blob(chance)
    place = chance.choice((256, 4096, 65_530, _MEMORY_BYTES - len(blob), chance.randrange(_MEMORY_BYTES), -1))
    args = tuple(_argument(chance, param.name, place, len(blob)) for param in entry.params)
    aimed = entry.name in {"reply", "fail", "cancel"} and chance.random() < 0.7
    times = chance.choice((1, 1, 1, 1, 1, 2, 70)) if len(blob) < 1000 else 1
    return Attempt(entry, args, aimed, times, _signed(place), blob)


def _argument(chance: random.Random, name: str, place: int, size: int) -> int:
    usual = {
        "ptr": place,
        "len": size,
        "delivery": chance.randrange(_LIFE + 2),
        "level": chance.randrange(4),
        "call": chance.randrange(1, 100),
    }[name]
    wild = chance.random()
    if wild < 0.6:
        return _signed(usual)
    if wild < 0.9:
        return _signed(chance.choice(_EDGES))
    return _signed(chance.getrandbits(32))


def _blob(chance: random.Random) -> bytes:
    match chance.randrange(8):
        case 0:
            return chance.randbytes(chance.choice((0, 1, 2, 9, 100, 5000)))
        case 1:
            return chance.choice(_BOMBS)
        case 2:
            data = bytearray(codec.encode(_value(chance, 3)))
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(data)
        case 3:
            data = bytearray(codec.encode(_value(chance, 4)))
            return bytes(data[: chance.randrange(len(data) + 1)])
        case 4:
            return codec.encode({"message": "no", "data": _value(chance, 2)})
        case 5:
            return codec.encode("a reason")
        case _:
            return codec.encode({"messages": [_value(chance, 2)]})


def _value(chance: random.Random, depth: int) -> codec.Value:
    kind = chance.randrange(8 if depth else 6)
    plain = (None, True, chance.getrandbits(63), -chance.getrandbits(20), chance.random(), "ü" * kind)
    if kind < len(plain):
        return plain[kind]
    items = [_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    return items if kind == len(plain) else {f"k{index}": item for index, item in enumerate(items)}


def _signed(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


# -- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Report:
    """
    What all attempts came to.

    Attributes:
        outcomes: How often each outcome came.
        violations: Attempts that ended in none of the ABI's ways, with the reason.
        peak_bytes: The most that the host allocated for one attempt.
        slowest_ms: The longest attempt.
    """

    outcomes: Counter[str]
    violations: list[str]
    peak_bytes: int
    slowest_ms: float


def fuzz(count: int, seed: int) -> Report:
    """
    Make `count` attempts.
    """
    hostile = Hostile()
    outcomes: Counter[str] = Counter()
    violations: list[str] = []
    most_bytes = 0
    slowest_ms = 0.0
    tracemalloc.start()
    try:
        for attempt in attempts(random.Random(seed), count):  # noqa: S311 - reproducible on purpose
            before_bytes = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            started = time.perf_counter()
            try:
                outcomes[hostile.attempt(attempt)] += 1
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                outcomes["violation"] += 1
                violations.append(f"{attempt}: {type(error).__name__}: {error}")
            slowest_ms = max(slowest_ms, (time.perf_counter() - started) * 1000)
            peak_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
            most_bytes = max(most_bytes, peak_bytes)
            if peak_bytes > ALLOCATION_BOUND_BYTES:
                violations.append(f"{attempt}: allocated {show_bytes(peak_bytes)}")
    finally:
        tracemalloc.stop()
    return Report(outcomes, violations, most_bytes, slowest_ms)


def main() -> int:
    """
    Run, report, and say by the exit code whether all went well.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000, help="how many attempts")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same attempts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    report = fuzz(options.count, options.seed)
    if options.json:
        facts = {
            "count": options.count,
            "seed": options.seed,
            "outcomes": dict(sorted(report.outcomes.items())),
            "peak_bytes": report.peak_bytes,
            "slowest_ms": round(report.slowest_ms),
            "violations": report.violations,
        }
        print(json.dumps(facts, indent=2))
    else:
        for name, number in sorted(report.outcomes.items()):
            print(f"{number:8}  {name}")
        peak = show_bytes(report.peak_bytes)
        print(f"{options.count:8}  in all; the slowest took {report.slowest_ms:.0f} ms, the largest {peak}")
        print("\n".join(report.violations[:_SHOWN]))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
