"""
One instance as a function of its inputs: slices are transactions, and what a failure puts back.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Final

import pytest

from runner import codec
from runner.errors import (
    DeadlineExceeded,
    FuelExhausted,
    Interrupted,
    LimitExceeded,
    MemoryExceeded,
    SnapshotIncompatible,
)
from runner.kernel.abi import DeliveryKind, LogLevel, Status
from runner.kernel.engine import Engine
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine, StepResult, digest_of
from runner.kernel.slice import LogLine, Reply
from runner.kernel.state import Answer, Call, MachineState, Mind, OpenDelivery, Restored
from tests.kernel.guests import (
    FREE,
    MEMORY_PAGES,
    Op,
    ask,
    chat,
    command,
    deliver,
    guest_text,
    image_of,
    machine,
    memory_of,
    program,
    reply,
    results,
    scripted,
    scripted_image,
    scripted_text,
    send,
    wake,
)

LIMITS: Final = Limits(fuel=1_000_000)
ENDLESS: Final = Limits(fuel=(1 << 63) - 1)
MARK: Final = command(Op.STORE, FREE + 256, 42)

FAILURES: Final = {
    "unreachable": (command(Op.UNREACHABLE), "guest trapped: unreachable in do"),
    "division by zero": (command(Op.DIVIDE_BY_ZERO), "guest trapped: integer_division_by_zero in do"),
    "stack overflow": (command(Op.RECURSE), "guest trapped: stack_overflow in recurse"),
    "uncaught exception": (command(Op.THROW), "guest trapped: uncaught_exception in do"),
    "load outside": (command(Op.LOAD, -4), "guest trapped: memory_out_of_bounds in do"),
    "fill outside": (command(Op.FILL, 0, 1, -1), "guest trapped: memory_out_of_bounds in do"),
    "fuel": (command(Op.SPIN), "limit fuel exceeded: 1000000 of 1000000"),
    "fuel of one instruction": (
        command(Op.GROW, 100) + command(Op.FILL, 0, 0, 6_000_000),
        "limit fuel exceeded: 1000000 of 1000000",
    ),
    "stalled": (b"", "guest returned without a reply and with nothing in flight"),
    "all its calls cancelled": (
        chat() + ask("agent.cancel", 1),
        "guest returned without a reply and with nothing in flight",
    ),
}


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


# -- a slice that ends well ---------------------------------------------------------------------


def test_what_a_slice_asked_for_comes_out_when_it_returns() -> None:
    """All of it, in order, in one result."""
    instance = machine(keeps_snapshots=True)
    script = busy(1) + send("agent.snapshot", "why") + reply(1, "done")
    result = deliver(instance, 1, script)
    assert result == StepResult(
        calls=(Call(1, "llm.chat", b"\xa0", 1),),
        reply=Reply(1, True, codec.encode("done")),
        logs=(LogLine(LogLevel.INFO, "line 1"),),
        snapshot_reason="why",
        fuel=result.fuel,
    )
    assert 0 < result.fuel < 1_000_000
    assert (instance.open_delivery, instance.last_delivery) == (0, 1)
    assert instance.memory_bytes == 5 * 65536


def test_an_export_is_told_what_it_receives() -> None:
    """Number, kind and size of a delivery; call, status and size of an answer."""
    instance = machine()
    for number, kind in enumerate(DeliveryKind, start=1):
        deliver(instance, number, command(Op.PUSH_ENTRY) + reply(number), kind=kind)
    assert results(instance) == [n for k in range(1, 5) for n in (k, k, 60, 0)]
    deliver(instance, 5, chat())
    wake(instance, 1, command(Op.PUSH_ENTRY) + reply(5), status=Status.DENIED)
    assert results(instance)[16:] == [1, 1, -3, 60, 0]


def test_a_delivery_may_take_many_slices() -> None:
    """It stays open while calls are in flight, and its fuel is one budget."""
    instance = machine()
    first = deliver(instance, 1, chat() * 2)
    assert (first.reply, instance.open_delivery, len(instance.calls)) == (None, 1, 2)
    second = wake(instance, 2, MARK)
    assert (second.reply, second.failure, [c.number for c in instance.calls]) == (None, None, [1])
    third = wake(instance, 1, reply(1, 3))
    assert third.reply == Reply(1, True, b"\x03")
    assert instance.open_delivery == 0
    assert instance.is_in_flight(1) is False


def test_the_fuel_of_a_delivery_is_spent_over_all_its_slices() -> None:
    """What the first slice burnt is gone for the second."""
    instance = machine(limits=LIMITS)
    first = deliver(instance, 1, command(Op.BURN, 100_000) + chat())
    assert first.fuel > 400_000
    second = wake(instance, 1, command(Op.BURN, 1_000_000))
    assert failure_of(second) == "limit fuel exceeded: 1000000 of 1000000"
    assert first.fuel + second.fuel == LIMITS.fuel
    third = deliver(instance, 2, command(Op.BURN, 100_000) + reply(2))
    assert third.failure is None


def test_the_same_inputs_give_the_same_instance() -> None:
    """Byte for byte, with the results of every step."""
    instances = [machine() for _ in range(2)]
    for step in (
        lambda m: deliver(m, 1, busy(1) + command(Op.NAN, FREE + 1024)),
        lambda m: wake(m, 1, ask("agent.now") + reply(1)),
        lambda m: deliver(m, 2, ask("agent.random", FREE + 800, 32) + reply(2)),
    ):
        one, other = (step(instance) for instance in instances)
        assert one == other
        assert same(*instances)


# -- a slice that fails -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_delivery_never_happened(name: str) -> None:
    """Memory, globals and what comes next are as if it had not been delivered; its fuel is gone."""
    script, message = FAILURES[name]
    instance, control = machine(limits=LIMITS), machine(limits=LIMITS)
    for each in (instance, control):
        deliver(each, 1, busy(1) + reply(1))
    before = instance.digest()
    if name not in {"stalled", "all its calls cancelled"}:
        # A call in flight of delivery 1 keeps these two from stalling; it is answered first.
        result = deliver(instance, 2, MARK + command(Op.SET_I32, 9) + script)
    else:
        for each in (instance, control):
            wake(each, 1, MARK)
        before = instance.digest()
        script = script.replace(ask("agent.cancel", 1), ask("agent.cancel", 2))
        result = deliver(instance, 2, command(Op.SET_I32, 9) + script)
    assert failure_of(result) == message
    assert (result.fuel, result.failed_delivery, result.abandoned) == (LIMITS.fuel, 2, ())
    assert instance.digest() == before
    assert instance.memory_bytes == control.memory_bytes
    assert (instance.open_delivery, instance.last_delivery) == (0, 2)
    after, expected = (deliver(each, 3, MARK + reply(3)) for each in (instance, control))
    assert after == expected
    assert instance.digest() == control.digest()


def test_fuel_is_charged_in_full_when_the_guest_traps() -> None:
    """A hundred traps on one budget use it up a hundred times: nothing is free."""
    instance = machine(limits=LIMITS)
    spent = sum(
        deliver(instance, number, command(Op.BURN, 100_000) + command(Op.DIVIDE_BY_ZERO)).fuel
        for number in range(1, 101)
    )
    assert spent == 100 * LIMITS.fuel


def test_call_numbers_do_not_rewind() -> None:
    """A late answer to an undone call must not meet its double."""
    instance = machine()
    deliver(instance, 1, chat() * 3 + command(Op.UNREACHABLE))
    assert instance.calls == ()
    assert [call.number for call in deliver(instance, 2, chat()).calls] == [4]


def test_a_failure_in_a_later_slice_undoes_the_whole_delivery() -> None:
    """The calls that it made are abandoned; what the earlier slices wrote is gone."""
    instance = machine()
    before = instance.digest()
    deliver(instance, 1, MARK + chat() * 3)
    result = wake(instance, 2, command(Op.UNREACHABLE))
    assert failure_of(result) == "guest trapped: unreachable in do"
    assert (result.failed_delivery, result.abandoned, result.undone) == (1, (1, 3), ())
    assert instance.digest() == before
    assert instance.calls == ()


def test_a_part_that_fails_abandons_its_own_call_too() -> None:
    """A streamed answer's call is still in flight when its part is received."""
    instance = machine()
    deliver(instance, 1, chat())
    result = wake(instance, 1, command(Op.UNREACHABLE), status=Status.PART)
    assert (result.failed_delivery, result.abandoned) == (1, (1,))


