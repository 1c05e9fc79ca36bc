"""
What a guest may ask for during one slice, and what it is told: every status of every import.
"""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from runner import codec
from runner.errors import FuelExhausted
from runner.kernel.abi import IMPORTS, OPERATIONS, TIMERS, LogLevel, Status
from runner.kernel.boot import boot
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.slice import HOST_BYTE_FUEL, HOST_CALL_FUEL, LogLine, Reply
from runner.kernel.state import LastSnapshot, Restored
from tests.kernel.guests import (
    FREE,
    MEMORY_PAGES,
    RESULTS,
    Op,
    ask,
    chat,
    command,
    deliver,
    engine,
    guest_text,
    image_of,
    machine,
    memory_of,
    poke,
    program,
    reply,
    results,
    scripted,
    scripted_text,
    send,
    wake,
)

END: Final = MEMORY_PAGES * 65536
SETTLING: Final = frozenset({"agent.reply", "agent.fail"})
CALLS: Final = tuple(entry.operation for entry in IMPORTS if entry.makes_call)
SMALL: Final = Limits(
    request_bytes=1024,
    reply_bytes=1024,
    log_line_bytes=1024,
    log_lines_per_slice=3,
    calls_per_slice=3,
    calls_in_flight=4,
    random_bytes=1024,
)
BAD: Final = b"\x18\x01"
"""
Not the shortest form of 1.
"""


def told(script: bytes) -> list[int]:
    """
    What the imports in a script return, in a delivery that ends well.
    """
    instance = machine(limits=SMALL)
    result = deliver(instance, 1, script + send("agent.reply", None, 1, address=FREE + 0x6000))
    assert result.failure is None
    return results(instance)[:-1]


def booted(script_start: str) -> list[int]:
    """
    What the imports return that `agent_start` calls.
    """
    text = scripted_text(start=script_start)
    made = program(text)
    return results(Machine(made, image_of(made), Limits(), entropy=bytes(32)))


def start_of(operation: str, args: str) -> str:
    """
    The body of an `agent_start` that calls one import.
    """
    return f"(call $push (call ${operation} {args}))"


def refused(operation: str) -> int:
    """
    What an import returns when it is bound to the constant refusal.
    """
    others = frozenset(OPERATIONS) - {operation}
    made = program(scripted_text(), granted=others, denied=frozenset({operation}))
    instance = Machine(made, image_of(made), Limits(), entropy=bytes(32))
    assert deliver(instance, 1, send(operation, {}) + reply(1)).calls == ()
    return results(instance)[0]


def _front(operation: str) -> tuple[int, ...]:
    """
    Arguments in front of `ptr`: the delivery, or the level.
    """
    return (1,) if operation in {*SETTLING, "agent.log"} else ()


def _ok(operation: str) -> int:
    if operation == "agent.cancel":
        return told(chat() + ask(operation, 1))[1]
    if operation == "agent.random":
        return told(ask(operation, FREE, 8))[0]
    instance = machine()
    deliver(instance, 1, send(operation, {"message": "so"}, *_front(operation)) + chat())
    return results(instance)[0]


def _invalid(operation: str) -> int:
    return told(poke(FREE, BAD) + ask(operation, *_front(operation), FREE, 2))[0]


def _not_found(operation: str) -> int:
    return told(
        ask(operation, 1) if operation == "agent.cancel" else send(operation, {"message": "early"}, 2)
    )[0]


def _settled(operation: str) -> int:
    instance = machine(limits=SMALL)
    deliver(instance, 1, reply(1))
    deliver(instance, 2, send(operation, {"message": "late"}, 1) + reply(2))
    return results(instance)[1]


