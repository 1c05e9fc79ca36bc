"""
What must hold in every snapshot, whichever way it goes: checked before writing and after reading.

Input: untrusted. The root over a file tells that it is whole, not who wrote it, so a value that no
kernel could have produced must not reach one.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NoReturn

from runner import codec
from runner.digest import SIZE_BYTES
from runner.kernel.abi import OPERATIONS, WASM_PAGE_BYTES, Status
from runner.kernel.state import MAX_ERROR_CHARS, PAGE_BYTES, Call, MachineState, Mind, OpenDelivery
from runner.snapshot.model import Snapshot

MAX_MEMORY_BYTES: Final = 1 << 32
"""
The most that a 32-bit memory can have.
"""

MAX_COUNT: Final = (1 << 63) - 1
MAX_NUMBER: Final = (1 << 31) - 1
"""
Call and delivery numbers are positive `i32` for the guest.
"""

_STATUSES: Final = frozenset(int(status) for status in Status)
_MIN_GLOBAL: Final = -(1 << 63)
_DOUBLE: Final = struct.Struct(">d")


Check = Literal["magic", "length", "root", "header", "pages", "state", "body"]
"""
The checks, in the order in which a reader makes them.
"""


class Problem(Exception):
    """
    Raised inside this package by a check that failed; its text starts with the check's name.

    `encode` makes an `InternalError` of it, `decode` a `SnapshotCorrupt`.
    """

    def __init__(self, check: Check, problem: str) -> None:
        super().__init__(f"{check}: {problem}")


def check(snapshot: Snapshot) -> None:
    """
    Refuse what no kernel makes.

    Raises:
        Problem: If no kernel could have produced `snapshot`.
    """
    state = snapshot.state
    for name in ("code_digest", "image_digest", "memory_digest"):
        _need_bytes(getattr(snapshot, name), name)
    _need_count(snapshot.position, "position")
    _need_count(snapshot.created_at_ms, "created_at_ms")
    _need_bytes(state.entropy, "entropy")
    _need_count(state.entropy_used, "entropy_used")
    _need_count(state.next_call, "next_call", low=1, high=MAX_NUMBER + 1)
    _need_count(state.last_delivery, "last_delivery", high=MAX_NUMBER)
    if state.restored is not None:
        _need_count(state.restored.count, "restored.count")
        _need_count(state.restored.generation, "restored.generation", low=1)
        _need_count(state.restored.at_ms, "restored.at_ms")
    if state.last_snapshot is not None:
        _need_count(state.last_snapshot.size_bytes, "last_snapshot.bytes")
        _need_count(state.last_snapshot.at_ms, "last_snapshot.at_ms")
        _need_count(len(state.last_snapshot.error or ""), "last_snapshot.error", high=MAX_ERROR_CHARS)
    _check_mind(state.mind, "mind")
    _check_calls(state.calls, state, "calls")
    for operation in snapshot.imports:
        _need_operation(operation)
    if state.delivery is not None:
        _check_delivery(state.delivery, state)


def minds_of(state: MachineState) -> list[Mind]:
    """
    The mind now, and the one before the open delivery, if there is one.
    """
    return [state.mind] if state.delivery is None else [state.mind, state.delivery.before]


def need_memory_bytes(size_bytes: int) -> None:
    """
    Refuse a size that no memory has.

    Raises:
        Problem: If no linear memory has that size.
    """
    _need_count(size_bytes, "memory_bytes", high=MAX_MEMORY_BYTES)
    if size_bytes % WASM_PAGE_BYTES:
        _fail(f"memory_bytes {size_bytes} is not a multiple of {WASM_PAGE_BYTES}")


def bits_of(value: float) -> bytes:
    """
    The eight bytes of an f64, big-endian. CBOR would make every NaN the same one.
    """
    return _DOUBLE.pack(value)


def from_bits(bits: bytes) -> float:
    """
    The f64 that `bits_of` took apart.
    """
    value: float = _DOUBLE.unpack(bits)[0]
    return value


def _check_delivery(delivery: OpenDelivery, state: MachineState) -> None:
    _need_count(delivery.number, "delivery.number", low=1, high=state.last_delivery)
    if not state.calls:
        # An instance that was frozen like this could only wait, for ever.
        _fail("a delivery is open with no call in flight")
    _need_count(delivery.fuel, "delivery.fuel")
    _check_mind(delivery.before, "delivery.before")
    _check_calls(delivery.calls_before, state, "delivery.calls_before")
    _check_answers(delivery)
    if delivery.before.memory_bytes > state.mind.memory_bytes:
        _fail("delivery.before.memory_bytes is more than after it; memory never shrinks")
    if [type(value) for value in delivery.before.globals] != [type(value) for value in state.mind.globals]:
        _fail("delivery.before.globals are not of the types that mind.globals have")


def _check_answers(delivery: OpenDelivery) -> None:
    asked = {call.number for call in delivery.calls_before}
    for answer in delivery.answers:
        if answer.call not in asked:
            _fail(f"an answer in delivery.answers is to call {answer.call}, which is not in calls_before")
        if answer.status not in _STATUSES:
            _fail(f"answer to call {answer.call} has status {answer.status}")
        _need_payload(answer.payload, f"answer to call {answer.call}")


def _check_mind(mind: Mind, where: str) -> None:
    size_bytes = mind.memory_bytes
    need_memory_bytes(size_bytes)
    if mind.pages and not 0 <= min(mind.pages) <= max(mind.pages) < size_bytes // PAGE_BYTES:
        _fail(f"{where} has a page outside its {size_bytes} bytes")
    if any(len(page) != PAGE_BYTES for page in mind.pages.values()):
        _fail(f"{where} has a page that is not of {PAGE_BYTES} bytes")
    for value in mind.globals:
        if type(value) is int:
            _need_count(value, f"{where}.globals", low=_MIN_GLOBAL)
        elif type(value) is not float:
            _fail(f"{where}.globals has a {type(value).__name__}")


def _check_calls(calls: tuple[Call, ...], state: MachineState, where: str) -> None:
    last = 0
    for call in calls:
        # Ascending, so none is there twice.
        _need_count(call.number, f"{where} number", low=last + 1, high=state.next_call - 1)
        _need_count(call.delivery, f"{where} delivery", high=state.last_delivery)
        last = call.number
        _need_operation(call.operation)
        _need_payload(call.request, f"request of call {call.number} in {where}")


def _need_operation(operation: str) -> None:
    if operation not in OPERATIONS:
        _fail(f"operation {operation!r} is unknown")


def _need_payload(data: bytes, name: str) -> None:
    try:
        codec.decode(data)
    except codec.CodecError as error:
        _fail(f"{name}: {error}")


def _need_bytes(value: bytes, name: str) -> None:
    if type(value) is not bytes or len(value) != SIZE_BYTES:
        _fail(f"{name} is not {SIZE_BYTES} bytes")


def _need_count(value: int, name: str, *, low: int = 0, high: int = MAX_COUNT) -> None:
    if type(value) is not int or not low <= value <= high:
        _fail(f"{name} {value!r} is not between {low} and {high}")


def _fail(problem: str) -> NoReturn:
    raise Problem("state", problem)