def test_answers_to_earlier_calls_are_given_back() -> None:
    """The guest does not remember them, and waits again: the host steps them once more."""
    instance = machine()
    deliver(instance, 1, chat() * 2 + reply(1))
    before = instance.digest()
    deliver(instance, 2, chat())
    wake(instance, 1, MARK, status=Status.PART)
    wake(instance, 1, MARK)
    result = wake(instance, 3, command(Op.UNREACHABLE))
    parts = (Answer(1, Status.PART, MARK), Answer(1, Status.OK, MARK))
    assert (result.failed_delivery, result.abandoned, result.undone) == (2, (), parts)
    assert instance.digest() == before
    assert [call.number for call in instance.calls] == [1, 2]
    for answer in result.undone:
        assert wake(instance, answer.call, answer.payload, status=answer.status).failure is None
    assert memory_of(instance, FREE + 256, 4) == b"\x2a\0\0\0"


def test_the_answer_that_made_a_delivery_fail_is_given_back_too() -> None:
    """When it was to a call from before."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    deliver(instance, 2, chat())
    result = wake(instance, 1, command(Op.UNREACHABLE))
    assert result.undone == (Answer(1, Status.OK, command(Op.UNREACHABLE)),)
    assert (result.failed_delivery, result.abandoned) == (2, (2,))


def test_a_call_cancelled_in_a_failed_delivery_is_answered_as_cancelled() -> None:
    """The host gave it up, and the guest again waits for it."""
    instance = machine()
    deliver(instance, 1, chat() * 2 + reply(1))
    deliver(instance, 2, chat())
    assert wake(instance, 3, ask("agent.cancel", 1) + chat()).cancelled == (1,)
    result = wake(instance, 4, command(Op.UNREACHABLE))
    cancelled = codec.encode({"kind": "cancelled", "message": "cancelled by the agent"})
    assert result.undone == (Answer(1, Status.FAILED, cancelled),)
    assert [call.number for call in instance.calls] == [1, 2]


def test_a_cancellation_in_the_slice_that_fails_never_happened() -> None:
    """The call is still in flight, and nobody was told otherwise."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    result = deliver(instance, 2, ask("agent.cancel", 1) + command(Op.UNREACHABLE))
    assert (result.cancelled, result.undone) == ((), ())
    assert [call.number for call in instance.calls] == [1]


