"""
Group commit: those who wait together are committed together, and each is told its own outcome.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.journal.committer import MAX_GROUP, Committer, _Write


class Counted:
    """
    A connection that counts its transactions.
    """

    def __init__(self, path: Path) -> None:
        self.commits = 0
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("CREATE TABLE t (x PRIMARY KEY)")
        self.connection.set_trace_callback(self._note)

    def _note(self, statement: str) -> None:
        self.commits += statement == "COMMIT"

    def rows(self) -> list[object]:
        """
        What was kept, in order.
        """
        return [value for (value,) in self.connection.execute("SELECT x FROM t ORDER BY x")]


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    """
    A database with one table.
    """
    counted = Counted(tmp_path / "db")
    yield counted
    counted.connection.close()


@pytest.fixture
def committer(counted: Counted) -> Committer:
    """
    Its committer.
    """
    return Committer(counted.connection, lambda _: None)


def insert(value: object) -> Callable[[sqlite3.Connection], object]:
    """
    Work that keeps a value and gives it back.
    """

    def work(connection: sqlite3.Connection) -> object:
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        return value

    return work


def together(committer: Committer, works: list[Callable[[sqlite3.Connection], object]]) -> list[object]:
    """
    What came of each work, when all of them wait for one that holds the database.
    """
    is_held, go_on = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        is_held.set()
        go_on.wait()

    def outcome(work: Callable[[sqlite3.Connection], object]) -> object:
        try:
            return committer.write(work)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            return error

    with ThreadPoolExecutor(len(works) + 1) as pool:
        holding = pool.submit(committer.write, hold)
        is_held.wait()
        futures = [pool.submit(outcome, work) for work in works]
        while len(committer._waiting) < len(works):
            pass
        go_on.set()
        holding.result()
        return [future.result() for future in futures]


def test_one_writer_has_a_transaction_of_its_own(committer: Committer, counted: Counted) -> None:
    """
    And its result.
    """
    assert committer.write(insert(1)) == 1
    assert (counted.rows(), counted.commits) == ([1], 1)


def test_those_who_wait_share_one_transaction(committer: Committer, counted: Counted) -> None:
    """
    Each gets its own result.
    """
    assert together(committer, [insert(value) for value in range(20)]) == list(range(20))
    assert (counted.rows(), counted.commits) == (list(range(20)), 2)


def test_one_that_fails_does_not_take_the_others_along(committer: Committer, counted: Counted) -> None:
    """
    Its error is its own; the rest are done again one by one.
    """

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (99)")
        raise ValueError("no")

    outcomes = together(committer, [insert(1), fail, insert(2), insert(1), insert(3)])
    kept = [value for value in outcomes if not isinstance(value, Exception)]
    assert sorted(map(int, map(str, kept))) == counted.rows() == [1, 2, 3]
    failures = sorted(type(value).__name__ for value in outcomes if isinstance(value, Exception))
    assert failures == ["IntegrityError", "ValueError"]


def test_a_transaction_that_fails_fails_for_all_in_it(counted: Counted) -> None:
    """
    The check at its beginning, or the disk at its end.
    """
    problems: list[Exception] = []

    def check(_: sqlite3.Connection) -> None:
        if problems:
            raise problems[0]

    committer = Committer(counted.connection, check)
    committer.write(insert(0))
    problems.append(sqlite3.OperationalError("disk I/O error"))
    with pytest.raises(sqlite3.OperationalError, match=r"^disk I/O error$"):
        committer.write(insert(1))
    assert not counted.connection.in_transaction
    problems.clear()
    assert committer.write(insert(2)) == 2
    assert counted.rows() == [0, 2]


def test_an_interrupted_writer_leaves_the_way_free(committer: Committer, counted: Counted) -> None:
    """
    What it was about to write is not kept, and the next one writes.
    """

    def interrupt(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        committer.write(interrupt)
    assert not counted.connection.in_transaction
    assert committer._waiting == []
    assert committer.write(insert(2)) == 2
    assert counted.rows() == [2]


def test_a_group_is_bounded(committer: Committer, counted: Counted) -> None:
    """
    More than it takes make two.
    """
    committer._waiting = [_Write(insert(value)) for value in range(MAX_GROUP)]
    assert committer.write(insert(MAX_GROUP)) == MAX_GROUP
    assert committer._waiting == []
    assert (len(counted.rows()), counted.commits) == (MAX_GROUP + 1, 2)


def test_work_alone_is_outside_any_transaction(committer: Committer, counted: Counted) -> None:
    """
    While nobody writes.
    """
    committer.alone(lambda connection: connection.execute("VACUUM"))
    assert committer.write(insert(1)) == 1
    assert counted.commits == 1
