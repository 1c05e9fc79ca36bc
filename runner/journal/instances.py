"""
The row of an instance: who it is, where its journal ends, where it stands. Sealed, so that damage is found.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any, Final

from runner import codec
from runner.digest import SIZE_BYTES, digest
from runner.errors import JournalCorrupt, StaleWriter
from runner.journal import standing as standings
from runner.journal.chain import Row, Tail
from runner.journal.database import Database
from runner.journal.shapes import ShapeError
from runner.journal.standing import Standing

_SELECT: Final = "SELECT id, name, agent, position, chain, standing, seal FROM instances"
_SEAL_DOMAIN: Final = b"runner instance 1\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One instance, as its row says.

    Attributes:
        id: Key of its rows.
        name: Its name.
        agent: Digest of its agent's package.
        tail: Where its journal ends.
        standing: Where it stands.
    """

    id: int
    name: str
    agent: bytes
    tail: Tail
    standing: Standing


def find(database: Database, name: str) -> Entry | None:
    """
    The instance of that name, or `None`.

    Raises:
        JournalCorrupt: If its row is damaged.
    """
    rows = database.read(_SELECT + " WHERE name = ?", (name,))
    return _entry(rows[0]) if rows else None


def list_all(database: Database) -> list[Entry]:
    """
    All instances, by name.

    Raises:
        JournalCorrupt: If a row is damaged.
    """
    # Not by the index on names: it could be damaged on its own.
    entries = [_entry(row) for row in database.read(_SELECT + " NOT INDEXED")]
    return sorted(entries, key=lambda entry: entry.name)


def insert(
    connection: sqlite3.Connection, name: str, agent: bytes, standing: Standing, rows: list[Row]
) -> int:
    """
    Make an instance with its first records, inside a transaction; the key of its rows.

    Raises:
        sqlite3.IntegrityError: If there is one of that name.
    """
    tail = Tail(len(rows), rows[-1].chain)
    packed = standing.to_bytes()
    cursor = connection.execute(
        "INSERT INTO instances (name, agent, position, chain, standing, seal) VALUES (?, ?, ?, ?, ?, ?)",
        (name, agent, tail.position, tail.chain, packed, _seal(name, agent, tail, packed)),
    )
    key = cursor.lastrowid or 0
    _insert_records(connection, key, rows)
    return key


def extend(connection: sqlite3.Connection, entry: Entry, standing: Standing, rows: list[Row]) -> Entry:
    """
    Put records after those that `entry` knows of, inside a transaction.

    Raises:
        StaleWriter: If there are others by now.
    """
    tail = Tail(rows[-1].seq + 1, rows[-1].chain)
    packed = standing.to_bytes()
    cursor = connection.execute(
        "UPDATE instances SET position = ?, chain = ?, standing = ?, seal = ?"
        " WHERE id = ? AND position = ? AND chain = ?",
        (
            *tail,
            packed,
            _seal(entry.name, entry.agent, tail, packed),
            entry.id,
            *entry.tail,
        ),
    )
    if cursor.rowcount != 1:
        found = connection.execute("SELECT position FROM instances WHERE id = ?", (entry.id,)).fetchone()
        raise StaleWriter(entry.name, entry.tail.position, found[0] if found else 0)
    _insert_records(connection, entry.id, rows)
    return replace(entry, tail=tail, standing=standing)


def _insert_records(connection: sqlite3.Connection, instance: int, rows: list[Row]) -> None:
    connection.executemany(
        "INSERT INTO records (instance, seq, payload, chain) VALUES (?, ?, ?, ?)",
        [(instance, *row) for row in rows],
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    key, name, agent, position, chain, packed, seal = row
    shown = name if type(name) is str else repr(name)
    if [type(value) for value in row] != [int, str, bytes, int, bytes, bytes, bytes]:
        raise JournalCorrupt(shown, None, "its row has values of wrong types")
    tail = Tail(position, chain)
    if position < 1 or len(chain) != SIZE_BYTES or _seal(name, agent, tail, packed) != seal:
        raise JournalCorrupt(shown, None, "its row is not what was written")
    try:
        return Entry(key, name, agent, tail, standings.from_bytes(packed))
    except ShapeError as error:
        raise JournalCorrupt(shown, None, f"its standing: {error}") from error


def _seal(name: str, agent: bytes, tail: Tail, standing: bytes) -> bytes:
    return digest(_SEAL_DOMAIN + codec.encode_typed([name, agent, tail.position, tail.chain, standing]))
