"""
Owners that go away: from a delivery, from a session, in the middle of a slice.
"""

from __future__ import annotations

import threading

import anyio
import pytest
from anyio.abc import TaskGroup

from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import DeadlineExceeded, Interrupted
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Deliver, Machine
from runner.session.pending import Pending
from runner.session.session import Session
from tests.session.doubles import Emit, Scripted, at_once, never, opened, until

MESSAGE = DeliveryKind.MESSAGE

COUNTS_AFTER_ASKING = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (drop (call $ask)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (call $answer (global.get $count)))
"""


def test_whoever_waits_for_a_delivery_of_a_session_that_is_left_is_told(make_machine, ticker):
    """The open one's owner, the next one's, and who comes too late: none of them hangs."""
    ends: list[str] = []

    async def deliver(session: Session, name: str) -> None:
        try:
            await session.deliver(MESSAGE, name)
        except Interrupted:
            ends.append(name)

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                async with opened(machine, ticker, Scripted(never)) as session:
                    group.start_soon(deliver, session, "open")
                    group.start_soon(deliver, session, "queued")
                    await until(lambda: bool(machine.open_delivery))
                await deliver(session, "late")
        assert sorted(ends) == ["late", "open", "queued"]

    anyio.run(main)


def test_a_session_that_dies_of_its_owners_own_error_tells_who_waits(make_machine, ticker):
    """A log that can't be written, for instance."""
    body = """
      (data (i32.const 300) "\\62hi")
      (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
        (drop (call $log (i32.const 2) (i32.const 300) (i32.const 3)))
        (drop (call $ask)))
      (func (export "agent_wake") (param i32 i32 i32))"""
    ends: list[str] = []

    def refuse(line: object) -> None:
        raise OSError(str(line))

    async def deliver(session: Session) -> None:
        try:
            await session.deliver(MESSAGE, None)
        except Interrupted:
            ends.append("told")

    async def serve(session: Session, others: TaskGroup) -> None:
        async with session:
            others.start_soon(deliver, session)
            await anyio.sleep_forever()

    async def main() -> None:
        session = Session(make_machine(body), Scripted(at_once), ticker, on_log=refuse)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                with pytest.raises(ExceptionGroup) as caught:
                    await serve(session, group)
                assert caught.group_contains(OSError)
        assert ends == ["told"]

    anyio.run(main)


def test_a_delivery_whose_owner_goes_while_it_waits_its_turn_is_withdrawn(make_machine, ticker):
    """The instance never hears of it."""

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING)
        released = anyio.Event()

        async def wait(operation: str, request: Value, emit: Emit) -> CallResult:
            await released.wait()
            return await at_once(operation, request, emit)

        results: list[Value] = []

        async def deliver(session: Session) -> None:
            results.append((await session.deliver(MESSAGE, None)).unwrap())

        async with opened(machine, ticker, Scripted(wait)) as session, anyio.create_task_group() as group:
            group.start_soon(deliver, session)
            await until(lambda: bool(machine.open_delivery))
            with anyio.move_on_after(0):
                await session.deliver(MESSAGE, "never mind")
            released.set()
            await until(lambda: bool(results))
            assert (await session.deliver(MESSAGE, None)).unwrap() == 2
        assert results == [1]

    anyio.run(main)


def test_a_delivery_whose_owner_goes_once_it_has_begun_goes_on(make_machine, ticker):
    """Only its outcome is lost."""

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING)
        released = anyio.Event()

        async def wait(operation: str, request: Value, emit: Emit) -> CallResult:
            await released.wait()
            return await at_once(operation, request, emit)

        async with opened(machine, ticker, Scripted(wait)) as session:
            async with anyio.create_task_group() as group:
                group.start_soon(session.deliver, MESSAGE, None)
                await until(lambda: bool(machine.calls))
                group.cancel_scope.cancel()
            released.set()
            assert (await session.deliver(MESSAGE, None)).unwrap() == 2

    anyio.run(main)


