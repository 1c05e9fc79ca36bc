"""
Leaving a guest: a local operation, a call with its answer, and a whole delivery with one call in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.report import Figure, figure, run, time_us
from runner import codec
from runner.kernel.abi import OPERATIONS, DeliveryKind, Status
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, assemble_wat
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, Wake
from runner.kernel.program import Program
from runner.kernel.state import Answer

if TYPE_CHECKING:
    import argparse

_BAR_US = 60
_LOCAL_CALLS = 1000

# A message makes one call; each wake makes the next, until event 2 asks for a thousand local ones.
_GUEST = r"""(module
  (import "llm" "usage" (func $usage (param i32 i32) (result i32)))
  (import "agent" "now" (func $now (result i64)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "\a0\f6")
  (global $delivery (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $number i32) (param $kind i32) (param $size i32)
    (local $left i32)
    (global.set $delivery (local.get $number))
    (if (i32.eq (local.get $kind) (i32.const 2))
      (then
        (local.set $left (i32.const 1000))
        (loop $again
          (drop (call $now))
          (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (drop (call $reply (local.get $number) (i32.const 65) (i32.const 1))))
      (else (drop (call $usage (i32.const 64) (i32.const 1))))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (if (local.get $size)
      (then (drop (call $usage (i32.const 64) (i32.const 1))))
      (else (drop (call $reply (global.get $delivery) (i32.const 65) (i32.const 1)))))))"""


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for one instance that does nothing else.
    """
    del options
    engine = Engine()
    admitted = admit(assemble_wat(_GUEST), engine.wasmtime)
    program = Program(engine, admitted, engine.compile(admitted.code), frozenset(OPERATIONS))
    limits = Limits(fuel=1 << 60)
    image, _ = boot(program, limits)
    machine = Machine(program, image, limits, entropy=bytes(32))

    def deliver(kind: DeliveryKind) -> int:
        result = machine.step(Deliver(machine.last_delivery + 1, kind, b"\xf6", 0))
        assert result.failure is None, result.failure
        return result.calls[0].number if result.calls else 0

    local = [value / _LOCAL_CALLS for value in time_us(lambda: deliver(DeliveryKind.EVENT), calls=10)]
    call = deliver(DeliveryKind.MESSAGE)

    def answered() -> None:
        nonlocal call
        # The answer goes in, and the next request comes out: a round trip.
        result = machine.step(Wake(Answer(call, Status.OK, codec.encode({"calls": 1})), 0))
        call = result.calls[0].number

    round_trip = time_us(answered)
    machine.abandon(ValueError())  # type: ignore[arg-type]

    def whole() -> None:
        number = deliver(DeliveryKind.MESSAGE)
        assert machine.step(Wake(Answer(number, Status.OK, b""), 0)).reply

    return [
        figure("local operation (agent.now)", "us", local, _BAR_US),
        figure("call and its answer", "us", round_trip, _BAR_US),
        figure("delivery with one call", "us", time_us(whole)),
    ]


if __name__ == "__main__":
    run("hostcall", __doc__.strip(), measure)
