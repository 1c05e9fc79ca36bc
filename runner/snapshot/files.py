"""
Snapshots as files: written whole or not at all, read only when they are regular files of a sane size.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from runner.files import read_whole, write_whole
from runner.snapshot.format import MAX_HEADER_BYTES, PREFIX_BYTES, decode, encode_counted
from runner.snapshot.model import Snapshot, SnapshotStats
from runner.snapshot.rules import MAX_MEMORY_BYTES

_MINDS: Final = 2
# What zstd may add to what it can't compress, rounded up.
_FRAME_OVERHEAD: Final = 128


def write(path: Path, snapshot: Snapshot, *, sync: bool = True) -> SnapshotStats:
    """
    Write `snapshot` to `path`, readable by its owner only.

    A file that was there is replaced at once; on failure it is as before, and nothing else is left behind.

    Args:
        path: In a directory that exists; not a link.
        snapshot: What to write.
        sync: Wait until it is on the disk.

    Raises:
        UsageError: If nothing can be written at that path.
        ArtifactError: If the disk is full or broken.
        LimitExceeded: If the snapshot's header is too large.
    """
    started_ns = time.perf_counter_ns()
    encoded = encode_counted(snapshot)
    encode_us = (time.perf_counter_ns() - started_ns) // 1000
    times = write_whole(path, encoded.data, sync=sync)
    return SnapshotStats(
        size_bytes=len(encoded.data),
        pages=encoded.pages,
        pages_stored=encoded.pages_stored,
        encode_us=encode_us,
        write_us=times.write_us,
        sync_us=times.sync_us,
    )


def read(path: Path, *, max_memory_bytes: int = MAX_MEMORY_BYTES) -> Snapshot:
    """
    The snapshot in the file at `path`.

    Args:
        path: A regular file, or a link to one.
        max_memory_bytes: Refuse an instance whose memory is larger.

    Raises:
        UsageError: If there is no such file, it is not a regular one, or it may not be read.
        ArtifactError: If it is too large for such a memory, or the disk is broken.
        SnapshotCorrupt: If a check fails.
        SnapshotIncompatible: If it is of another version, or speaks of what this host doesn't know.
        MemoryExceeded: If a memory in it is larger than `max_memory_bytes`.
    """
    body_bytes = _MINDS * max_memory_bytes
    bound_bytes = PREFIX_BYTES + MAX_HEADER_BYTES + body_bytes + body_bytes // _FRAME_OVERHEAD
    return decode(read_whole(path, bound_bytes), max_memory_bytes=max_memory_bytes, source=str(path))
