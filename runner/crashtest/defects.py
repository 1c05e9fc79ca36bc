"""
Defects to plant, so that the verdict can be seen to turn red.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.journal.records import Receipt, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner.crashtest.ledger import Ledger
    from runner.journal.records import Record
    from runner.session.crew import Confirm
    from runner.session.recording import Recorder

DEFECTS: Final[dict[str, str]] = {
    "no-start": "starts are not written down: an effect that was cut off looks as if it never began",
    "lost-receipt": "receipts of effects that may not be repeated are not written down",
    "idle-start": "starts say that any effect may be repeated",
}


class FlawedRecorder:
    """
    A recorder that dies at boundaries, and may have a defect.

    Args:
        inner: The journal.
        ledger: Hears of each outcome that the journal has confirmed, or claims to have.
        boundary: Called where the process may die.
        defect: Key of `DEFECTS`, or empty.
    """

    keeps = True

    def __init__(self, inner: Recorder, ledger: Ledger, boundary: Callable[[str], None], defect: str) -> None:
        self._inner = inner
        self._ledger = ledger
        self._boundary = boundary
        self._defect = defect

    def hand_in(self, records: Sequence[Record]) -> Confirm[object]:
        """
        Write records down, but for what the defect drops.
        """
        kept = [flawed for record in records if (flawed := self._flaw(record)) is not None]
        self._boundary("before a commit")
        written = self._inner.hand_in(kept) if kept else None

        def confirm() -> None:
            if written is not None:
                written()
            for record in records:
                if isinstance(record, Receipt):
                    self._ledger.confirm(record.call)
            self._boundary("after a commit")

        return confirm

    def _flaw(self, record: Record) -> Record | None:
        if self._defect == "no-start" and isinstance(record, Start):
            return None
        if self._defect == "lost-receipt" and isinstance(record, Receipt):
            return None
        if self._defect == "idle-start" and isinstance(record, Start):
            return Start(call=record.call, execution=record.execution, effect="idempotent")
        return record
