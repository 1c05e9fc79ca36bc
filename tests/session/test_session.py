"""
A session, driven as its owner drives it, around real guests.
"""

from __future__ import annotations

import anyio
import pytest

from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import DeadlineExceeded, GuestReturnedError, GuestTrapped, Interrupted, LimitExceeded
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Deliver, Machine
from runner.kernel.slice import LogLine
from runner.session.session import Session
from tests.session.doubles import Emit, Scripted, at_once, never, opened, until

MESSAGE = DeliveryKind.MESSAGE

# Asks once for each message; answers with how many it has had.
COUNTS_AFTER_ASKING = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (drop (call $ask)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (call $answer (global.get $count)))
"""

REPLIES_ZERO = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (call $answer (i32.const 0)))
  (func (export "agent_wake") (param i32 i32 i32))
"""


def test_a_delivery_ends_with_the_reply_after_its_call_was_answered(make_machine, ticker):
    """The shortest path through a session."""

    async def main() -> None:
        handlers = Scripted(at_once)
        async with opened(make_machine(COUNTS_AFTER_ASKING), ticker, handlers) as session:
            outcome = await session.deliver(MESSAGE, "hi")
            assert (outcome.unwrap(), outcome.delivery, outcome.failure) == (1, 1, None)
            assert outcome.fuel > 0
        assert handlers.started == ["llm.chat"]

    anyio.run(main)


def test_deliveries_that_come_together_are_served_in_turn_with_their_own_results(make_machine, ticker):
    """One at a time, none swapped."""

    async def main() -> None:
        results = {}

        async def deliver(session: Session, name: str) -> None:
            results[name] = (await session.deliver(MESSAGE, name)).unwrap()

        machine = make_machine(COUNTS_AFTER_ASKING)
        async with opened(machine, ticker) as session, anyio.create_task_group() as group:
            for name in ("first", "second", "third"):
                group.start_soon(deliver, session, name)
        assert results == {"first": 1, "second": 2, "third": 3}

    anyio.run(main)


def test_a_guest_that_fails_its_delivery_keeps_its_state_and_lives_on(make_machine, ticker):
    """`agent.fail` is an answer, not an accident."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2))
          (then (drop (call $fail (local.get $n) (i32.const 2) (i32.const 13))))
          (else (call $answer (global.get $count)))))
      (func (export "agent_wake") (param i32 i32 i32))"""

    async def main() -> None:
        async with opened(make_machine(body), ticker) as session:
            failed = await session.deliver(DeliveryKind.EVENT, None)
            with pytest.raises(GuestReturnedError, match=r"^bad$"):
                failed.unwrap()
            assert (await session.deliver(MESSAGE, None)).unwrap() == 2

    anyio.run(main)


def test_a_trap_fails_the_delivery_and_the_next_one_starts_from_before_it(make_machine, ticker):
    """Transactions, seen from outside."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then unreachable))
        (call $answer (global.get $count)))
      (func (export "agent_wake") (param i32 i32 i32))"""

    async def main() -> None:
        async with opened(make_machine(body), ticker) as session:
            assert (await session.deliver(MESSAGE, None)).unwrap() == 1
            failure = (await session.deliver(DeliveryKind.EVENT, None)).failure
            assert isinstance(failure, GuestTrapped)
            assert failure.trap == "unreachable"
            assert (await session.deliver(MESSAGE, None)).unwrap() == 2

    anyio.run(main)


def test_a_deadline_ends_a_delivery_that_waits_and_cancels_what_it_waits_for(make_machine, ticker):
    """No peer cuts a blocked effect on time."""

    async def main() -> None:
        handlers = Scripted(never)
        async with opened(make_machine(COUNTS_AFTER_ASKING), ticker, handlers) as session:
            failure = (await session.deliver(MESSAGE, None, deadline_ms=500)).failure
            assert isinstance(failure, DeadlineExceeded)
            assert (failure.limit, failure.bound) == ("deadline_ms", 500)
            await anyio.wait_all_tasks_blocked()
            assert handlers.cancelled == 1
            assert session.machine.calls == ()

    anyio.run(main)


