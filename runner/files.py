"""
Files that are whole or absent: writes that a crash can't tear, reads that a pipe can't block.

Both errors here name the path and what to do: `UsageError` when another path would do, `ArtifactError`
when the disk itself refuses.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Final, NamedTuple

from runner.errors import ArtifactError, RunnerError, UsageError

PRIVATE_FILE_MODE: Final = 0o600

PRIVATE_DIRECTORY_MODE: Final = 0o700

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_DISK_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
# Absent on Windows, where links need a privilege to make and text mode is the default.
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)


class WriteTimes(NamedTuple):
    """
    Where the time of a write went, by the monotonic clock.
    """

    write_us: int
    sync_us: int


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> WriteTimes:
    """
    Put `data` at `path`, readable by its owner only: afterwards it is all there, or as it was before.

    The bytes go to a temporary file beside `path`, which then takes its name. A file that was there is
    replaced, whatever its mode; a link, a directory or a device is refused, never followed.

    Args:
        path: Its directory must exist.
        data: The whole content.
        sync: Wait until file and name are on the disk. Without it a power cut may lose or tear the
            file; a crash of the process can't.

    Raises:
        UsageError: If nothing can be written at that path.
        ArtifactError: If the disk is full or broken.
    """
    try:
        _refuse_special(path)
        temporary = path.parent / f"{temporary_prefix(path.name)}{secrets.token_hex(8)}"
        try:
            times = _fill(temporary, data, sync=sync)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        if not sync:
            return times
        started_ns = time.perf_counter_ns()
        _sync_directory(path.parent)
        return times._replace(sync_us=times.sync_us + _elapsed_us(started_ns))
    except OSError as error:
        raise _explain(error, path, "written") from error


def read_whole(path: Path, bound_bytes: int) -> bytes:
    """
    The content of the regular file at `path`; links are followed.

    Raises:
        UsageError: If there is no such file, it is not a regular one, or it may not be read.
        ArtifactError: If it is larger than `bound_bytes`, or the disk is broken.
    """
    try:
        # Opening a pipe would wait for its writer, so neither wait nor believe an earlier `stat`.
        handle = os.open(path, os.O_RDONLY | _BINARY | _NO_WAIT)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular(path)
            if status.st_size > bound_bytes:
                msg = f"{path}: {status.st_size} bytes, more than the {bound_bytes} allowed"
                raise ArtifactError(msg, path=str(path), bound_bytes=bound_bytes)
            with open(handle, "rb", closefd=False) as file:
                return file.read(status.st_size)
        finally:
            os.close(handle)
    except OSError as error:
        raise _explain(error, path, "read") from error


def is_disk_failure(error: OSError) -> bool:
    """
    Whether the disk itself refused: full, over quota, or broken.
    """
    return error.errno in _DISK_ERRNOS


class Exposure(NamedTuple):
    """
    Why a directory is not its user's own.

    Attributes:
        problem: What is wrong, to follow its path in a sentence.
        fix: What the user can do about this directory, or `None` when only another one helps.
    """

    problem: str
    fix: str | None = None


def make_private(directory: Path) -> Exposure | None:
    """
    Make a directory that only its user can enter, unless it is there; why it can't be trusted, if so.

    Raises:
        OSError: If it can't be made or looked at.
    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=PRIVATE_DIRECTORY_MODE)
    return find_exposure(directory)


def find_exposure(directory: Path) -> Exposure | None:
    """
    Whether someone else may put files into a directory, or it is none.

    Raises:
        OSError: If it can't be looked at.
    """
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Exposure("is a symbolic link", "name the directory itself")
    if not stat.S_ISDIR(status.st_mode):
        return Exposure("is not a directory")
    if not is_ours(status):
        return Exposure(f"belongs to user {status.st_uid}")
    if os.name != "nt" and status.st_mode & _WRITABLE_BY_OTHERS:
        return Exposure("can be written by other users", f"chmod 700 {directory}")
    return None


def is_ours(status: os.stat_result) -> bool:
    """
    Whether a file belongs to the user of this process.
    """
    # Windows has no such numbers; a profile is private there by its access list.
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def temporary_prefix(name: str) -> str:
    """
    How the temporary files of `write_whole` for a file called `name` begin.

    A process that is killed leaves its own behind; who owns the directory may remove it.
    """
    # File names hold 255 bytes; a long one must still leave room for what follows.
    return f".{os.fsdecode(os.fsencode(name)[:200])}.tmp-"


def _fill(temporary: Path, data: bytes, *, sync: bool) -> WriteTimes:
    started_ns = time.perf_counter_ns()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
    with open(os.open(temporary, flags, PRIVATE_FILE_MODE), "wb") as file:
        file.write(data)
        file.flush()
        write_us = _elapsed_us(started_ns)
        started_ns = time.perf_counter_ns()
        if sync:
            os.fsync(file.fileno())
        return WriteTimes(write_us, _elapsed_us(started_ns) if sync else 0)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # pragma: no cover - directories can't be opened there; the rename is logged
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_special(path: Path) -> None:
    """
    Replacing `/dev/stdout` or a pipe would take it away from everyone else.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        msg = f"{path}: is a symbolic link"
        raise UsageError(msg, hint="name the file that it points to", path=str(path))
    if not stat.S_ISREG(mode):
        raise _not_regular(path)


def _not_regular(path: Path) -> UsageError:
    return UsageError(f"{path}: not a regular file", hint="name a regular file", path=str(path))


def _explain(error: OSError, path: Path, done: str) -> RunnerError:
    message = f"{path}: can't be {done}: {(error.strerror or str(error)).lower()}"
    if is_disk_failure(error):
        return ArtifactError(message, hint="free some space, or choose another disk", path=str(path))
    hint = "check the path"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint = f"choose a path that you may {'write to' if done == 'written' else 'read'}"
    elif error.errno in (errno.ENOENT, errno.ENOTDIR) and done == "written":
        hint = f"create the directory {path.parent} first"
    return UsageError(message, hint=hint, path=str(path))


def _elapsed_us(started_ns: int) -> int:
    return (time.perf_counter_ns() - started_ns) // 1000