CONDITIONS: Final[dict[Status, Callable[[str], int]]] = {
    Status.OK: _ok,
    Status.FAULT: lambda operation: told(ask(operation, *_front(operation), END, 8))[0],
    Status.INVALID: _invalid,
    Status.DENIED: refused,
    Status.LIMIT: lambda operation: told(ask(operation, *_front(operation), FREE, 1025))[0],
    Status.UNSUPPORTED: lambda operation: booted(start_of(operation, "(i32.const 0) (i32.const 0)"))[0],
    Status.NOT_FOUND: _not_found,
    Status.SETTLED: _settled,
    Status.TOO_SMALL: lambda operation: told(ask(operation, FREE, 0))[0],
}
"""
What an import returns under the condition for which the ABI has a status.
"""


@pytest.mark.parametrize(
    ("operation", "status"),
    [(entry.operation, status) for entry in IMPORTS for status in entry.statuses],
)
def test_every_documented_status_comes_under_its_condition(operation: str, status: Status) -> None:
    """The table of the ABI, row by row."""
    assert CONDITIONS[status](operation) == status


# -- calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", CALLS)
def test_a_call_comes_out_with_its_request(operation: str) -> None:
    """Ours: the bytes are the guest's own, the number counts up, the delivery is named."""
    instance = machine()
    result = deliver(instance, 1, send(operation, {"a": 1}) + send(operation, {}))
    assert [(c.number, c.operation, c.request, c.delivery) for c in result.calls] == [
        (1, operation, codec.encode({"a": 1}), 1),
        (2, operation, b"\xa0", 1),
    ]
    assert results(instance) == [1, 2]


@pytest.mark.parametrize("value", [None, 1, "text", [], [{}], b"a0"])
def test_a_request_that_is_no_map_is_invalid(value: codec.Value) -> None:
    """Each request of the ABI is a map."""
    assert told(send("llm.chat", value)) == [Status.INVALID]


def test_calls_of_one_slice_are_bounded_and_counted_anew_in_the_next() -> None:
    """`calls_per_slice`: also cancelled ones count."""
    instance = machine(limits=SMALL)
    deliver(instance, 1, chat() + ask("agent.cancel", 1) + chat() * 3)
    assert results(instance) == [1, 0, 2, 3, Status.LIMIT]
    wake(instance, 2, chat())
    assert results(instance)[-1] == 4


def test_calls_in_flight_are_bounded_over_slices() -> None:
    """`calls_in_flight`: an answer or a cancellation makes room."""
    instance = machine(limits=SMALL)
    deliver(instance, 1, chat() * 3)
    wake(instance, 1, chat() * 3)
    assert results(instance)[3:] == [4, 5, Status.LIMIT]
    wake(instance, 2, ask("agent.cancel", 3) + chat() * 3)
    assert results(instance)[6:] == [0, 6, 7, Status.LIMIT]


def test_the_last_call_number_is_the_largest_i32() -> None:
    """After it every call answers `LIMIT`, for a number is never used twice."""
    made, state = machine(), machine().freeze()
    last = replace(state, next_call=0x7FFF_FFFF)
    instance = Machine.thaw(made.program, made.image, Limits(), last)
    deliver(instance, 1, chat() * 2)
    assert results(instance) == [0x7FFF_FFFF, Status.LIMIT]
    frozen = instance.freeze()
    again = Machine.thaw(made.program, made.image, Limits(), frozen)
    wake(again, 0x7FFF_FFFF, chat() + reply(1))
    assert results(again)[2:] == [Status.LIMIT, 0]


# -- taking the payload -------------------------------------------------------------------------


def test_take_reads_on_and_then_returns_zero() -> None:
    """Like `read()`: what is left, at most `len`, then 0 for ever."""
    tail = b"abcdefghij"
    text = guest_text(
        """(i32.store (i32.const 0) (call $take (i32.const 100) (i32.const 4)))
           (i32.store (i32.const 4) (call $take (i32.const 104) (i32.const -1)))
           (i32.store (i32.const 8) (call $take (i32.const 200) (i32.const 4)))
           (i32.store (i32.const 12) (call $take (i32.const 65536) (i32.const 4)))
           (i32.store (i32.const 16) (call $take (i32.const 65537) (i32.const 4)))
           (drop (call $chat (i32.const 300) (i32.const 1)))""",
        imports='(import "agent" "take" (func $take (param i32 i32) (result i32)))'
        '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
        extra='(data (i32.const 300) "\\a0")',
    )
    other = machine(text)
    assert deliver(other, 1, tail).failure is None
    assert memory_of(other, 0, 20) == b"".join(
        n.to_bytes(4, "little", signed=True) for n in (4, 6, 0, 0, Status.FAULT)
    )
    assert memory_of(other, 100, 10) == tail


