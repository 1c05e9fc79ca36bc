"""
One holder at a time, across processes and threads, for as long as the holder lives.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

RETRY_S: Final = 0.05
ABANDONED_S: Final = 600
"""
Where a lock is a file's mere presence, one that is older belongs to a process that died.
"""


def hold(path: Path) -> AbstractContextManager[None]:
    """
    Hold the lock that the file at `path` stands for; waits for its holder.

    Not re-entrant: a thread that holds it and asks again waits for itself.
    """
    return _hold_by_presence(path) if sys.platform == "win32" else _hold_by_flock(path)


if sys.platform != "win32":
    import fcntl

    @contextlib.contextmanager
    def _hold_by_flock(path: Path) -> Iterator[None]:
        """
        The operating system lets go when the holder dies, so the file itself may stay.

        It is never removed: whoever waits on a removed file's lock would hold nothing.
        """
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            # A child forked meanwhile has the handle too; closing ours alone would leave it the lock.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


@contextlib.contextmanager
def _hold_by_presence(path: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """
    For systems without `flock`: whoever creates the file holds the lock.
    """
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if _is_abandoned(path):
                path.unlink(missing_ok=True)
            else:
                sleep(RETRY_S)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    try:
        age_s = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    return age_s > ABANDONED_S
