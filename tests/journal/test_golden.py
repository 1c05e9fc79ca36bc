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

from runner import codec
from runner.digest import digest
from runner.errors import JournalCorrupt
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
    Tried,
    Upgraded,
    Wake,
    Woken,
)
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored

GOLDEN: Final = Path(__file__).parent / "golden"

CHAT: Final = b"\xa1\x68messages\x81\xa2\x64role\x64user\x67content\x65hello"
EVERY: Final = b"\xa1\x6binterval_ms\x19\x03\xe8"
TWO: Final = b"\0asm\x01\0\0\0two"
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


LATER: Final[tuple[Record, ...]] = (
    replace(BORN, timers=False),
    *RECORDS[1:],
    Tried(ok=True, size_bytes=4_096, at_ms=1_800_000_000_009),
    Tried(ok=False, size_bytes=0, at_ms=1_800_000_000_010, error="limit"),
    Delivery(number=3, kind=5, payload=b"\xa0", now_ms=1_800_000_000_011),
    Slice(reply=(True, b"\x05")),
    Upgraded(
        agent="frage-zwei",
        package=digest(TWO),
        code_digest=bytes(range(1, 33)),
        image_digest=bytes(range(2, 34)),
        limits={"fuel": 1_000},
        allow=("llm.chat",),
        deny=("memory",),
        ask=(),
        at_ms=1_800_000_000_012,
        timers=False,
    ),
    Delivery(number=4, kind=6, payload=b"\xa1\x65state\x05", now_ms=1_800_000_000_012),
    Slice(reply=(True, b"\xf6"), digest=bytes(range(3, 35))),
)
ASKING: Final = replace(STATE, last_snapshot=LastSnapshot(True, 4_096, 1_800_000_000_013))


class Golden(NamedTuple):
    """
    What a state holds.
    """

    name: str
    agent: bytes
    records: tuple[Record, ...]
    snapshots: tuple[StoredSnapshot, ...]
    upgrades: tuple[bytes, ...] = ()
    status: str = "idle"


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
            status="stopped",
        ),
    ),
    "v2.sql": (
        Golden("counter", b"\0asm", (replace(BORN, parent=None, timers=False),), ()),
        Golden(
            "frage-u",
            b"\0asm\x01\0\0\0",
            LATER,
            (
                StoredSnapshot(1, ASKING, HOST, bytes(range(96, 128))),
                StoredSnapshot(11, MachineState(Mind(65_536, {}, ())), {}, bytes(range(32))),
            ),
            (TWO,),
        ),
    ),
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
        assert [(row.name, row.status) for row in state.names()] == [
            (value.name, value.status) for value in golden
        ]
        for value in golden:
            assert state.agent(value.name) == value.agent
            for package in value.upgrades:
                assert state.agent(value.name, digest(package)) == package
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
        assert state.gc(1).agents == 0
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
        born, *past = value.records
        assert isinstance(born, Born)
        origin = value.snapshots[0] if value.snapshots else None
        state.create(value.name, born, value.agent, past, origin, value.upgrades)
    now = sqlite3.connect(root / "state.db")
    for sql in (
        "SELECT * FROM agents ORDER BY digest",
        "SELECT * FROM instances ORDER BY id",
        "SELECT * FROM records ORDER BY instance, seq",
        "SELECT * FROM upgrades ORDER BY instance, seq",
    ):
        assert _rows(now, sql) == _rows(then, sql)
    now.close()
    then.close()


def test_every_kind_of_record_is_kept() -> None:
    """
    And every file has its value.
    """
    kinds = {type(record) for golden in VALUES[f"v{len(schema.STEPS)}.sql"] for record in golden.records}
    assert kinds == set(get_args(Record))
    assert {path.name for path in GOLDEN.iterdir()} == set(VALUES)
    assert {wire.kind_of(record) for record in LATER} == set(wire.RECORDS)


def test_a_standing_is_made_anew_when_its_state_is_upgraded(root: Path) -> None:
    """
    Just as a runner of today would have kept it, and the time of its last record stays.
    """
    root.mkdir(mode=0o700)
    connection = sqlite3.connect(root / "state.db")
    connection.executescript((GOLDEN / "v1.sql").read_text(encoding="ascii"))
    then = codec.decode(connection.execute("SELECT standing FROM instances WHERE id = 2").fetchone()[0])
    StateDirectory(root).close()
    now = codec.decode(connection.execute("SELECT standing FROM instances WHERE id = 2").fetchone()[0])
    connection.close()
    kept = {"agent", "parent", "created_at_ms", "updated_at_ms", "stopped"}
    assert {key: now[key] for key in kept} == {key: then[key] for key in kept}
    # Call 1 was there before delivery 2, the others were made in it; call 6 was started outside any.
    assert (now["delivery"], now["calls"], now["calls_before"]) == (0, 6, 4)


def test_a_damaged_instance_does_not_keep_the_others_from_being_upgraded(root: Path) -> None:
    """
    It is as damaged afterwards as it was before.
    """
    root.mkdir(mode=0o700)
    connection = sqlite3.connect(root / "state.db")
    connection.executescript((GOLDEN / "v1.sql").read_text(encoding="ascii"))
    connection.execute("UPDATE records SET payload = x'80' WHERE instance = 2 AND seq = 5")
    connection.execute("UPDATE records SET payload = x'80' WHERE instance = 1")
    connection.commit()
    with StateDirectory(root) as state:
        # What has no birth has no standing that could be made anew.
        with pytest.raises(JournalCorrupt, match="counter"):
            state.names()
        with state.open("frage-u", write=False) as journal, pytest.raises(JournalCorrupt, match="record 5"):
            list(journal.read())
    connection.execute("UPDATE instances SET seal = x'00' WHERE id = 1")
    connection.commit()
    connection.close()
    with StateDirectory(root) as state, pytest.raises(JournalCorrupt, match="counter"):
        state.open("counter", write=False)


@pytest.mark.parametrize("standing", [b"", b"\x01", b"\xa0", b"\xa1\x6dupdated_at_ms\x20"])
def test_a_standing_that_says_nothing_is_made_anew_all_the_same(root: Path, standing: bytes) -> None:
    """
    As far as its records can be read, and as if it had last been written to when it was born.
    """
    root.mkdir(mode=0o700)
    connection = sqlite3.connect(root / "state.db")
    connection.executescript((GOLDEN / "v1.sql").read_text(encoding="ascii"))
    key, name, agent, position, chain = connection.execute(
        "SELECT id, name, agent, position, chain FROM instances WHERE id = 2"
    ).fetchone()
    seal = digest(b"runner instance 1\n" + codec.encode([name, agent, position, chain, standing]))
    connection.execute("UPDATE instances SET standing = ?, seal = ? WHERE id = ?", (standing, seal, key))
    connection.execute("DELETE FROM records WHERE instance = 2 AND seq = 4")
    connection.execute("UPDATE snapshots SET seal = x'00' WHERE position = 1")
    connection.commit()
    connection.close()
    with StateDirectory(root) as state:
        row = next(row for row in state.names() if row.name == "frage-u")
        assert (row.status, row.updated_at_ms) == ("idle", BORN.at_ms)
        with state.open("frage-u", write=False) as journal, pytest.raises(JournalCorrupt, match="record 4"):
            list(journal.read())


def _rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()
