"""
Whether a compiled agent still is what its sources say.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import AgentInvalid
from runner.package.manifest import BuildSettings, Manifest
from runner.package.sources import BUILT_MODULE, read_built, record_build, source_digest

MANIFEST = Manifest(name="a", language="c", entry="agent.c")
MODULE = b"\0asm\x01\0\0\0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """
    A C agent with one source and one header.
    """
    (tmp_path / "agent.c").write_text("int main;", encoding="utf-8")
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "words.h").write_text("", encoding="utf-8")
    return tmp_path


def put_built(folder: Path, module: bytes = MODULE) -> None:
    """
    Put a module where a build would.
    """
    (folder / "build").mkdir(exist_ok=True)
    (folder / BUILT_MODULE).write_bytes(module)


def built(folder: Path, manifest: Manifest = MANIFEST) -> bytes | None:
    """
    The module, if it is up to date.
    """
    return read_built(folder, manifest, max_bytes=100)


def test_a_recorded_build_is_read_until_a_source_changes(folder: Path) -> None:
    """
    By content: a file that was only touched has not changed.
    """
    assert built(folder) is None
    put_built(folder)
    assert built(folder) is None
    record_build(folder, MANIFEST, MODULE)
    assert built(folder) == MODULE
    os.utime(folder / "agent.c", (0, 2_000_000_000))
    assert built(folder) == MODULE
    (folder / "agent.c").write_text("int main ;", encoding="utf-8")
    assert built(folder) is None


def test_a_header_that_is_named_nowhere_counts_too(folder: Path) -> None:
    """
    A source may include any file of the folder.
    """
    before = source_digest(folder, MANIFEST)
    (folder / "inc" / "words.h").write_text("#define X", encoding="utf-8")
    changed = source_digest(folder, MANIFEST)
    (folder / "inc" / "more.inc").write_text("", encoding="utf-8")
    assert len({before, changed, source_digest(folder, MANIFEST)}) == 3


def test_what_is_no_source_does_not_count(folder: Path) -> None:
    """
    Notes, hidden files, and what was built.
    """
    before = source_digest(folder, MANIFEST)
    (folder / "README.md").write_text("x", encoding="utf-8")
    (folder / ".hidden.c").write_text("x", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.c").write_text("x", encoding="utf-8")
    (folder / "build").mkdir()
    (folder / "build" / "x.c").write_text("x", encoding="utf-8")
    assert source_digest(folder, MANIFEST) == before


def test_the_build_settings_count(folder: Path) -> None:
    """
    The rest of the manifest does not change the code.
    """
    (folder / "extra").write_text("", encoding="utf-8")
    settings = [
        BuildSettings(),
        BuildSettings(unwind=True),
        BuildSettings(stack_bytes=1024),
        BuildSettings(sources=("extra",)),
    ]
    digests = {
        source_digest(folder, Manifest(name="a", language="c", entry="agent.c", build=build))
        for build in settings
    }
    assert len(digests) == 4
    assert source_digest(folder, Manifest(name="b", language="c", entry="agent.c")) in digests


def test_the_digest_does_not_depend_on_where_the_folder_is(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    A copy of an agent need not be built again.
    """
    other = tmp_path_factory.mktemp("other")
    (other / "inc").mkdir()
    (other / "inc" / "words.h").write_text("", encoding="utf-8")
    (other / "agent.c").write_text("int main;", encoding="utf-8")
    assert source_digest(other, MANIFEST) == source_digest(folder, MANIFEST)


def test_a_module_that_was_put_there_by_hand_is_not_what_was_recorded(folder: Path) -> None:
    """
    The record speaks of the module too.
    """
    record_build(folder, MANIFEST, MODULE)
    put_built(folder, MODULE + b"x")
    assert built(folder) is None


def test_a_missing_source_is_named(folder: Path) -> None:
    """
    As the manifest names it.
    """
    (folder / "agent.c").unlink()
    with pytest.raises(AgentInvalid) as caught:
        source_digest(folder, MANIFEST)
    assert str(caught.value) == f"{folder}/agent.c: no such file"


def test_a_header_that_leads_outside_is_refused(folder: Path) -> None:
    """
    An agent's sources are its folder.
    """
    (folder / "secret.h").symlink_to("/etc/passwd")
    with pytest.raises(AgentInvalid) as caught:
        source_digest(folder, MANIFEST)
    assert str(caught.value) == f"{folder}/secret.h: leads outside the agent's folder"


def test_a_linked_folder_is_not_walked_into(folder: Path) -> None:
    """
    It could lead anywhere, or round in a circle.
    """
    before = source_digest(folder, MANIFEST)
    (folder / "again").symlink_to(".")
    assert source_digest(folder, MANIFEST) == before


def test_there_are_at_most_a_thousand_sources(folder: Path) -> None:
    """
    Counted before they are read.
    """
    for number in range(999):
        (folder / f"{number}.h").touch()
    with pytest.raises(AgentInvalid) as caught:
        source_digest(folder, MANIFEST)
    assert str(caught.value) == f"{folder}: more than 1000 source files"


def test_nothing_is_written_through_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    Neither in place of the build folder nor in place of the record.
    """
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "build").symlink_to(elsewhere)
    with pytest.raises(AgentInvalid) as caught:
        record_build(folder, MANIFEST, MODULE)
    assert str(caught.value) == f"{folder}/build: leads outside the agent's folder"
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_place_of_the_build_folder_is_named(folder: Path) -> None:
    """
    With the system's own words.
    """
    (folder / "build").touch()
    with pytest.raises(AgentInvalid) as caught:
        record_build(folder, MANIFEST, MODULE)
    assert str(caught.value) == f"{folder}/build: can't be made: File exists"


def test_a_module_of_another_sdk_is_out_of_date(folder: Path) -> None:
    """
    An upgrade must not leave agents on the SDK before it.
    """
    record_build(folder, MANIFEST, MODULE, b"one")
    (folder / BUILT_MODULE).write_bytes(MODULE)
    assert read_built(folder, MANIFEST, max_bytes=100, sdk=b"one") == MODULE
    assert read_built(folder, MANIFEST, max_bytes=100, sdk=b"two") is None
