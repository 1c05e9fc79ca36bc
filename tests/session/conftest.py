"""
Guests in text, and a session around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from runner.kernel.abi import OPERATIONS
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, assemble_wat
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.program import Program
from runner.session.ticker import Ticker

MakeMachine = Callable[..., Machine]

# `body` becomes the guest's functions; helpers keep them short. Numbers 0 to 23 are their own CBOR.
_FRAME = r"""(module
  (import "llm" "chat" (func $chat (param i32 i32) (result i32)))
  (import "memory" "save" (func $save (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "fail" (func $fail (param i32 i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "cancel" (func $cancel (param i32) (result i32)))
  (import "agent" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "agent" "snapshot" (func $snapshot (param i32 i32) (result i32)))
  (memory (export "memory") 2 64)
  (data (i32.const 0) "\a0\bf\a1\67message\63bad")
  (global $delivery (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  ;; Replies with a small number.
  (func $answer (param $value i32)
    (i32.store8 (i32.const 100) (local.get $value))
    (drop (call $reply (global.get $delivery) (i32.const 100) (i32.const 1))))
  (func $ask (result i32) (call $chat (i32.const 0) (i32.const 1)))
  BODY)"""


@pytest.fixture(scope="session")
def engine() -> Engine:
    """One engine for all."""
    return Engine()


@pytest.fixture
def ticker(engine: Engine) -> Iterator[Ticker]:
    """The clock of deadlines; an interrupt of one test must not reach the next."""
    yield Ticker(engine)
    engine.resume()


@pytest.fixture
def make_machine(engine: Engine) -> MakeMachine:
    """A fresh instance of a guest whose functions are given."""

    def make(body: str, *, keeps_snapshots: bool = False, **limits: int) -> Machine:
        admitted = admit(assemble_wat(_FRAME.replace("BODY", body)), engine.wasmtime)
        program = Program(engine, admitted, engine.compile(admitted.code), frozenset(OPERATIONS))
        bounds = Limits(**limits)
        image, _ = boot(program, bounds)
        return Machine(program, image, bounds, entropy=bytes(32), keeps_snapshots=keeps_snapshots)

    return make
