"""
Running one export of a guest, under fuel and a wall deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import wasmtime

from runner.errors import DeadlineExceeded, FuelExhausted, Interrupted, MemoryExceeded, RunnerError
from runner.kernel.linker import running
from runner.kernel.trap import forget_traceback, trapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.kernel.program import Program
    from runner.kernel.slice import Slice


def run_guest(
    program: Program,
    current: Slice,
    entry: Callable[..., None],
    args: tuple[int, ...],
    fuel: int,
    deadline_ms: int,
) -> tuple[RunnerError | None, int]:
    """
    Call one export under fuel and a wall deadline; why it failed, and the fuel that is left.
    """
    engine, store = program.engine, current.store
    ticks, interrupts = engine.deadline_ticks(deadline_ms), engine.interrupts
    last_tick = engine.ticks + ticks
    store.set_fuel(fuel)
    store.set_epoch_deadline(ticks)
    if engine.interrupted:
        return Interrupted(), 0
    current.is_overdue = lambda: engine.ticks >= last_tick or engine.interrupts != interrupts
    try:
        with running(current):
            # Typed: for a bare integer the binding would make and compare several types.
            entry(store, *map(wasmtime.Val.i32, args))
    except wasmtime.Trap as trap:
        forget_traceback(trap)
        code = trap.trap_code
        if code is wasmtime.TrapCode.INTERRUPT:
            current.late = True
        elif code is wasmtime.TrapCode.OUT_OF_FUEL:
            store.set_fuel(0)
        else:
            return trapped(trap), 0
    except wasmtime.WasmtimeError:
        # The one way for a call to fail without a trap: exceptions that the guest holds on to have filled
        # the heap that the engine keeps for them, which is bounded like the memory.
        return MemoryExceeded(current.limits.memory_bytes, current.limits.memory_bytes), 0
    if current.late:
        stopped = engine.interrupts != interrupts
        return Interrupted() if stopped else DeadlineExceeded("timeout_ms", deadline_ms, deadline_ms), 0
    left = store.get_fuel()
    # Host work that could not be paid for leaves no fuel and must not count as done.
    return (None, left) if left else (FuelExhausted(current.limits.fuel), 0)
