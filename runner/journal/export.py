"""
A journal as one file that another machine can replay: agents, records, and the snapshot that it begins with.

    8   "RUNNERJ2"
    32  SHA-256 of all that follows
    then parts, each its length as u32, little-endian, and as many bytes of deterministic CBOR:
        {"name": text, "records": count, "origin": bool, "agents": count}
        the package of each agent that it had, a byte string: the one that it was born with, then one for each
            upgrade in its records
        the snapshot that it begins with, a byte string as in `docs/snapshot-format.md`; only if `origin`
        each record, as in `docs/journal-format.md`

"RUNNERJ1", which is read as ever, has no "agents" in its header, and one agent.

Input: whoever wrote the file. `read` is total; nothing of it is used before the whole is known to be sound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from runner import codec
from runner.digest import SIZE_BYTES, digest
from runner.errors import JournalCorrupt
from runner.files import read_whole, write_whole
from runner.journal import wire
from runner.journal.records import Record

MAGIC: Final = b"RUNNERJ2"
OLD_MAGIC: Final = b"RUNNERJ1"
MAX_FILE_BYTES: Final = 1 << 32

_LENGTH: Final = struct.Struct("<I")
_HEADER: Final = {"name": str, "records": int, "origin": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFile:
    """
    What such a file says.

    Attributes:
        name: The instance's name. Untrusted text.
        agents: Packages of the agents that it had: the one that it was born with, then one for each upgrade.
        records: Its journal, from the birth on.
        origin: The snapshot that it begins with, encoded, or `None` for its image.
    """

    name: str
    agents: tuple[bytes, ...]
    records: tuple[Record, ...]
    origin: bytes | None = None


def is_export(path: Path) -> bool:
    """
    Whether the file at `path` begins as such a file does.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) in (MAGIC, OLD_MAGIC)


def write(path: Path, journal: JournalFile) -> int:
    """
    Write a journal to a file, whole or not at all.

    Returns:
        Size of the file in bytes.

    Raises:
        UsageError: If nothing can be written at that path.
        ArtifactError: If the disk is full or broken.
    """
    body = b"".join(_LENGTH.pack(len(part)) + part for part in _parts(journal))
    data = MAGIC + digest(body) + body
    write_whole(path, data)
    return len(data)


def read(path: Path) -> JournalFile:
    """
    The journal in the file at `path`.

    Raises:
        UsageError: If there is no such file, or it may not be read.
        JournalCorrupt: If it is damaged.
    """
    data, shown = read_whole(path, MAX_FILE_BYTES), str(path)
    body = data[len(MAGIC) + SIZE_BYTES :]
    magic = data[: len(MAGIC)]
    if magic not in (MAGIC, OLD_MAGIC):
        raise JournalCorrupt(shown, None, "the file does not begin as an exported journal does")
    if digest(body) != data[len(MAGIC) : len(MAGIC) + SIZE_BYTES]:
        raise JournalCorrupt(shown, None, "the file's digest is another")
    parts = _split(body, shown)
    header = _header(_decoded(next(parts, b""), shown), shown, is_old=magic == OLD_MAGIC)
    agents = tuple(_octets(part, shown) for part in islice(parts, header["agents"]))
    if len(agents) != header["agents"]:
        raise JournalCorrupt(shown, None, "the file has fewer agents than it says")
    origin = _octets(next(parts, b""), shown) if header["origin"] else None
    records = tuple(wire.decode(part, name=shown, seq=seq) for seq, part in enumerate(parts))
    if len(records) != header["records"]:
        raise JournalCorrupt(shown, len(records), "the file has another number of records than it says")
    return JournalFile(name=header["name"], agents=agents, records=records, origin=origin)


def _parts(journal: JournalFile) -> Iterator[bytes]:
    header = {
        "name": journal.name,
        "records": len(journal.records),
        "origin": journal.origin is not None,
        "agents": len(journal.agents),
    }
    yield codec.encode(header)
    yield from map(codec.encode, journal.agents)
    if journal.origin is not None:
        yield codec.encode(journal.origin)
    yield from map(wire.encode, journal.records)


def _split(body: bytes, shown: str) -> Iterator[bytes]:
    position = 0
    while position < len(body):
        start = position + _LENGTH.size
        if start > len(body):
            raise JournalCorrupt(shown, None, "the file ends inside a length")
        (size,) = _LENGTH.unpack_from(body, position)
        position = start + size
        if position > len(body):
            raise JournalCorrupt(shown, None, "the file ends inside a part")
        yield body[start:position]


def _decoded(part: bytes, shown: str) -> Any:
    try:
        return codec.decode(part)
    except codec.CodecError as error:
        raise JournalCorrupt(shown, None, f"a part of the file is no CBOR: {error}") from error


def _octets(part: bytes, shown: str) -> bytes:
    value = _decoded(part, shown)
    if not isinstance(value, bytes):
        raise JournalCorrupt(shown, None, "a part of the file is no byte string")
    return value


def _header(value: Any, shown: str, *, is_old: bool) -> dict[str, Any]:
    expected = _HEADER if is_old else {**_HEADER, "agents": int}
    if not isinstance(value, dict) or {key: type(item) for key, item in value.items()} != expected:
        raise JournalCorrupt(shown, None, "the file's header is not of its form")
    header = {"agents": 1, **value}
    if not 0 < header["agents"] <= MAX_FILE_BYTES:
        raise JournalCorrupt(shown, None, "the file has no agent")
    return header
