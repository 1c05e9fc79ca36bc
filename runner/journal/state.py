"""
A state directory: all that the instances of one user are.

    state.db        the database, with its log beside it
    state.mark      says that there must be one
    locks/NAME      who writes the instance, and that it was made

Directories are private to the user, files readable by nobody else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from runner.digest import digest
from runner.errors import InstanceExists, InstanceUnknown, JournalCorrupt, StateUnusable, UsageError
from runner.files import make_private
from runner.journal import instances, snapshots, wire
from runner.journal.chain import START, Row, extend
from runner.journal.collect import GcReport, collect
from runner.journal.database import ELSEWHERE, Database, explained
from runner.journal.instances import Entry
from runner.journal.journal import Journal
from runner.journal.lock import InstanceLock, has_open, holder, was_made
from runner.journal.records import Born, Record
from runner.journal.renew import renew_standings
from runner.journal.snapshots import StoredSnapshot
from runner.journal.standing import Standing, Status, at_birth

STATE_VARIABLE: Final = "RUNNER_STATE"
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
"""
What an instance may be called.
"""

_APPLICATION: Final = "wasm-agent-runner"
_LOCKS: Final = "locks"


def default_state_root(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Where instances live unless told otherwise: `RUNNER_STATE`, or the user's state directory.
    """
    named = environ.get(STATE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs  # noqa: PLC0415 - only those who need it pay for it

    return platformdirs.user_state_path(_APPLICATION, appauthor=False)


def check_name(name: str) -> str:
    """
    The name, if an instance may be called so.

    Raises:
        UsageError: If not.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name for an instance",
            hint="use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit",
        )
    return name


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """
    One instance in a list.

    Attributes:
        name: Its name.
        agent: Name of its agent.
        agent_digest: Digest of the package of the agent that it was born with.
        status: Where it stands, in one word.
        position: Number of its records.
        created_at_ms: When it was made, by the host's clock.
        updated_at_ms: When it was last written to, by the host's clock.
        locked_by: Process that has it open for writing, or `None`.
        parent: Name and position of the journal that it was forked from, or `None`.
    """

    name: str
    agent: str
    agent_digest: bytes
    status: Status
    position: int
    created_at_ms: int
    updated_at_ms: int
    locked_by: int | None
    parent: tuple[str, int] | None


class StateDirectory:
    """
    The instances of one user. Safe to share between threads, and between processes on one machine.

    Args:
        root: The directory, or `None` for the default; made, private to the user, if it is not there.
        sync: Wait for the disk at each commit. Without it a power cut may lose the last records; the death of
            the process can't.
        max_bytes: The most that the database may have, its log aside, or `None`.
        now_ms: The host's clock, for what is listed; nothing is ordered by it.

    Raises:
        StateUnusable: If others could write there, or it can't be used.
        StateTooNew: If a later runner wrote it.
        JournalCorrupt: If it is damaged, or its database is gone.
        DiskFailed: If the disk is full or broken.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        sync: bool = True,
        max_bytes: int | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.root = default_state_root() if root is None else root.absolute()
        self._now_ms = now_ms or (lambda: max(0, time.time_ns() // 1_000_000))
        self._locks = self.root / _LOCKS
        with explained(self.root):
            with contextlib.suppress(FileExistsError):
                self.root.parent.mkdir(parents=True, exist_ok=True)
            _need_private(self.root)
            _need_private(self._locks)
        self._database = Database(self.root, renew_standings, sync=sync, max_bytes=max_bytes)

    def close(self) -> None:
        """
        Close the database. Journals of it can't be used afterwards; close them first.
        """
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def create(
        self,
        name: str,
        born: Born,
        agent: bytes,
        past: Sequence[Record] = (),
        origin: StoredSnapshot | None = None,
        upgrades: Sequence[bytes] = (),
    ) -> None:
        """
        Make an instance: it is there with its past and its origin, or not at all.

        Args:
            name: What it is called.
            born: Its first record.
            agent: Its agent's package; kept once for all instances that have the same.
            past: Records that follow its birth, when it takes over from another.
            origin: The snapshot that it begins with, at position 1, when it does not begin at its image.
            upgrades: For each upgrade in its past the package that it leads to, in order.

        Raises:
            UsageError: If the name is not one.
            InstanceExists: If the name is taken.
            InstanceBusy: If somebody else is making or removing it.
            JournalCorrupt: If there was such an instance and its journal is gone.
        """
        lock = self._lock(name)
        try:
            if instances.find(self._database, name) is not None:
                raise InstanceExists(name)
            if lock.was_made:
                raise _lost(name)
            rows = extend(START, [wire.encode(record) for record in (born, *past)])
            begun = at_birth(born, self._now_ms(), origin.state if origin else None)
            standing = begun.after(past, self._now_ms())
            encoded = None if origin is None else snapshots.encode(self._database, name, origin)

            def work(connection: sqlite3.Connection) -> None:
                instance = _create(connection, name, agent, standing, rows)
                instances.note_upgrades(connection, instance, rows, (born, *past), upgrades)
                if encoded is not None:
                    encoded.store(connection, instance)

            self._database.write(work)
            with explained(self.root):
                lock.mark_made()
        finally:
            lock.release()

    def names(self) -> list[InstanceRow]:
        """
        All instances, by name.

        Raises:
            JournalCorrupt: If one of them is damaged, or gone.
        """
        with explained(self.root):
            witnesses = {name for name in os.listdir(self._locks) if NAME.fullmatch(name)}
        entries = instances.list_all(self._database)
        for name in sorted(witnesses - {entry.name for entry in entries}):
            # Whoever removes an instance takes its witness first.
            with explained(self.root):
                is_made = was_made(self._locks / name)
            if is_made and instances.find(self._database, name) is None:
                raise _lost(name)
        return [self._row(entry) for entry in entries]

    def agent(self, name: str, package: bytes | None = None) -> bytes:
        """
        The package of an instance's agent.

        Args:
            name: The instance.
            package: Its digest, as a record of an upgrade names it; `None` for the one that it was born with.

        Raises:
            InstanceUnknown: If there is no such instance.
            JournalCorrupt: If it is damaged.
        """
        entry = self._find(name)
        key = entry.agent if package is None else package
        rows = self._database.read("SELECT content FROM agents WHERE digest = ?", (key,))
        content = rows[0][0] if rows else None
        if not isinstance(content, bytes) or digest(content) != key:
            raise JournalCorrupt(name, None, "its agent is not what was stored")
        return content

    def open(self, name: str, *, write: bool) -> Journal:
        """
        The journal of an instance.

        Args:
            name: The instance.
            write: Take its lock, so that nobody else writes until the journal is closed or this process dies.

        Raises:
            InstanceUnknown: If there is no such instance.
            InstanceBusy: If somebody else has it open for writing.
            JournalCorrupt: If it is damaged.
        """
        entry = self._find(name)
        if not write:
            return Journal(self._database, entry, None, self._now_ms)
        lock = self._lock(name)
        try:
            # Read again: who held the lock before may have written, or removed it.
            entry = self._find(name)
            if not lock.was_made:
                with explained(self.root):
                    lock.mark_made()
            return Journal(self._database, entry, lock, self._now_ms)
        except BaseException:
            lock.release()
            raise

    def remove(self, name: str) -> None:
        """
        Remove an instance with its journal and snapshots. What only it used stays on the disk until `gc`.

        Raises:
            InstanceUnknown: If there is no such instance.
            InstanceBusy: If somebody else has it open for writing.
        """
        self._find(name)
        lock = self._lock(name)
        try:
            # Found again: another of that name may have been made meanwhile.
            entry = self._find(name)
            with explained(self.root):
                lock.unmake()
            self._database.write(
                lambda connection: connection.execute("DELETE FROM instances WHERE id = ?", (entry.id,))
            )
        finally:
            lock.release()

    def is_held_by(self, name: str, pid: int) -> bool:
        """
        Whether a process of this machine is the one that has an instance open, and not another that has its
        number.
        """
        with explained(self.root):
            return has_open(self._locks / check_name(name), pid)

    def gc(self, keep: int, name: str | None = None) -> GcReport:
        """
        Remove old snapshots, and pages and agents that nobody uses; give the room back to the disk.

        Args:
            keep: How many snapshots of an instance stay: the newest. Journals stay whole.
            name: Remove snapshots of this instance only, or `None` for all.

        Raises:
            InstanceUnknown: If there is no such instance.
            RunnerError: If the database can't be written.
        """
        if name is not None:
            self._find(name)
        before_bytes = self._database.size_bytes()
        report = self._database.write(lambda connection: collect(connection, keep, name))
        self._database.give_back()
        return replace(report, freed_bytes=max(0, before_bytes - self._database.size_bytes()))

    def _find(self, name: str) -> Entry:
        entry = instances.find(self._database, check_name(name))
        if entry is None:
            with explained(self.root):
                is_made = was_made(self._locks / name)
            raise _lost(name) if is_made else InstanceUnknown(name)
        return entry

    def _lock(self, name: str) -> InstanceLock:
        with explained(self.root):
            return InstanceLock(self._locks / check_name(name), name)

    def _row(self, entry: Entry) -> InstanceRow:
        with explained(self.root):
            locked_by = holder(self._locks / entry.name)
        standing = entry.standing
        return InstanceRow(
            name=entry.name,
            agent=standing.agent,
            agent_digest=entry.agent,
            status=standing.status(is_held=locked_by is not None),
            position=entry.tail.position,
            created_at_ms=standing.created_at_ms,
            updated_at_ms=standing.updated_at_ms,
            locked_by=locked_by,
            parent=standing.parent,
        )


def _create(
    connection: sqlite3.Connection,
    name: str,
    agent: bytes,
    standing: Standing,
    rows: list[Row],
) -> int:
    key = digest(agent)
    connection.execute("INSERT OR IGNORE INTO agents (digest, content) VALUES (?, ?)", (key, agent))
    return instances.insert(connection, name, key, standing, rows)


def _lost(name: str) -> JournalCorrupt:
    return JournalCorrupt(name, None, "the instance was made and its journal is gone")


def _need_private(directory: Path) -> None:
    exposure = make_private(directory)
    if exposure is not None:
        raise StateUnusable(str(directory), exposure.problem, hint=exposure.fix or ELSEWHERE)
