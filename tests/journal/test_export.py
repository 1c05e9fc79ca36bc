"""
Journals as files: whole, or refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.digest import digest
from runner.errors import JournalCorrupt, UsageError
from runner.journal import export
from runner.journal.records import Born, Delivery, Slice

BORN = Born(agent="a", code_digest=bytes(32), image_digest=bytes(32), limits={"fuel": 1})
RECORDS = (BORN, Delivery(number=1, kind=1, payload=b"\xf6", now_ms=5), Slice(reply=(True, b"\x01")))
WHOLE = export.JournalFile(name="rex", agent=b"wasm", records=RECORDS, origin=b"snap")


@pytest.mark.parametrize("origin", [None, b"", b"snap"])
def test_a_file_says_what_was_written(tmp_path: Path, origin: bytes | None) -> None:
    """With a snapshot at its beginning, or none."""
    journal = export.JournalFile(name="rex", agent=b"wasm", records=RECORDS, origin=origin)
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