def test_a_guest_that_spins_ends_by_its_timeout_and_the_session_goes_on(make_machine, ticker):
    """The wall deadline of the guest's own execution."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then (loop $l (br $l))))
        (call $answer (i32.const 7)))
      (func (export "agent_wake") (param i32 i32 i32))"""

    async def main() -> None:
        machine = make_machine(body, timeout_ms=50, fuel=1 << 60)
        async with opened(machine, ticker) as session:
            failure = (await session.deliver(DeliveryKind.EVENT, None)).failure
            assert isinstance(failure, DeadlineExceeded)
            assert (failure.limit, failure.bound) == ("timeout_ms", 50)
            assert (await session.deliver(MESSAGE, None)).unwrap() == 7

    anyio.run(main)


@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "spinning"])
def test_an_interrupt_ends_the_open_delivery(make_machine, ticker, waits):
    """Whether the guest runs or waits when it comes."""
    spins = """
      (func (export "agent_deliver") (param i32 i32 i32) (loop $l (br $l)))
      (func (export "agent_wake") (param i32 i32 i32))"""

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING if waits else spins, fuel=1 << 60)
        before = machine.digest()
        async with opened(machine, ticker, Scripted(never)) as session, anyio.create_task_group() as group:

            async def interrupt() -> None:
                await until(lambda: bool(machine.open_delivery))
                session.interrupt()

            group.start_soon(interrupt)
            assert isinstance((await session.deliver(MESSAGE, None)).failure, Interrupted)
        assert machine.digest() == before

    anyio.run(main)