def test_what_take_could_not_copy_still_waits() -> None:
    """A fault takes nothing."""
    script = ask("agent.take", END - 1, 20) + chat()
    instance = machine()
    deliver(instance, 1, script)
    assert results(instance) == [Status.FAULT, 1]


def test_the_payload_of_a_slice_ends_with_it() -> None:
    """What the guest left is gone in its next slice."""
    instance = machine()
    deliver(instance, 1, chat() + command(Op.RETURN) + command(Op.UNREACHABLE))
    assert wake(instance, 1, reply(1)).reply == Reply(1, True, codec.encode(None))


def test_take_is_charged_by_what_it_copies() -> None:
    """Not by the size of the guest's buffer, and a fault costs no more than the call."""
    few = deliver(machine(), 1, chat()).fuel
    more = deliver(machine(), 1, ask("agent.take", END - 1, 20) + chat()).fuel
    # One command more: its own taking, and the call that faulted.
    assert HOST_CALL_FUEL * 2 + 20 * HOST_BYTE_FUEL < more - few < HOST_CALL_FUEL * 2 + 40 * HOST_BYTE_FUEL


# -- replying -----------------------------------------------------------------------------------


def test_the_first_settlement_counts() -> None:
    """A second one in the same slice is told so."""
    instance = machine()
    result = deliver(instance, 1, reply(1, "first") + send("agent.fail", {"message": "no"}, 1))
    assert result.reply == Reply(1, True, codec.encode("first"))
    assert results(instance) == [0, Status.SETTLED]


@pytest.mark.parametrize("value", [{"message": "no"}, {"message": "no", "data": [1]}])
def test_fail_ends_the_delivery_and_keeps_the_state(value: codec.Value) -> None:
    """The guest's own error is no failure of the slice."""
    instance = machine()
    result = deliver(instance, 1, command(Op.STORE, FREE + 64, 5) + send("agent.fail", value, 1))
    assert (result.failure, result.reply) == (None, Reply(1, False, codec.encode(value)))
    assert memory_of(instance, FREE + 64, 4) == b"\x05\0\0\0"


@pytest.mark.parametrize("value", [None, "no", {}, {"message": 1}, {"data": 1}, {"message": "no", "more": 1}])
def test_fail_wants_a_message(value: codec.Value) -> None:
    """The request's shape is checked; the delivery stays open."""
    assert told(send("agent.fail", value, 1)) == [Status.INVALID]


@pytest.mark.parametrize("number", [0, -1, 2, 0x7FFF_FFFF])
def test_a_delivery_that_never_was_is_not_found(number: int) -> None:
    """Also number 0, which a guest could mistake for "the current one"."""
    assert told(send("agent.reply", None, number)) == [Status.NOT_FOUND]


def test_a_delivery_that_failed_is_settled_also_after_a_thaw() -> None:
    """Whether it was frozen in between must not show."""
    instance = machine()
    deliver(instance, 1, command(Op.UNREACHABLE))
    thawed = Machine.thaw(instance.program, instance.image, instance.limits, instance.freeze())
    for each in (instance, thawed):
        deliver(each, 2, reply(1) + reply(2))
        assert results(each) == [Status.SETTLED, Status.OK]
    assert instance.digest() == thawed.digest()


# -- cancelling ---------------------------------------------------------------------------------


def test_a_call_cancelled_in_the_slice_that_made_it_never_leaves() -> None:
    """It is neither made nor reported as cancelled."""
    instance = machine()
    result = deliver(instance, 1, chat() * 2 + ask("agent.cancel", 1))
    assert [call.number for call in result.calls] == [2]
    assert result.cancelled == ()
    assert [call.number for call in instance.calls] == [2]


