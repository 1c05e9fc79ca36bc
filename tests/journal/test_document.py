"""
`docs/journal-format.md` and the code say the same.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Final

import pytest

from runner import codec
from runner.digest import digest
from runner.journal import StateDirectory, schema, snapshots, standing, state_shapes, wire
from runner.journal.chain import GENESIS
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS, Shape
from runner.journal.state import NAME
from runner.kernel.abi import DeliveryKind
from runner.kernel.state import MAX_ERROR_CHARS, MAX_MEMORY_BYTES, MAX_NUMBER
from tests.journal.samples import filled, machine_state, page

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "journal-format.md"

MAPS: Final[dict[str, dict[str, Shape]]] = {
    **{name: fields for name, (_, fields) in wire.RECORDS.items()},
    "intent": wire.INTENT,
    "standing": standing.FIELDS,
    "header": snapshots.FIELDS,
    **state_shapes.MAPS,
}


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
    version = len(schema.STEPS)
    assert read_document().startswith(f"# The journal format, version {version}\n\nStatus: **CURRENT**.")


def test_the_directory_is_the_one_that_is_made(state: StateDirectory, root: Path) -> None:
    """
    File by file, and named as an instance may be.
    """
    filled(state, "one", 0)
    listed = {row[0].rstrip("/") for row in table_after("## Directory")}
    assert {path.name for path in root.iterdir()} == listed | {"state.db-wal", "state.db-shm"}
    assert f"`{NAME.pattern}`" in read_document()


def test_the_tables_are_those_of_the_database(state: StateDirectory, root: Path) -> None:
    """
    Column by column, with their types; and the numbers in the file's header.
    """
    connection = sqlite3.connect(root / "state.db")
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    listed = re.findall(r"^### Table `(\w+)`$", read_document(), re.MULTILINE)
    assert sorted(names) == sorted(listed)
    for name in names:
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        documented = [(row[0], row[1]) for row in table_after(f"### Table `{name}`")]
        assert [(column[1], column[2]) for column in columns] == documented
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    assert f"`application_id` is {application} (`RunJ`)" in read_document()
    connection.close()
    assert state.names() == []


@pytest.mark.parametrize("name", MAPS)
def test_every_map_has_the_fields_that_the_document_lists(name: str) -> None:
    """
    Key by key in their order, each of the type that the code takes.
    """
    listed = [(row[0], row[1]) for row in table_after(f"### `{name}`\n")]
    assert listed == [(key, shape.notation) for key, shape in MAPS[name].items()]


def test_the_document_has_no_other_maps() -> None:
    """
    A kind that the code no longer has must not be promised.
    """
    assert sorted(re.findall(r"^### `(\w+)`$", read_document(), re.MULTILINE)) == sorted(MAPS)


def test_every_type_is_explained() -> None:
    """
    Each word that a field's type uses is in the table, is a map, or is CDDL's own.
    """
    used = {
        word
        for fields in MAPS.values()
        for shape in fields.values()
        for word in re.findall(r"\b[a-z_]+\b", re.sub(r'"\w+"', "", shape.notation))
    }
    explained = {row[0] for row in table_after("## Types")}
    assert used - explained - set(MAPS) == {"null", "bool", "tstr", "bstr", "int", "size"}
    assert explained <= used
    kinds = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in DeliveryKind)
    assert ["kind", f"kind of a delivery: {kinds}"] in table_after("## Types")


def test_the_bounds_are_those_of_the_code() -> None:
    """
    Every number, and no other.
    """
    assert {row[0]: int(row[1]) for row in table_after("## Bounds")} == {
        "MAX_COUNT": MAX_COUNT,
        "MAX_NUMBER": MAX_NUMBER,
        "MAX_NAME_CHARS": MAX_NAME_CHARS,
        "MAX_ERROR_CHARS": MAX_ERROR_CHARS,
        "MAX_MEMORY_BYTES": MAX_MEMORY_BYTES,
        "MAX_HEADER_BYTES": snapshots.MAX_HEADER_BYTES,
        "MAX_ITEMS": codec.MAX_ITEMS,
        "MAX_DEPTH": codec.MAX_DEPTH,
    }


def test_digests_are_made_as_the_document_says(state: StateDirectory, root: Path) -> None:
    """
    Links and seals, computed from its words alone.
    """
    filled(state, "one", 1)
    with state.open("one", write=True) as journal:
        journal.put_snapshot(3, machine_state({0: page(1)}), {}, b"d" * 32)
    connection = sqlite3.connect(root / "state.db")
    records = connection.execute("SELECT seq, payload, chain FROM records ORDER BY seq").fetchall()
    name, agent, position, chain, packed, seal = connection.execute(
        "SELECT name, agent, position, chain, standing, seal FROM instances"
    ).fetchone()
    at, header, pages, snapshot_seal = connection.execute(
        "SELECT position, header, pages, seal FROM snapshots"
    ).fetchone()
    connection.close()
    link = digest(b"runner journal 1\n")
    assert link == GENESIS
    for seq, payload, stored in records:
        link = digest(link + seq.to_bytes(8, "big") + payload)
        assert stored == link
    assert chain == link
    assert seal == digest(b"runner instance 1\n" + codec.encode([name, agent, position, chain, packed]))
    assert snapshot_seal == digest(b"runner stored snapshot 1\n" + codec.encode([name, at, header, pages]))