def test_a_reply_in_the_slice_that_fails_never_happened() -> None:
    """The delivery fails although the guest had answered it."""
    instance = machine()
    result = deliver(instance, 1, reply(1) + command(Op.UNREACHABLE))
    assert (result.reply, result.failed_delivery) == (None, 1)


# -- between deliveries -------------------------------------------------------------------------


def test_an_answer_between_deliveries_has_fuel_of_its_own() -> None:
    """It belongs to none."""
    instance = machine(limits=LIMITS)
    deliver(instance, 1, chat() * 2 + reply(1))
    for call in (1, 2):
        result = wake(instance, call, command(Op.BURN, 100_000))
        assert (result.failure, result.failed_delivery) == (None, 0)
    assert instance.calls == ()


def test_an_answer_between_deliveries_that_fails_ends_its_call() -> None:
    """It would fail again: state and other calls are as before, and nobody waits for this one."""
    instance = machine()
    deliver(instance, 1, chat() * 2 + reply(1))
    before = instance.digest()
    result = wake(instance, 1, MARK + chat() + command(Op.UNREACHABLE))
    assert failure_of(result) == "guest trapped: unreachable in do"
    assert (result.failed_delivery, result.abandoned, result.undone) == (0, (1,), ())
    assert instance.digest() == before
    assert [call.number for call in instance.calls] == [2]
    assert [call.number for call in wake(instance, 2, chat()).calls] == [4]


def test_a_part_between_deliveries_that_fails_ends_its_call() -> None:
    """Also when more was to come."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    result = wake(instance, 1, command(Op.UNREACHABLE), status=Status.PART)
    assert (result.abandoned, instance.calls) == ((1,), ())


def test_a_call_made_between_deliveries_belongs_to_none() -> None:
    """Number 0."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    assert wake(instance, 1, chat()).calls == (Call(2, "llm.chat", b"\xa0", 0),)


# -- giving up from outside ---------------------------------------------------------------------


def test_an_abandoned_delivery_fails_like_any_other() -> None:
    """With the host's own reason."""
    instance = machine(limits=LIMITS)
    before = instance.digest()
    first = deliver(instance, 1, busy(1))
    result = instance.abandon(Interrupted())
    assert failure_of(result) == "interrupted"
    assert (result.failed_delivery, result.abandoned) == (1, (1,))
    assert first.fuel + result.fuel == LIMITS.fuel
    assert instance.digest() == before
    assert deliver(instance, 2, reply(2)).failure is None


