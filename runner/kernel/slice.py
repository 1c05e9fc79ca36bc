"""
One slice: what a guest asks for while it runs, kept aside until the slice has ended well.

Input: guest-controlled. Every pointer and length is checked against the memory's size before anything is
read, written or allocated; every count against a limit. Nothing here raises on what a guest does: it
answers a status, or ends the slice by taking away its fuel.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from runner import codec
from runner.kernel.abi import TIMERS, Entry, LogLevel, Status
from runner.kernel.state import MAX_NUMBER, Call, LastSnapshot, Restored

if TYPE_CHECKING:
    from collections.abc import Callable

    import wasmtime

    from runner.kernel.limits import Limits

HOST_CALL_FUEL: Final = 5_000
"""
Fuel for entering the host once: about as much as the guest could have burnt in that time. It makes the
number of host calls bounded by fuel, the same on every machine.
"""

HOST_BYTE_FUEL: Final = 16
"""
Fuel for each byte that the host checks or copies.
"""

_U32: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class LogLine:
    """
    One line of the guest's log. Untrusted text: scrub before showing it.

    Attributes:
        level: Clamped to the ABI's levels.
        message: The text.
        fields: Further fields of a structured line.
    """

    level: LogLevel
    message: str
    fields: dict[str, codec.Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """
    How a delivery ended.

    Attributes:
        delivery: Which one.
        ok: Whether the guest replied, or failed it.
        payload: Deterministic CBOR.
    """

    delivery: int
    ok: bool
    payload: bytes


class Payload(NamedTuple):
    """
    Bytes of the guest's that are known to be deterministic CBOR, and their value.
    """

    data: bytes
    value: codec.Value


@dataclass(slots=True)
class Slice:
    """
    The host's side of one slice.

    Attributes:
        store: The instance's store.
        memory: Its memory.
        limits: Its bounds.
        payload: What `agent.take` hands out.
        now_ms: What `agent.now` answers.
        booting: Whether this is `agent_start`, where only logging is possible.
        delivery: The open delivery, or 0.
        last_delivery: Highest delivery number seen: whichever else is not above it has ended.
        in_flight: Numbers of calls in flight; cancelled ones leave it.
        next_call: Number of the next call.
        entropy: Seed of the random stream; `entropy_used` counts requests to it.
        keeps_snapshots: What `agent.snapshot` answers.
        keeps_timers: Whether `agent.after` and `agent.every` make calls.
        restored: What `agent.restored` answers.
        last_snapshot: What `agent.last_snapshot` answers.
        is_overdue: Whether the slice's wall time is over; by default never. Compiled code looks at loops and
            function entries; between them a guest may call the host any number of times, so the host looks
            too.
        stopped: Whether the host took the guest's fuel away.
        late: Whether it did so because the wall time was over.
    """

    store: wasmtime.Store
    memory: wasmtime.Memory
    limits: Limits
    payload: bytes = b""
    now_ms: int = 0
    booting: bool = False
    delivery: int = 0
    last_delivery: int = 0
    in_flight: set[int] = field(default_factory=set)
    next_call: int = 1
    entropy: bytes = b""
    entropy_used: int = 0
    keeps_snapshots: bool = False
    keeps_timers: bool = False
    restored: Restored | None = None
    last_snapshot: LastSnapshot | None = None
    is_overdue: Callable[[], bool] = bool
    stopped: bool = False
    late: bool = False
    taken: int = 0
    calls: list[Call] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    logs_dropped: int = 0
    reply: Reply | None = None
    snapshot_reason: str | None = None

    # -- memory -------------------------------------------------------------------------------

    def read(self, ptr: int, length: int) -> bytes | None:
        """
        The guest's bytes, or `None` if they don't lie inside its memory.
        """
        address = self._address(ptr, length)
        return None if address is None else ctypes.string_at(address, length & _U32)

    def write(self, ptr: int, data: bytes) -> bool:
        """
        Copy `data` into the guest's memory; false if it doesn't fit there.
        """
        address = self._address(ptr, len(data))
        if address is None:
            return False
        ctypes.memmove(address, data, len(data))
        return True

    def _address(self, ptr: int, length: int) -> int | None:
        # wasmtime hands over i32 as signed; an address is unsigned.
        ptr &= _U32
        length &= _U32
        if ptr + length > self.memory.data_len(self.store):
            return None
        return ctypes.addressof(self.memory.data_ptr(self.store).contents) + ptr

    def charge(self, size_bytes: int) -> bool:
        """
        Take fuel for host work; false when there isn't enough, or no time. Then the guest stops at its next
        step, and whatever it still asks for before that is not done.
        """
        if self.stopped:
            return False
        left = self.store.get_fuel() - HOST_CALL_FUEL - size_bytes * HOST_BYTE_FUEL
        self.late = self.is_overdue()
        self.stopped = self.late or left < 0
        self.store.set_fuel(0 if self.stopped else left)
        return not self.stopped

    # -- operations that leave the instance ---------------------------------------------------

    def call(self, operation: str, ptr: int, length: int) -> int:
        """
        Note a request; its number, or a status.
        """
        if self.booting or (operation in TIMERS and not self.keeps_timers):
            return Status.UNSUPPORTED
        if not self._may_call() or length & _U32 > self.limits.request_bytes:
            return Status.LIMIT
        request = self._payload(ptr, length)
        if isinstance(request, Status):
            return request
        if not isinstance(request.value, dict):
            return Status.INVALID
        number = self.next_call
        self.next_call += 1
        self.calls.append(Call(number, operation, request.data, self.delivery))
        self.in_flight.add(number)
        return number

    def _may_call(self) -> bool:
        return (
            len(self.calls) < self.limits.calls_per_slice
            and len(self.in_flight) < self.limits.calls_in_flight
            and self.next_call <= MAX_NUMBER
        )

    def _payload(self, ptr: int, length: int) -> Payload | Status:
        """
        The guest's bytes and what they decode to, or why they are no payload.
        """
        data = self.read(ptr, length)
        if data is None:
            return Status.FAULT
        try:
            return Payload(data, codec.decode(data))
        except codec.CodecError:
            return Status.INVALID

    # -- the instance's own affairs -----------------------------------------------------------

    def take(self, ptr: int, length: int) -> int:
        """
        `agent.take`.
        """
        size = min(length & _U32, len(self.payload) - self.taken)
        fits = self._address(ptr, size) is not None
        if not self.charge(size if fits else 0) or not fits:
            return Status.FAULT
        self.write(ptr, self.payload[self.taken : self.taken + size])
        self.taken += size
        return size

    def settle(self, delivery: int, ptr: int, length: int, *, ok: bool) -> int:
        """
        `agent.reply` and `agent.fail`.
        """
        if delivery != self.delivery or not delivery:
            return Status.SETTLED if 0 < delivery <= self.last_delivery else Status.NOT_FOUND
        if length & _U32 > self.limits.reply_bytes:
            return Status.LIMIT
        payload = self._payload(ptr, length)
        if isinstance(payload, Status):
            return payload
        if not ok and not _is_failure(payload.value):
            return Status.INVALID
        self.reply = Reply(delivery, ok, payload.data)
        self.delivery = 0
        return Status.OK

    def cancel(self, call: int) -> int:
        """
        `agent.cancel`.
        """
        if call not in self.in_flight:
            return Status.NOT_FOUND
        self.in_flight.discard(call)
        self.cancelled.append(call)
        return Status.OK

    def log(self, level: int, ptr: int, length: int) -> int:
        """
        `agent.log`.
        """
        if len(self.logs) >= self.limits.log_lines_per_slice or length & _U32 > self.limits.log_line_bytes:
            self.logs_dropped += 1
            return Status.LIMIT
        payload = self._payload(ptr, length)
        if isinstance(payload, Status):
            return payload
        fields = payload.value if isinstance(payload.value, dict) else {"message": payload.value}
        message = fields.pop("message", None)
        if not isinstance(message, str):
            return Status.INVALID
        self.logs.append(LogLine(LogLevel(min(max(level, 0), LogLevel.ERROR)), message, fields))
        return Status.OK

    def now(self) -> int:
        """
        `agent.now`.
        """
        return self.now_ms

    def random(self, ptr: int, length: int) -> int:
        """
        `agent.random`: SHAKE-256 over the seed and the number of the request.
        """
        length &= _U32
        if self.booting:
            return Status.UNSUPPORTED
        if length > self.limits.random_bytes:
            return Status.LIMIT
        if self._address(ptr, length) is None:
            return Status.FAULT
        stream = hashlib.shake_256(self.entropy + self.entropy_used.to_bytes(8, "little"))
        self.entropy_used += 1
        self.write(ptr, stream.digest(length))
        return Status.OK

    def snapshot(self, ptr: int, length: int) -> int:
        """
        `agent.snapshot`.
        """
        reason = ""
        if length:
            if length & _U32 > self.limits.log_line_bytes:
                return Status.INVALID
            payload = self._payload(ptr, length)
            if isinstance(payload, Status):
                return payload
            if not isinstance(payload.value, str):
                return Status.INVALID
            reason = payload.value
        if not self.keeps_snapshots or self.booting:
            return 0
        self.snapshot_reason = reason
        return 1

    def tell_restored(self, ptr: int, length: int) -> int:
        """
        `agent.restored`.
        """
        known = self.restored
        return self._tell(
            None
            if known is None
            else {"count": known.count, "generation": known.generation, "at_ms": known.at_ms},
            ptr,
            length,
        )

    def tell_last_snapshot(self, ptr: int, length: int) -> int:
        """
        `agent.last_snapshot`.
        """
        known = self.last_snapshot
        return self._tell(
            None
            if known is None
            else {"ok": known.ok, "bytes": known.size_bytes, "at_ms": known.at_ms, "error": known.error},
            ptr,
            length,
        )

    def _tell(self, value: codec.Value, ptr: int, length: int) -> int:
        """
        Write an answer where the guest wants it; its size, or a status.
        """
        answer = codec.encode(value)
        if len(answer) > length & _U32:
            return Status.TOO_SMALL
        return len(answer) if self.write(ptr, answer) else Status.FAULT


def _is_failure(value: codec.Value) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("message"), str)
        and value.keys() <= {"message", "data"}
    )


def perform(current: Slice, entry: Entry, args: tuple[int, ...]) -> int:
    """
    Do what the guest asks with import `entry`: charge for it, then answer.
    """
    # The last argument of every import that takes bytes is their length.
    length = args[-1] & _U32 if entry.params and entry.params[-1].name == "len" else 0
    if length > current.memory.data_len(current.store):
        length = 0
    # `take` is charged by what there is to copy, not by the size of the guest's buffer.
    if entry.name != "take" and not current.charge(length):
        return Status.LIMIT
    if entry.makes_call:
        return current.call(entry.operation, *args)
    return _LOCAL[entry.name](current, *args)


def _reply(current: Slice, *args: int) -> int:
    return current.settle(*args, ok=True)


def _fail(current: Slice, *args: int) -> int:
    return current.settle(*args, ok=False)


_LOCAL: Final[dict[str, Callable[..., int]]] = {
    "take": Slice.take,
    "reply": _reply,
    "fail": _fail,
    "cancel": Slice.cancel,
    "log": Slice.log,
    "now": Slice.now,
    "random": Slice.random,
    "snapshot": Slice.snapshot,
    "restored": Slice.tell_restored,
    "last_snapshot": Slice.tell_last_snapshot,
}
