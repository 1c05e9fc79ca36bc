"""
The host's part of an instance as a function of its journal: folded over receipts, so that nothing of it can
be lost or kept twice when a process dies.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runner import codec
from runner.capabilities.progress import meter_step
from runner.errors import JournalCorrupt
from runner.journal.records import Receipt, Slice, Start
from runner.kernel.abi import Status
from runner.providers.base import Usage
from runner.session.recovery import is_step

if TYPE_CHECKING:
    from runner.journal.records import Intent, Record
    from runner.kernel.state import Call
    from runner.wiring.held import Held

_T = TypeVar("_T")
_ASKS: Final = frozenset({"llm.chat", "llm.complete"})


class HeldFold:
    """
    Brings the host's part up to a journal.

    Args:
        held: At the state after the records before.
        instance: Name, for errors.
    """

    def __init__(self, held: Held, instance: str) -> None:
        self.held = held
        self._instance = instance
        self._calls: dict[int, tuple[str, bytes]] = {}
        # Calls whose requests are on record one by one.
        self._stepped: set[int] = set()

    def fork(self) -> HeldFold:
        """
        The same over a copy.
        """
        other = HeldFold(self.held.copy(), self._instance)
        other._calls, other._stepped = dict(self._calls), set(self._stepped)
        return other

    def learn(self, record: Record) -> None:
        """
        Take in which calls were made, of a record whose outcome is in the snapshot already.
        """
        if isinstance(record, Slice):
            self.learn_calls(record.calls)
        elif isinstance(record, Start | Receipt) and is_step(record):
            self._stepped.add(record.call)

    def learn_calls(self, calls: Iterable[Call | Intent]) -> None:
        """
        Take in calls that were made.
        """
        self._calls.update((call.number, (call.operation, call.request)) for call in calls)

    def note(self, seq: int, record: Record) -> None:
        """
        Take in the next record.

        Raises:
            JournalCorrupt: If a receipt does not follow from what came before it.
        """
        self.learn(record)
        if isinstance(record, Receipt) and is_step(record):
            if meter_step(self.held.usage, record.payload):
                self._follow_provider()
        elif isinstance(record, Receipt) and record.call in self._calls:
            operation, request = self._calls[record.call]
            self._apply(seq, operation, codec.decode(request), record)

    def _apply(self, seq: int, operation: str, request: Any, receipt: Receipt) -> None:
        answer = codec.decode(receipt.payload)
        done = receipt.status == Status.OK
        if operation in _ASKS and receipt.call in self._stepped:
            return
        if operation in _ASKS and receipt.status in (Status.OK, Status.FAILED):
            # As releases wrote it that knew of no steps.
            usage = answer.get("usage", {}) if done else {}
            self.held.usage.add(Usage(usage.get("input_tokens"), usage.get("output_tokens")))
            self._follow_provider()
        elif operation == "memory.save" and done:
            if _at_once(self.held.notes.save(request["title"], request["content"])) != answer["id"]:
                raise JournalCorrupt(self._instance, seq, "a note that was kept under another name")
        elif operation == "memory.forget" and done:
            _at_once(self.held.notes.forget(request["id"]))

    def _follow_provider(self) -> None:
        if self.held.provider is not None:
            self.held.provider.restore({"again": [], "requests": self.held.usage.calls})


def _at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """
    What a coroutine that waits for nothing returns.
    """
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    msg = "notes in memory have nothing to wait for"
    raise AssertionError(msg)
