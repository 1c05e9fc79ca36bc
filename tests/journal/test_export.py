"""
Journals as files: whole, or refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.digest import digest
from runner.errors import JournalCorrupt, UsageError
from runner.journal import export, wire
from runner.journal.records import Born, Delivery, Slice

BORN = Born(agent="a", code_digest=bytes(32), image_digest=bytes(32), limits={"fuel": 1})
RECORDS = (BORN, Delivery(number=1, kind=1, payload=b"\xf6", now_ms=5), Slice(reply=(True, b"\x01")))
WHOLE = export.JournalFile(name="rex", agents=(b"wasm", b"two"), records=RECORDS, origin=b"snap")


@pytest.mark.parametrize("origin", [None, b"", b"snap"])
def test_a_file_says_what_was_written(tmp_path: Path, origin: bytes | None) -> None:
    """With a snapshot at its beginning, or none."""
    journal = export.JournalFile(name="rex", agents=(b"wasm",), records=RECORDS, origin=origin)
    size = export.write(tmp_path / "x", journal)
    assert (tmp_path / "x").stat().st_size == size
    assert export.read(tmp_path / "x") == journal
    assert export.is_export(tmp_path / "x")


def test_other_files_are_none(tmp_path: Path) -> None:
    """Neither a folder nor a file of another kind."""
    (tmp_path / "y").write_bytes(b"RUNNER")
    assert [export.is_export(tmp_path / name) for name in ("", "y", "z")] == [False, False, False]
    with pytest.raises(JournalCorrupt, match=r"does not begin as an exported journal does$"):
        export.read(tmp_path / "y")
    with pytest.raises(UsageError):
        export.read(tmp_path / "z")


def _file(magic: bytes, *parts: object) -> bytes:
    body = b""
    for part in parts:
        data = codec.encode(part)
        body += len(data).to_bytes(4, "little") + data
    return magic + digest(body) + body


def test_a_file_of_the_first_version_is_read_as_ever(tmp_path: Path) -> None:
    """It had one agent."""
    records = [codec.decode(wire.encode(record)) for record in RECORDS]
    header = {"name": "rex", "records": 3, "origin": False}
    (tmp_path / "old").write_bytes(_file(b"RUNNERJ1", header, b"wasm", *records))
    assert export.is_export(tmp_path / "old")
    expected = export.JournalFile(name="rex", agents=(b"wasm",), records=RECORDS)
    assert export.read(tmp_path / "old") == expected


@pytest.mark.parametrize(
    ("agents", "parts", "problem"),
    [
        (0, [b"wasm"], "the file has no agent"),
        (-1, [b"wasm"], "the file has no agent"),
        (1 << 62, [b"wasm"], "the file has no agent"),
        (3, [b"wasm"], "the file has fewer agents than it says"),
        (True, [b"wasm"], "the file's header is not of its form"),
        (2, [b"wasm", "two"], "a part of the file is no byte string"),
    ],
)
def test_a_file_has_the_agents_that_it_says(
    tmp_path: Path, agents: int, parts: list[object], problem: str
) -> None:
    """No more, no fewer, and one at least."""
    header = {"name": "rex", "records": 0, "origin": False, "agents": agents}
    (tmp_path / "forged").write_bytes(_file(b"RUNNERJ2", header, *parts))
    with pytest.raises(JournalCorrupt, match=f"{problem}$"):
        export.read(tmp_path / "forged")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is whole."""
    path = tmp_path_factory.mktemp("export") / "whole"
    export.write(path, WHOLE)
    return path


@given(data=st.data())
def test_every_damage_is_found(written: Path, data: st.DataObject) -> None:
    """One flipped bit, or an end that is missing."""
    whole = written.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    torn = written.with_name("torn")
    for damaged in (bytes(flipped), whole[:place]):
        torn.write_bytes(damaged)
        with pytest.raises(JournalCorrupt):
            export.read(torn)


@given(body=st.binary(max_size=200))
def test_a_digest_that_is_right_proves_nothing_about_the_rest(written: Path, body: bytes) -> None:
    """Whoever writes a file can sum it up."""
    forged = written.with_name("forged")
    forged.write_bytes(export.MAGIC + digest(body) + body)
    with pytest.raises(JournalCorrupt):
        export.read(forged)