def test_nothing_can_be_abandoned_when_nothing_is_open() -> None:
    """The host's mistake."""
    with pytest.raises(ValueError, match=r"^no delivery is open$"):
        machine().abandon(Interrupted())


# -- what the host may not do -------------------------------------------------------------------


def test_a_delivery_waits_for_the_one_before() -> None:
    """The host's mistake, and nothing has changed."""
    instance = machine()
    deliver(instance, 1, chat())
    before = instance.freeze()
    with pytest.raises(ValueError, match=r"^delivery 1 is still open$"):
        deliver(instance, 2)
    assert instance.freeze() == before


@pytest.mark.parametrize("number", [-1, 0, 4, 5])
def test_delivery_numbers_go_up(number: int) -> None:
    """They need not be consecutive."""
    instance = machine()
    deliver(instance, 5, reply(5))
    with pytest.raises(ValueError, match=f"^delivery {number} does not follow 5$"):
        deliver(instance, number)


def test_a_delivery_number_must_be_one_that_a_guest_can_be_told() -> None:
    """The engine would wrap it silently."""
    instance = machine()
    with pytest.raises(LimitExceeded, match=r"^limit delivery_number exceeded: 2147483648 of 2147483647$"):
        deliver(instance, 1 << 31)
    assert instance.last_delivery == 0
    assert deliver(instance, (1 << 31) - 1, reply((1 << 31) - 1)).failure is None


def test_only_a_call_in_flight_can_be_answered() -> None:
    """The host's mistake, and nothing has changed."""
    instance = machine()
    deliver(instance, 1, chat())
    wake(instance, 1, chat())
    with pytest.raises(ValueError, match=r"^call 1 is not in flight$"):
        wake(instance, 1)
    assert wake(instance, 2, reply(1)).failure is None


def test_a_payload_beyond_the_limit_is_not_delivered() -> None:
    """`payload_bytes`, for both kinds of input."""
    instance = machine(limits=Limits(payload_bytes=200))
    deliver(instance, 1, chat())
    with pytest.raises(LimitExceeded, match=r"^limit payload_bytes exceeded: 201 of 200$"):
        wake(instance, 1, bytes(201))
    assert wake(instance, 1, reply(1)).failure is None
    with pytest.raises(LimitExceeded):
        deliver(instance, 2, bytes(201))
    assert instance.last_delivery == 1


# -- growth -------------------------------------------------------------------------------------


def test_growth_beyond_the_limit_answers_minus_one() -> None:
    """And the guest goes on."""
    instance = machine(limits=Limits(memory_bytes=4 * 65536))
    script = command(Op.GROW, 1) + command(Op.GROW, 2) + command(Op.GROW, 1) + command(Op.GROW, 0)
    assert deliver(instance, 1, script + reply(1)).failure is None
    assert results(instance) == [2, -1, 3, 4, 0]


def test_growth_is_undone_with_the_slice() -> None:
    """Memory can't shrink, so the instance is made anew."""
    instance = machine()
    deliver(instance, 1, command(Op.GROW, 1) + command(Op.STORE, 2 * 65536, 3) + reply(1))
    kept = instance.digest()
    deliver(instance, 2, command(Op.GROW, 10) + command(Op.STORE, 8 * 65536, 4) + command(Op.UNREACHABLE))
    assert (instance.memory_bytes, instance.digest()) == (3 * 65536, kept)
    deliver(instance, 3, command(Op.LOAD, 2 * 65536) + command(Op.GROW, 1) + reply(3))
    assert results(instance)[-3:] == [3, 3, 0]
    assert memory_of(instance, 3 * 65536, 8) == bytes(8)


# -- time ---------------------------------------------------------------------------------------


def while_ticking(engine: Engine, work: Callable[[], StepResult]) -> StepResult:
    """
    Do `work` while another thread reports that time passes, as fast as it can.
    """
    over = threading.Event()

    def tick() -> None:
        while not over.is_set():
            engine.tick()

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        return work()
    finally:
        over.set()
        ticker.join()


def test_a_deadline_ends_a_loop() -> None:
    """Wall time, as the host reports it; the delivery is undone."""
    instance = machine(limits=ENDLESS)
    before = instance.digest()
    result = while_ticking(scripted().engine, lambda: deliver(instance, 1, command(Op.SPIN)))
    assert isinstance(result.failure, DeadlineExceeded)
    assert failure_of(result) == "limit timeout_ms exceeded: 30000 of 30000"
    assert (result.fuel, instance.digest()) == (ENDLESS.fuel, before)