def test_a_cancelled_call_is_reported_once_and_not_found_again() -> None:
    """The host learns its number."""
    instance = machine()
    deliver(instance, 1, chat() * 2)
    result = wake(instance, 1, ask("agent.cancel", 2) * 2 + ask("agent.cancel", 1) + reply(1))
    assert result.cancelled == (2,)
    assert results(instance)[2:] == [0, Status.NOT_FOUND, Status.NOT_FOUND, 0]
    assert instance.calls == ()


# -- the log ------------------------------------------------------------------------------------


def test_log_lines_come_out_in_order_with_their_fields() -> None:
    """Text, or a map with a message; the level is clamped to the ABI's."""
    script = b"".join(
        send("agent.log", value, level)
        for level, value in ((-5, "low"), (0, "a"), (2, {"message": "b", "n": 1}), (9, "high"))
    )
    result = deliver(machine(), 1, script + reply(1))
    assert result.logs == (
        LogLine(LogLevel.DEBUG, "low", {}),
        LogLine(LogLevel.DEBUG, "a", {}),
        LogLine(LogLevel.WARNING, "b", {"n": 1}),
        LogLine(LogLevel.ERROR, "high", {}),
    )
    assert result.logs_dropped == 0


@pytest.mark.parametrize("value", [None, 1, ["a"], {}, {"message": 1}, {"n": "message"}])
def test_a_log_line_needs_a_message(value: codec.Value) -> None:
    """Anything else is invalid, and no line."""
    assert told(send("agent.log", value, 1)) == [Status.INVALID]


def test_lines_beyond_the_limit_are_counted() -> None:
    """`log_lines_per_slice`; those too long are counted too."""
    instance = machine(limits=SMALL)
    lines = send("agent.log", "line", 1) * 5
    result = deliver(instance, 1, ask("agent.log", 1, FREE, 1025) + lines + reply(1))
    assert (len(result.logs), result.logs_dropped) == (3, 3)
    assert results(instance) == [Status.LIMIT, 0, 0, 0, Status.LIMIT, Status.LIMIT, 0]
    assert len(deliver(instance, 2, lines + reply(2)).logs) == 3


def test_a_boot_may_log() -> None:
    """The one thing that `agent_start` can do."""
    text = scripted_text(
        start="(drop (call $agent.log (i32.const 1) (i32.const 50000) (i32.const 4)))",
        extra='(data (i32.const 50000) "\\63boo")',
    )
    assert boot(program(text), Limits())[1] == (LogLine(LogLevel.INFO, "boo", {}),)


@pytest.mark.parametrize(
    ("operation", "args", "returned"),
    [
        ("agent.take", "(i32.const 0) (i32.const 9)", 0),
        ("agent.reply", "(i32.const 0) (i32.const 0) (i32.const 0)", Status.NOT_FOUND),
        ("agent.fail", "(i32.const 1) (i32.const 0) (i32.const 0)", Status.NOT_FOUND),
        ("agent.cancel", "(i32.const 1)", Status.NOT_FOUND),
        ("agent.snapshot", "(i32.const 0) (i32.const 0)", 0),
        ("agent.restored", f"(i32.const {FREE}) (i32.const 1)", 1),
        ("agent.last_snapshot", f"(i32.const {FREE}) (i32.const 1)", 1),
    ],
)
def test_in_a_boot_there_is_nobody_to_ask(operation: str, args: str, returned: int) -> None:
    """An image depends on its module alone."""
    assert booted(start_of(operation, args)) == [returned]


def test_a_boot_has_no_clock() -> None:
    """Time begins with the first delivery."""
    assert booted("(call $push64 (call $agent.now))") == [0, 0]


# -- time, randomness, restores -----------------------------------------------------------------


