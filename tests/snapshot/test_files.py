"""
Snapshots as files: whole or as before, and nothing that is no file is ever opened for long.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from runner.errors import ArtifactError, SnapshotCorrupt, SnapshotIncompatible, UsageError
from runner.snapshot import Snapshot, encode, read, write


def test_what_was_written_is_read(sample: Snapshot, tmp_path: Path) -> None:
    """
    With and without waiting for the disk; the file is its owner's alone, and all there is.
    """
    path = tmp_path / "a.snap"
    for sync in (True, False):
        stats = write(path, sample, sync=sync)
        assert encode(read(path)) == path.read_bytes() == encode(sample)
        assert (stats.size_bytes, stats.pages, stats.pages_stored) == (path.stat().st_size, 6, 3)
        assert min(stats.encode_us, stats.write_us, stats.sync_us) >= 0
        assert sync or stats.sync_us == 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["a.snap"]


def test_a_damaged_file_is_refused_by_name(sample: Snapshot, tmp_path: Path) -> None:
    """
    The message says which file, and which check.
    """
    path = tmp_path / "a.snap"
    path.write_bytes(encode(sample)[:-1])
    with pytest.raises(SnapshotCorrupt) as caught:
        read(path)
    size_bytes = len(encode(sample))
    assert caught.value.message == (
        f"{path}: snapshot is damaged: length: {size_bytes - 1} bytes, expected {size_bytes}"
    )
    path.write_bytes(b"")
    with pytest.raises(SnapshotCorrupt) as caught:
        read(path)
    assert caught.value.message == f"{path}: snapshot is damaged: magic: not a snapshot"


def test_a_newer_file_is_refused_as_newer(sample: Snapshot, tmp_path: Path) -> None:
    """
    Not as damaged: it may be sound.
    """
    path = tmp_path / "a.snap"
    data = encode(sample)
    path.write_bytes(data[:8] + b"\0\0\0\3" + data[12:])
    with pytest.raises(SnapshotIncompatible) as caught:
        read(path)
    assert caught.value.message == "snapshot does not fit: format_version is 3, expected 1 or 2"


def test_a_file_that_no_snapshot_can_fill_is_not_read(sample: Snapshot, tmp_path: Path) -> None:
    """
    Its size is looked at first: a sparse file of a terabyte costs nothing.
    """
    path = tmp_path / "a.snap"
    path.write_bytes(encode(sample))
    os.truncate(path, 1 << 40)
    with pytest.raises(ArtifactError) as caught:
        read(path)
    bound_bytes = 56 + (64 << 20) + (8 << 30) + (64 << 20)
    assert caught.value.message == f"{path}: {1 << 40} bytes, more than the {bound_bytes} allowed"
    with pytest.raises(ArtifactError) as caught:
        read(path, max_memory_bytes=1 << 20)
    bound_bytes = 56 + (64 << 20) + (2 << 20) + (16 << 10)
    assert caught.value.message == f"{path}: {1 << 40} bytes, more than the {bound_bytes} allowed"


def test_what_is_no_regular_file_is_not_read(sample: Snapshot, tmp_path: Path) -> None:
    """
    A pipe without a writer would block for ever, a device never end.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(UsageError) as caught:
            read(path)
        assert caught.value.message == f"{path}: not a regular file"
        assert caught.value.hint == "name a regular file"
    link = tmp_path / "link"
    write(tmp_path / "a.snap", sample)
    link.symlink_to("a.snap")
    assert encode(read(link)) == encode(sample)


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    """
    Exit code 2, and the path.
    """
    path = tmp_path / "a.snap"
    with pytest.raises(UsageError) as caught:
        read(path)
    assert caught.value.message == f"{path}: can't be read: no such file or directory"
    assert caught.value.hint == "check the path"
    assert caught.value.details == {"path": str(path)}


def test_nothing_but_a_file_is_replaced(sample: Snapshot, tmp_path: Path) -> None:
    """
    To replace a link or a device would surprise whoever else uses it.
    """
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link = tmp_path / "link"
    link.symlink_to(target)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    expected = {
        link: ("is a symbolic link", "name the file that it points to"),
        pipe: ("not a regular file", "name a regular file"),
        tmp_path: ("not a regular file", "name a regular file"),
    }
    for path, (problem, hint) in expected.items():
        with pytest.raises(UsageError) as caught:
            write(path, sample)
        assert (caught.value.message, caught.value.hint) == (f"{path}: {problem}", hint)
    assert target.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "target"]


def test_a_directory_that_is_not_there_is_not_made_up(sample: Snapshot, tmp_path: Path) -> None:
    """
    A typing error should not grow a tree.
    """
    path = tmp_path / "no" / "a.snap"
    with pytest.raises(UsageError) as caught:
        write(path, sample)
    assert caught.value.message == f"{path}: can't be written: no such file or directory"
    assert caught.value.hint == f"create the directory {tmp_path / 'no'} first"
    (tmp_path / "no").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        write(path, sample)
    assert caught.value.message == f"{path}: can't be written: not a directory"


def test_a_name_as_long_as_names_can_be_is_written(sample: Snapshot, tmp_path: Path) -> None:
    """
    The temporary file's name is longer than the file's, and must fit too.
    """
    path = tmp_path / ("ü" * 127)
    write(path, sample)
    assert os.listdir(tmp_path) == [path.name]


def test_a_disk_that_runs_full_leaves_what_was_there(sample: Snapshot, tmp_path: Path) -> None:
    """
    A real write that really fails half way: the old file is whole and nothing lies beside it.
    """
    path = tmp_path / "a.snap"
    path.write_bytes(b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        with pytest.raises(ArtifactError) as caught:
            write(path, sample)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.message == f"{path}: can't be written: file too large"
    assert caught.value.hint == "free some space, or choose another disk"
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.snap"]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_step_that_is_not_permitted_leaves_what_was_there(
    sample: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """
    Whichever step fails. Tests may run as a user to whom everything is permitted, so it is simulated.
    """
    path = tmp_path / "a.snap"
    path.write_bytes(b"before")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(os, step, refuse)
        with pytest.raises(UsageError) as caught:
            write(path, sample)
    assert caught.value.message == f"{path}: can't be written: permission denied"
    assert caught.value.hint == "choose a path that you may write to"
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.snap"]


def test_an_interrupted_write_leaves_what_was_there(
    sample: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Ctrl-C is no reason for litter.
    """

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "a.snap", sample)
    assert os.listdir(tmp_path) == []
