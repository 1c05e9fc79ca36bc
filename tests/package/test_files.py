"""
Reading an agent's files.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import AgentInvalid
from runner.package.files import read_file


def refusal(path: Path, inside: Path | None = None, max_bytes: int = 10) -> str:
    """
    The message that reading a file ends in.
    """
    with pytest.raises(AgentInvalid) as caught:
        read_file(path, max_bytes=max_bytes, inside=inside)
    return str(caught.value)


def test_a_file_of_just_the_size_allowed_is_read(tmp_path: Path) -> None:
    """
    One byte more is refused.
    """
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    assert read_file(path, max_bytes=10) == b"0123456789"
    assert refusal(path, max_bytes=9) == f"{path}: larger than 9 B"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """
    As is a link to nowhere.
    """
    (tmp_path / "link").symlink_to("nowhere")
    assert refusal(tmp_path / "a") == f"{tmp_path}/a: no such file"
    assert refusal(tmp_path / "link") == f"{tmp_path}/link: no such file"


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """
    A folder, a device, and a pipe that nobody writes to.
    """
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path) == f"{tmp_path}: not a regular file"
    assert refusal(tmp_path / "pipe") == f"{tmp_path}/pipe: not a regular file"
    assert refusal(Path("/dev/zero")) == "/dev/zero: not a regular file"


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    """
    Itself a link, or below a linked folder.
    """
    folder = tmp_path / "agent"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    assert refusal(folder / "file", folder) == f"{folder}/file: leads outside the agent's folder"
    assert (
        refusal(folder / "up" / "secret", folder) == f"{folder}/up/secret: leads outside the agent's folder"
    )


def test_a_neighbour_with_a_longer_name_is_outside_too(tmp_path: Path) -> None:
    """
    The comparison is by path, not by text.
    """
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent2").mkdir()
    (tmp_path / "agent2" / "a").write_bytes(b"x")
    path = tmp_path / "agent" / ".." / "agent2" / "a"
    assert refusal(path, tmp_path / "agent") == f"{path}: leads outside the agent's folder"


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    """
    Also when the folder itself is reached through a link.
    """
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "a").write_bytes(b"x")
    (folder / "b").symlink_to("a")
    (tmp_path / "alias").symlink_to("agent")
    assert read_file(tmp_path / "alias" / "b", max_bytes=1, inside=tmp_path / "alias") == b"x"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    """
    Whatever this Python calls it.
    """
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert refusal(tmp_path / "a") in (
        f"{tmp_path}/a: links in a circle",
        f"{tmp_path}/a: can't be read: Too many levels of symbolic links",
    )


def test_what_the_system_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    """
    Here: a file taken for a folder.
    """
    (tmp_path / "a").write_bytes(b"")
    assert refusal(tmp_path / "a" / "b") == f"{tmp_path}/a/b: can't be read: Not a directory"