def test_parts_of_a_streamed_answer_wake_the_guest_in_order(make_machine, ticker):
    """The guest writes each part's number down; the final answer makes it reply."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (i32.store8 (i32.const 200) (i32.const 0x98))
        (i32.store8 (i32.const 201) (i32.const 100))
        (drop (call $ask)))
      (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
        (if (local.get $status)
          (then
            (drop (call $take (i32.add (i32.const 202) (global.get $count)) (i32.const 1)))
            (global.set $count (i32.add (global.get $count) (i32.const 1))))
          (else (drop (call $reply (global.get $delivery) (i32.const 200) (i32.const 102))))))"""
    parts = [number % 24 for number in range(100)]

    async def stream(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request
        for part in parts:
            await emit(part)
        return CallResult(Status.OK, None)

    async def main() -> None:
        async with opened(make_machine(body), ticker, Scripted(stream)) as session:
            assert (await session.deliver(MESSAGE, None)).unwrap() == parts

    anyio.run(main)


def test_an_answer_larger_than_the_guest_accepts_becomes_a_refusal(make_machine, ticker):
    """A provider can't break an instance by talking too much."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n)) (drop (call $ask)))
      (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
        (call $answer (i32.sub (i32.const 0) (local.get $status))))"""

    async def talk(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request, emit
        return CallResult(Status.OK, "a" * 2000)

    async def main() -> None:
        async with opened(make_machine(body, payload_bytes=1000), ticker, Scripted(talk)) as session:
            assert (await session.deliver(MESSAGE, None)).unwrap() == -Status.LIMIT

    anyio.run(main)


def test_a_payload_larger_than_the_guest_accepts_fails_its_own_delivery_only(make_machine, ticker):
    """The machine refuses it before anything changes."""

    async def main() -> None:
        async with opened(make_machine(REPLIES_ZERO, payload_bytes=100), ticker) as session:
            failure = (await session.deliver(MESSAGE, "a" * 200)).failure
            assert isinstance(failure, LimitExceeded)
            assert failure.limit == "payload_bytes"
            assert (await session.deliver(MESSAGE, "a")).unwrap() == 0

    anyio.run(main)


def test_a_call_of_an_ended_delivery_is_answered_between_deliveries(make_machine, ticker):
    """Fire and forget is allowed: the wake comes when nothing is open."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then (drop (call $ask))))
        (call $answer (global.get $count)))
      (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
        (global.set $count (i32.add (global.get $count) (i32.const 5))))"""

    async def main() -> None:
        machine = make_machine(body)
        async with opened(machine, ticker) as session:
            assert (await session.deliver(DeliveryKind.EVENT, None)).unwrap() == 0
            await until(lambda: not machine.calls and session.position == 2)
            assert (await session.deliver(MESSAGE, None)).unwrap() == 5

    anyio.run(main)


def test_a_cancelled_call_has_its_effect_cancelled_and_wakes_nobody(make_machine, ticker):
    """The guest asks, and gives up in its next delivery."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2))
          (then (global.set $count (call $ask)) (call $answer (i32.const 1)))
          (else (call $answer (i32.sub (i32.const 0) (call $cancel (global.get $count)))))))
      (func (export "agent_wake") (param i32 i32 i32) unreachable)"""

    async def main() -> None:
        handlers = Scripted(never)
        async with opened(make_machine(body), ticker, handlers) as session:
            assert (await session.deliver(DeliveryKind.EVENT, None)).unwrap() == 1
            assert (await session.deliver(MESSAGE, None)).unwrap() == 0
            await anyio.wait_all_tasks_blocked()
            assert handlers.cancelled == 1
            assert (await session.deliver(MESSAGE, None)).unwrap() == -Status.NOT_FOUND

    anyio.run(main)


def test_a_snapshot_asked_for_in_the_middle_carries_the_call_and_goes_on_elsewhere(make_machine, ticker):
    """Frozen while the model is answering; thawed in another session, which asks again and finishes."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (drop (call $ask))
        (drop (call $snapshot (i32.const 0) (i32.const 0))))
      (func (export "agent_wake") (param i32 i32 i32) (call $answer (i32.const 9)))"""
    machine = make_machine(body, keeps_snapshots=True)
    states = []

    async def freeze() -> None:
        handlers = Scripted(never)

        def keep(reason: str) -> None:
            states.append((reason, machine.freeze()))

        async with (
            opened(machine, ticker, handlers, on_snapshot=keep) as session,
            anyio.create_task_group() as group,
        ):
            group.start_soon(session.deliver, MESSAGE, None)
            await until(lambda: bool(states))
            group.cancel_scope.cancel()

    async def go_on() -> None:
        [(reason, state)] = states
        assert reason == ""
        assert [call.operation for call in state.calls] == ["llm.chat"]
        thawed = Machine.thaw(machine.program, machine.image, machine.limits, state)
        handlers = Scripted(at_once)
        async with opened(thawed, ticker, handlers) as session:
            outcome = await session.finish_open()
            assert outcome is not None
            assert outcome.unwrap() == 9
            assert handlers.started == ["llm.chat"]
            assert await session.finish_open() is None

    anyio.run(freeze)
    anyio.run(go_on)


def test_a_bug_in_a_handler_ends_the_session_instead_of_hanging_it(make_machine, ticker):
    """What is not foreseen is loud."""

    async def broken(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request, emit
        msg = "a bug"
        raise ZeroDivisionError(msg)

    async def main() -> None:
        async with opened(make_machine(COUNTS_AFTER_ASKING), ticker, Scripted(broken)) as session:
            await session.deliver(MESSAGE, None)

    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(main)
    assert caught.group_contains(ZeroDivisionError, match=r"^a bug$")


def test_log_lines_of_a_slice_come_out_once_it_has_ended_well(make_machine, ticker):
    """A line of a slice that trapped was never written."""
    body = """
      (data (i32.const 300) "\\62hi")
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (drop (call $log (i32.const 2) (i32.const 300) (i32.const 3)))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then unreachable))
        (call $answer (i32.const 0)))
      (func (export "agent_wake") (param i32 i32 i32))"""

    async def main() -> None:
        lines: list[LogLine] = []
        async with opened(make_machine(body), ticker, logs=lines) as session:
            await session.deliver(DeliveryKind.EVENT, None)
            assert lines == []
            await session.deliver(MESSAGE, None)
            assert [(line.level.name, line.message) for line in lines] == [("WARNING", "hi")]

    anyio.run(main)


def test_a_payload_that_is_no_codec_value_is_the_callers_error(make_machine, ticker):
    """Found before the instance hears of it."""

    async def main() -> None:
        async with opened(make_machine(REPLIES_ZERO), ticker) as session:
            with pytest.raises(TypeError, match="not a payload value"):
                await session.deliver(MESSAGE, object())
            assert (await session.deliver(MESSAGE, None)).delivery == 1

    anyio.run(main)


def test_an_open_delivery_refuses_another_on_the_machine_itself(make_machine, ticker):
    """The session queues so that this can't happen."""
    machine = make_machine(COUNTS_AFTER_ASKING)
    machine.step(Deliver(1, MESSAGE, b"\xf6", 0))
    with pytest.raises(ValueError, match="delivery 1 is still open"):
        machine.step(Deliver(2, MESSAGE, b"\xf6", 0))
    assert ticker is not None