@pytest.mark.parametrize(
    ("asked", "counted"), [(None, 30_000), (40, 40), (0, 0), (-100, -100), (1 << 40, 30_000)]
)
def test_a_step_may_have_a_shorter_deadline_than_the_limit(asked: int | None, counted: int) -> None:
    """Never a longer one; and one that is over already is over at the next tick."""
    instance = machine(limits=ENDLESS)
    result = while_ticking(
        scripted().engine, lambda: deliver(instance, 1, command(Op.SPIN), deadline_ms=asked)
    )
    assert failure_of(result) == f"limit timeout_ms exceeded: {counted} of {counted}"


def test_a_deadline_ends_a_row_of_host_calls_without_a_loop() -> None:
    """Compiled code looks at the clock in loops and at function entries only; host functions do too."""
    text = guest_text(
        "(drop (call $now))" * 4000 + "(drop (call $chat (i32.const 0) (i32.const 1)))",
        imports='(import "agent" "now" (func $now (result i64)))'
        '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
        extra='(data (i32.const 0) "\\a0")',
    )
    instance = machine(text)
    result = while_ticking(instance.program.engine, lambda: deliver(instance, 1, deadline_ms=10))
    assert failure_of(result) == "limit timeout_ms exceeded: 10 of 10"


# -- interrupts ---------------------------------------------------------------------------------


def spinning(engine: Engine) -> Machine:
    """
    A guest that spins for ever, on an engine of its own: interrupts end all guests of an engine.
    """
    made = program(scripted_text(), on=engine)
    return Machine(made, image_of(made), ENDLESS, entropy=bytes(32))


def test_an_interrupt_ends_a_spinning_guest_and_those_that_start_after_it() -> None:
    """From any thread, until `resume`."""
    engine = Engine()
    instance = spinning(engine)
    ended: list[StepResult] = []
    guest = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.SPIN))))
    guest.start()
    engine.interrupt()
    guest.join()
    assert failure_of(ended[0]) == "interrupted"
    assert failure_of(deliver(instance, 2, reply(2))) == "interrupted"
    engine.resume()
    assert deliver(instance, 3, reply(3)).failure is None


def test_an_interrupt_that_was_resumed_at_once_is_still_one() -> None:
    """The guest that it ended did not overrun a deadline."""
    engine = Engine()
    instance = spinning(engine)
    ended: list[StepResult] = []
    guest = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.SPIN))))
    guest.start()
    while not ended:
        # The guest may not have started yet when the first ones come.
        engine.interrupt()
        engine.resume()
    guest.join()
    assert failure_of(ended[0]) == "interrupted"


# -- threads ------------------------------------------------------------------------------------


def test_the_stack_ends_in_a_trap_on_any_thread() -> None:
    """Never in the process's own stack."""
    instance = machine()
    ended: list[StepResult] = []
    thread = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.RECURSE))))
    thread.start()
    thread.join()
    ended.append(deliver(instance, 2, command(Op.RECURSE)))
    assert [failure_of(each) for each in ended] == ["guest trapped: stack_overflow in recurse"] * 2


def test_machines_on_two_threads_do_not_meet() -> None:
    """One traps all the time, the other must not notice."""
    good, bad, control = machine(), machine(), machine()
    rounds = range(1, 101)

    def work(instance: Machine) -> list[StepResult]:
        return [
            deliver(instance, n, send("agent.log", n, 0) + ask("agent.random", FREE + 64, 8) + reply(n, n))
            for n in rounds
        ]

    expected = work(control)
    found: list[StepResult] = []
    other = threading.Thread(target=lambda: found.extend(work(good)))
    other.start()
    traps = [deliver(bad, n, ask("agent.now") + command(Op.UNREACHABLE)) for n in rounds]
    other.join()
    assert {failure_of(trap) for trap in traps} == {"guest trapped: unreachable in do"}
    assert found == expected
    assert same(good, control)


# -- exceptions of the guest's ------------------------------------------------------------------


