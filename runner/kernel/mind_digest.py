"""
The digest of a mind: equal exactly when memory and globals are equal, however they are stored.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

from runner.kernel.mapping import ZERO_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOMAIN: Final = b"runner mind 1\n"


def page_digests(pages: Mapping[int, bytes]) -> dict[int, bytes]:
    """
    SHA-256 of each page that is not all zero.
    """
    return {index: hashlib.sha256(page).digest() for index, page in pages.items() if page != ZERO_PAGE}


def mind_digest(
    memory_bytes: int, digests: Mapping[int, bytes], global_values: tuple[int | float, ...]
) -> bytes:
    """
    Digest over a memory and its globals.

    SHA-256 of: a domain line; the memory's size as u64; for each page that is not all zero, ascending,
    its index as u32 and its SHA-256; then each global as a type byte (`i` or `d`) and 8 bytes. All
    little-endian.

    Args:
        memory_bytes: Size of the memory.
        digests: SHA-256 of each page that is not all zero, by index.
        global_values: In the module's order.
    """
    total = hashlib.sha256(_DOMAIN + struct.pack("<Q", memory_bytes))
    for index in sorted(digests):
        total.update(struct.pack("<I", index) + digests[index])
    for value in global_values:
        if isinstance(value, float):
            total.update(b"d" + struct.pack("<d", value))
        else:
            total.update(b"i" + struct.pack("<q", value))
    return total.digest()
