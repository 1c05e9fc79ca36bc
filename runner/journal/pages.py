"""
Pages by content: each is stored once, whichever snapshots of whichever instances have it.

A page is a row with its digest and one zstd frame. Which pages are in use follows from the snapshots alone;
there is no count that a crash could leave wrong.

Input: untrusted, as far as damage goes. A page is used only when it has the digest that was asked for.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from struct import error as StructError  # noqa: N812 - it is one
from struct import pack, unpack
from typing import Any, Final

from runner.digest import digest
from runner.journal.shapes import ShapeError
from runner.kernel.state import PAGE_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSION_LEVEL: Final = 3

_BY_DIGEST: Final = "SELECT digest, id FROM pages WHERE digest IN "
_BY_ID: Final = "SELECT id, digest, frame FROM pages WHERE id IN "
# Fewer than the parameters that any SQLite takes.
_BATCH: Final = 500
_ID_BYTES: Final = 8
_ID_MASK: Final = (1 << 64) - 1

Query = Callable[[str, Sequence[Any]], Iterable[tuple[Any, ...]]]
"""
Rows of a statement with its parameters.
"""


def compress(data: bytes) -> bytes:
    """
    One zstd frame.
    """
    return zstd.compress(data, COMPRESSION_LEVEL)


def decompress(frame: object, bound_bytes: int) -> bytes:
    """
    What a frame holds.

    Raises:
        ShapeError: If it is no frame, or holds more than `bound_bytes`.
    """
    if not isinstance(frame, bytes):
        raise ShapeError("not a frame")
    decompressor = zstd.ZstdDecompressor()
    try:
        data = decompressor.decompress(frame, bound_bytes + 1)
    except zstd.ZstdError as error:
        raise ShapeError(f"not a zstd frame: {error}") from error
    if len(data) > bound_bytes or not decompressor.eof or decompressor.unused_data:
        raise ShapeError("not one whole frame of the size that is allowed")
    return data


def pack_numbers(numbers: Iterable[int]) -> bytes:
    """
    Numbers below 2**64 as the differences between neighbours, big-endian u64, in one frame.

    Most neighbours differ by one, so a thousand of them take a few bytes.
    """
    values = list(numbers)
    steps = [(value - before) & _ID_MASK for before, value in zip([0, *values], values, strict=False)]
    return compress(pack(f">{len(steps)}Q", *steps))


def unpack_numbers(frame: object, bound: int) -> tuple[int, ...]:
    """
    The numbers that `pack_numbers` took.

    Raises:
        ShapeError: If it did not, or there are more than `bound`.
    """
    data = decompress(frame, bound * _ID_BYTES)
    try:
        steps = unpack(f">{len(data) // _ID_BYTES}Q", data)
    except StructError as error:
        raise ShapeError("numbers end early") from error
    return tuple(accumulate(steps, lambda before, step: (before + step) & _ID_MASK))


def find_ids(query: Query, digests: Sequence[bytes]) -> dict[bytes, int]:
    """
    The keys of those contents that are stored.
    """
    found: dict[bytes, int] = {}
    for batch in _batches(digests):
        found.update(query(_BY_DIGEST + _marks(batch), batch))
    return found


def store(
    connection: sqlite3.Connection, contents: dict[bytes, bytes], frames: dict[bytes, bytes]
) -> list[int]:
    """
    See that contents are stored, inside a transaction; their keys, in the same order.

    Args:
        connection: What to write through.
        contents: Pages by digest.
        frames: Frames that were made before, by digest; those that are missing are made now.
    """
    found = find_ids(connection.execute, list(contents))
    for key, content in contents.items():
        if key not in found:
            cursor = connection.execute(
                "INSERT INTO pages (digest, frame) VALUES (?, ?)", (key, frames.get(key) or compress(content))
            )
            found[key] = cursor.lastrowid or 0
    return [found[key] for key in contents]


def load(query: Query, ids: Sequence[int]) -> list[bytes]:
    """
    The contents with these keys, in their order.

    Raises:
        ShapeError: If one is gone, or not what was stored.
    """
    found: dict[int, bytes] = {}
    for batch in _batches(ids):
        for key, expected, frame in query(_BY_ID + _marks(batch), batch):
            page = decompress(frame, PAGE_BYTES)
            if len(page) != PAGE_BYTES or digest(page) != expected:
                raise ShapeError("a page is not what was stored")
            found[key] = page
    if not found.keys() >= set(ids):
        raise ShapeError("a page is gone")
    return [found[key] for key in ids]


def drop_unused(connection: sqlite3.Connection, used: set[int]) -> int:
    """
    Remove all pages but some, inside a transaction; how many.
    """
    stored = {key for (key,) in connection.execute("SELECT id FROM pages")}
    unused = sorted(stored - used)
    connection.executemany("DELETE FROM pages WHERE id = ?", [(key,) for key in unused])
    return len(unused)


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _marks(batch: Sequence[Any]) -> str:
    return f"({','.join('?' * len(batch))})"
