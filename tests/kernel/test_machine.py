"""
One instance as a function of its inputs: slices are transactions, and what a failure puts back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from runner import codec
from runner.errors import (
    Interrupted,
    LimitExceeded,
    MemoryExceeded,
)
from runner.kernel.abi import UPGRADE_KINDS, DeliveryKind, LogLevel, Status
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, StepResult, Wake
from runner.kernel.slice import LogLine, Reply
from runner.kernel.state import Answer, Call, LastSnapshot, Mind, Restored
from tests.kernel.guests import (
    FREE,
    MARK,
    TIGHT,
    Op,
    ask,
    busy,
    chat,
    command,
    deliver,
    failure_of,
    guest_text,
    image_of,
    machine,
    memory_of,
    program,
    reply,
    results,
    same,
    send,
    wake,
)

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


# -- a slice that ends well -----------------------------------------------------------------------


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
    assert results(instance) == [n for k in range(1, 7) for n in (k, k, 60, 0)]
    deliver(instance, 7, chat())
    wake(instance, 1, command(Op.PUSH_ENTRY) + reply(7), status=Status.DENIED)
    assert results(instance)[24:] == [1, 1, -3, 60, 0]


@pytest.mark.parametrize("kind", sorted(UPGRADE_KINDS))
def test_a_module_without_the_export_is_told_of_no_upgrade(kind: DeliveryKind) -> None:
    """Its `agent_deliver` may know nothing of it, and would take it for something else."""
    instance = machine(guest_text("(unreachable)"))
    with pytest.raises(ValueError, match=r"^the module has no agent_upgrade$"):
        deliver(instance, 1, b"", kind=kind)
    assert (instance.last_delivery, instance.open_delivery) == (0, 0)


def test_a_delivery_of_an_upgrade_ends_in_its_slice() -> None:
    """With a call in flight another would stay open; this one fails, and its call never was."""
    instance = machine()
    before = instance.freeze().mind
    result = deliver(instance, 1, chat(), kind=DeliveryKind.HAND_OVER)
    assert result.failure is not None
    assert (result.failure.kind, result.failed_delivery, result.calls) == ("protocol", 1, ())
    assert (instance.freeze().mind, instance.calls) == (before, ())


def test_an_upgraded_instance_is_the_same_one_at_another_image() -> None:
    """Numbers, randomness and what it knows of itself go on; the mind does not."""
    old = machine(limits=Limits(fuel=1_000_000), keeps_snapshots=True)
    old.begin_life(Restored(1, 2, 3), None)
    old.learn_snapshot(LastSnapshot(True, 4, 5))
    deliver(old, 3, chat() + ask("agent.random", FREE, 8) + ask("agent.cancel", 1) + reply(3))
    other = program(guest_text("(unreachable)", memory="3"))
    image = image_of(other)
    new = old.upgraded(other, image, Limits())
    assert new.freeze() == replace(old.freeze(), mind=Mind(3 * 65536, {}, image.globals))
    assert (new.program, new.image, new.limits) == (other, image, Limits())
    assert (new.keeps_snapshots, new.keeps_timers) == (True, False)
    assert new.digest() == image.digest != old.digest()
    assert old.upgraded(other, image, Limits(), keeps_timers=True).keeps_timers


def test_an_instance_is_not_upgraded_in_the_middle() -> None:
    """Nobody would be there to take an answer."""
    instance = machine()
    other = program(guest_text("(unreachable)"))
    deliver(instance, 1, chat())
    with pytest.raises(ValueError, match=r"^a delivery is open$"):
        instance.upgraded(other, image_of(other), Limits())
    late = wake(instance, 1, chat() + reply(1))
    assert late.reply is not None
    with pytest.raises(ValueError, match=r"^a call is in flight$"):
        instance.upgraded(other, image_of(other), Limits())
    wake(instance, 2)
    with pytest.raises(MemoryExceeded):
        instance.upgraded(other, image_of(other), Limits(memory_bytes=65535))
    assert instance.upgraded(other, image_of(other), Limits()).last_delivery == 1


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
    instance = machine(limits=TIGHT)
    first = deliver(instance, 1, command(Op.BURN, 100_000) + chat())
    assert first.fuel > 400_000
    second = wake(instance, 1, command(Op.BURN, 1_000_000))
    assert failure_of(second) == "limit fuel exceeded: 1000000 of 1000000"
    assert first.fuel + second.fuel == TIGHT.fuel
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


# -- a slice that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_delivery_never_happened(name: str) -> None:
    """Memory, globals and what comes next are as if it had not been delivered; its fuel is gone."""
    script, message = FAILURES[name]
    instance, control = machine(limits=TIGHT), machine(limits=TIGHT)
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
    assert (result.fuel, result.failed_delivery, result.abandoned) == (TIGHT.fuel, 2, ())
    assert instance.digest() == before
    assert instance.memory_bytes == control.memory_bytes
    assert (instance.open_delivery, instance.last_delivery) == (0, 2)
    after, expected = (deliver(each, 3, MARK + reply(3)) for each in (instance, control))
    assert after == expected
    assert instance.digest() == control.digest()


def test_fuel_is_charged_in_full_when_the_guest_traps() -> None:
    """A hundred traps on one budget use it up a hundred times: nothing is free."""
    instance = machine(limits=TIGHT)
    spent = sum(
        deliver(instance, number, command(Op.BURN, 100_000) + command(Op.DIVIDE_BY_ZERO)).fuel
        for number in range(1, 101)
    )
    assert spent == 100 * TIGHT.fuel


def test_call_numbers_that_have_left_the_instance_do_not_rewind() -> None:
    """A late answer to an undone call must not meet its double."""
    instance = machine()
    deliver(instance, 1, chat() * 3)
    assert wake(instance, 1, chat() + command(Op.UNREACHABLE)).abandoned == (2, 3)
    assert instance.calls == ()
    assert [call.number for call in deliver(instance, 2, chat()).calls] == [4]


def test_a_slice_that_failed_leaves_no_trace_in_the_numbers() -> None:
    """Nobody has heard of its calls; and one that wall time ended could not be repeated otherwise."""
    instance = machine()
    before = instance.freeze()
    deliver(instance, 1, chat() * 3 + ask("agent.random", FREE, 8) + command(Op.UNREACHABLE))
    assert instance.freeze() == replace(before, last_delivery=1)


def test_a_failure_that_is_known_already_is_not_run_again() -> None:
    """For a replay: the same state and the same result, whatever the guest would have done."""
    one, other = machine(), machine()
    script = MARK + chat() * 2 + command(Op.UNREACHABLE)
    event = Deliver(1, DeliveryKind.MESSAGE, script, 0)
    ran = one.step(event)
    assert ran.failure is not None
    known = other.step(Deliver(1, DeliveryKind.MESSAGE, MARK + reply(1), 0), failed=ran.failure)
    assert known == ran
    assert other.freeze() == one.freeze()


def test_another_life_begins_with_another_seed() -> None:
    """And can be told so in the middle of it."""
    instance = machine()
    deliver(instance, 1, ask("agent.random", FREE, 8) + reply(1))
    known = Restored(count=1, generation=2, at_ms=3)
    instance.begin_life(known, b"\1" * 32)
    state = instance.freeze()
    assert (state.entropy, state.entropy_used, state.restored) == (b"\1" * 32, 0, known)
    instance.begin_life(replace(known, count=2), None)
    assert instance.freeze() == replace(state, restored=replace(known, count=2))


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


# -- between deliveries ---------------------------------------------------------------------------


def test_an_answer_between_deliveries_has_fuel_of_its_own() -> None:
    """It belongs to none."""
    instance = machine(limits=TIGHT)
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
    assert [call.number for call in wake(instance, 2, chat()).calls] == [3]


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


# -- giving up from outside -----------------------------------------------------------------------


def test_an_abandoned_delivery_fails_like_any_other() -> None:
    """With the host's own reason."""
    instance = machine(limits=TIGHT)
    before = instance.digest()
    first = deliver(instance, 1, busy(1))
    result = instance.abandon(Interrupted())
    assert failure_of(result) == "interrupted"
    assert (result.failed_delivery, result.abandoned) == (1, (1,))
    assert first.fuel + result.fuel == TIGHT.fuel
    assert instance.digest() == before
    assert deliver(instance, 2, reply(2)).failure is None


def test_nothing_can_be_abandoned_when_nothing_is_open() -> None:
    """The host's mistake."""
    with pytest.raises(ValueError, match=r"^no delivery is open$"):
        machine().abandon(Interrupted())


# -- what the host may not do ---------------------------------------------------------------------


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


# -- growth ---------------------------------------------------------------------------------------


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


# -- exceptions of the guest's --------------------------------------------------------------------


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


def test_an_interrupt_between_deliveries_gives_the_answer_back() -> None:
    """It is the host's doing: the guest must not lose what it waits for."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    before = instance.freeze()
    answer = Answer(1, Status.OK, MARK + reply(1))
    result = instance.step(Wake(answer, 0), failed=Interrupted())
    assert (result.failed_delivery, result.abandoned, result.undone) == (0, (), (answer,))
    assert instance.freeze() == before
