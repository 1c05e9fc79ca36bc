"""
The database of one state directory: opened with care, and its errors explained.

Input: untrusted, as far as damage goes. SQLite finds much of it; what it can't find is found by digests in
the tables (`chain`, `instances`, `snapshots`). A database that is gone or empty is told from one that never
was by a mark beside it, and is never made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from runner.errors import (
    DiskFailed,
    InternalError,
    JournalCorrupt,
    RunnerError,
    StateFull,
    StateTooNew,
    StateUnusable,
)
from runner.files import PRIVATE_FILE_MODE, is_disk_failure, write_whole
from runner.journal import schema
from runner.journal.committer import Committer, Work

T = TypeVar("T")

DATABASE: Final = "state.db"
MARK: Final = "state.mark"
LOCK: Final = "state.lock"
BUSY_TIMEOUT_S: Final = 30.0
"""
How long a write waits for another process's.
"""

ELSEWHERE: Final = "choose another with --state or RUNNER_STATE"

_MARK_TEXT: Final = b"A runner state directory was made here.\n"
_SETTINGS: Final = (
    "PRAGMA journal_mode = WAL",
    # Where the system's own sync does not reach the disk (macOS), ask for the one that does.
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
)
_SHOWN_CHARS: Final = 200
_DISK_FULL: Final = frozenset({sqlite3.SQLITE_FULL})
_DISK_BROKEN: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOLFS})
_READ_ONLY: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_OURS: Final = frozenset({sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_INTERRUPT})


class Database:
    """
    Two connections, one that reads and one that writes. Safe to share between threads.

    A process that was forked must open its own.

    Args:
        root: The directory; it exists and is private.
        renew: Makes anew what is only a memo of the rest, when an older database has been upgraded.
        sync: Wait for the disk at each commit. Without it a power cut may lose the last commits; the death of
            the process can't.
        max_bytes: The most that the database may have, its log aside, or `None`.

    Raises:
        StateUnusable: If it can't be opened for reading and writing.
        StateTooNew: If a later runner wrote it.
        JournalCorrupt: If it is damaged, or gone.
        DiskFailed: If the disk is full or broken.
    """

    def __init__(
        self,
        root: Path,
        renew: Callable[[sqlite3.Connection], None],
        *,
        sync: bool = True,
        max_bytes: int | None = None,
    ) -> None:
        self.root = root
        self._renew = renew
        self._max_bytes = max_bytes
        self._reading = threading.Lock()
        with contextlib.ExitStack() as undo, explained(root):
            self._ensure()
            self._writer = self._connect(sync=sync)
            undo.callback(self._writer.close)
            if max_bytes is not None:
                self._writer.execute(
                    f"PRAGMA max_page_count = {max(1, max_bytes // _page_bytes(self._writer))}"
                )
            self._reader = self._connect(sync=sync)
            undo.callback(self._reader.close)
            self._reader.execute("PRAGMA query_only = ON")
            undo.pop_all()
        self._committer = Committer(self._writer, self._check_version)

    def close(self) -> None:
        """
        Close the connections. Nothing may be used afterwards.
        """
        with self._reading:
            self._reader.close()
        self._writer.close()

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """
        All rows of a query.

        Raises:
            RunnerError: If the database can't be read.
        """
        return self.read_some(sql, parameters, None)

    def read_some(
        self, sql: str, parameters: Sequence[Any], bound_bytes: int | None
    ) -> list[tuple[Any, ...]]:
        """
        The first rows of a query: no more once their byte strings exceed `bound_bytes`, but at least one.

        Raises:
            RunnerError: If the database can't be read.
        """
        rows: list[tuple[Any, ...]] = []
        size_bytes = 0
        with self._reading, explained(self.root):
            cursor = self._reader.execute(sql, parameters)
            try:
                for row in cursor:
                    rows.append(row)
                    size_bytes += sum(len(value) for value in row if isinstance(value, bytes))
                    if bound_bytes is not None and size_bytes > bound_bytes:
                        break
            finally:
                # A query left open would keep the log from being folded back.
                cursor.close()
        return rows

    def write(self, work: Work[T]) -> T:
        """
        Do `work` in a transaction; return when it is durable. See `Committer.write`.

        Raises:
            StateFull: If the database would be larger than it may be.
            RunnerError: Why it could not be done.
        """
        return self.enlist(work)()

    def enlist(self, work: Work[T]) -> Callable[[], T]:
        """
        Have `work` done by the next transaction. See `Committer.enlist`.

        Returns:
            Waits until it is durable, and then is as `write`.
        """
        return partial(self._finish, self._committer.enlist(work))

    def _finish(self, finish: Callable[[], T]) -> T:
        try:
            with explained(self.root):
                return finish()
        except DiskFailed as error:
            self._blame_bound(error)
            raise

    def _blame_bound(self, error: DiskFailed) -> None:
        """
        Tell our own bound from a disk that is full: SQLite says the same of both.
        """
        cause = error.__cause__
        if self._max_bytes is None or getattr(cause, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
            return
        pages = int(self.read("PRAGMA page_count")[0][0])
        raise StateFull(str(self.root), pages * _page_bytes(self._reader), self._max_bytes) from error

    def size_bytes(self) -> int:
        """
        What the database and its log take on the disk.

        Raises:
            RunnerError: If it can't be looked at.
        """
        with explained(self.root):
            paths = (self.root / DATABASE, self.root / f"{DATABASE}-wal")
            return sum(path.stat().st_size for path in paths if path.exists())

    def give_back(self) -> None:
        """
        Return free pages, and the log, to the file system.

        Raises:
            RunnerError: If the database can't be written.
        """
        with explained(self.root):
            self._committer.alone(_shrink)

    def _check_version(self, connection: sqlite3.Connection) -> None:
        # Another process may have upgraded it since it was opened.
        found = schema.version_of(connection)
        if found != len(schema.STEPS):
            raise StateTooNew(str(self.root), found, len(schema.STEPS))

    def _ensure(self) -> None:
        """
        See that there is a database of this version.
        """
        path = self.root / DATABASE
        if (self.root / MARK).exists():
            if not path.exists() or not path.stat().st_size:
                raise JournalCorrupt(str(self.root), None, f"{DATABASE} is gone or empty")
            with self._opened() as connection:
                version = self._known_version(connection)
            if version == len(schema.STEPS):
                return
        with _locked(self.root / LOCK):
            with contextlib.suppress(FileExistsError):
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                # SQLite gives the log and its index the mode that it finds here.
                os.close(os.open(path, flags, PRIVATE_FILE_MODE))
            with self._opened() as connection:
                if not (self.root / MARK).exists() and schema.is_blank(connection):
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                else:
                    self._known_version(connection)
                if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                    raise StateUnusable(
                        str(self.root), "is on a file system without shared memory", hint=ELSEWHERE
                    )
                schema.upgrade(connection, schema.STEPS, self._renew)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            write_whole(self.root / MARK, _MARK_TEXT)

    def _known_version(self, connection: sqlite3.Connection) -> int:
        version = schema.version_of(connection)
        if not schema.is_ours(connection) or version <= 0:
            raise JournalCorrupt(str(self.root), None, f"{DATABASE} is not the database of a state directory")
        if version > len(schema.STEPS):
            raise StateTooNew(str(self.root), version, len(schema.STEPS))
        return version

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        connection = _open(self.root / DATABASE)
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self, *, sync: bool) -> sqlite3.Connection:
        connection = _open(self.root / DATABASE)
        try:
            for setting in _SETTINGS:
                connection.execute(setting).fetchone()
            connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
        except BaseException:
            connection.close()
            raise
        return connection


@contextlib.contextmanager
def explained(root: Path) -> Iterator[None]:
    """
    Turn what SQLite and the system raise into errors that name the directory and what to do.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, root) from error
    except UnicodeDecodeError as error:
        # SQLite quotes what it found, and Python can't read that.
        raise JournalCorrupt(str(root), None, "a name or text in it is no text") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if is_disk_failure(error):
            raise DiskFailed(str(root), reason) from error
        raise StateUnusable(str(root), f"can't be used: {reason}", hint=ELSEWHERE) from error


