"""
Guests in text for the tests of the kernel, and short ways to run them: one engine for the whole process.

Most tests drive `SCRIPTED`, a guest that does what its payloads tell it to: a payload is a list of
commands, each an opcode and four `i32`. What an import returned is appended to a list in its memory, so
that a test reads it in the instance's frozen state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import Any, Final

from runner import codec
from runner.kernel.abi import IMPORTS, OPERATIONS, DeliveryKind, Entry
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, EngineSettings, assemble_wat
from runner.kernel.image import Image
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, StepResult, Wake
from runner.kernel.program import Program
from runner.kernel.state import PAGE_BYTES, Answer, Mind

GRANTED: Final = frozenset(OPERATIONS)

RESULTS: Final = 0x1000
"""
Where the scripted guest keeps its list of results: a count, then `i32`s.
"""

FREE: Final = 0x4000
"""
From here to the end of its first memory page the scripted guest keeps nothing of its own.
"""

MEMORY_PAGES: Final = 2


class Op(IntEnum):
    """
    What the scripted guest can do besides calling an import; `a`, `b`, `c` are the command's arguments.
    """

    STORE = 1  # [a] = b, as i32
    GROW = 2  # results += memory.grow(a)
    UNREACHABLE = 3
    SPIN = 4
    DIVIDE_BY_ZERO = 5
    RECURSE = 6
    THROW = 7
    BURN = 8  # a loops
    SET_I32 = 9
    SET_I64 = 10  # low half a, high half b
    SET_F64 = 11  # bits: low half a, high half b
    PUSH_GLOBALS = 12  # results += bits of all three globals, low halves first
    FILL = 13  # memory.fill(a, b, c)
    RETURN = 14
    LOAD = 15  # results += [a]
    PUSH_ENTRY = 16  # results += the three arguments of this slice's export
    NAN = 17  # [a] = 0/0 as f64, by arithmetic


_FIRST_IMPORT: Final = 100
_NUMBERS: Final = {entry.operation: _FIRST_IMPORT + index for index, entry in enumerate(IMPORTS)}


def command(op: int, a: int = 0, b: int = 0, c: int = 0) -> bytes:
    """
    One command; arguments as signed or unsigned 32-bit numbers.
    """
    return struct.pack("<5I", op, *(number & 0xFFFF_FFFF for number in (a, b, c, 0)))


def ask(operation: str, *args: int) -> bytes:
    """
    The command that calls an import and keeps what it returned.
    """
    return command(_NUMBERS[operation], *args)


def poke(address: int, data: bytes) -> bytes:
    """
    Commands that store `data`, padded to a multiple of four with what was there as zeros.
    """
    padded = data + bytes(-len(data) % 4)
    words = struct.unpack(f"<{len(padded) // 4}i", padded)
    return b"".join(command(Op.STORE, address + 4 * index, word) for index, word in enumerate(words))


def send(operation: str, value: codec.Value, *before: int, address: int = FREE) -> bytes:
    """
    Commands that store a value's CBOR and call an import with it; `before` goes in front of `ptr`.
    """
    data = codec.encode(value)
    return poke(address, data) + ask(operation, *before, address, len(data))


def reply(delivery: int, value: codec.Value = None) -> bytes:
    """
    Commands that answer a delivery.
    """
    return send("agent.reply", value, delivery)


def chat() -> bytes:
    """
    Commands that make a call.
    """
    return send("llm.chat", {})


# -- the scripted guest -------------------------------------------------------------------------


def _import(entry: Entry) -> str:
    params = "".join(f" {param.wasm}" for param in entry.params)
    signature = f"(param{params}) (result {entry.result})"
    return f'(import "{entry.capability}" "{entry.name}" (func ${entry.operation} {signature}))'


def _call(entry: Entry) -> str:
    args = " ".join(f"(local.get ${name})" for name, _ in zip("abc", entry.params, strict=False))
    call = f"(call ${entry.operation} {args})"
    push = f"(call $push64 {call})" if entry.result == "i64" else f"(call $push {call})"
    return _case(_NUMBERS[entry.operation], push)


def _case(op: int, body: str) -> str:
    return f"(if (i32.eq (local.get $op) (i32.const {int(op)})) (then {body} (return)))"


_A, _B, _C = (f"(local.get ${name})" for name in "abc")
_WIDE: Final = f"(i64.or (i64.extend_i32_u {_A}) (i64.shl (i64.extend_i32_u {_B}) (i64.const 32)))"
_BODIES: Final = {
    Op.STORE: f"(i32.store {_A} {_B})",
    Op.GROW: f"(call $push (memory.grow {_A}))",
    Op.UNREACHABLE: "(unreachable)",
    Op.SPIN: "(loop $spin (br $spin))",
    Op.DIVIDE_BY_ZERO: "(drop (i32.div_s (i32.const 1) (i32.const 0)))",
    Op.RECURSE: "(call $recurse)",
    Op.THROW: "(throw $oops)",
    Op.BURN: f"(loop $burn (local.set $a (i32.sub {_A} (i32.const 1))) (br_if $burn {_A}))",
    Op.SET_I32: f"(global.set $g32 {_A})",
    Op.SET_I64: f"(global.set $g64 {_WIDE})",
    Op.SET_F64: f"(global.set $gf64 (f64.reinterpret_i64 {_WIDE}))",
    Op.PUSH_GLOBALS: "(call $push (global.get $g32)) (call $push64 (global.get $g64))"
    "(call $push64 (i64.reinterpret_f64 (global.get $gf64)))",
    Op.FILL: f"(memory.fill {_A} {_B} {_C})",
    Op.RETURN: "(global.set $done (i32.const 1))",
    Op.LOAD: f"(call $push (i32.load {_A}))",
    Op.PUSH_ENTRY: "(call $push (i32.load (i32.const 96))) (call $push (i32.load (i32.const 100)))"
    "(call $push (i32.load (i32.const 104)))",
    Op.NAN: f"(f64.store {_A} (f64.div (f64.load {_A}) (f64.load {_A})))",
}


def scripted_text(*, start: str = "", memory: str = str(MEMORY_PAGES), extra: str = "") -> str:
    """
    The scripted guest; `start` is the body of its `agent_start`.
    """
    return f"""(module
  {" ".join(_import(entry) for entry in IMPORTS)}
  (memory (export "memory") {memory})
  (data (i32.const {FREE + 0x8000}) "image")
  (global $g32 (mut i32) (i32.const 7))
  (global $g64 (mut i64) (i64.const -7))
  (global $gf64 (mut f64) (f64.const 0.5))
  (global $done (mut i32) (i32.const 0))
  (tag $oops)
  {extra}
  (func (export "runner_abi_v1"))
  (func (export "agent_start") {start})
  (func $recurse (call $recurse) (call $recurse))
  (func $push (param $value i32)
    (i32.store (i32.add (i32.const {RESULTS + 4}) (i32.shl (i32.load (i32.const {RESULTS})) (i32.const 2)))
      (local.get $value))
    (i32.store (i32.const {RESULTS}) (i32.add (i32.load (i32.const {RESULTS})) (i32.const 1))))
  (func $push64 (param $value i64)
    (call $push (i32.wrap_i64 (local.get $value)))
    (call $push (i32.wrap_i64 (i64.shr_u (local.get $value) (i64.const 32)))))
  (func $do (param $op i32) (param $a i32) (param $b i32) (param $c i32)
    {" ".join(_case(op, body) for op, body in _BODIES.items())}
    {" ".join(_call(entry) for entry in IMPORTS)}
    (unreachable))
  (func $run (param i32 i32 i32)
    (i32.store (i32.const 96) (local.get 0))
    (i32.store (i32.const 100) (local.get 1))
    (i32.store (i32.const 104) (local.get 2))
    (global.set $done (i32.const 0))
    (loop $next
      (if (i32.lt_s (call $agent.take (i32.const 64) (i32.const 20)) (i32.const 20)) (then (return)))
      (call $do (i32.load (i32.const 64)) (i32.load (i32.const 68)) (i32.load (i32.const 72))
        (i32.load (i32.const 76)))
      (br_if $next (i32.eqz (global.get $done)))))
  (func (export "agent_deliver") (param i32 i32 i32)
    (call $run (local.get 0) (local.get 1) (local.get 2)))
  (func (export "agent_upgrade") (param i32 i32 i32)
    (call $run (local.get 0) (local.get 1) (local.get 2)))
  (func (export "agent_wake") (param i32 i32 i32)
    (call $run (local.get 0) (local.get 1) (local.get 2))))"""


def guest_text(deliver: str, *, imports: str = "", extra: str = "", memory: str = "1") -> str:
    """
    A guest of one's own: `deliver` is the body of `agent_deliver`, `extra` what it needs besides.
    """
    return f"""(module
  {imports}
  (memory (export "memory") {memory})
  {extra}
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param i32 i32 i32) {deliver})
  (func (export "agent_wake") (param i32 i32 i32)))"""


# -- from text to machines ----------------------------------------------------------------------


@cache
def _engine(target: str | None) -> Engine:
    return Engine(EngineSettings(target))


def engine(target: str | None = None) -> Engine:
    """
    The engine of this process; compiled programs share it.
    """
    return _engine(target)


def program(
    text: str,
    *,
    on: Engine | None = None,
    granted: frozenset[str] = GRANTED,
    denied: frozenset[str] = frozenset(),
) -> Program:
    """
    A guest's text, admitted, compiled and linked.
    """
    on = on or engine()
    admitted = admit(assemble_wat(text), on.wasmtime)
    return Program(on, admitted, on.compile(admitted.code), granted, denied)


def image_of(made: Program, limits: Limits | None = None, *, copied: bool = False) -> Image:
    """
    What a program looks like after its boot.
    """
    return boot(made, limits or Limits(), copied=copied)[0]


@cache
def _scripted(target: str | None) -> Program:
    return program(scripted_text(), on=engine(target))


def scripted(target: str | None = None) -> Program:
    """
    The scripted guest.
    """
    return _scripted(target)


@cache
def _scripted_image(target: str | None, copied: bool) -> Image:
    return image_of(scripted(target), copied=copied)


def scripted_image(target: str | None = None, *, copied: bool = False) -> Image:
    """
    Its image.
    """
    return _scripted_image(target, copied)


def machine(text: str | None = None, limits: Limits | None = None, **options: Any) -> Machine:
    """
    A new instance of a guest's text, or of the scripted guest; its host is resident unless told otherwise.
    """
    made = scripted() if text is None else program(text)
    image = scripted_image() if text is None else image_of(made)
    return Machine(made, image, limits or Limits(), **{"entropy": bytes(32), "keeps_timers": True, **options})


def deliver(
    instance: Machine,
    number: int = 1,
    script: bytes | Iterable[bytes] = b"",
    *,
    kind: DeliveryKind = DeliveryKind.MESSAGE,
    now_ms: int = 1000,
    deadline_ms: int | None = None,
) -> StepResult:
    """
    Deliver a script.
    """
    payload = script if isinstance(script, bytes) else b"".join(script)
    return instance.step(Deliver(number, kind, payload, now_ms), deadline_ms=deadline_ms)


def wake(
    instance: Machine,
    call: int,
    script: bytes | Iterable[bytes] = b"",
    *,
    status: int = 0,
    now_ms: int = 2000,
) -> StepResult:
    """
    Answer a call with a script.
    """
    payload = script if isinstance(script, bytes) else b"".join(script)
    return instance.step(Wake(Answer(call, status, payload), now_ms))


# -- looking into an instance -------------------------------------------------------------------


def memory_of(instance: Machine, address: int, size: int) -> bytes:
    """
    Bytes of the instance's memory, read off its frozen state and its image.
    """
    mind = instance.freeze().mind
    base = instance.image.root.mind.pages
    pages = range(address // PAGE_BYTES, (address + size - 1) // PAGE_BYTES + 1)
    data = b"".join(mind.pages.get(index, base.get(index, bytes(PAGE_BYTES))) for index in pages)
    start = address % PAGE_BYTES
    return data[start : start + size]


def results(instance: Machine) -> list[int]:
    """
    What the scripted guest has on its list.
    """
    (count,) = struct.unpack("<I", memory_of(instance, RESULTS, 4))
    return list(struct.unpack(f"<{count}i", memory_of(instance, RESULTS + 4, 4 * count) if count else b""))


# -- what tests compare ----------------------------------------------------------------------

MARK: Final = command(Op.STORE, FREE + 256, 42)
"""
A command that leaves a trace.
"""

TIGHT: Final = Limits(fuel=1_000_000)
ENDLESS: Final = Limits(fuel=(1 << 63) - 1)


def busy(number: int) -> bytes:
    """
    A script that touches all that a slice can change, and waits.
    """
    return b"".join(
        (
            MARK,
            command(Op.GROW, 3),
            command(Op.FILL, MEMORY_PAGES * 65536, 7, 9000),
            command(Op.SET_I32, 5),
            command(Op.SET_I64, 1, 2),
            command(Op.SET_F64, 3, 4),
            send("agent.log", f"line {number}", 1),
            ask("agent.random", FREE + 512, 64),
            chat(),
        )
    )


def failure_of(result: StepResult) -> str:
    """
    The message of a slice's failure; a failure leaves nothing else than its fuel and its delivery.
    """
    assert result.failure is not None
    assert result == StepResult(
        fuel=result.fuel,
        failure=result.failure,
        failed_delivery=result.failed_delivery,
        abandoned=result.abandoned,
        undone=result.undone,
    )
    return result.failure.message


def same(one: Machine, other: Machine) -> bool:
    """
    Whether two instances can't be told apart: memory, globals, and all that a snapshot holds.
    """
    mine, theirs = one.freeze(), other.freeze()
    bits = [struct.pack("<d", g) if isinstance(g, float) else g for g in mine.mind.globals]
    others = [struct.pack("<d", g) if isinstance(g, float) else g for g in theirs.mind.globals]
    blank = Mind(0, {}, ())
    return (
        one.digest() == other.digest()
        and bits == others
        and replace(mine, mind=blank) == replace(theirs, mind=blank)
    )
