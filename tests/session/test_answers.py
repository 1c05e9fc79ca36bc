"""
Answers between effect and guest: none is lost, none comes twice, none keeps a delivery out.
"""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import GuestTrapped, HostExhausted, Interrupted
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Deliver, Machine
from runner.kernel.state import Answer
from runner.session.inbox import MAX_WAITING
from tests.session.doubles import Emit, Scripted, at_once, never, opened, until

MESSAGE = DeliveryKind.MESSAGE
EVENT = DeliveryKind.EVENT

# Asks twice, and replies with the sum of both answers' statuses, made positive, and 1 for each.
ASKS_TWICE = """
  (global $sum (mut i32) (i32.const 0))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n)) (drop (call $ask)) (drop (call $ask)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (if (i32.le_s (local.get $status) (i32.const 0)) (then
      (global.set $sum (i32.sub (global.get $sum) (local.get $status)))
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (if (i32.eq (global.get $count) (i32.const 2))
        (then (call $answer (i32.add (global.get $sum) (i32.const 2))))))))
"""

# On an event it asks and replies; on a message it replies with how many answers it has had.
ASKS_ON_EVENTS = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 2)) (then (drop (call $ask))))
    (call $answer (global.get $count)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1))))
"""


def test_two_streams_that_are_both_held_back_both_go_on(make_machine, ticker):
    """Room for one is told to all who wait for it."""

    async def stream(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request
        for part in range(3 * MAX_WAITING):
            await emit(part)
        return CallResult(Status.OK, None)

    async def main() -> None:
        async with opened(make_machine(ASKS_TWICE), ticker, Scripted(stream)) as session:
            assert (await session.deliver(MESSAGE, None)).unwrap() == 2

    anyio.run(main)


def test_an_answer_that_waits_belongs_to_a_snapshot_and_its_effect_does_not_happen_again(
    make_machine, ticker
):
    """Frozen between effect and guest; the session after it makes only the other call again."""
    body = ASKS_TWICE.replace(
        "(if (i32.le_s", "(drop (call $snapshot (i32.const 0) (i32.const 0))) (if (i32.le_s"
    )
    machine = make_machine(body, keeps_snapshots=True)
    frozen = []

    async def freeze() -> None:
        arrived = anyio.Event()

        async def answer(operation: str, request: Value, emit: Emit) -> CallResult:
            # The first call only speaks once both are known, and its part makes the guest freeze itself.
            if len(handlers.started) == 1:
                await arrived.wait()
                await emit("part")
                await emit("a part that is not complete")
                return await never(operation, request, emit)
            arrived.set()
            await anyio.lowlevel.checkpoint()
            return CallResult(Status.NOT_FOUND, {"kind": "not_found", "message": "gone"})

        handlers = Scripted(answer)

        def keep(reason: str) -> None:
            del reason
            frozen.append((machine.freeze(), session.answers))

        async with (
            opened(machine, ticker, handlers, on_snapshot=keep) as session,
            anyio.create_task_group() as group,
        ):
            group.start_soon(session.deliver, MESSAGE, None)
            await until(lambda: any(answers for _, answers in frozen))
            group.cancel_scope.cancel()

    async def go_on() -> None:
        state, answers = next((state, answers) for state, answers in frozen if answers)
        assert [(answer.call, answer.status) for answer in answers] == [(2, Status.NOT_FOUND)]
        assert [call.number for call in state.calls] == [1, 2]
        thawed = Machine.thaw(machine.program, machine.image, machine.limits, state)
        handlers = Scripted(at_once)
        async with opened(thawed, ticker, handlers, answers=answers) as session:
            outcome = await session.finish_open()
            assert outcome is not None
            assert outcome.unwrap() == 2 - Status.NOT_FOUND
        assert handlers.started == ["llm.chat"]

    anyio.run(freeze)
    anyio.run(go_on)


def test_an_answer_that_is_whole_waits_for_nobody(make_machine, ticker):
    """Its effect has happened, so it is where a snapshot looks, however much is there already."""
    machine = make_machine(ASKS_TWICE)
    machine.step(Deliver(1, MESSAGE, b"\xf6", 0))

    async def main() -> None:
        parts = [Answer(1, Status.PART, b"\xf6")] * MAX_WAITING
        last = Answer(1, Status.OK, b"\xf6")
        async with opened(machine, ticker, answers=[*parts, last]) as session:
            await session._inbox.put(Answer(2, Status.OK, b"\xf6"))
            assert [answer.call for answer in session.answers][-2:] == [1, 2]
            outcome = await session.finish_open()
            assert outcome is not None
            assert outcome.unwrap() == 2

    anyio.run(main)


@pytest.mark.parametrize(
    ("payload_bytes", "expected"),
    [
        (1000, {"kind": "limit", "message": "answer of 2003 bytes is more than 1000"}),
        (40, {"kind": "limit", "message": "too large"}),
        (9, None),
    ],
)
def test_an_answer_too_large_for_the_guest_becomes_one_that_fits(
    make_machine, ticker, payload_bytes, expected
):
    """A bound below every error's size can't wedge an instance either."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n)) (drop (call $ask)))
      (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
        (drop (call $reply (global.get $delivery) (i32.const 1000)
          (call $take (i32.const 1000) (i32.const 5000)))))"""

    async def talk(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request, emit
        return CallResult(Status.OK, "a" * 2000)

    async def main() -> None:
        machine = make_machine(body, payload_bytes=payload_bytes)
        async with opened(machine, ticker, Scripted(talk)) as session:
            for _ in range(2):
                assert (await session.deliver(MESSAGE, None)).unwrap() == expected

    anyio.run(main)


def test_a_part_too_large_for_the_guest_ends_the_call_and_its_effect(make_machine, ticker):
    """Nobody goes on paying for a stream that is not heard."""
    body = ASKS_ON_EVENTS.replace("(i32.const 1))))\n", "(i32.sub (i32.const 0) (local.get $status)))))\n")

    async def stream(operation: str, request: Value, emit: Emit) -> CallResult:
        await emit("a" * 2000)
        return await never(operation, request, emit)

    async def main() -> None:
        machine = make_machine(body, payload_bytes=1000)
        handlers = Scripted(stream)
        async with opened(machine, ticker, handlers) as session:
            await session.deliver(EVENT, None)
            await until(lambda: not machine.calls and handlers.cancelled == 1)
            assert (await session.deliver(MESSAGE, None)).unwrap() == -Status.LIMIT

    anyio.run(main)


def test_a_guest_that_never_stops_asking_keeps_no_delivery_out(make_machine, ticker):
    """Answers and deliveries take turns."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (local $i i32)
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then
          (loop $more
            (drop (call $ask))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (i32.const 60))))))
        (call $answer (i32.const 3)))
      (func (export "agent_wake") (param i32 i32 i32) (drop (call $ask)))"""

    async def main() -> None:
        async with opened(make_machine(body), ticker) as session:
            await session.deliver(EVENT, None)
            for _ in range(3):
                assert (await session.deliver(MESSAGE, None)).unwrap() == 3

    anyio.run(main)


def test_an_answer_outlives_a_process_that_has_no_room_for_its_guest(make_machine, ticker, monkeypatch):
    """It is tried again when something else happens."""
    step = Machine.step
    refusals: list[object] = []

    def refuse_once(self: Machine, event: object, *, deadline_ms: int | None = None) -> object:
        if not self.open_delivery and hasattr(event, "answer") and not refusals:
            refusals.append(event)
            raise HostExhausted("no more maps")
        return step(self, event, deadline_ms=deadline_ms)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "step", refuse_once)

    async def main() -> None:
        machine = make_machine(ASKS_ON_EVENTS)
        async with opened(machine, ticker) as session:
            await session.deliver(EVENT, None)
            await until(lambda: bool(refusals))
            assert [call.number for call in machine.calls] == [1]
            await session.deliver(MESSAGE, None)
            await until(lambda: not machine.calls)
            assert (await session.deliver(MESSAGE, None)).unwrap() == 1

    anyio.run(main)


def test_a_delivery_that_finds_no_room_for_its_guest_fails_alone(make_machine, ticker, monkeypatch):
    """Its owner may try again; nothing has changed."""
    step = Machine.step

    def refuse(self: Machine, event: object, *, deadline_ms: int | None = None) -> object:
        del self, event, deadline_ms
        raise HostExhausted("no more maps")

    async def main() -> None:
        async with opened(make_machine(ASKS_ON_EVENTS), ticker) as session:
            monkeypatch.setattr(Machine, "step", refuse)
            assert isinstance((await session.deliver(MESSAGE, None)).failure, HostExhausted)
            monkeypatch.setattr(Machine, "step", step)
            assert (await session.deliver(MESSAGE, None)).unwrap() == 0

    anyio.run(main)


def test_what_a_failure_took_back_is_handed_over_again_before_what_came_later(make_machine, ticker):
    """The guest writes down the order; the second message traps after it has had the first answer."""
    body = """
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (global.set $delivery (local.get $n))
        (if (i32.eq (local.get $kind) (i32.const 2)) (then
          (drop (call $ask)) (drop (call $ask)) (call $answer (i32.const 0)) (return)))
        (if (i32.eq (local.get $kind) (i32.const 3)) (then (drop (call $ask)) (return)))
        (call $answer (global.get $count)))
      (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
        (if (i32.eq (local.get $call) (i32.const 3)) (then unreachable))
        (global.set $count (i32.add (i32.mul (global.get $count) (i32.const 4)) (local.get $call))))"""
    gates: list[anyio.Event] = []

    async def gated(operation: str, request: Value, emit: Emit) -> CallResult:
        gate = anyio.Event()
        gates.append(gate)
        await gate.wait()
        return await at_once(operation, request, emit)

    async def main() -> None:
        machine = make_machine(body)
        async with opened(machine, ticker, Scripted(gated)) as session:
            await session.deliver(EVENT, None)
            async with anyio.create_task_group() as group:
                failures = []

                async def tick() -> None:
                    failures.append((await session.deliver(DeliveryKind.TICK, None)).failure)

                group.start_soon(tick)
                await until(lambda: len(gates) == 3)
                gates[0].set()
                await until(lambda: not machine.is_in_flight(1))
                gates[1].set()
                gates[2].set()
            assert isinstance(failures[0], GuestTrapped)
            await until(lambda: not machine.calls)
            assert (await session.deliver(MESSAGE, None)).unwrap() == 1 * 4 + 2

    anyio.run(main)


def test_after_an_interrupt_no_answer_is_spent_on_a_slice_that_can_not_run(make_machine, ticker):
    """It stays with the instance for whoever goes on with it."""

    async def main() -> None:
        machine = make_machine(ASKS_ON_EVENTS)
        released = anyio.Event()

        async def wait(operation: str, request: Value, emit: Emit) -> CallResult:
            await released.wait()
            return await at_once(operation, request, emit)

        async with opened(machine, ticker, Scripted(wait)) as session:
            await session.deliver(EVENT, None)
            session.interrupt()
            released.set()
            await until(lambda: bool(session.answers))
            assert isinstance((await session.deliver(MESSAGE, None)).failure, Interrupted)
        assert [call.number for call in machine.calls] == [1]
        assert [answer.call for answer in session.answers] == [1]

    anyio.run(main)