def test_now_is_the_time_of_the_slice() -> None:
    """It stands still while the slice runs, and all 64 bits arrive."""
    instance = machine()
    deliver(instance, 1, ask("agent.now") * 2 + chat(), now_ms=(5 << 32) + 6)
    wake(instance, 1, ask("agent.now") + reply(1), now_ms=7)
    assert results(instance) == [6, 5, 6, 5, 1, 7, 0, 0]


def test_randomness_is_a_function_of_seed_and_request_number() -> None:
    """SHAKE-256, so that any implementation can replay it."""
    seed = bytes(range(32))
    instance = machine(entropy=seed)
    deliver(instance, 1, ask("agent.random", FREE + 64, 40) + ask("agent.random", FREE + 128, 8) + reply(1))
    for number, (address, size) in enumerate(((FREE + 64, 40), (FREE + 128, 8))):
        stream = hashlib.shake_256(seed + number.to_bytes(8, "little")).digest(size)
        assert memory_of(instance, address, size) == stream


def test_randomness_that_a_slice_has_had_does_not_come_again() -> None:
    """A nonce that may have left with a call must not meet its double when the delivery fails later."""
    instance = machine()
    deliver(instance, 1, ask("agent.random", FREE, 8) + chat())
    assert wake(instance, 1, command(Op.UNREACHABLE)).failed_delivery == 1
    deliver(instance, 2, ask("agent.random", FREE + 64, 8) + reply(2))
    second = hashlib.shake_256(bytes(32) + (1).to_bytes(8, "little")).digest(8)
    assert memory_of(instance, FREE + 64, 8) == second


def test_a_request_that_gets_nothing_does_not_use_the_stream() -> None:
    """Neither a fault nor a bound moves it."""
    instance = machine(limits=SMALL)
    bad = ask("agent.random", END, 1) + ask("agent.random", FREE, 1025)
    deliver(instance, 1, bad + ask("agent.random", FREE + 64, 8) + reply(1))
    assert memory_of(instance, FREE + 64, 8) == hashlib.shake_256(bytes(32) + bytes(8)).digest(8)
    assert instance.freeze().entropy_used == 1


def test_restored_tells_of_the_last_restore() -> None:
    """`null` before any."""
    fresh = machine()
    deliver(fresh, 1, ask("agent.restored", FREE + 64, 64) + reply(1))
    assert results(fresh)[0] == 1
    assert memory_of(fresh, FREE + 64, 1) == b"\xf6"
    known = Restored(count=2, generation=3, at_ms=4)
    again = Machine.thaw(fresh.program, fresh.image, fresh.limits, fresh.freeze(), restored=known)
    deliver(again, 2, ask("agent.restored", FREE + 64, 64) + reply(2))
    size = results(again)[2]
    answer = codec.decode(memory_of(again, FREE + 64, size))
    assert answer == {"count": 2, "generation": 3, "at_ms": 4}


@pytest.mark.parametrize(
    ("known", "told_as"),
    [
        (LastSnapshot(True, 4096, 5), {"ok": True, "bytes": 4096, "at_ms": 5, "error": None}),
        (LastSnapshot(False, 0, 6, "full"), {"ok": False, "bytes": 0, "at_ms": 6, "error": "full"}),
    ],
)
def test_last_snapshot_tells_how_the_last_attempt_went(
    known: LastSnapshot, told_as: dict[str, codec.Value]
) -> None:
    """`null` before any; afterwards it stays with the instance, also when that is frozen and thawed."""
    instance = machine()
    asked = ask("agent.last_snapshot", FREE + 64, 64)
    deliver(instance, 1, asked + reply(1))
    assert memory_of(instance, FREE + 64, results(instance)[0]) == b"\xf6"
    instance.learn_snapshot(known)
    thawed = Machine.thaw(instance.program, instance.image, instance.limits, instance.freeze())
    for number, each in ((2, instance), (2, thawed)):
        deliver(each, number, asked + reply(number))
        size = results(each)[-2]
        assert codec.decode(memory_of(each, FREE + 64, size)) == told_as


