"""
What instances that have one budget have spent together: a file beside their journals.

An instance, its forks, and the instances made of their snapshots in this state directory have one ledger.
Each process that spends has a row of its own in it, to which it only adds; the rows of instances that were
removed stay. So nothing refunds anything, and two that ask at once can't both get what is left.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from runner.errors import StateUnusable
from runner.policy.budgets import Budget, Charge, exceeded

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

FILE: Final = "budgets.db"

_PATIENCE_S: Final = 30
_ROW_BYTES: Final = 16
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS spent (
    ledger BLOB NOT NULL,
    writer BLOB NOT NULL,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    usd_pico INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    PRIMARY KEY (ledger, writer)
) WITHOUT ROWID
"""
_SUMS: Final = "SELECT sum(calls), sum(tokens), sum(usd_pico), sum(wall_ms) FROM spent WHERE ledger = ?"
_ADD: Final = """
INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (ledger, writer) DO UPDATE SET
    calls = calls + excluded.calls, tokens = tokens + excluded.tokens,
    usd_pico = usd_pico + excluded.usd_pico, wall_ms = wall_ms + excluded.wall_ms
"""


def read_spent(root: Path, ledger: bytes) -> Charge:
    """
    What was spent of one ledger; writes nothing.

    Raises:
        StateUnusable: If the file can't be read.
    """
    path = root / FILE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(_SUMS, (ledger,)).fetchone()
    except sqlite3.Error as error:
        raise StateUnusable(str(path), f"can't be read: {error}", hint="make it readable") from error
    return Charge(*(value or 0 for value in row))


class SharedAccount:
    """
    One ledger of a state directory, as one process spends from it. Safe between threads and processes.

    Args:
        root: The state directory.
        ledger: Which ledger.
        own: What the instance knows itself to have spent; made up for if the file knows less.

    Raises:
        StateUnusable: Here and below, if the file can't be read or written.
    """

    def __init__(self, root: Path, ledger: bytes, own: Charge) -> None:
        self._path = root / FILE
        self._ledger = ledger
        self._writer = os.urandom(_ROW_BYTES)

        def make_up(connection: sqlite3.Connection) -> None:
            connection.execute(_TABLE)
            missing = own.most(self._sum(connection)).minus(self._sum(connection))
            self._add(connection, missing)

        self._change(make_up)

    def spent(self) -> Charge:
        """
        What all of them have spent or reserved.
        """
        return self._change(self._sum)

    def reserve(self, budget: Budget, wanted: Charge, own: Charge) -> tuple[str, int, int] | None:
        """
        Take an amount, unless a bound would not hold.
        """

        def take(connection: sqlite3.Connection) -> tuple[str, int, int] | None:
            over = exceeded(budget, self._sum(connection).most(own), wanted)
            if over is None:
                self._add(connection, wanted)
            return over

        return self._change(take)

    def settle(self, reserved: Charge, actual: Charge) -> None:
        """
        Put what it came to in place of what was taken.
        """
        self._change(lambda connection: self._add(connection, actual.minus(reserved)))

    def _sum(self, connection: sqlite3.Connection) -> Charge:
        row = connection.execute(_SUMS, (self._ledger,)).fetchone()
        return Charge(*(value or 0 for value in row))

    def _add(self, connection: sqlite3.Connection, amount: Charge) -> None:
        connection.execute(_ADD, (self._ledger, self._writer, *amount))

    def _change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with closing(
                sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                answer = work(connection)
                connection.execute("COMMIT")
                return answer
        except (sqlite3.Error, OverflowError) as error:
            raise StateUnusable(
                str(self._path), f"can't be used: {error}", hint="what was spent is on record in journals too"
            ) from error
