"""
Folding a journal over an image: recovery, replay, time travel and verification are this one act.

An agent is a function of its image and its recorded inputs. So the same inputs must make the same requests
and leave the same memory; where they don't, either the record or the host is wrong, and nothing may go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import Nondeterminism, RecordedFailure
from runner.journal.records import Abandoned, Delivery, Slice, Tried, Wake, Woken
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Deliver
from runner.kernel.machine import Wake as WakeInput
from runner.kernel.state import Answer, LastSnapshot, Restored
from runner.session.recording import slice_record
from runner.session.recovery import CallHistory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.journal.records import Record
    from runner.kernel.machine import Machine, StepResult


class Fold:
    """
    A machine, brought up to a journal. When a record says that the instance goes on under another module, it
    is for the caller to put the machine of that in the place of this one.

    Args:
        machine: At the state after the record `position - 1`.
        position: Number of the first record that is to come.
    """

    def __init__(self, machine: Machine, position: int = 0) -> None:
        self.machine = machine
        self.position = position
        self.history = CallHistory()
        self._input: Delivery | Wake | Abandoned | None = None

    def take(self, records: Iterable[tuple[int, Record]]) -> None:
        """
        Fold records over the machine, in order.

        Raises:
            Nondeterminism: If the guest asks for something else than it did, or ends with another memory.
        """
        for seq, record in records:
            self._take_one(seq, record)
            self.position = seq + 1

    def _take_one(self, seq: int, record: Record) -> None:
        self.history.note(record)
        if isinstance(record, Delivery | Wake | Abandoned):
            self._input = record
        elif isinstance(record, Slice):
            self._compare(seq, record, self._step(record))
        elif isinstance(record, Woken):
            restored = Restored(record.count, record.generation, record.at_ms)
            self.machine.begin_life(restored, record.entropy or None)
        elif isinstance(record, Tried):
            known = LastSnapshot(record.ok, record.size_bytes, record.at_ms, record.error)
            self.machine.learn_snapshot(known)

    def _step(self, recorded: Slice) -> StepResult:
        failed = RecordedFailure(recorded.error) if recorded.by_clock and recorded.error else None
        match self._input:
            case Delivery() as given:
                kind = DeliveryKind(given.kind)
                event = Deliver(given.number, kind, given.payload, given.now_ms)
                return self.machine.step(event, failed=failed)
            case Wake() as given:
                answer = Answer(given.call, given.status, given.payload)
                return self.machine.step(WakeInput(answer, given.now_ms), failed=failed)
            case Abandoned() as given:
                return self.machine.abandon(RecordedFailure(given.error))
            case _:
                msg = "a slice without an input"
                raise ValueError(msg)

    def _compare(self, seq: int, recorded: Slice, result: StepResult) -> None:
        observed = slice_record(result, self.machine.digest(), by_clock=recorded.by_clock)
        for name in Slice.__dataclass_fields__:
            was, now = getattr(recorded, name), getattr(observed, name)
            # The engine's next release may count fuel a little differently; memory and requests may not.
            if name != "fuel" and was != now:
                raise Nondeterminism(seq, name, str(was), str(now))
