"""
What an agent may know of its last snapshot: the truth of its own life, and the same when that is done again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DiskFailed, EffectError
from runner.journal import Journal, StateDirectory
from runner.journal.records import Record, SnapshotTaken, Tried
from runner.snapshot import read as read_snapshot
from runner.wiring import (
    Options,
    fork_named,
    restore_named,
    restore_snapshot,
    run_agent,
    run_named,
    send,
    snapshot_named,
    verify,
)
from runner.wiring import live as live_wiring

# Replies with what it knows of its last snapshot, and then asks for one.
ASKS_AND_TELLS = r"""(module
  (import "agent" "last_snapshot" (func $last (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "snapshot" (func $snapshot (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (drop (call $reply (local.get $n) (i32.const 100) (call $last (i32.const 100) (i32.const 1000))))
    (drop (call $snapshot (i32.const 0) (i32.const 0))))
  (func (export "agent_wake") (param i32 i32 i32)))"""

OptionsFor = Callable[..., Options]


@pytest.fixture
def teller(tmp_path: Path) -> Path:
    """The agent."""
    path = tmp_path / "teller.wat"
    path.write_text(ASKS_AND_TELLS)
    return path


def records_of(state: Path, name: str) -> list[Record]:
    """What is on record of an instance."""
    with StateDirectory(state) as directory, directory.open(name, write=False) as journal:
        return [record for _, record in journal.read()]


def tried_of(state: Path, name: str) -> list[dict[str, Any]]:
    """The attempts on record, as the agent hears of them."""
    return [
        {"ok": each.ok, "bytes": each.size_bytes, "at_ms": each.at_ms, "error": each.error}
        for each in records_of(state, name)
        if isinstance(each, Tried)
    ]


def test_a_named_instance_hears_how_each_attempt_went(
    teller: Path, options: OptionsFor, state: Path, cache: Path
):
    """Null first; then of the one before, also in another process, and when all of it is done again."""
    assert run_named(teller, "teller", None, options()).result is None
    heard = [send("teller", None, options()).result for _ in range(3)]
    tried = tried_of(state, "teller")
    assert heard == tried[:3]
    assert all(each["ok"] and each["bytes"] > 0 and each["error"] is None for each in tried)
    kinds = [type(record) for record in records_of(state, "teller")[-2:]]
    assert kinds == [SnapshotTaken, Tried]
    assert verify("teller", state=state, cache=cache)["slices"] == 4


def test_a_snapshot_that_could_not_be_kept_is_known_and_ends_nothing(
    teller: Path, options: OptionsFor, state: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
):
    """In a word that says nothing of the host; the next one is tried as ever."""
    run_named(teller, "teller", None, options())

    def fail(*_args: object, **_named: object) -> None:
        raise DiskFailed("/secret/place", "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "put_snapshot", fail)
        assert send("teller", None, options()).result["ok"]
        known = send("teller", None, options()).result
    assert isinstance(known, dict)
    assert (known["ok"], known["bytes"], known["error"]) == (False, 0, "artifact")
    assert known == tried_of(state, "teller")[1]
    assert send("teller", None, options()).result == tried_of(state, "teller")[2]
    assert tried_of(state, "teller")[3]["ok"]
    assert verify("teller", state=state, cache=cache)["slices"] == 4


def test_a_fork_knows_what_its_parent_knew(teller: Path, options: OptionsFor, state: Path, cache: Path):
    """It has its past, and was told so."""
    run_named(teller, "teller", None, options())
    send("teller", None, options())
    fork_named("teller", "twin", state=state)
    assert send("twin", None, options()).result in tried_of(state, "twin")
    assert verify("twin", state=state, cache=cache)["instance"] == "twin"


def test_a_restored_instance_never_hears_of_a_snapshot_that_came_later(
    teller: Path, options: OptionsFor, state: Path, tmp_path: Path
):
    """The file was frozen before anybody knew whether it would be written."""
    file = tmp_path / "teller.snap"
    run_named(teller, "teller", None, options())
    send("teller", None, options())
    snapshot_named("teller", file, state=state, cache=options().cache)
    expected = tried_of(state, "teller")[-1]
    # The restore event is answered with it, and followed by a snapshot of the new life.
    assert restore_named(file, "heir", None, options(), agent=teller).result == expected
    assert restore_snapshot(file, None, options(), teller).result == expected
    assert restore_named(file, "second", "hi", options(), agent=teller).result == tried_of(state, "second")[0]


def test_without_a_name_it_is_known_as_long_as_the_process_lives(
    teller: Path, options: OptionsFor, tmp_path: Path
):
    """And then no more than the file knew when it was written."""
    file = tmp_path / "out.snap"
    assert run_agent(teller, None, options(snapshot=file)).result is None
    # Asked for in the delivery, and written again in the end: the second knows of the first.
    kept = read_snapshot(file).state.last_snapshot
    assert kept is not None
    assert kept.ok
    told = restore_snapshot(file, "hi", options(snapshot=file), teller).result
    assert isinstance(told, dict)
    assert (told["ok"], told["bytes"] > 0) == (True, True)
    assert told["at_ms"] >= kept.at_ms


def test_without_a_name_a_failed_attempt_is_known_too(
    teller: Path, options: OptionsFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The restore event's snapshot fails; the message after it hears of that."""
    file = tmp_path / "out.snap"
    run_agent(teller, None, options(snapshot=file))

    def fail(*_args: object, **_named: object) -> None:
        raise DiskFailed("/secret/place", "no space left on device")

    monkeypatch.setattr(live_wiring, "write_snapshot", fail)
    with pytest.raises(EffectError) as caught:
        restore_snapshot(file, "hi", options(snapshot=tmp_path / "x.snap"), teller)
    known = caught.value.report.result
    assert (known["ok"], known["bytes"], known["error"]) == (False, 0, "artifact")
