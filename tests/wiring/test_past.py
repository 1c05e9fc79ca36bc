"""
Doing again what an instance did: here, elsewhere, up to a record, and against its record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path

import pytest

from runner.errors import ApprovalPending, InstanceUnknown, JournalCorrupt, Nondeterminism, UsageError
from runner.journal import StateDirectory, export
from runner.journal.records import Record, Slice, Wake
from runner.wiring import (
    Options,
    export_journal,
    fork_named,
    inspect_named,
    is_instance,
    journal_rows,
    replay,
    restore_named,
    run_named,
    send,
    snapshot_named,
    verify,
)

GUESTS = Path(__file__).parents[2] / "guests"

OptionsFor = Callable[..., Options]


@pytest.fixture
def tally(options: OptionsFor, state: Path) -> Path:
    """The state directory, with an instance that has counted to three."""
    run_named(GUESTS / "counter", "tally", "one", options(checkpoint="always"))
    send("tally", "two", options())
    send("tally", "three", options())
    return state


def doctored(state: Path, name: str, new: str, change: Callable[[Record], Record]) -> None:
    """Another instance, with the records of one, each changed."""
    with StateDirectory(state) as directory:
        with directory.open(name, write=False) as journal:
            born, *past = [record for _, record in journal.read()]
        directory.create(new, born, directory.agent(name), [change(record) for record in past])  # type: ignore[arg-type]


def test_each_slice_leaves_the_memory_that_is_on_record(tally: Path, cache: Path):
    """From the image on, though there is a snapshot that would be faster."""
    done = replay("tally", state=tally, cache=cache)
    assert [(row["input"], row["end"]) for row in done.rows] == [
        ("delivery 1 message", "reply"),
        ("delivery 2 message", "reply"),
        ("delivery 3 message", "reply"),
    ]
    assert [row["memory_digest"] for row in done.rows] == [row["recorded"] for row in done.rows]
    assert len({row["memory_digest"] for row in done.rows}) == 3
    assert (done.records, done.failure) == (9, None)


def test_a_replay_stops_at_a_record(tally: Path, cache: Path):
    """And has the memory of then."""
    done = replay("tally", to=2, state=tally, cache=cache)
    assert (len(done.rows), done.records) == (1, 3)
    assert inspect_named("tally", at=2, state=tally, cache=cache)["memory_digest"] == done.memory_digest


def test_one_looks_at_its_past(options: OptionsFor, state: Path, cache: Path):
    """What it was, and what it was waiting for."""
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "shy", "hi", options(), ("llm",))
    now = inspect_named("shy", state=state, cache=cache)
    assert [(row["operation"], row["next"]) for row in now["calls_in_flight"]] == [
        ("llm.chat", "waits for approval")
    ]
    assert (now["kind"], now["name"], now["position"], now["ask"]) == ("instance", "shy", 4, ["llm"])
    then = inspect_named("shy", at=0, state=state, cache=cache)
    assert (then["position"], then["calls_in_flight"], then["instance"]["deliveries"]) == (1, [], 0)
    with pytest.raises(UsageError, match=r"^shy has no record 4$"):
        inspect_named("shy", at=4, state=state, cache=cache)
    assert (is_instance("shy", state=state), is_instance("bold", state=state)) == (True, False)
    assert not is_instance("shy", state=state / "nowhere")
    assert not (state / "nowhere").exists()


def test_another_memory_is_told_with_both_sides(tally: Path, cache: Path):
    """Where it differs first; nothing goes on from there."""

    def lie(record: Record) -> Record:
        return changed(record, digest=bytes(32)) if isinstance(record, Slice) and record.digest else record

    doctored(tally, "tally", "liar", lie)
    done = replay("liar", state=tally, cache=cache)
    assert len(done.rows) == 1
    assert done.rows[0]["recorded"] == "sha256:" + "00" * 32
    with pytest.raises(Nondeterminism) as caught:
        verify("liar", state=tally, cache=cache)
    assert caught.value.seq == 2
    assert caught.value.details["recorded"] != caught.value.details["observed"]


def test_an_answer_to_nothing_is_damage(tally: Path, cache: Path):
    """Not a bug of ours: a journal may come from elsewhere."""
    wake = Wake(call=9, status=0, payload=b"\xf6", now_ms=0)
    doctored(tally, "tally", "torn", lambda record: record if isinstance(record, Slice) else wake)
    with pytest.raises(
        JournalCorrupt, match=r"at record 2: can't follow what came before it: call 9 is not in"
    ):
        verify("torn", state=tally, cache=cache)


def test_a_journal_travels_as_one_file(tally: Path, tmp_path: Path, cache: Path):
    """Another machine has nothing but the file."""
    out, elsewhere = tmp_path / "tally.journal", tmp_path / "elsewhere"
    facts = export_journal("tally", out, state=tally, cache=cache)
    assert (facts["records"], facts["size_bytes"]) == (9, out.stat().st_size)
    here, there = (
        replay("tally", state=tally, cache=cache),
        replay(str(out), state=elsewhere, cache=tmp_path / "cache"),
    )
    assert here == there
    assert verify(str(out), state=elsewhere, cache=cache)["slices"] == 3
    assert replay(str(out), to=2, state=elsewhere, cache=cache).records == 3
    with pytest.raises(InstanceUnknown):
        replay("nobody", state=elsewhere, cache=cache)


def test_a_life_that_began_at_a_snapshot_takes_it_along(tally: Path, options: OptionsFor, cache: Path):
    """Its past before that is in the snapshot alone."""
    folder = tally.parent
    snapshot_named("tally", folder / "t.snap", state=tally, cache=cache)
    restore_named(folder / "t.snap", "heir", "four", options())
    fork_named("heir", "child", state=tally)
    assert send("child", "five", options()).result == 5
    for name in ("heir", "child"):
        out = folder / f"{name}.journal"
        export_journal(name, out, state=tally, cache=cache)
        there = replay(str(out), state=folder / "elsewhere", cache=cache)
        assert there == replay(name, state=tally, cache=cache)
        assert there.failure is None
        assert export.read(out).origin is not None


def test_records_are_told_without_the_seeds_of_randomness(tally: Path):
    """Payloads decoded, digests shown."""
    rows = journal_rows("tally", state=tally)
    assert [row["kind"] for row in rows[:4]] == ["born", "delivery", "slice", "snapshot_taken"]
    assert "entropy" not in rows[0]["fields"]
    assert rows[1]["fields"] | {"now_ms": 0} == {
        "number": 1,
        "kind": "message",
        "payload": "one",
        "now_ms": 0,
    }
    assert rows[2]["fields"]["reply"] == {"ok": True, "payload": 1}
    assert rows[2]["fields"]["digest"].startswith("sha256:")
