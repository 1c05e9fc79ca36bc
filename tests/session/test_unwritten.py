"""
What can't be written down does not go on, and says so as itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from runner.errors import DiskFailed
from runner.journal.records import EffectClass, Receipt, Record, Slice
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Machine
from runner.kernel.state import Call
from runner.policy.gate import Ruling
from runner.session.chronicle import Chronicle
from runner.session.recovery import CallHistory
from runner.session.session import Session
from runner.session.ticker import Ticker
from tests.session.doubles import Scripted, at_once

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

    def append(self, records: Sequence[Record]) -> int:
        """Write, or fail."""
        if any(isinstance(record, self._kind) for record in records):
            raise DiskFailed("here", "input/output error")
        return len(records)


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