def holding_exceptions(depth: int) -> str:
    """
    A guest that holds on to `depth` exceptions of 16,000 bytes each.
    """
    vectors = 1000
    return guest_text(
        f"(call $hold (i32.const {depth}))",
        extra=f"""(type $wide (func (param{" v128" * vectors}))) (tag $oops (type $wide))
        (func $make (result exnref) (local $v v128)
          (block $caught (result exnref)
            (try_table (catch_all_ref $caught) {"(local.get $v)" * vectors} (throw $oops)) (unreachable)))
        (func $hold (param i32) (local $held exnref)
          (if (i32.eqz (local.get 0)) (then (return)))
          (local.set $held (call $make))
          (call $hold (i32.sub (local.get 0) (i32.const 1)))
          (if (ref.is_null (local.get $held)) (then (unreachable))))""",
    )


def test_exceptions_can_not_take_more_than_the_memory_limit() -> None:
    """The engine keeps them on a heap of its own."""
    limits = Limits(memory_bytes=1 << 20)
    assert failure_of(deliver(machine(holding_exceptions(10), limits))) == (
        "guest returned without a reply and with nothing in flight"
    )
    result = deliver(machine(holding_exceptions(100), limits))
    assert isinstance(result.failure, MemoryExceeded)
    assert failure_of(result) == "limit memory_bytes exceeded: 1048576 of 1048576"


# -- freezing and thawing -----------------------------------------------------------------------


def thawed(instance: Machine, **options: object) -> Machine:
    """
    The instance in another life.
    """
    return Machine.thaw(instance.program, instance.image, instance.limits, instance.freeze(), **options)  # type: ignore[arg-type]


def test_an_instance_is_the_same_after_a_thaw_in_the_middle_of_a_delivery() -> None:
    """With calls in flight, fuel spent, and memory grown."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    deliver(instance, 2, busy(2))
    wake(instance, 1, MARK, status=Status.PART)
    other = thawed(instance)
    assert same(instance, other)
    assert (other.open_delivery, other.calls) == (2, instance.calls)
    for step in (
        lambda m: wake(m, 2, ask("agent.random", FREE + 64, 16) + chat()),
        lambda m: wake(m, 1, command(Op.UNREACHABLE)),
        lambda m: deliver(m, 3, busy(3) + reply(3)),
    ):
        one, two = step(instance), step(other)
        assert replace(one, failure=None) == replace(two, failure=None)
        assert same(instance, other)


def test_a_thaw_may_give_fresh_entropy_and_say_that_it_is_one() -> None:
    """Two restores of one snapshot must not share a nonce, and can see that they are two."""
    instance = machine()
    deliver(instance, 1, ask("agent.random", FREE + 64, 8) + reply(1))
    known = Restored(1, 2, 3)
    fresh = thawed(instance, entropy=b"\1" * 32, restored=known)
    assert fresh.freeze() == replace(instance.freeze(), entropy=b"\1" * 32, entropy_used=0, restored=known)
    again = thawed(fresh)
    assert again.freeze() == fresh.freeze()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_seed_has_one_size(size: int) -> None:
    """A host that forgot it would hand out randomness that anyone can foretell."""
    with pytest.raises(ValueError, match=f"^entropy must be 32 bytes, got {size}$"):
        machine(entropy=bytes(size))
    with pytest.raises(ValueError, match=f"^entropy must be 32 bytes, got {size}$"):
        thawed(machine(), entropy=bytes(size))


def test_the_entropy_is_not_shown() -> None:
    """A state may end up in a log."""
    assert "entropy=" not in repr(machine(entropy=b"\x07" * 32).freeze())


def test_a_failed_instance_can_be_frozen_before_it_is_needed_again() -> None:
    """It is not made anew before its next step."""
    instance, control = machine(), machine()
    for each in (instance, control):
        deliver(each, 1, busy(1) + reply(1))
    deliver(instance, 2, MARK + command(Op.UNREACHABLE))
    assert instance.freeze().mind == control.freeze().mind
    assert instance.memory_bytes == control.memory_bytes
    assert thawed(instance).digest() == control.digest()


def test_an_overlay_starts_where_a_snapshot_is() -> None:
    """Many instances of one snapshot share its pages; what they freeze refers to the agent's image."""
    instance = machine()
    deliver(instance, 1, busy(1) + reply(1))
    deliver(instance, 2, command(Op.FILL, FREE + 0x8000, 0, 4096) + chat())
    state = instance.freeze()
    overlay = instance.image.overlay(state.mind)
    assert overlay.root is instance.image
    assert overlay.digest == instance.digest()
    twins = [Machine.thaw(instance.program, overlay, instance.limits, state) for _ in range(2)]
    for twin in twins:
        assert same(twin, instance)
        wake(twin, 2, MARK + command(Op.STORE, FREE + 2048, 1) + reply(2))
    wake(instance, 2, MARK + command(Op.STORE, FREE + 2048, 1) + reply(2))
    assert all(same(twin, instance) for twin in twins)
    # After a failure a twin stands on the agent's image, and must still know all that differs.
    for each in (instance, *twins):
        deliver(each, 3, command(Op.FILL, 0x2000, 9, 20000) + command(Op.UNREACHABLE))
        deliver(each, 4, command(Op.STORE, 0x3000, 9) + reply(4))
    assert all(same(twin, instance) for twin in twins)


