"""
The lock of an instance: one holder, who is named, and none once the holder is gone.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from runner.errors import InstanceBusy
from runner.journal import lock as locks
from runner.journal.lock import InstanceLock, holder, was_made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    Where the lock's file is.
    """
    return tmp_path / "one"


def test_a_second_holder_is_refused_and_told_who_the_first_is(path: Path) -> None:
    """
    In the same process too.
    """
    lock = InstanceLock(path, "one")
    with pytest.raises(InstanceBusy) as caught:
        InstanceLock(path, "one")
    assert caught.value.message == f"instance one is in use by process {os.getpid()}"
    assert (caught.value.pid, holder(path)) == (os.getpid(), os.getpid())
    lock.release()
    assert holder(path) is None
    InstanceLock(path, "one").release()


def test_the_file_remembers_that_the_instance_was_made(path: Path) -> None:
    """
    Beyond its holders, until it is unmade; for its user's eyes only.
    """
    assert not was_made(path)
    lock = InstanceLock(path, "one")
    assert not lock.was_made
    assert path.read_bytes() == b"new \n%d\n" % os.getpid()
    lock.mark_made()
    assert holder(path) == os.getpid()
    lock.release()
    lock.release()
    assert path.read_bytes() == b"made\n"
    assert path.stat().st_mode & 0o777 == 0o600
    again = InstanceLock(path, "one")
    assert again.was_made
    assert was_made(path)
    again.unmake()
    assert not path.exists()
    assert not was_made(path)
    again.release()


def test_a_number_left_by_the_dead_is_no_holder(path: Path) -> None:
    """
    The system has let go of the lock; what is left is only text.
    """
    path.write_bytes(b"made\n1\n")
    assert holder(path) is None
    path.write_bytes(b"made\nnobody\n")
    assert holder(path) is None
    InstanceLock(path, "one").release()


def test_who_only_looks_is_not_taken_for_a_holder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A look takes a shared lock for a moment; whoever wants the lock tries again.
    """
    # A number that no process has: what a holder that died would leave.
    path.write_bytes(b"made\n999999999\n")
    looking = os.open(path, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    pauses: list[None] = []

    def pause() -> None:
        pauses.append(None)
        if len(pauses) == 3:
            os.close(looking)

    monkeypatch.setattr(locks, "_pause", pause)
    InstanceLock(path, "one").release()
    assert len(pauses) == 3


def test_a_holder_that_never_says_who_it_is_is_still_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After some tries.
    """
    path.write_bytes(b"")
    silent = os.open(path, os.O_RDWR)
    fcntl.flock(silent, fcntl.LOCK_EX)
    pauses: list[None] = []
    monkeypatch.setattr(locks, "_pause", lambda: pauses.append(None))
    with pytest.raises(InstanceBusy) as caught:
        InstanceLock(path, "one")
    assert caught.value.message == "instance one is in use by another process"
    assert len(pauses) == 20
    os.close(silent)


def test_the_lock_of_a_file_that_was_removed_is_not_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Between opening it and locking it, its instance may have been removed.
    """
    lock = fcntl.flock
    locked: list[int] = []

    def remove_first(fd: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX:
            if not locked:
                path.unlink()
            locked.append(fd)
        lock(fd, operation)

    monkeypatch.setattr("fcntl.flock", remove_first)
    taken = InstanceLock(path, "one")
    assert len(locked) == 2
    assert os.fstat(taken._fd).st_ino == path.stat().st_ino
    taken.release()


def test_a_lock_that_can_not_be_signed_is_let_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A full disk must not leave a holder that nobody knows.
    """

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", refuse)
        with pytest.raises(OSError, match="No space left on device"):
            InstanceLock(path, "one")
        patch.setattr("fcntl.flock", refuse)
        with pytest.raises(OSError, match="No space left on device"):
            InstanceLock(path, "one")
    InstanceLock(path, "one").release()


def test_a_lock_that_goes_away_while_it_is_looked_at_has_no_holder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its instance was removed.
    """
    path.write_bytes(b"made\n1\n")
    read = locks._read

    def read_last(where: Path) -> bytes:
        content = read(where)
        where.unlink()
        return content

    monkeypatch.setattr(locks, "_read", read_last)
    assert holder(path) is None


def test_a_link_is_not_followed(path: Path) -> None:
    """
    Nobody may make a writer write elsewhere.
    """
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        InstanceLock(path, "one")


def test_a_holder_may_belong_to_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A process that may not be signalled is alive all the same.
    """

    def refuse(pid: int, signal: int) -> None:
        raise PermissionError(pid, signal)

    monkeypatch.setattr("os.kill", refuse)
    assert locks._is_alive(1)