@pytest.mark.parametrize("operation", sorted(TIMERS))
def test_without_a_resident_host_a_timer_is_refused_when_it_is_armed(operation: str) -> None:
    """Whatever else is wrong with the request; no number is used up, and no call is made."""
    instance = machine(keeps_timers=False)
    asked = send(operation, {"delay_ms": 1}) + ask(operation, END, 9) + chat()
    result = deliver(instance, 1, asked)
    assert results(instance) == [Status.UNSUPPORTED, Status.UNSUPPORTED, 1]
    assert [call.operation for call in result.calls] == ["llm.chat"]
    # The same in its next life, unless that has another host.
    for keeps_timers, returned in ((False, Status.UNSUPPORTED), (True, 2)):
        again = Machine.thaw(
            instance.program, instance.image, Limits(), instance.freeze(), keeps_timers=keeps_timers
        )
        wake(again, 1, send(operation, {}) + reply(1))
        assert results(again)[3] == returned


# -- asking for a snapshot ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (ask("agent.snapshot", 0, 0), ""),
        (ask("agent.snapshot", -1, 0), ""),
        (send("agent.snapshot", "now"), "now"),
    ],
)
def test_a_snapshot_is_asked_for_with_a_reason_or_without(script: bytes, reason: str) -> None:
    """The host takes it once the slice has ended."""
    instance = machine(keeps_snapshots=True)
    assert deliver(instance, 1, script + reply(1)).snapshot_reason == reason
    assert results(instance)[0] == 1


def test_a_host_that_keeps_no_snapshots_says_so() -> None:
    """The guest is told 0, the host nothing."""
    instance = machine()
    assert deliver(instance, 1, send("agent.snapshot", "now") + reply(1)).snapshot_reason is None
    assert results(instance)[0] == 0


@pytest.mark.parametrize("value", [None, 1, {}, "x" * 2000])
def test_the_reason_is_a_short_text(value: codec.Value) -> None:
    """Anything else is invalid, and no snapshot."""
    instance = machine(limits=SMALL, keeps_snapshots=True)
    assert deliver(instance, 1, send("agent.snapshot", value) + reply(1)).snapshot_reason is None
    assert results(instance)[0] == Status.INVALID


# -- pointers -----------------------------------------------------------------------------------

HOSTILE: Final = ((-1, 1), (0, -1), (-16, 0x7FFF_FFFF), (1 << 31, 1 << 31), (END, 1), (1, END), (-10, 10))


@pytest.mark.parametrize(("ptr", "length"), HOSTILE)
@pytest.mark.parametrize(
    "operation",
    [e.operation for e in IMPORTS if Status.FAULT in e.statuses and e.operation != "agent.take"],
)
def test_a_pointer_outside_the_memory_costs_nothing_but_a_status(
    operation: str, ptr: int, length: int
) -> None:
    """Neither a crash nor an allocation, whatever the limits allow."""
    wide = Limits(
        request_bytes=1 << 40,
        reply_bytes=1 << 40,
        log_line_bytes=1 << 40,
        random_bytes=1 << 40,
    )
    instance = machine(limits=wide)
    before = (1,) if OPERATIONS[operation].params[0].name in {"delivery", "level"} else ()
    script = ask(operation, *before, ptr, length) + chat()
    tracemalloc.start()
    try:
        result = deliver(instance, 1, script)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.failure is None
    assert peak_bytes < 1 << 20
    # These write one byte, which may have its place however long the buffer is said to be.
    fits = operation in {"agent.restored", "agent.last_snapshot"} and 0 <= ptr < END
    assert results(instance)[0] == (1 if fits else Status.FAULT)


@pytest.mark.parametrize(("ptr", "length"), [(END, -1), (-1, -1), (1 << 31, 20), (END - 19, 20), (-20, 20)])
def test_take_copies_nothing_to_where_there_is_no_memory(ptr: int, length: int) -> None:
    """The payload waits on the host's side, however large it is."""
    instance = machine()
    rest = chat() + command(Op.RETURN) + bytes(8 << 20)
    tracemalloc.start()
    try:
        result = deliver(instance, 1, ask("agent.take", ptr, length) + rest)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.failure is None
    # The script itself was put together before: twice its size, and no more.
    assert peak_bytes < 18 << 20
    assert results(instance) == [Status.FAULT, 1]


