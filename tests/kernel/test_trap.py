"""
What a trap is called, and what of the guest's own names comes with it.
"""

from __future__ import annotations

import pytest

from runner.errors import GuestTrapped
from runner.kernel.admission import admit
from runner.kernel.engine import assemble_wat
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.program import Program
from tests.kernel.guests import GRANTED, deliver, engine, guest_text, image_of, machine

TRAPS = {
    "unreachable": "(unreachable)",
    "integer_division_by_zero": "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
    "integer_overflow": "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))",
    "bad_conversion_to_integer": "(drop (i32.trunc_f64_s (f64.const nan)))",
    "memory_out_of_bounds": "(drop (i32.load (i32.const -1)))",
    "table_out_of_bounds": "(call_indirect (i32.const 9))",
    "indirect_call_to_null": "(call_indirect (i32.const 0))",
    "bad_signature": "(call_indirect (i32.const 1))",
    "stack_overflow": "(call $deep)",
    "uncaught_exception": "(throw $oops)",
}
EXTRA = "(table 2 funcref) (elem (i32.const 1) $deep) (tag $oops) (func $deep (result i32) (call $deep))"


@pytest.mark.parametrize("name", TRAPS)
def test_every_trap_has_a_name(name: str) -> None:
    """The engine's own, in lower case; an exception that nobody caught has one too."""
    body = TRAPS[name].replace("(call $deep)", "(drop (call $deep))")
    failure = deliver(machine(guest_text(body, extra=EXTRA))).failure
    assert isinstance(failure, GuestTrapped)
    assert failure.trap == name


def test_the_innermost_frames_come_with_a_trap() -> None:
    """Eight at most, each cut to 120 characters: the names are the guest's."""
    long = "f" * 500
    chain = "".join(f"(func $g{n} (call $g{n + 1}))" for n in range(20))
    text = guest_text("(call $g0)", extra=f"{chain} (func $g20 (call ${long})) (func ${long} (unreachable))")
    failure = deliver(machine(text)).failure
    assert isinstance(failure, GuestTrapped)
    assert failure.frames == ("f" * 120, *(f"g{n}" for n in range(20, 13, -1)))


def test_a_name_that_is_no_text_is_left_out() -> None:
    """The function's index stands for it."""
    code = assemble_wat(guest_text("(call $name)", extra="(func $name (unreachable))"))
    at = code.rindex(b"name")
    broken = code[:at] + b"\xff\xfe\xff\xfe" + code[at + 4 :]
    admitted = admit(broken, engine().wasmtime)
    made = Program(engine(), admitted, engine().compile(admitted.code), GRANTED)
    failure = deliver(Machine(made, image_of(made), Limits(), entropy=bytes(32))).failure
    assert isinstance(failure, GuestTrapped)
    assert failure.frames[0] == "function 0"
