"""
The one digest of the project: SHA-256, written as `sha256:<hex>`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

SIZE_BYTES: Final = 32
_PREFIX: Final = "sha256:"
_SHOWN: Final = re.compile(f"{_PREFIX}([0-9a-f]{{{2 * SIZE_BYTES}}})")


def digest(data: bytes | bytearray | memoryview) -> bytes:
    """
    SHA-256 of `data`, 32 bytes.
    """
    return hashlib.sha256(data).digest()


def show(value: bytes) -> str:
    """
    A digest for people and files: `sha256:` and 64 hex digits.
    """
    return _PREFIX + value.hex()


def parse(text: str) -> bytes:
    """
    The digest that `show` wrote.

    Raises:
        ValueError: If the text is not `sha256:` and 64 lower-case hex digits.
    """
    match = _SHOWN.fullmatch(text)
    if match is None:
        msg = f"not a digest: {text!r}"
        raise ValueError(msg)
    return bytes.fromhex(match[1])
