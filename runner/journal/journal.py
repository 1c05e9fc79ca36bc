"""
The journal of one instance: records in one order, each durable before the next thing happens.

The order is that of sequence numbers, contiguous from 0. No clock has a say in it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from runner.digest import SIZE_BYTES
from runner.errors import InstanceUnknown, InternalError, JournalCorrupt, JournalPoisoned, RunnerError
from runner.journal import instances, snapshots, wire
from runner.journal.chain import GENESIS, Row, end_of, extend, link
from runner.journal.records import Born
from runner.journal.snapshots import SnapshotRow, StoredSnapshot

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.database import Database
    from runner.journal.instances import Entry
    from runner.journal.lock import InstanceLock
    from runner.journal.records import Record
    from runner.kernel.state import MachineState

_READ_BYTES: Final = 4 << 20
"""
Payloads that a reader holds at once, unless a single one is larger.
"""


class Journal:
    """
    One instance's records, open for reading, and for writing if it holds the lock. Safe to share between
    threads.

    Args:
        database: Where the records are.
        entry: The instance.
        lock: Its lock, or `None` to read only.
        now_ms: The host's clock, for what is listed; nothing is ordered by it.
    """

    keeps: Final = True
    """
    Whether what is appended stays.
    """

    def __init__(
        self, database: Database, entry: Entry, lock: InstanceLock | None, now_ms: Callable[[], int]
    ) -> None:
        self._database = database
        # Where it ends for sure, and with all that was handed in: each write builds on the one before.
        self._entry = self._ahead = entry
        self._lock = lock
        self._now_ms = now_ms
        self._poison: str | None = None
        self._is_closed = False
        self._writing = threading.Lock()
        self._check_end()

    @property
    def name(self) -> str:
        """
        The instance's name.
        """
        return self._entry.name

    @property
    def position(self) -> int:
        """
        Number of records: those that this object has written or found.
        """
        return self._entry.tail.position

    def append(self, records: Sequence[Record], packages: Sequence[bytes] = ()) -> int:
        """
        Write records as one: all or none. They are durable when this returns.

        After a failure nothing can be appended any more: what was meant to be on record is not, or nobody
        knows. Open the instance again and go on from what is there.

        Args:
            records: What happened.
            packages: For each upgrade among them the package that it leads to, in order; kept with them.

        Returns:
            The position after them.

        Raises:
            StaleWriter: If somebody else wrote meanwhile.
            JournalPoisoned: If an earlier append failed.
            RunnerError: Why they could not be written.
        """
        return self.hand_in(records, packages)()

    def hand_in(self, records: Sequence[Record], packages: Sequence[bytes] = ()) -> Callable[[], int]:
        """
        Have records written as one by the next transaction, after those that were handed in before; return
        at once. So many instances can share a transaction without a thread for each.

        Returns:
            Waits until they are durable, and then is as `append`. It has to be called.

        Raises:
            JournalPoisoned: If an earlier append failed.
            RunnerError: Why they are no records that can be written.
        """
        with self._writing:
            self._need_writable()
            try:
                finish = self._enlist(records, packages) if records else None
            except BaseException as error:
                self._spoil(error)
                raise
        return partial(self._finish, finish)

    def read(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Record]]:
        """
        Records by sequence number, from `start` on, up to `end` or all that there are now.

        Each is checked before it is given: its bytes, its fields, and that none before it is missing.

        Raises:
            JournalCorrupt: If a record is damaged or gone; those before it were given.
        """
        tail = self._refreshed().tail
        last = tail.position if end is None else min(end, tail.position)
        expected = self._link_before(start) if start < last else b""
        seq = start
        while seq < last:
            for found in self._fetch(seq, last):
                row = self._checked(found, seq)
                if row.seq != seq:
                    raise JournalCorrupt(self.name, seq, f"missing; record {row.seq} follows")
                expected = link(expected, seq, row.payload)
                if row.chain != expected:
                    raise JournalCorrupt(self.name, seq, "its bytes are not those that were written")
                if seq + 1 == tail.position and row.chain != tail.chain:
                    raise JournalCorrupt(self.name, seq, "the instance ends with another record")
                record = wire.decode(row.payload, name=self.name, seq=seq)
                if isinstance(record, Born) != (seq == 0):
                    raise JournalCorrupt(self.name, seq, "a journal has one birth, at its beginning")
                yield seq, record
                seq += 1

    def put_snapshot(
        self, position: int, state: MachineState, host: dict[str, Value], digest: bytes
    ) -> SnapshotRow:
        """
        Keep a memo of the instance; one at the same position is replaced. It is durable when this returns.

        A failure leaves the journal as it was, and usable.

        Args:
            position: Number of records that it contains.
            state: What the kernel knows of the instance.
            host: What the host holds for it: any map of codec values.
            digest: Digest of the mind.

        Raises:
            JournalPoisoned: If an append failed.
            RunnerError: If it could not be written.
        """
        with self._writing:
            self._need_writable()
            if not 0 < position <= self.position:
                raise InternalError(f"a snapshot of {self.name} at {position} of {self.position} records")
            entry = self._entry
        return snapshots.put(self._database, entry, StoredSnapshot(position, state, host, digest))

    def snapshots(self) -> list[int]:
        """
        Positions of the stored snapshots, oldest first.

        Raises:
            RunnerError: If they can't be read.
        """
        return snapshots.positions(self._database, self._entry)

    def latest_snapshot(self, at_most: int | None = None) -> StoredSnapshot | None:
        """
        The newest snapshot, or the newest that contains no more than `at_most` records; `None` without one.

        Raises:
            SnapshotCorrupt: If it is damaged. Those before it, and the records alone, do as well.
        """
        end = self._refreshed().tail.position
        return snapshots.latest(self._database, self._entry, end if at_most is None else min(at_most, end))

    def close(self) -> None:
        """
        Let go of the instance. Later calls do nothing.
        """
        with self._writing:
            self._is_closed = True
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _need_writable(self) -> None:
        if self._lock is None or self._is_closed:
            raise InternalError(
                f"journal of {self.name} is {'closed' if self._lock else 'open to read only'}"
            )
        if self._poison is not None:
            raise JournalPoisoned(self.name, self._poison)

    def _enlist(self, records: Sequence[Record], packages: Sequence[bytes]) -> Callable[[], Entry]:
        entry = self._ahead
        if any(isinstance(record, Born) for record in records):
            raise InternalError(f"journal of {self.name} has its birth already")
        rows = extend(entry.tail, [wire.encode(record) for record in records])
        standing = entry.standing.after(records, self._now_ms())

        def work(connection: sqlite3.Connection) -> Entry:
            extended = instances.extend(connection, entry, standing, rows)
            instances.note_upgrades(connection, entry.id, rows, records, packages)
            return extended

        self._ahead = replace(entry, tail=end_of(rows), standing=standing)
        return self._database.enlist(work)

    def _finish(self, finish: Callable[[], Entry] | None) -> int:
        if finish is None:
            return self.position
        try:
            entry = finish()
        except BaseException as error:
            self._spoil(error)
            raise
        with self._writing:
            # What was handed in later may have been waited for first.
            self._entry = max(self._entry, entry, key=lambda each: each.tail.position)
        return entry.tail.position

    def _spoil(self, error: BaseException) -> None:
        if self._poison is None:
            self._poison = error.message if isinstance(error, RunnerError) else repr(error)

    def _refreshed(self) -> Entry:
        """
        The instance as it is now; another process may be writing it.
        """
        if self._lock is not None:
            return self._entry
        entry = instances.find(self._database, self.name)
        if entry is None or entry.id != self._entry.id:
            raise InstanceUnknown(self.name)
        if entry.tail.position < self.position:
            raise JournalCorrupt(self.name, entry.tail.position, "it was there, and is gone")
        self._entry = entry
        return entry

    def _link_before(self, seq: int) -> bytes:
        if seq == 0:
            return GENESIS
        return self._checked(self._fetch(seq - 1, seq)[0], seq - 1).chain

    def _fetch(self, start: int, end: int) -> list[tuple[Any, ...]]:
        rows = self._database.read_some(
            "SELECT seq, payload, chain FROM records"
            " WHERE instance = ? AND seq >= ? AND seq < ? ORDER BY seq",
            (self._entry.id, start, end),
            _READ_BYTES,
        )
        if not rows:
            raise JournalCorrupt(self.name, start, "missing")
        return rows

    def _checked(self, row: tuple[Any, ...], seq: int) -> Row:
        found = Row(*row)
        if [type(value) for value in row] != [int, bytes, bytes] or len(found.chain) != SIZE_BYTES:
            raise JournalCorrupt(self.name, seq, "its row has values of wrong types")
        return found

    def _check_end(self) -> None:
        """
        See that the last record is there, and no other after it.
        """
        while True:
            entry = self._entry
            rows = self._database.read(
                "SELECT seq, chain FROM records WHERE instance = ? ORDER BY seq DESC LIMIT 1", (entry.id,)
            )
            tail = entry.tail
            if rows and rows[0] == (tail.position - 1, tail.chain):
                return
            # Its holder may have written between the two looks.
            if self._refreshed() == entry:
                raise JournalCorrupt(
                    self.name, tail.position - 1, "the journal does not end with this record"
                )
