"""
Stored snapshots: memos of what an instance's records come to, so that opening it folds fewer of them.

One is a row: a header, the keys of its pages, and a seal over both and over whose it is and where it stands.
Two snapshots that differ in one page share all others.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from runner import codec
from runner.codec import Value
from runner.digest import SIZE_BYTES, digest
from runner.errors import InternalError, SnapshotCorrupt
from runner.journal import pages, shapes
from runner.journal.database import Database
from runner.journal.instances import Entry
from runner.journal.shapes import ShapeError
from runner.journal.state_shapes import MAX_PAGES, STATE, PackedMind, Pool, give
from runner.kernel.state import MachineState, Mind
from runner.units import MIB

MAX_HEADER_BYTES: Final = 64 * MIB
"""
Longest header, before compression.
"""

_SEAL_DOMAIN: Final = b"runner stored snapshot 1\n"
_MINDS: Final = 2


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """
    An instance at one position of its journal.

    Attributes:
        position: Number of records that it contains.
        state: What the kernel knows of the instance.
        host: What the host holds for it.
        digest: Digest of the mind.
    """

    position: int
    state: MachineState = field(repr=False)
    host: dict[str, Value] = field(repr=False)
    digest: bytes


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """
    What storing one snapshot took.

    Attributes:
        position: Number of records that it contains.
        pages: Pages that differ from the image, those before an open delivery included.
        pages_stored: How many contents these are, zeros aside.
        pages_new: How many of those were not stored before.
        size_bytes: What it added to the database, not counting the database's own order.
        encode_us: Time to make the bytes, microseconds of the monotonic clock.
        write_us: Time until they were durable.
    """

    position: int
    pages: int
    pages_stored: int
    pages_new: int
    size_bytes: int
    encode_us: int
    write_us: int


@dataclass(frozen=True, slots=True)
class Header:
    """
    A stored snapshot without its pages.

    Attributes:
        state: As `MachineState`, with packed minds.
        host: What the host holds for the instance.
        digest: Digest of the mind.
        root: Digest over the digests of its contents, in their order.
    """

    state: Any
    host: dict[str, Value]
    digest: bytes
    root: bytes


FIELDS: Final = {
    "state": STATE,
    "host": shapes.packed_map(),
    "digest": shapes.octets((SIZE_BYTES,), "digest"),
    "root": shapes.octets((SIZE_BYTES,), "digest"),
}
_HEADER: Final = shapes.structure(Header, FIELDS, "header")


@dataclass(frozen=True, slots=True)
class Encoded:
    """
    A snapshot ready to be stored.

    Attributes:
        name: The instance.
        position: Number of records that it contains.
        header: Its header, compressed.
        contents: Its pages by digest, in their order.
        frames: Those of them that were not stored a moment ago, compressed.
    """

    name: str
    position: int
    header: bytes
    contents: dict[bytes, bytes]
    frames: dict[bytes, bytes]

    def store(self, connection: sqlite3.Connection, instance: int) -> int:
        """
        Put it in its place, inside a transaction; one that is there is replaced.

        Returns:
            Size of what was added, not counting the database's own order.
        """
        # Whether a page is there is seen again: another process may have removed it.
        ids = pages.pack_numbers(pages.store(connection, self.contents, self.frames))
        connection.execute(
            "INSERT OR REPLACE INTO snapshots (instance, position, header, pages, seal)"
            " VALUES (?, ?, ?, ?, ?)",
            (instance, self.position, self.header, ids, _seal(self.name, self.position, self.header, ids)),
        )
        return len(self.header) + len(ids) + sum(map(len, self.frames.values()))


def encode(database: Database, name: str, snapshot: StoredSnapshot) -> Encoded:
    """
    Make a snapshot of an instance ready, outside any transaction, which others would wait for.

    Raises:
        InternalError: If it is one that `latest` would refuse.
        RunnerError: If the database can't be read.
    """
    pool = Pool()
    state = _packed(snapshot.state, pool)
    contents = {digest(page): page for page in pool.contents()}
    try:
        header = _HEADER.pack(Header(state, snapshot.host, snapshot.digest, _root(contents)))
        _HEADER.unpack(header)
        packed = pages.compress(codec.encode(header))
    except (ShapeError, TypeError) as error:
        raise InternalError(f"snapshot of {name} can't be stored: {error}") from error
    known = pages.find_ids(database.read, list(contents))
    frames = {key: pages.compress(page) for key, page in contents.items() if key not in known}
    return Encoded(name, snapshot.position, packed, contents, frames)


def put(database: Database, entry: Entry, snapshot: StoredSnapshot) -> SnapshotRow:
    """
    Store a snapshot; one at the same position is replaced.

    Raises:
        InternalError: If it is one that `latest` would refuse.
        RunnerError: If the database can't be written.
    """
    started_ns = time.perf_counter_ns()
    encoded = encode(database, entry.name, snapshot)
    encoded_ns = time.perf_counter_ns()
    size_bytes = database.write(lambda connection: encoded.store(connection, entry.id))
    return SnapshotRow(
        position=snapshot.position,
        pages=sum(len(mind.pages) for mind in _minds(snapshot.state)),
        pages_stored=len(encoded.contents),
        pages_new=len(encoded.frames),
        size_bytes=size_bytes,
        encode_us=(encoded_ns - started_ns) // 1000,
        write_us=(time.perf_counter_ns() - encoded_ns) // 1000,
    )


def positions(database: Database, entry: Entry) -> list[int]:
    """
    Where the stored snapshots of an instance stand, oldest first.
    """
    rows = database.read("SELECT position FROM snapshots WHERE instance = ? ORDER BY position", (entry.id,))
    return [position for (position,) in rows]


def latest(database: Database, entry: Entry, at_most: int) -> StoredSnapshot | None:
    """
    The snapshot that stands nearest to `at_most` records, not beyond them; `None` when there is none.

    Raises:
        SnapshotCorrupt: If it is damaged. The one before it, or the records alone, do as well.
    """
    rows = database.read(
        "SELECT position, header, pages, seal FROM snapshots"
        " WHERE instance = ? AND position <= ? ORDER BY position DESC LIMIT 1",
        (entry.id, at_most),
    )
    if not rows:
        return None
    position = rows[0][0]
    try:
        return _unpacked(database, entry.name, rows[0])
    except ShapeError as error:
        raise SnapshotCorrupt(str(error), path=f"{entry.name} at {position!r}") from error


def state_at(connection: sqlite3.Connection, instance: int, name: str, position: int) -> MachineState | None:
    """
    What a snapshot says of an instance, its minds left packed; `None` when there is none, or it is damaged.

    Args:
        connection: What to read through.
        instance: Key of the instance's rows.
        name: The instance.
        position: Where the snapshot stands.
    """
    row = connection.execute(
        "SELECT position, header, pages, seal FROM snapshots WHERE instance = ? AND position = ?",
        (instance, position),
    ).fetchone()
    if row is None:
        return None
    try:
        return _header(name, row).state  # type: ignore[no-any-return]
    except ShapeError:
        return None


def used_pages(name: str, row: Sequence[Any]) -> tuple[int, ...] | None:
    """
    The keys of a snapshot's pages, or `None` when the row is not what was stored.

    Args:
        name: The instance.
        row: `position`, `header`, `pages`, `seal`.
    """
    try:
        _check_seal(name, row)
        return pages.unpack_numbers(row[2], _MINDS * MAX_PAGES)
    except ShapeError:
        return None


def _header(name: str, row: Sequence[Any]) -> Header:
    _check_seal(name, row)
    try:
        header: Header = _HEADER.unpack(codec.decode(pages.decompress(row[1], MAX_HEADER_BYTES)))
    except codec.CodecError as error:
        raise ShapeError(str(error)) from error
    return header


def _unpacked(database: Database, name: str, row: Sequence[Any]) -> StoredSnapshot:
    header = _header(name, row)
    position, _, ids, _ = row
    contents = pages.load(database.read, pages.unpack_numbers(ids, _MINDS * MAX_PAGES))
    if _root([digest(page) for page in contents]) != header.root:
        raise ShapeError("its pages are not those that were stored")
    state = header.state
    delivery = state.delivery
    if delivery is not None:
        delivery = replace(delivery, before=give(delivery.before, contents))
    return StoredSnapshot(
        position,
        replace(state, mind=give(state.mind, contents), delivery=delivery),
        header.host,
        header.digest,
    )


def _packed(state: MachineState, pool: Pool) -> MachineState:
    """
    The state with packed minds in place of its minds.
    """
    # The order of these two is the order of the contents.
    mind = _disguised(pool.take(state.mind))
    delivery = state.delivery
    if delivery is not None:
        delivery = replace(delivery, before=_disguised(pool.take(delivery.before)))
    return replace(state, mind=mind, delivery=delivery)


def _disguised(mind: PackedMind) -> Mind:
    # Nothing but a shape reads it, and that asks for the fields of a packed mind.
    return cast("Mind", mind)


def _minds(state: MachineState) -> list[Mind]:
    return [state.mind] if state.delivery is None else [state.mind, state.delivery.before]


def _root(digests: Any) -> bytes:
    return digest(b"".join(digests))


def _check_seal(name: str, row: Sequence[Any]) -> None:
    if [type(value) for value in row] != [int, bytes, bytes, bytes]:
        raise ShapeError("its row has values of wrong types")
    position, packed, ids, seal = row
    if _seal(name, position, packed, ids) != seal:
        raise ShapeError("its row is not what was written")


def _seal(name: str, position: int, header: bytes, ids: bytes) -> bytes:
    return digest(_SEAL_DOMAIN + codec.encode([name, position, header, ids]))
