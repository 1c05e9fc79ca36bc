"""
The chain: each record's digest covers all records before it, so that none can change or go missing unseen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from runner.digest import digest

GENESIS: Final = digest(b"runner journal 1\n")
"""
What the first record is linked to.
"""

_SEQ_BYTES: Final = 8


class Tail(NamedTuple):
    """
    Where a journal ends.

    Attributes:
        position: Number of records.
        chain: Link of the last one.
    """

    position: int
    chain: bytes


START: Final = Tail(0, GENESIS)
"""
Where a journal without records ends.
"""


class Row(NamedTuple):
    """
    One record as it is stored.
    """

    seq: int
    payload: bytes
    chain: bytes


def end_of(rows: Sequence[Row]) -> Tail:
    """
    Where a journal ends that ends with these rows.
    """
    return Tail(rows[-1].seq + 1, rows[-1].chain)


def link(before: bytes, seq: int, payload: bytes) -> bytes:
    """
    The link of one record: SHA-256 over the link before it, its number as big-endian u64, and its bytes.
    """
    state = hashlib.sha256(before)
    state.update(seq.to_bytes(_SEQ_BYTES, "big"))
    state.update(payload)
    return state.digest()


def extend(tail: Tail, payloads: Iterable[bytes]) -> list[Row]:
    """
    The rows of records that follow `tail`.
    """
    rows = []
    position, chain = tail
    for payload in payloads:
        chain = link(chain, position, payload)
        rows.append(Row(position, payload, chain))
        position += 1
    return rows
