"""
Snapshot format, versions 1 and 2: the executable half of `docs/snapshot-format.md`.

    prefix   56 bytes: magic, version, lengths of header and body, root
    header   one deterministic CBOR map
    body     the contents of the pages, one zstd frame

Input: untrusted. `decode` is total, allocates in proportion to what the file really holds, and returns a
value only when every check has passed. All checks that need no decompression come before it.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import Final, NamedTuple

from runner import codec
from runner.errors import InternalError, LimitExceeded, MemoryExceeded, SnapshotCorrupt, SnapshotIncompatible
from runner.snapshot import header as header_map
from runner.snapshot.model import Snapshot
from runner.snapshot.pages import pack_body
from runner.snapshot.rules import MAX_MEMORY_BYTES, Problem, check, minds_of
from runner.units import MIB

MAGIC: Final = b"\x89RSN\r\n\x1a\n"
"""
As in PNG: a byte that is not text, a name, and line ends that a text-mode copy would change.
"""

VERSION: Final = 2

OLDEST_VERSION: Final = 1
"""
Read as ever, and written where it says all: so runners that know no other can take most snapshots.
"""

MAX_HEADER_BYTES: Final = 64 * MIB
"""
The table of a full memory of 4 GiB takes 40 MiB; the rest is for requests and what the host holds.
"""

_PREFIX: Final = Struct(">8sIIQ32s")
PREFIX_BYTES: Final = _PREFIX.size
_VERSION_AT: Final = slice(8, 12)
_ROOT_AT: Final = slice(24, 56)


class Encoded(NamedTuple):
    """
    A snapshot's bytes, and how many pages they hold.
    """

    data: bytes
    pages: int
    pages_stored: int


def encode(snapshot: Snapshot) -> bytes:
    """
    The bytes of `snapshot`.

    Equal snapshots have equal headers and contents; the frame that holds the contents, and so the root, may
    differ between releases of zstd.

    Raises:
        InternalError: If the value is one that `decode` would refuse.
        LimitExceeded: If its header is larger than `MAX_HEADER_BYTES`.
    """
    return encode_counted(snapshot).data


def encode_counted(snapshot: Snapshot) -> Encoded:
    """
    As `encode`, for those who report.
    """
    try:
        check(snapshot)
        version = VERSION if header_map.needs_version_2(snapshot.state) else OLDEST_VERSION
        fields, stored = header_map.pack(snapshot, version)
        header = codec.encode(fields)
    except (Problem, TypeError) as error:
        msg = f"snapshot of {snapshot.agent} can't be encoded: {error}"
        raise InternalError(msg) from error
    if len(header) > MAX_HEADER_BYTES:
        raise LimitExceeded("snapshot_header_bytes", len(header), MAX_HEADER_BYTES)
    body = pack_body(stored)
    head = _PREFIX.pack(MAGIC, version, len(header), len(body), b"")[: _ROOT_AT.start]
    return Encoded(
        b"".join((head, _root(head, header, body), header, body)),
        sum(len(mind.pages) for mind in minds_of(snapshot.state)),
        len(stored),
    )


def decode(data: bytes, *, max_memory_bytes: int = MAX_MEMORY_BYTES, source: str | None = None) -> Snapshot:
    """
    The snapshot that `data` holds.

    Args:
        data: Any bytes.
        max_memory_bytes: Refuse an instance whose memory is larger, before any of it is decompressed.
        source: Where the bytes come from, for the message.

    Raises:
        SnapshotCorrupt: If a check fails; the message starts with the name of that check.
        SnapshotIncompatible: If they are of another version, or speak of what this host doesn't know.
        MemoryExceeded: If a memory in it is larger than `max_memory_bytes`.
    """
    try:
        _check_magic(data)
        version = int.from_bytes(data[_VERSION_AT], "big")
        if not OLDEST_VERSION <= version <= VERSION:
            raise SnapshotIncompatible(
                "format_version",
                f"{OLDEST_VERSION} or {VERSION}",
                str(version),
                hint="use the runner that wrote it, or a later one" if version > VERSION else None,
            )
        header, body = _split(data)
        snapshot, table = header_map.unpack(header, version)
        check(snapshot)
        minds = minds_of(snapshot.state)
        largest_bytes = max(mind.memory_bytes for mind in minds)
        if largest_bytes > max_memory_bytes:
            raise MemoryExceeded(largest_bytes, max_memory_bytes)
        # The minds are ours alone until they are returned, so their pages may come last.
        for mind, pages in zip(minds, table.unpack(body), strict=True):
            mind.pages.update(pages)
    except Problem as problem:
        raise SnapshotCorrupt(str(problem), path=source) from problem
    return snapshot


def _check_magic(data: bytes) -> None:
    if data[:4] == MAGIC[:4] and len(data) < _VERSION_AT.stop:
        raise Problem("length", f"{len(data)} bytes, too short for any snapshot")
    if data[:4] == MAGIC[:4] and not data.startswith(MAGIC):
        raise Problem("magic", "line ends were changed, as by a copy in text mode")
    if not data.startswith(MAGIC):
        raise Problem("magic", "not a snapshot")


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """
    Header and body, once lengths and root agree with all bytes.
    """
    if len(data) < PREFIX_BYTES:
        raise Problem("length", f"{len(data)} bytes, too short for any snapshot")
    _, _, header_bytes, body_bytes, root = _PREFIX.unpack_from(data)
    if header_bytes > MAX_HEADER_BYTES:
        raise Problem("length", f"a header of {header_bytes} bytes, more than {MAX_HEADER_BYTES}")
    expected = PREFIX_BYTES + header_bytes + body_bytes
    if len(data) != expected:
        raise Problem("length", f"{len(data)} bytes, expected {expected}")
    view = memoryview(data)
    header = data[PREFIX_BYTES : PREFIX_BYTES + header_bytes]
    body = view[PREFIX_BYTES + header_bytes :]
    if _root(view[: _ROOT_AT.start], header, body) != root:
        raise Problem("root", "the bytes are not those that were written")
    return header, body


def _root(head: bytes | memoryview, header: bytes, body: bytes | memoryview) -> bytes:
    """
    SHA-256 over everything but itself.
    """
    state = hashlib.sha256(head)
    state.update(header)
    state.update(body)
    return state.digest()
