"""
One writer at a time for each instance: a lock that dies with its holder, and says who that is.

The lock is `flock` on a file that belongs to the instance. The same file is a witness outside the database
that the instance was made: a name that has a witness and no journal has lost it, and must not begin anew.
Its first line is `made`, or `new` while the instance is being made; the second, the holder's process, is
absent when there is no holder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from runner.errors import InstanceBusy
from runner.files import PRIVATE_FILE_MODE

_MADE: Final = b"made\n"
_NEW: Final = b"new \n"
_MAX_BYTES: Final = 64
_PROCESSES: Final = Path("/proc")
# Whoever only looks holds a lock for some microseconds.
_ATTEMPTS: Final = 20
_RETRY_S: Final = 0.005


class InstanceLock:
    """
    The lock of one instance, held from construction until `release`, or until this process dies.

    A process forked from this one holds it too, for as long as it lives.

    Args:
        path: The instance's file; its directory must exist.
        name: The instance, for the message.

    Raises:
        InstanceBusy: If another holder has it, in this process or another.
        OSError: If the file can't be used.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._fd = _acquire(path, name)
        try:
            self.was_made = os.pread(self._fd, len(_MADE), 0) == _MADE
            os.pwrite(self._fd, (_MADE if self.was_made else _NEW) + b"%d\n" % os.getpid(), 0)
        except BaseException:
            self.release()
            raise

    def mark_made(self) -> None:
        """
        Say that the instance exists: its first record is durable.
        """
        os.pwrite(self._fd, _MADE, 0)

    def unmake(self) -> None:
        """
        Take the witness away, durably: the instance is about to be removed.
        """
        self._path.unlink(missing_ok=True)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def release(self) -> None:
        """
        Let go. Later calls do nothing.
        """
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(fd, len(_MADE))
        # A child forked meanwhile has the handle too; closing ours alone would leave it the lock.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def was_made(path: Path) -> bool:
    """
    Whether the file witnesses that its instance was made.

    Raises:
        OSError: If it is there and can't be read.
    """
    return _read(path).startswith(_MADE)


def holder(path: Path) -> int | None:
    """
    The process that holds the lock, or `None`. What is true now need not be so in a moment.

    Raises:
        OSError: If the file is there and can't be read.
    """
    pid = _pid_in(_read(path))
    if pid is None:
        return None
    # A holder that was killed leaves its number behind, but not its lock.
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return pid
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)
        return None
    finally:
        os.close(fd)


def has_open(path: Path, pid: int) -> bool:
    """
    Whether a process has the lock's file open: a number that a dead holder left, or one from another
    container, may be a stranger's here. Taken for true on systems that do not tell.
    """
    if not _PROCESSES.is_dir():
        return True
    try:
        wanted = path.stat()
        handles = list((_PROCESSES / str(pid) / "fd").iterdir())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    for handle in handles:
        # It may be closed by now.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if os.path.samestat(handle.stat(), wanted):
                return True
    return False


def _acquire(path: Path, name: str) -> int:
    pid = None
    for _ in range(_ATTEMPTS):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid_in(os.pread(fd, _MAX_BYTES, 0))
            os.close(fd)
            if pid is not None and _is_alive(pid):
                break
            # Its holder has not said who it is yet, or died while somebody looked.
            _pause()
            continue
        except BaseException:
            os.close(fd)
            raise
        if _is_at(fd, path):
            return fd
        # The instance was removed between the two calls; this is the lock of nothing.
        os.close(fd)
    raise InstanceBusy(name, pid)


def _pause() -> None:
    time.sleep(_RETRY_S)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except FileNotFoundError:
        return b""


def _pid_in(content: bytes) -> int | None:
    _, _, text = content.partition(b"\n")
    digits = text.strip()
    return int(digits) if digits.isdigit() and int(digits) > 0 else None