def test_a_session_that_is_left_during_a_slice_waits_for_its_end(make_machine, ticker, monkeypatch):
    """Afterwards nobody else touches the machine, so it may be frozen; what the slice asked for is in it."""
    inside, go_on = threading.Event(), threading.Event()
    step = Machine.step

    def slow(self: Machine, event: object, *, deadline_ms: int | None = None) -> object:
        inside.set()
        assert go_on.wait(20)
        return step(self, event, deadline_ms=deadline_ms)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "step", slow)

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING)

        async def let_go(session: Session) -> None:
            await until(lambda: session._left)
            go_on.set()

        async with anyio.create_task_group() as group:
            async with opened(machine, ticker, Scripted(never)) as session:
                group.start_soon(_swallow, session)
                await until(inside.is_set)
                group.start_soon(let_go, session)
            assert [call.operation for call in machine.freeze().calls] == ["llm.chat"]

    anyio.run(main)


async def _swallow(session: Session) -> None:
    with pytest.raises(Interrupted):
        await session.deliver(MESSAGE, None)


def test_an_open_delivery_that_ends_before_anyone_asks_keeps_its_outcome(make_machine, ticker):
    """A restored session serves from the start, not from the first question."""
    machine = make_machine(COUNTS_AFTER_ASKING)
    machine.step(Deliver(1, MESSAGE, b"\xf6", 0))

    async def main() -> None:
        async with opened(machine, ticker) as session:
            await until(lambda: not machine.open_delivery)
            outcome = await session.finish_open()
            assert outcome is not None
            assert outcome.unwrap() == 1
            assert await session.finish_open() is None

    anyio.run(main)


def test_an_interrupt_ends_later_deliveries_too(make_machine, ticker):
    """It is the end of the session's work, not of one delivery."""

    async def main() -> None:
        async with opened(make_machine(COUNTS_AFTER_ASKING), ticker) as session:
            session.interrupt()
            for _ in range(2):
                assert isinstance((await session.deliver(MESSAGE, None)).failure, Interrupted)

    anyio.run(main)


@pytest.mark.parametrize(
    ("timeout_ms", "deadline_ms", "guest_ms", "spent_ms", "named"),
    [
        (100, None, 120.0, 500.0, ("timeout_ms", 120, 100)),
        (100, 1000, 120.0, 500.0, ("timeout_ms", 120, 100)),
        (100, 200, 10.0, 210.5, ("deadline_ms", 211, 200)),
        (100, 200, 120.0, 900.0, ("deadline_ms", 900, 200)),
        # A slice that ended by a clock a little ahead of ours: still the owner's number, not a smaller one.
        (100, None, 99.2, 99.5, ("timeout_ms", 100, 100)),
    ],
)
def test_a_deadline_is_told_as_its_owner_stated_it(
    monkeypatch, timeout_ms, deadline_ms, guest_ms, spent_ms, named
):
    """The bound that was met first, and both numbers."""
    pending = Pending(
        number=1,
        kind=MESSAGE,
        payload=b"",
        timeout_ms=timeout_ms,
        deadline_ms=deadline_ms,
        guest_ms=guest_ms,
    )
    monkeypatch.setattr("runner.session.pending.time.monotonic", lambda: spent_ms / 1000)
    error = pending.deadline_error
    assert isinstance(error, DeadlineExceeded)
    assert (error.limit, error.value, error.bound) == named


def test_a_session_that_was_stopped_feeds_nothing_more_and_gives_nothing_up(make_machine, ticker):
    """So it can be frozen with all that is in flight; what is answered then is not lost."""

    async def main() -> None:
        machine = make_machine(COUNTS_AFTER_ASKING)
        released = anyio.Event()

        async def wait(operation: str, request: Value, emit: Emit) -> CallResult:
            await released.wait()
            return await at_once(operation, request, emit)

        handlers = Scripted(wait)
        async with anyio.create_task_group() as group, opened(machine, ticker, handlers) as session:
            group.start_soon(_swallow, session)
            await until(lambda: bool(handlers.started))
            await session.stop()
            released.set()
            await until(lambda: bool(session.answers))
            assert (session.position, handlers.cancelled) == (1, 0)
            assert [call.number for call in machine.freeze().calls] == [1]

    anyio.run(main)
