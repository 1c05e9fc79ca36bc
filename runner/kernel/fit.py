"""
Whether a mind or a state from outside may come near an instance.

Input: a snapshot or an agent file, which anyone may have written. What it says is only data to the guest, but
its sizes and indices become addresses here, and its numbers go to the engine as C integers, which would wrap
them silently. So they are checked here, whatever was checked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.errors import LimitExceeded, SnapshotIncompatible
from runner.kernel.abi import OPERATIONS, Status
from runner.kernel.state import (
    ENTROPY_BYTES,
    MAX_ERROR_CHARS,
    MAX_MEMORY_BYTES,
    MAX_NUMBER,
    Call,
    MachineState,
    Mind,
    OpenDelivery,
)

if TYPE_CHECKING:
    from runner.kernel.admission import Admitted
    from runner.kernel.limits import Limits
    from runner.kernel.program import Program

_MAX_COUNT: Final = (1 << 63) - 1
_STATUSES: Final = frozenset(int(status) for status in Status)
_INTEGER_BITS: Final = {"i32": 32, "i64": 64}


def check_fit(mind: Mind, admitted: Admitted, *, at_least_bytes: int) -> None:
    """
    Raises:
        SnapshotIncompatible: If an instance of the module can't hold `mind`.
    """
    try:
        mind.check()
    except ValueError as error:
        raise SnapshotIncompatible("memory", "pages inside the memory", str(error)) from error
    smallest = max(at_least_bytes, admitted.memory_min_bytes)
    largest = MAX_MEMORY_BYTES if admitted.memory_max_bytes is None else admitted.memory_max_bytes
    _need_between("memory_bytes", mind.memory_bytes, smallest, largest)
    expected = [slot.type for slot in admitted.globals]
    found = [type(value).__name__ for value in mind.globals]
    if found != ["float" if kind == "f64" else "int" for kind in expected]:
        raise SnapshotIncompatible("globals", str(expected), str(found))
    for kind, value in zip(expected, mind.globals, strict=True):
        if kind in _INTEGER_BITS:
            half = 1 << (_INTEGER_BITS[kind] - 1)
            _need_between("globals", int(value), -half, half - 1)


def check_state(state: MachineState, program: Program, limits: Limits, *, at_least_bytes: int) -> None:
    """
    Raises:
        SnapshotIncompatible: If no instance of the program can have been in `state`.
        LimitExceeded: If it has more calls in flight than `limits` allow.
    """
    check_fit(state.mind, program.admitted, at_least_bytes=at_least_bytes)
    _need_between("entropy", len(state.entropy), ENTROPY_BYTES, ENTROPY_BYTES)
    _need_between("entropy_used", state.entropy_used, 0, _MAX_COUNT)
    _need_between("next_call", state.next_call, 1, MAX_NUMBER + 1)
    _need_between("last_delivery", state.last_delivery, 0, MAX_NUMBER)
    _check_calls(state.calls, state.next_call, program, limits)
    if state.restored is not None:
        for value in (state.restored.count, state.restored.generation, state.restored.at_ms):
            _need_between("restored", value, 0, _MAX_COUNT)
    if state.last_snapshot is not None:
        for value in (state.last_snapshot.size_bytes, state.last_snapshot.at_ms):
            _need_between("last_snapshot", value, 0, _MAX_COUNT)
        _need_between("last_snapshot.error", len(state.last_snapshot.error or ""), 0, MAX_ERROR_CHARS)
    if state.delivery is not None:
        _need_between("delivery", state.delivery.number, max(state.last_delivery, 1), state.last_delivery)
        check_fit(state.delivery.before, program.admitted, at_least_bytes=at_least_bytes)
        # A failure must find room for what it puts back.
        _need_between("memory_bytes", state.delivery.before.memory_bytes, 0, state.mind.memory_bytes)
        _check_calls(state.delivery.calls_before, state.next_call, program, limits)
        _check_open(state.delivery)


def _check_open(delivery: OpenDelivery) -> None:
    _need_between("fuel", delivery.fuel, 0, _MAX_COUNT)
    asked = {call.number for call in delivery.calls_before}
    for answer in delivery.answers:
        if answer.call not in asked or answer.status not in _STATUSES:
            raise SnapshotIncompatible(
                "answers", "answers to calls", f"status {answer.status} to {answer.call}"
            )


def _check_calls(calls: tuple[Call, ...], next_call: int, program: Program, limits: Limits) -> None:
    if len(calls) > limits.calls_in_flight:
        raise LimitExceeded("calls_in_flight", len(calls), limits.calls_in_flight)
    last = 0
    for call in calls:
        # Ascending, so none is there twice.
        _need_between("call", call.number, last + 1, next_call - 1)
        last = call.number
        # The host will do what a call asks for: one that the linker would not have let out must not come in.
        if call.operation not in program.granted or not OPERATIONS[call.operation].makes_call:
            raise SnapshotIncompatible("call", "a call that is granted", call.operation)


def _need_between(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise SnapshotIncompatible(field, f"{low} to {high}", str(value))
