"""
The digest of a mind: equal exactly when memory and globals are equal, however they are stored.

A tree of three levels, so that a mind that differs from its image in a few pages is digested in time that
grows with those, not with the heap:

    page    SHA-256 of 4 KiB
    group   SHA-256 over its pages that are not all zero, ascending: index as u32, page digest
    mind    SHA-256 over a domain line; the memory's size as u64; its groups that have such a page, ascending:
            number as u32, group digest; then each global as a type byte (`i` or `d`) and 8 bytes

A group is 64 consecutive pages. All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from runner.kernel.mapping import ZERO_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GROUP_PAGES: Final = 64

_DOMAIN: Final = b"runner mind 1\n"


class PageDigests:
    """
    Digests of the pages of one memory. Immutable; safe to share between threads.

    Args:
        pages: Content by index; what is not there is zero.
    """

    def __init__(self, pages: Mapping[int, bytes]) -> None:
        self._records: dict[int, dict[int, bytes]] = defaultdict(dict)
        for index, page in pages.items():
            if page != ZERO_PAGE:
                self._records[index // GROUP_PAGES][index] = _record(index, page)
        self._groups = {number: _group(number, records) for number, records in self._records.items()}

    def mind_digest(
        self, memory_bytes: int, global_values: Iterable[int | float], changed: Mapping[int, bytes]
    ) -> bytes:
        """
        Digest of a mind whose memory is this one but for some pages.

        Args:
            memory_bytes: Size of its memory.
            global_values: In the module's order.
            changed: Content by index of the pages that may differ.
        """
        groups = self._groups | self._regrouped(changed)
        total = hashlib.sha256(_DOMAIN + struct.pack("<Q", memory_bytes))
        total.update(b"".join(groups[number] for number in sorted(groups)))
        for value in global_values:
            if isinstance(value, float):
                total.update(b"d" + struct.pack("<d", value))
            else:
                total.update(b"i" + struct.pack("<q", value))
        return total.digest()

    def _regrouped(self, changed: Mapping[int, bytes]) -> dict[int, bytes]:
        records: dict[int, dict[int, bytes]] = {}
        for index, page in changed.items():
            number = index // GROUP_PAGES
            if number not in records:
                records[number] = dict(self._records.get(number, {}))
            if page == ZERO_PAGE:
                records[number].pop(index, None)
            else:
                records[number][index] = _record(index, page)
        return {number: _group(number, content) for number, content in records.items()}


def _record(index: int, page: bytes) -> bytes:
    return struct.pack("<I", index) + hashlib.sha256(page).digest()


def _group(number: int, records: Mapping[int, bytes]) -> bytes:
    """
    The group as it enters the mind's digest: nothing at all when all its pages are zero.
    """
    if not records:
        return b""
    content = b"".join(records[index] for index in sorted(records))
    return struct.pack("<I", number) + hashlib.sha256(content).digest()
