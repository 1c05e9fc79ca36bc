"""
What the host holds for an instance beside its machine: notes, usage, how far the script was followed.

Like the mind, it is a function of the journal: folded over receipts, so that nothing of it can be lost or kept
twice when a process dies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner import codec
from runner.capabilities.usage import UsageMeter
from runner.errors import JournalCorrupt, SnapshotCorrupt
from runner.journal.records import Receipt, Slice
from runner.kernel.abi import Status
from runner.memory.notes import InMemoryNotes
from runner.providers.base import Usage

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.records import Record
    from runner.providers.scripted import ScriptedProvider

_ASKS: Final = frozenset({"llm.chat", "llm.complete"})


@dataclass(slots=True)
class Held:
    """
    The host's part of one instance.
    """

    provider: ScriptedProvider
    notes: InMemoryNotes = field(default_factory=InMemoryNotes)
    usage: UsageMeter = field(default_factory=UsageMeter)

    def to_wire(self) -> dict[str, Value]:
        """
        All of it, as a snapshot carries it.
        """
        return {
            "notes": self.notes.to_wire(),
            "provider": self.provider.to_wire(),
            "usage": self.usage.to_wire(),
        }

    def take_back(self, wire: dict[str, Value], path: Path) -> None:
        """
        Go on with what `to_wire` gave.

        Raises:
            SnapshotCorrupt: If it is not that.
        """
        try:
            self.notes = InMemoryNotes.from_wire(wire["notes"])
            self.provider.restore(wire["provider"])
            self.usage = UsageMeter.from_wire(wire["usage"])
        except (KeyError, ValueError) as error:
            raise SnapshotCorrupt(f"what the host held is not readable: {error}", path=str(path)) from error


class HeldFold:
    """
    Brings the host's part up to a journal.

    Args:
        held: At the state after the records before.
        instance: Name, for errors.
    """

    def __init__(self, held: Held, instance: str) -> None:
        self._held = held
        self._instance = instance
        self._calls: dict[int, tuple[str, bytes]] = {}

    def learn(self, record: Record) -> None:
        """
        Take in which calls were made, of a record whose outcome is in the snapshot already.
        """
        if isinstance(record, Slice):
            self._calls.update((call.number, (call.operation, call.request)) for call in record.calls)

    async def note(self, seq: int, record: Record) -> None:
        """
        Take in the next record.

        Raises:
            JournalCorrupt: If a receipt does not follow from what came before it.
        """
        self.learn(record)
        if isinstance(record, Receipt) and record.call in self._calls:
            operation, request = self._calls[record.call]
            await self._apply(seq, operation, codec.decode(request), record)

    async def _apply(self, seq: int, operation: str, request: Any, receipt: Receipt) -> None:
        answer = codec.decode(receipt.payload)
        done = receipt.status == Status.OK
        if operation in _ASKS and receipt.status in (Status.OK, Status.FAILED):
            usage = answer.get("usage", {}) if done else {}
            self._held.usage.add(Usage(usage.get("input_tokens"), usage.get("output_tokens")))
            self._held.provider.restore({"requests": self._held.usage.calls})
        elif operation == "memory.save" and done:
            if await self._held.notes.save(request["title"], request["content"]) != answer["id"]:
                raise JournalCorrupt(self._instance, seq, "a note that was kept under another name")
        elif operation == "memory.forget" and done:
            await self._held.notes.forget(request["id"])