def test_a_memory_without_pages_has_no_place_for_anything_but_nothing() -> None:
    """The smallest memory there is: every pointer but 0 is outside."""
    text = guest_text(
        "".join(
            f"(if (i32.ne (call $log (i32.const 1) (i32.const {ptr}) (i32.const {length}))"
            f" (i32.const {status:d})) (then unreachable))"
            for ptr, length, status in ((0, 0, Status.INVALID), (0, 1, Status.FAULT), (1, 0, Status.FAULT))
        )
        + "(if (call $random (i32.const 0) (i32.const 0)) (then unreachable))",
        imports='(import "agent" "log" (func $log (param i32 i32 i32) (result i32)))'
        '(import "agent" "random" (func $random (param i32 i32) (result i32)))',
        memory="0 0",
    )
    assert str(deliver(machine(text)).failure) == (
        "guest returned without a reply and with nothing in flight"
    )


# -- what host work costs -----------------------------------------------------------------------


def test_host_work_is_charged_by_the_byte() -> None:
    """The same on every machine."""
    short = deliver(machine(), 1, ask("agent.log", 1, FREE, 100) + chat()).fuel
    long = deliver(machine(), 1, ask("agent.log", 1, FREE, 1100) + chat()).fuel
    assert long - short == 1000 * HOST_BYTE_FUEL


def test_host_work_that_can_not_be_paid_for_is_not_done() -> None:
    """The slice ends although the guest never came to a place where compiled code counts its fuel."""
    text = guest_text(
        "(drop (call $chat (i32.const 0) (i32.const 1)))" * 3,
        imports='(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
        extra='(data (i32.const 0) "\\a0")',
    )
    paid = deliver(machine(text), 1).fuel
    assert 3 * HOST_CALL_FUEL < paid < 4 * HOST_CALL_FUEL
    for fuel, ends in ((paid + 1, False), (paid, True), (paid - 1, True), (HOST_CALL_FUEL, True)):
        result = deliver(machine(text, Limits(fuel=fuel)), 1)
        assert isinstance(result.failure, FuelExhausted) is ends
        assert len(result.calls) == (0 if ends else 3)


def test_a_payload_that_can_not_be_paid_for_is_not_copied() -> None:
    """`take` first charges, then copies."""
    instance = machine(limits=Limits(fuel=100_000))
    result = deliver(instance, 1, ask("agent.take", FREE, 10_000) + bytes(10_000))
    assert isinstance(result.failure, FuelExhausted)


def test_refusals_are_charged_like_any_host_call() -> None:
    """Fuel bounds them too, so a guest can't make the host work for nothing."""
    text = guest_text(
        "(loop $again (drop (call $chat (i32.const 0) (i32.const 0))) (br $again))",
        imports='(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
    )
    made = program(text, granted=frozenset(), denied=frozenset({"llm.chat"}))
    instance = Machine(made, image_of(made), Limits(fuel=100 * HOST_CALL_FUEL), entropy=bytes(32))
    assert str(deliver(instance).failure) == f"limit fuel exceeded: {500_000} of {500_000}"


def test_a_streamed_part_leaves_the_call_in_flight() -> None:
    """The last answer ends it."""
    instance = machine()
    deliver(instance, 1, chat())
    wake(instance, 1, command(Op.PUSH_ENTRY), status=Status.PART)
    assert [call.number for call in instance.calls] == [1]
    wake(instance, 1, command(Op.PUSH_ENTRY) + reply(1), status=Status.FAILED)
    assert results(instance) == [1, 1, 1, 20, 1, Status.FAILED, 60, 0]
    assert instance.calls == ()


def test_the_results_of_the_scripted_guest_lie_below_its_scratch_memory() -> None:
    """A check of the tests' own guest."""
    assert RESULTS < FREE < END
    assert scripted().engine is engine()