def explain(error: sqlite3.Error, root: Path) -> RunnerError:
    """
    The error that a user can do something about.
    """
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the code, the rest narrows it down.
    primary = None if code is None else code & 0xFF
    if primary in _DISK_FULL:
        return DiskFailed(str(root), "the disk is full")
    if primary in _DISK_BROKEN:
        return DiskFailed(str(root), f"the disk failed: {error}")
    if primary in _READ_ONLY:
        return StateUnusable(str(root), "can't be written to", hint=ELSEWHERE)
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StateUnusable(str(root), "can't be opened", hint=f"see who may write there, or {ELSEWHERE}")
    if primary in _LOCKED:
        problem = f"is locked by another process for more than {BUSY_TIMEOUT_S:.0f} s"
        return StateUnusable(str(root), problem, hint="end the process that holds it, and try again")
    if primary in _OURS or isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return InternalError(f"state {root}: {error}")
    # Our statements are fixed, so one that fails has met tables or values that are not ours.
    return JournalCorrupt(str(root), None, _shown(str(error)))


def _shown(text: str) -> str:
    """
    What SQLite said, which may quote damaged text: short, and without control characters.
    """
    return "".join(char if char.isprintable() else "?" for char in text[:_SHOWN_CHARS])


def _open(path: Path) -> sqlite3.Connection:
    # Opening must never make a file: one that is gone is damage.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


def _page_bytes(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _shrink(connection: sqlite3.Connection) -> None:
    # The pragma frees one page at each step, and only a script is stepped to its end.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """
    One process at a time makes or upgrades a database.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
