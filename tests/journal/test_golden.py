"""
States of every version that was ever released, as the SQL that makes them, and what they must hold for ever.

A file here is never written again. One whose value changes shows that journals out there have changed their
meaning.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import pytest

from runner.journal import StateDirectory, StoredSnapshot, schema, wire
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    Intent,
    Receipt,
    Record,
    Resolution,
    Slice,
    SnapshotTaken,
    Start,
    Stopped,
    Wake,
    Woken,
)
from runner.kernel.state import Answer, Call, MachineState, Mind, OpenDelivery, Restored

GOLDEN: Final = Path(__file__).parent / "golden"

CHAT: Final = b"\xa1\x68messages\x81\xa2\x64role\x64user\x67content\x65hello"
EVERY: Final = b"\xa1\x6binterval_ms\x19\x03\xe8"
TRAPPED: Final = {
    "kind": "trap",
    "message": "guest trapped: unreachable in f",
    "hint": None,
    "exception": "GuestTrapped",
    "details": {"trap": "unreachable", "frames": ["f"]},
}

BORN: Final = Born(
    agent="frage-\u00fc",
    code_digest=bytes(range(32)),
    image_digest=bytes(range(32, 64)),
    limits={"fuel": 2_000_000_000, "memory_bytes": 67_108_864, "timeout_ms": 30_000},
    allow=("llm.chat", "tool:fetch"),
    deny=("memory",),
    ask=("tool:pay*",),
    entropy=bytes(range(64, 96)),
    at_ms=1_800_000_000_000,
    parent=("counter", 9_007_199_254_740_993),
)

RECORDS: Final[tuple[Record, ...]] = (
    BORN,
    SnapshotTaken(digest=bytes(range(96, 128)), reason="origin"),
    Woken(count=2, generation=7, at_ms=1_800_000_000_001, entropy=bytes(range(128, 160))),
    Woken(count=3, generation=8, at_ms=1_800_000_000_002),
    Delivery(number=2, kind=1, payload=b"\x65hello", now_ms=1_800_000_000_003),
    Slice(
        calls=(
            Intent(number=4, operation="llm.chat", request=CHAT),
            Intent(number=5, operation="tool.call", request=b"\xa1\x64name\x63pay"),
        ),
        cancelled=(1, 3),
        fuel=1_235,
        digest=bytes(range(160, 192)),
    ),
    Decision(call=4, verdict="allow", rule="--allow llm.chat", by="policy", at_ms=1_800_000_000_004),
    Start(call=4, execution="frage-4-1", effect="idempotent"),
    Decision(call=5, verdict="ask", rule="--ask tool:pay*", by="policy", at_ms=1_800_000_000_004),
    Receipt(call=4, execution="frage-4-1", status=0, payload=b"\xa1\x64text\x62hi"),
    Wake(call=4, status=0, payload=b"\xa1\x64text\x62hi", now_ms=1_800_000_000_005),
    Slice(fuel=17, digest=bytes(range(192, 224))),
    Decision(call=5, verdict="deny", rule="not today", by="J\u00e9r\u00f4me", at_ms=0),
    Start(call=5, execution="frage-5-1", effect="effectful"),
    Resolution(call=5, ruling="done", payload=b"\xf5", by="me", at_ms=1_800_000_000_006),
    Resolution(call=5, ruling="abandon", payload=b"", by="me", at_ms=1_800_000_000_007),
    Abandoned(delivery=2, error=TRAPPED),
    Slice(error=TRAPPED, by_clock=True, fuel=9_223_372_036_854_775_807),
    Slice(reply=(False, b"\xa1\x67message\x62no"), digest=bytes(range(224, 256))),
    Start(call=6, execution="frage-6-1", effect="pure"),
    Stopped(reason="enough", at_ms=1_800_000_000_008),
)

CALL_1: Final = Call(1, "agent.every", EVERY, 1)
STATE: Final = MachineState(
    mind=Mind(
        131_072,
        {0: b"runner\0\0" * 512, 1: bytes(4_096), 17: b"\xff" * 4_096, 31: b"runner\0\0" * 512},
        (-1, -(1 << 63), (1 << 63) - 1, -0.0, 0.5),
    ),
    calls=(CALL_1, Call(4, "llm.chat", CHAT, 2)),
    next_call=5,
    last_delivery=2,
    entropy=bytes(range(64, 96)),
    entropy_used=6,
    delivery=OpenDelivery(
        number=2,
        fuel=1_999_998_765,
        before=Mind(65_536, {1: b"\xff" * 4_096, 2: b"before\0\0" * 512}, (0, 0, 0, 0.5, 0.0)),
        calls_before=(CALL_1,),
        answers=(Answer(1, 1, b"\xf6"), Answer(1, 1, b"\x64tick")),
    ),
    restored=Restored(2, 1, 1_799_999_999_999),
)
AGAIN: Final = Stopped(reason="again", at_ms=0)
HOST: Final = {"notes": [{"id": "1", "content": b"\x00"}], "usage": {"calls": 2, "cost": 0.25}}


class Golden(NamedTuple):
    """
    What a state holds.
    """

    name: str
    agent: bytes
    records: tuple[Record, ...]
    snapshots: tuple[StoredSnapshot, ...]


VALUES: Final = {
    "v1.sql": (
        Golden("counter", b"\0asm", (replace(BORN, parent=None),), ()),
        Golden(
            "frage-u",
            b"\0asm\x01\0\0\0",
            RECORDS,
            (
                StoredSnapshot(1, STATE, HOST, bytes(range(96, 128))),
                StoredSnapshot(11, MachineState(Mind(65_536, {}, ())), {}, bytes(range(32))),
            ),
        ),
    )
}


@pytest.fixture(params=VALUES)
def golden(request: pytest.FixtureRequest, root: Path) -> tuple[Golden, ...]:
    """
    What a golden file holds; its state is at `root`.
    """
    root.mkdir(mode=0o700)
    connection = sqlite3.connect(root / "state.db")
    connection.executescript((GOLDEN / request.param).read_text(encoding="ascii"))
    connection.close()
    values: tuple[Golden, ...] = VALUES[request.param]
    return values


def test_a_state_of_a_released_version_holds_what_was_put_into_it(
    golden: tuple[Golden, ...], root: Path
) -> None:
    """
    Instances, agents, records, and snapshots, whichever version this runner has.
    """
    with StateDirectory(root) as state:
        assert [row.name for row in state.names()] == [value.name for value in golden]
        for value in golden:
            assert state.agent(value.name) == value.agent
            with state.open(value.name, write=False) as journal:
                assert tuple(record for _, record in journal.read()) == value.records
                at = tuple(journal.latest_snapshot(position) for position in journal.snapshots())
                assert at == value.snapshots


def test_a_life_of_a_released_version_goes_on(golden: tuple[Golden, ...], root: Path) -> None:
    """
    Records follow those that there are, and what is not used any more can be collected.
    """
    with StateDirectory(root) as state:
        for value in golden:
            with state.open(value.name, write=True) as journal:
                assert journal.append([AGAIN]) == len(value.records) + 1
                journal.put_snapshot(journal.position, STATE, HOST, bytes(32))
        state.gc(1)
    with StateDirectory(root) as state:
        for value in golden:
            with state.open(value.name, write=False) as journal:
                assert [record for _, record in journal.read()] == [*value.records, AGAIN]


def test_what_was_written_then_is_written_now(state: StateDirectory, root: Path, tmp_path: Path) -> None:
    """
    The same bytes in every record, link, standing and seal; frames depend on the release of zstd.
    """
    latest = f"v{len(schema.STEPS)}.sql"
    then = sqlite3.connect(tmp_path / "then.db")
    then.executescript((GOLDEN / latest).read_text(encoding="ascii"))
    for value in VALUES[latest]:
        state.create(value.name, value.records[0], value.agent, value.records[1:])  # type: ignore[arg-type]
    now = sqlite3.connect(root / "state.db")
    for sql in (
        "SELECT * FROM agents ORDER BY digest",
        "SELECT * FROM instances ORDER BY id",
        "SELECT * FROM records ORDER BY instance, seq",
    ):
        assert _rows(now, sql) == _rows(then, sql)
    now.close()
    then.close()


def test_every_kind_of_record_is_kept() -> None:
    """
    And every file has its value.
    """
    kinds = {type(record) for golden in VALUES["v1.sql"] for record in golden.records}
    assert kinds == set(get_args(Record))
    assert {path.name for path in GOLDEN.iterdir()} == set(VALUES)
    assert {wire.kind_of(record) for record in RECORDS} == set(wire.RECORDS)


def _rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()