def test_a_thawed_delivery_has_no_more_fuel_than_the_limit() -> None:
    """Whatever the snapshot says."""
    instance = machine()
    deliver(instance, 1, chat())
    state = instance.freeze()
    assert state.delivery is not None
    greedy = replace(state, delivery=replace(state.delivery, fuel=(1 << 63) - 1))
    other = Machine.thaw(instance.program, instance.image, LIMITS, greedy)
    result = wake(other, 1, command(Op.SPIN))
    assert result.fuel == LIMITS.fuel


def test_a_mind_above_the_limit_is_not_thawed() -> None:
    """`memory_bytes` of the host that restores."""
    instance = machine()
    deliver(instance, 1, command(Op.GROW, 2) + reply(1))
    tight = Limits(memory_bytes=3 * 65536)
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 262144 of 196608$"):
        Machine.thaw(instance.program, instance.image, tight, instance.freeze())


PAGE: Final = b"x" * 4096
GLOBALS: Final = scripted_image().globals
SOUND: Final = MachineState(
    Mind(131072, {0: PAGE}, GLOBALS),
    calls=(Call(1, "llm.chat", b"\xa0", 1), Call(3, "llm.chat", b"\xa0", 2)),
    next_call=4,
    last_delivery=2,
    delivery=OpenDelivery(
        2, 1000, Mind(131072, {}, GLOBALS), (Call(1, "llm.chat", b"\xa0", 1),), (Answer(1, 1, b"\xf6"),)
    ),
    restored=Restored(1, 1, 1),
)
assert SOUND.delivery is not None
OPEN: Final = SOUND.delivery
CALL: Final = SOUND.calls[0]


def with_mind(**changes: object) -> MachineState:
    """
    A state with another mind.
    """
    return replace(SOUND, mind=replace(SOUND.mind, **changes))  # type: ignore[arg-type]


def with_open(**changes: object) -> MachineState:
    """
    A state with another open delivery.
    """
    return replace(SOUND, delivery=replace(OPEN, **changes))  # type: ignore[arg-type]


def with_globals(*values: float) -> MachineState:
    """
    A state with other globals.
    """
    return with_mind(globals=values)


HOSTILE: Final = {
    "a page beyond the memory": with_mind(pages={32: PAGE}),
    "a page before it": with_mind(pages={-1: PAGE}),
    "a page that is too short": with_mind(pages={0: PAGE[1:]}),
    "a page that is too long": with_mind(pages={0: PAGE + b"."}),
    "half a page of memory": with_mind(memory_bytes=131072 + 4096),
    "negative memory": with_mind(memory_bytes=-65536, pages={}),
    "less memory than the image": with_mind(memory_bytes=65536),
    "more memory than addresses": with_mind(memory_bytes=(1 << 32) + 65536),
    "too few globals": with_globals(1, 2),
    "too many globals": with_globals(1, 2, 0.5, 0, 0),
    "an integer for a float": with_globals(1, 2, 3, 0),
    "a float for an integer": with_globals(1.0, 2, 0.5, 0),
    "a truth for an integer": with_globals(True, 2, 0.5, 0),
    "an i32 that is too large": with_globals(1 << 31, 2, 0.5, 0),
    "an i32 that is too small": with_globals(-(1 << 31) - 1, 2, 0.5, 0),
    "an i64 that is too large": with_globals(1, 1 << 63, 0.5, 0),
    "a short seed": replace(SOUND, entropy=bytes(31)),
    "a count of requests that no u64 holds": replace(SOUND, entropy_used=1 << 64),
    "a negative count of requests": replace(SOUND, entropy_used=-1),
    "a call number to come that was used": replace(SOUND, next_call=3),
    "a call number below the first": replace(SOUND, calls=(), next_call=0),
    "a call number beyond i32": replace(SOUND, next_call=(1 << 31) + 1),
    "a call twice": replace(SOUND, calls=(CALL, CALL)),
    "a call 0": replace(SOUND, calls=(replace(CALL, number=0),)),
    "a delivery number beyond i32": replace(SOUND, delivery=None, last_delivery=1 << 31),
    "a negative delivery number": replace(SOUND, delivery=None, last_delivery=-1),
    "a restore at a time that no i64 holds": replace(SOUND, restored=Restored(1, 1, 1 << 64)),
    "a negative generation": replace(SOUND, restored=Restored(1, -1, 1)),
    "an open delivery that is not the last": with_open(number=1),
    "an open delivery 0": replace(SOUND, last_delivery=0, delivery=replace(OPEN, number=0)),
    "negative fuel": with_open(fuel=-1),
    "fuel that no i64 holds": with_open(fuel=1 << 64),
    "a page beyond the memory before": with_open(before=replace(OPEN.before, pages={32: PAGE})),
    "more memory before than after": with_open(before=replace(OPEN.before, memory_bytes=196608)),
    "other globals before": with_open(before=replace(OPEN.before, globals=())),
    "an unordered call before": with_open(calls_before=(CALL, CALL)),
    "an answer to a call that was not there": with_open(answers=(Answer(3, 0, b"\xf6"),)),
    "an answer with a status of its own": with_open(answers=(Answer(1, 77, b"\xf6"),)),
}


