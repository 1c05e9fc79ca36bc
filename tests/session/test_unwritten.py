"""
What can't be written down does not go on, and says so as itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import anyio
import pytest

from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import DiskFailed, Interrupted
from runner.journal.records import Decision, Delivery, EffectClass, Receipt, Record, Slice, Start
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Machine
from runner.kernel.state import Call
from runner.policy.gate import Ruling
from runner.session.chronicle import Chronicle
from runner.session.recording import Recorder
from runner.session.recovery import CallHistory
from runner.session.session import Session
from runner.session.ticker import Ticker
from tests.session.doubles import Emit, Scripted, at_once, until

ASKS = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n)) (drop (call $ask)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (call $answer (i32.const 1)))
"""


class Allows:
    """
    A gate that lets every call through, once.
    """

    def judge(self, call: Call) -> Ruling:
        """Allow."""
        del call
        return Ruling("allow", "granted")

    def effect(self, call: Call) -> EffectClass:
        """Nothing may be repeated, so receipts are written at once."""
        del call
        return "effectful"


class FailsAt:
    """
    A journal whose disk breaks when it comes to a kind of record.
    """

    keeps = True

    def __init__(self, kind: type[Record]) -> None:
        self._kind = kind

    def hand_in(self, records: Sequence[Record]) -> Callable[[], object]:
        """Write, or fail."""

        def confirm() -> None:
            if any(isinstance(record, self._kind) for record in records):
                raise DiskFailed("here", "input/output error")

        return confirm


@pytest.mark.parametrize("kind", [Slice, Receipt])
def test_a_journal_that_can_not_be_written_ends_the_session_with_its_own_error(
    make_machine: Callable[..., Machine], ticker: Ticker, kind: type[Record]
):
    """Whoever waits for the delivery does not wait for ever, and nobody has to open a group of errors."""

    async def main() -> None:
        chronicle = Chronicle(FailsAt(kind), Allows(), CallHistory(), name="a", clock_ms=lambda: 0)
        session = Session(
            make_machine(ASKS),
            Scripted(at_once),
            ticker,
            on_log=lambda _line: None,
            chronicle=chronicle,
        )
        with anyio.fail_after(20):
            async with session:
                await session.deliver(DeliveryKind.MESSAGE, None)

    with pytest.raises(DiskFailed):
        anyio.run(main)


class MayRepeat(Allows):
    """
    A gate whose effects may all be made again, so their receipts wait for the next transaction.
    """

    def effect(self, call: Call) -> EffectClass:
        """As a model's answer: it costs money, and changes nothing."""
        del call
        return "idempotent"


class Remembers:
    """
    A journal in memory.
    """

    keeps = True

    def __init__(self) -> None:
        self.records: list[Record] = []

    def hand_in(self, records: Sequence[Record]) -> Callable[[], object]:
        """Keep them."""
        return lambda: self.records.extend(records)


async def _stop_before_the_answer(machine: Machine, ticker: Ticker, recorder: Recorder) -> None:
    """A session that is told to stop while its effect is under way, and left when that is over."""
    may_end, has_ended = anyio.Event(), anyio.Event()

    async def behave(operation: str, request: Value, emit: Emit) -> CallResult:
        await may_end.wait()
        has_ended.set()
        return await at_once(operation, request, emit)

    handlers = Scripted(behave)
    session = Session(
        machine,
        handlers,
        ticker,
        on_log=lambda _line: None,
        chronicle=Chronicle(recorder, MayRepeat(), CallHistory(), name="a", clock_ms=lambda: 0),
    )

    async def deliver() -> None:
        with contextlib.suppress(Interrupted):
            await session.deliver(DeliveryKind.MESSAGE, None)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group, session:
            group.start_soon(deliver)
            await until(lambda: bool(handlers.started))
            await session.stop()
            may_end.set()
            await has_ended.wait()
            await until(lambda: bool(session.answers))


def test_what_was_paid_for_is_written_when_the_session_is_left(
    make_machine: Callable[..., Machine], ticker: Ticker
):
    """No slice comes that its receipt could ride with; without it the effect would be made again."""
    recorder = Remembers()
    anyio.run(_stop_before_the_answer, make_machine(ASKS), ticker, recorder)
    assert [type(record) for record in recorder.records] == [Delivery, Slice, Decision, Start, Receipt]


def test_an_outcome_that_can_not_be_written_in_the_end_is_none(
    make_machine: Callable[..., Machine], ticker: Ticker
):
    """As if the process had died there: the session was left, and nothing more was promised."""
    anyio.run(_stop_before_the_answer, make_machine(ASKS), ticker, FailsAt(Receipt))
