"""
Tables of a state directory, and how an old one becomes a new one.

`STEPS[n]` takes a database of version `n` to version `n + 1`. A step is never changed once it was released:
there are databases out there that went through it. A new table, column, kind of record or field is a new
step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

APPLICATION_ID: Final = int.from_bytes(b"RunJ", "big")
"""
Says in the file's header whose database it is.
"""

_VERSION_1: Final = (
    """
    CREATE TABLE agents (
        digest BLOB PRIMARY KEY NOT NULL,
        content BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE instances (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        agent BLOB NOT NULL REFERENCES agents (digest),
        position INTEGER NOT NULL,
        chain BLOB NOT NULL,
        standing BLOB NOT NULL,
        seal BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE records (
        instance INTEGER NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        payload BLOB NOT NULL,
        chain BLOB NOT NULL,
        PRIMARY KEY (instance, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE pages (
        id INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        frame BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE snapshots (
        instance INTEGER NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        header BLOB NOT NULL,
        pages BLOB NOT NULL,
        seal BLOB NOT NULL,
        PRIMARY KEY (instance, position)
    )
    """,
)

_VERSION_2: Final = (
    """
    CREATE TABLE upgrades (
        instance INTEGER NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        agent BLOB NOT NULL REFERENCES agents (digest),
        PRIMARY KEY (instance, seq)
    ) WITHOUT ROWID
    """,
)

STEPS: Final[tuple[tuple[str, ...], ...]] = (_VERSION_1, _VERSION_2)
"""
Statements from each version to the next.
"""


def version_of(connection: sqlite3.Connection) -> int:
    """
    The version that a database says it has; 0 before any table was made.
    """
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_ours(connection: sqlite3.Connection) -> bool:
    """
    Whether a database says that it is a state of ours.
    """
    return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


def is_blank(connection: sqlite3.Connection) -> bool:
    """
    Whether a database holds nothing at all yet.
    """
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


def upgrade(
    connection: sqlite3.Connection,
    steps: tuple[tuple[str, ...], ...],
    renew: Callable[[sqlite3.Connection], None],
) -> None:
    """
    Take a database through the steps that it lacks: all of them, or none.

    Args:
        connection: In autocommit mode.
        steps: Statements from each version to the next.
        renew: Makes anew, inside the same transaction, what is only a memo of the rest. So no step need know
            how memos of its time looked, nor how they will look later.
    """
    connection.execute("BEGIN EXCLUSIVE")
    try:
        before = version_of(connection)
        for step in steps[before:]:
            for statement in step:
                connection.execute(statement)
        if 0 < before < len(steps):
            renew(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
