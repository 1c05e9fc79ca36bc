"""
Numbers that go up by one and are not given twice, across the processes of one user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.cache.blobs import BlobCache
from runner.files import read_whole, write_whole

_MAX_DIGITS: Final = 20


def next_number(cache: BlobCache, kind: str, key: bytes) -> int:
    """
    1 for the first who asks with this key, then 2, and so on for as long as the cache is kept.

    Not waited for on the disk: after a power cut the last numbers may be given again.

    Raises:
        UsageError: If others could write to the cache, or it can't be used.
        ArtifactError: If the disk is full or broken.
    """
    with cache.held(kind, key) as path:
        number = _read(path) + 1
        write_whole(path, str(number).encode(), sync=False)
    return number


def _read(path: Path) -> int:
    if not path.exists():
        return 0
    text = read_whole(path, _MAX_DIGITS)
    return int(text) if text.isdigit() else 0
