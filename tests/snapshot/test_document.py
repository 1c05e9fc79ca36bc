"""
`docs/snapshot-format.md` and the code say the same, and no field of the kernel's state is forgotten.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

from runner import codec
from runner.kernel.limits import Limits
from runner.kernel.state import (
    MAX_ERROR_CHARS,
    PAGE_BYTES,
    Answer,
    Call,
    MachineState,
    Mind,
    OpenDelivery,
    Restored,
)
from runner.snapshot import Snapshot, decode, encode
from runner.snapshot import format as snapshot_format
from runner.snapshot.header import MAPS
from runner.snapshot.pages import MAX_WINDOW_LOG
from runner.snapshot.rules import MAX_COUNT, MAX_MEMORY_BYTES, MAX_NUMBER, Check

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "snapshot-format.md"


def read_document() -> str:
    """
    The whole text.
    """
    return DOCUMENT.read_text(encoding="utf-8")


def table_after(marker: str) -> list[list[str]]:
    """
    Cells of the first table that follows `marker`, without its head; code marks are dropped.
    """
    text = read_document()
    assert text.count(marker) == 1, f"{marker!r} must be there once"
    rows: list[list[str]] = []
    for line in text[text.index(marker) + len(marker) :].splitlines():
        if line.startswith("|"):
            rows.append([cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            break
    return rows[2:]


def test_the_document_has_a_status_and_the_version_of_the_code() -> None:
    """
    The first thing that a reader looks for.
    """
    text = read_document()
    assert text.startswith(
        f"# The snapshot format, version {snapshot_format.VERSION}\n\nStatus: **CURRENT**."
    )


def test_the_layout_is_the_one_that_the_code_writes() -> None:
    """
    Offsets and sizes of the prefix add up, and an encoded snapshot has its fields there.
    """
    rows = {row[2]: row for row in table_after("## Layout")}
    assert list(rows) == ["magic", "version", "header_bytes", "body_bytes", "root", "header", "body"]
    prefix = ["magic", "version", "header_bytes", "body_bytes", "root"]
    offset = 0
    for name in prefix:
        assert int(rows[name][0]) == offset
        offset += int(rows[name][1])
    assert offset == snapshot_format.PREFIX_BYTES == int(rows["header"][0])
    assert bytes.fromhex(rows["magic"][3]) == snapshot_format.MAGIC
    versions = f"{snapshot_format.OLDEST_VERSION} or {snapshot_format.VERSION}"
    assert rows["version"][3] == versions


def test_an_encoded_snapshot_can_be_read_by_the_document_alone(sample: Snapshot) -> None:
    """
    Field by field, at the offsets that the table gives.
    """
    data = encode(sample)
    at = {row[2]: slice(int(row[0]), int(row[0]) + int(row[1])) for row in table_after("## Layout")[:5]}
    header_bytes = int.from_bytes(data[at["header_bytes"]], "big")
    body_bytes = int.from_bytes(data[at["body_bytes"]], "big")
    assert 56 + header_bytes + body_bytes == len(data)
    header = codec.decode(data[56 : 56 + header_bytes])
    assert sorted(header) == [row[0] for row in table_after("### `header`")]
    assert decode(data) is not None


def test_the_bounds_are_those_of_the_code() -> None:
    """
    Every number, and no other.
    """
    bounds = {row[0]: int(row[1]) for row in table_after("## Bounds")}
    assert bounds == {
        "PAGE_BYTES": PAGE_BYTES,
        "MAX_HEADER_BYTES": snapshot_format.MAX_HEADER_BYTES,
        "MAX_MEMORY_BYTES": MAX_MEMORY_BYTES,
        "MAX_COUNT": MAX_COUNT,
        "MAX_NUMBER": MAX_NUMBER,
        "MAX_ERROR_CHARS": MAX_ERROR_CHARS,
        "MAX_WINDOW_LOG": MAX_WINDOW_LOG,
        "MAX_ITEMS": codec.MAX_ITEMS,
        "MAX_DEPTH": codec.MAX_DEPTH,
    }


def test_every_map_has_the_keys_that_the_document_lists() -> None:
    """
    Key by key, sorted, and the limits too.
    """
    listed = {name: tuple(row[0] for row in table_after(f"### `{name}`")) for name in MAPS}
    assert listed == MAPS
    limits = [row[0] for row in table_after("The names at this version:")]
    assert limits == sorted(field.name for field in fields(Limits))


def test_every_field_of_the_state_has_a_key() -> None:
    """
    A field that the kernel gains and the format lacks would be lost without a sound.
    """
    maps: dict[str, Any] = {
        "state": MachineState,
        "delivery": OpenDelivery,
        "call": Call,
        "answer": Answer,
        "restored": Restored,
    }
    for name, kind in maps.items():
        assert set(MAPS[name]) == {field.name for field in fields(kind)}, name
    pages = {"pages"}
    packed = {"indices", "contents"}
    assert set(MAPS["mind"]) - packed == {field.name for field in fields(Mind)} - pages
    assert set(MAPS["header"]) - {"abi_version", "pages"} == {field.name for field in fields(Snapshot)}


def test_the_checks_are_named_as_in_messages() -> None:
    """
    In the order in which a reader makes them.
    """
    assert tuple(row[0] for row in table_after("## Reading")) == get_args(Check)
