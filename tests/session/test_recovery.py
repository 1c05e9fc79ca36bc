"""
What a journal says must happen next.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from runner import codec
from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import RunnerError
from runner.journal.records import Intent, Receipt, Slice, Start
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Machine
from runner.session.folding import Fold
from runner.session.recovery import CallHistory, Feed
from runner.session.ticker import Ticker
from tests.session.doubles import Emit, Scripted, never
from tests.session.test_rulings import ASKS, Paper, session_on

CANCELLED = {"kind": "cancelled", "message": "cancelled by the agent"}

# An event: asks, and replies at once. A message: cancels that call, and traps.
CANCELS_AND_ASKS = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 2))
      (then (global.set $count (call $ask)) (call $answer (i32.const 1)))
      (else (drop (call $cancel (global.get $count))) (drop (call $ask)))))
  (func (export "agent_wake") (param i32 i32 i32) nop)"""


def test_a_cancelled_call_that_a_failure_brings_back_is_not_made_again():
    """It was started before it was cancelled, so it may have happened."""
    history = CallHistory()
    history.note(Slice(calls=(Intent(number=1, operation="tool.call", request=b"\xa0"),)))
    history.note(Start(call=1, execution="rex-1-1", effect="effectful"))
    history.note(Slice(cancelled=(1,)))
    history.note(Slice(error={"kind": "trap", "message": "it trapped"}))
    action = history.action(1)
    assert isinstance(action, Feed)
    assert (action.answer.status, codec.decode(action.answer.payload)) == (Status.FAILED, CANCELLED)
    assert history.records([1]) == [
        Receipt(call=1, execution="cancelled", status=int(Status.FAILED), payload=codec.encode(CANCELLED))
    ]


def test_a_process_that_dies_before_a_failure_was_told_goes_on_as_the_other_would(
    make_machine: Callable[..., Machine], ticker: Ticker
):
    """The guest hears that its call was cancelled, and nothing is started again."""
    paper = Paper()

    async def main() -> None:
        with anyio.fail_after(20):
            async with session_on(make_machine(CANCELS_AND_ASKS), ticker, paper, Scripted(never)) as session:
                await session.deliver(DeliveryKind.EVENT, None)
                await session.decide(1, "allow", rule="yes", by="me")
                await session.deliver(DeliveryKind.MESSAGE, None)
                await session.decide(2, "allow", rule="yes", by="me")
                ended = await session.finish_open(deadline_ms=1)
                assert ended is not None
                assert isinstance(ended.failure, RunnerError)

    anyio.run(main)
    failed = max(
        seq for seq, record in enumerate(paper.records) if isinstance(record, Slice) and record.error
    )
    fold = Fold(make_machine(CANCELS_AND_ASKS))
    fold.take(enumerate(paper.records[: failed + 1]))
    assert [call.number for call in fold.machine.calls] == [1]
    action = fold.history.action(1)
    assert isinstance(action, Feed)
    assert codec.decode(action.answer.payload) == CANCELLED


@pytest.mark.parametrize("status", [Status.OK, Status.FAILED])
def test_an_effect_that_is_over_has_its_receipt_although_its_session_is_left(
    make_machine: Callable[..., Machine], ticker: Ticker, status: Status
):
    """Otherwise a person would be asked about what is known."""
    paper = Paper()

    async def main() -> None:
        with anyio.fail_after(20), anyio.CancelScope() as scope:

            async def leave(operation: str, request: Value, emit: Emit) -> CallResult:
                del operation, request, emit
                scope.cancel()
                return CallResult(status, {})

            async with session_on(make_machine(ASKS), ticker, paper, Scripted(leave)) as session:
                await session.deliver(DeliveryKind.MESSAGE, None)
                await session.decide(1, "allow", rule="yes", by="me")
                await session.finish_open()

    anyio.run(main)
    receipts = [record for record in paper.records if isinstance(record, Receipt)]
    assert [(record.call, record.status) for record in receipts] == [(1, status)]