def test_a_sound_state_is_thawed() -> None:
    """What the hostile ones below are made of."""
    instance = Machine.thaw(scripted(), scripted_image(), Limits(), SOUND)
    assert instance.freeze() == SOUND


@pytest.mark.parametrize("name", HOSTILE)
def test_a_state_that_no_kernel_made_is_refused(name: str) -> None:
    """Before any number of it becomes an address or is wrapped by the engine."""
    with pytest.raises(SnapshotIncompatible, match=r"^snapshot does not fit: "):
        Machine.thaw(scripted(), scripted_image(), Limits(), HOSTILE[name])


def test_globals_keep_their_bits_over_failure_and_thaw() -> None:
    """Also those of a NaN with a payload, quiet or signaling, and of minus zero."""
    for low, high in ((0xDEADBEEF, 0x7FF80000), (0xDEADBEEF, 0x7FF40000), (1, 0xFFF00000), (0, 0x80000000)):
        instance = machine()
        deliver(
            instance,
            1,
            command(Op.SET_I32, -5)
            + command(Op.SET_I64, low, high)
            + command(Op.SET_F64, low, high)
            + reply(1),
        )
        expected = list(struct.unpack("<5i", struct.pack("<i4I", -5, low, high, low, high)))
        deliver(instance, 2, command(Op.SET_F64, 0, 0) + command(Op.UNREACHABLE))
        other = thawed(instance)
        assert same(instance, other)
        for each in (instance, other):
            deliver(each, 3, command(Op.PUSH_GLOBALS) + reply(3))
            assert results(each)[1:6] == expected


def test_the_digest_tells_minds_apart_and_nothing_else() -> None:
    """Equal memory and globals, equal digest, however they came about."""
    one, other = machine(), machine()
    deliver(one, 1, MARK + reply(1))
    deliver(other, 1, command(Op.STORE, FREE + 256, 41) + reply(1))
    assert one.digest() != other.digest()
    for each in (one, other):
        deliver(each, 2, MARK + reply(2))
    assert one.digest() == other.digest()
    mind = one.freeze().mind
    assert digest_of(mind, one.image) == one.digest()
    assert FuelExhausted(5).message == "limit fuel exceeded: 5 of 5"


# -- Ctrl-C -------------------------------------------------------------------------------------


def test_ctrl_c_inside_a_host_function_leaves_a_whole_instance() -> None:
    """The delivery never happened, the interrupt goes on to the host, and the instance lives on."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    before = instance.digest()
    over = threading.Event()

    def in_host_function(_number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_name == "perform":
                raise KeyboardInterrupt
            frame = frame.f_back

    def press() -> None:
        while not over.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)

    kept = signal.signal(signal.SIGUSR1, in_host_function)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            deliver(instance, 2, MARK + chat() + command(Op.BURN, 1) * 200_000)
    finally:
        over.set()
        presser.join()
        signal.signal(signal.SIGUSR1, kept)
    assert instance.digest() == before
    assert (instance.open_delivery, [call.number for call in instance.calls]) == (0, [1])
    assert deliver(instance, 3, reply(3)).failure is None
