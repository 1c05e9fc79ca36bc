"""
The row of an instance: who it is, where its journal ends, where it stands. Sealed, so that damage is found.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from runner import codec
from runner.digest import SIZE_BYTES, digest
from runner.errors import InternalError, JournalCorrupt, StaleWriter
from runner.journal import standing as standings
from runner.journal.chain import Row, Tail
from runner.journal.database import Database
from runner.journal.records import Record, Upgraded
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
        agent: Digest of the package of the agent that it was born with.
        tail: Where its journal ends.
        standing: Where it stands.
    """

    id: int
    name: str
    agent: bytes
    tail: Tail
    standing: Standing


class Raw(NamedTuple):
    """
    A row that is sound, its standing as it is stored: of whatever version.
    """

    id: int
    name: str
    agent: bytes
    tail: Tail
    standing: bytes


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


def note_upgrades(
    connection: sqlite3.Connection,
    instance: int,
    rows: list[Row],
    records: Sequence[Record],
    packages: Sequence[bytes],
) -> None:
    """
    Keep the packages that upgrades lead to, inside the transaction that writes their records.

    Args:
        connection: What to write through.
        instance: Key of its rows.
        rows: Rows of some of its records.
        records: These records.
        packages: For each upgrade among them the package, in order.

    Raises:
        InternalError: If those are other packages than the records name.
    """
    upgraded = [
        (row.seq, record.package)
        for row, record in zip(rows, records, strict=True)
        if isinstance(record, Upgraded)
    ]
    if [key for _, key in upgraded] != [digest(content) for content in packages]:
        raise InternalError("an upgrade is to be written without its package")
    for (seq, key), content in zip(upgraded, packages, strict=True):
        connection.execute("INSERT OR IGNORE INTO agents (digest, content) VALUES (?, ?)", (key, content))
        connection.execute(
            "INSERT INTO upgrades (instance, seq, agent) VALUES (?, ?, ?)", (instance, seq, key)
        )


def find_sound(connection: sqlite3.Connection) -> Iterator[Raw]:
    """
    The rows of all instances, without those that are damaged.
    """
    for row in connection.execute(_SELECT).fetchall():
        with contextlib.suppress(JournalCorrupt):
            yield _sound(row)


def restand(connection: sqlite3.Connection, raw: Raw, standing: Standing) -> None:
    """
    Put another standing into a row, inside a transaction.
    """
    packed = standing.to_bytes()
    connection.execute(
        "UPDATE instances SET standing = ?, seal = ? WHERE id = ?",
        (packed, _seal(raw.name, raw.agent, raw.tail, packed), raw.id),
    )


def _insert_records(connection: sqlite3.Connection, instance: int, rows: list[Row]) -> None:
    connection.executemany(
        "INSERT INTO records (instance, seq, payload, chain) VALUES (?, ?, ?, ?)",
        [(instance, *row) for row in rows],
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    raw = _sound(row)
    try:
        return Entry(raw.id, raw.name, raw.agent, raw.tail, standings.from_bytes(raw.standing))
    except ShapeError as error:
        raise JournalCorrupt(raw.name, None, f"its standing: {error}") from error


def _sound(row: tuple[Any, ...]) -> Raw:
    """
    The values of a row, if they are what was written.
    """
    key, name, agent, position, chain, packed, seal = row
    shown = name if type(name) is str else repr(name)
    if [type(value) for value in row] != [int, str, bytes, int, bytes, bytes, bytes]:
        raise JournalCorrupt(shown, None, "its row has values of wrong types")
    tail = Tail(position, chain)
    if position < 1 or len(chain) != SIZE_BYTES or _seal(name, agent, tail, packed) != seal:
        raise JournalCorrupt(shown, None, "its row is not what was written")
    return Raw(key, name, agent, tail, packed)


def _seal(name: str, agent: bytes, tail: Tail, standing: bytes) -> bytes:
    return digest(_SEAL_DOMAIN + codec.encode_typed([name, agent, tail.position, tail.chain, standing]))
