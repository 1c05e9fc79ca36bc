"""
Group commit: whoever writes while another waits for the disk goes with the next transaction.

There is no thread of its own. Whoever finds nobody at work takes all that wait and makes one transaction of
them; those who come meanwhile are the next group. One writer alone pays for no switch of threads, and a
hundred share one sync of the disk, be they threads that wait or writes that one thread has enlisted.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

MAX_GROUP: Final = 256
"""
Writes in one transaction; bounds how long the first of them waits for the last.
"""


class _Write:
    """
    One piece of work, and what came of it.
    """

    __slots__ = ("error", "is_done", "result", "work")

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False

    def fail(self, error: BaseException) -> None:
        self.error, self.is_done = error, True


class _OneFailedError(Exception):
    """
    Raised inside this module when one of a group could not be done.
    """


class Committer:
    """
    The one way to write through a connection. Safe to share between threads.

    Args:
        connection: In autocommit mode; nobody else writes through it.
        check: Called at the start of each transaction; what it raises fails the transaction.
    """

    def __init__(self, connection: sqlite3.Connection, check: Callable[[sqlite3.Connection], None]) -> None:
        self._connection = connection
        self._check = check
        self._at_work = threading.Lock()
        self._waiting: list[_Write] = []
        self._gathering = threading.Lock()

    def write(self, work: Work[T]) -> T:
        """
        Do `work` in a transaction, perhaps together with others; return when it is durable.

        If it raises, nothing of it is kept and the others are not touched. It may be called twice: when one
        of a group fails, all are done again one by one.

        Raises:
            BaseException: What `work` raised, or why the transaction failed. When the connection failed, or
                the caller was interrupted, the work may be kept all the same.
        """
        return self.enlist(work)()

    def enlist(self, work: Work[T]) -> Callable[[], T]:
        """
        Have `work` done by the next transaction, after what was enlisted before it; return at once.

        Returns:
            Waits until it is durable, and then is as `write`. Whoever enlists calls it: it is what makes
            the transaction, unless another writer has made it by then.
        """
        write = _Write(work)
        with self._gathering:
            self._waiting.append(write)
        return partial(self._finish, write)

    def _finish(self, write: _Write) -> Any:
        try:
            with self._at_work:
                # More may wait than one group takes, and this one be among the last.
                while not write.is_done:
                    self._commit(self._gather())
        except BaseException:
            with self._gathering, contextlib.suppress(ValueError):
                self._waiting.remove(write)
            raise
        if write.error is not None:
            raise write.error
        return write.result

    def alone(self, work: Work[object]) -> None:
        """
        Do `work` outside any transaction, while nobody else writes.

        Raises:
            BaseException: What `work` raised.
        """
        with self._at_work:
            work(self._connection)

    def _gather(self) -> list[_Write]:
        with self._gathering:
            group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
        return group

    def _commit(self, group: list[_Write]) -> None:
        try:
            self._transact(group)
        except _OneFailedError as failed:
            if len(group) == 1:
                group[0].fail(failed.args[0])
            else:
                for write in group:
                    self._commit([write])
        except Exception as error:  # noqa: BLE001 - each writer is told
            for write in group:
                write.fail(error)
        except BaseException as interruption:
            for write in group:
                write.fail(interruption)
            raise

    def _transact(self, group: list[_Write]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._check(connection)
            for write in group:
                try:
                    write.result = write.work(connection)
                except Exception as error:
                    raise _OneFailedError(error) from error
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
        for write in group:
            write.is_done = True
