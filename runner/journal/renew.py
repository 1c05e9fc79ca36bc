"""
Making anew what is only a memo of the records: after an upgrade of the database, and for nothing else.

Input: untrusted, as far as damage goes. What is damaged stays as it is, for whoever opens it to be told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from runner import codec
from runner.errors import JournalCorrupt
from runner.journal import instances, snapshots, wire
from runner.journal.collect import ORIGIN_POSITION
from runner.journal.instances import Raw
from runner.journal.records import Born, Record
from runner.journal.shapes import MAX_COUNT
from runner.journal.standing import Standing, at_birth


def renew_standings(connection: sqlite3.Connection) -> None:
    """
    Make the standing of every instance from its records, inside a transaction.
    """
    for raw in instances.find_sound(connection):
        standing = _stand_again(connection, raw)
        if standing is not None:
            instances.restand(connection, raw, standing)


def _stand_again(connection: sqlite3.Connection, raw: Raw) -> Standing | None:
    """
    Where an instance stands by those of its records that can be read; `None` if its birth can't.
    """
    rows = connection.execute("SELECT seq, payload FROM records WHERE instance = ? ORDER BY seq", (raw.id,))
    records = _readable(rows, raw.name)
    born = next(records, None)
    if not isinstance(born, Born):
        return None
    updated_at_ms = _updated_at_ms(raw.standing, born)
    origin = snapshots.state_at(connection, raw.id, raw.name, ORIGIN_POSITION)
    return at_birth(born, updated_at_ms, origin).after(records, updated_at_ms)


def _readable(rows: Iterable[tuple[Any, ...]], name: str) -> Iterator[Record]:
    for expected, (seq, payload) in enumerate(rows):
        if seq != expected or type(payload) is not bytes:
            return
        try:
            yield wire.decode(payload, name=name, seq=seq)
        except JournalCorrupt:
            return


def _updated_at_ms(standing: bytes, born: Born) -> int:
    """
    The one thing in a standing, of any version, that is in no record.
    """
    try:
        found = codec.decode(standing)["updated_at_ms"]
    except (codec.CodecError, TypeError, KeyError):
        return born.at_ms
    return found if type(found) is int and 0 <= found <= MAX_COUNT else born.at_ms
