"""
Frozen in the middle, and going on: what was asked is not asked twice, what was answered is not lost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import DeadlineExceeded, EffectError, FuelExhausted, UsageError
from runner.kernel.abi import Status
from runner.snapshot import Snapshot, read, write
from runner.wiring import (
    Options,
    inspect_path,
    journal_rows,
    restore_named,
    restore_snapshot,
    run_agent,
    verify,
)
from tests.wiring.guests import BUSY_AFTERWARDS, FREEZES_BETWEEN_ANSWERS, FREEZES_WHILE_ASKING

GUESTS = Path(__file__).parents[2] / "guests"

Caught = Callable[..., Path]
WRITE = "runner.wiring.live.write_snapshot"


@pytest.fixture
def frozen_in_the_middle(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caught:
    """The snapshot that an agent asked for itself, kept from the one at the end."""

    def run(text: str, **choices: object) -> Path:
        agent, last, middle = (tmp_path / name for name in ("agent.wat", "last.snap", "middle.snap"))
        agent.write_text(text)

        def keep(path: Path, snapshot: Snapshot, *, sync: bool) -> object:
            stats = write(path, snapshot, sync=sync)
            if snapshot.state.delivery is not None:
                middle.write_bytes(path.read_bytes())
            return stats

        monkeypatch.setattr(WRITE, keep)
        run_agent(agent, None, Options(cache=cache, snapshot=last, sync=False, **choices))  # type: ignore[arg-type]
        monkeypatch.setattr(WRITE, write)
        return middle

    return run


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Three turns that take long enough to be caught at it."""
    path = tmp_path / "script.toml"
    path.write_text("".join(f'[[turns]]\nreply = "{n}"\ndelay_ms = 1\n' for n in ("one", "two", "three")))
    return path


def test_what_was_open_is_finished_and_its_reply_is_the_report(
    cache: Path, frozen_in_the_middle: Caught, script: Path
):
    """Without a message; and the model's turn is the one that the call had."""
    file = frozen_in_the_middle(FREEZES_WHILE_ASKING, script=script)
    assert [call.operation for call in read(file).state.calls] == ["llm.chat"]
    report = restore_snapshot(file, None, Options(cache=cache, script=script))
    assert report.result["text"] == "one"
    assert report.usage["calls"] == 1


def test_a_message_is_delivered_after_what_was_open_and_is_the_report(
    cache: Path, frozen_in_the_middle: Caught, script: Path
):
    """The first turn answers what was open, the second the message."""
    file = frozen_in_the_middle(FREEZES_WHILE_ASKING, script=script)
    assert restore_snapshot(file, "next", Options(cache=cache, script=script)).result["text"] == "two"


def test_a_message_is_not_delivered_when_what_was_open_fails(
    cache: Path, tmp_path: Path, frozen_in_the_middle: Caught, script: Path
):
    """The report is of the failure, and the message can be delivered again."""
    file = frozen_in_the_middle(FREEZES_WHILE_ASKING, script=script)
    script.write_text('[[turns]]\nfault = "hang"\n')
    after = tmp_path / "after.snap"
    options = Options(cache=cache, script=script, deadline_ms=100, snapshot=after, sync=False)
    with pytest.raises(DeadlineExceeded, match="limit deadline_ms exceeded"):
        restore_snapshot(file, "next", options)
    assert inspect_path(after, cache)["instance"]["deliveries"] == 1


def test_an_effect_whose_answer_the_guest_has_not_got_is_not_repeated(
    cache: Path, tmp_path: Path, frozen_in_the_middle: Caught
):
    """Two notes were saved before the snapshot, and two there are after it; the answer was carried."""
    file = frozen_in_the_middle(FREEZES_BETWEEN_ANSWERS, allow=("memory",))
    carried = read(file)
    assert [(answer["call"], answer["status"]) for answer in carried.host["answers"]] == [(2, Status.OK)]
    assert [call.number for call in carried.state.calls] == [2]
    after = tmp_path / "after.snap"
    options = Options(cache=cache, allow=("memory",), snapshot=after, sync=False)
    assert restore_snapshot(file, None, options).result == {"id": "n2"}
    assert [note["id"] for note in read(after).host["notes"]["notes"]] == ["n1", "n2"]


def test_a_name_does_not_repeat_an_effect_whose_answer_was_carried(
    cache: Path, tmp_path: Path, frozen_in_the_middle: Caught
):
    """The journal begins with the receipt of what was over."""
    file = frozen_in_the_middle(FREEZES_BETWEEN_ANSWERS, allow=("memory",))
    options = Options(cache=cache, state=tmp_path / "state", allow=("memory",))
    assert restore_named(file, "heir", None, options).result == {"id": "n2"}
    kinds = [row["kind"] for row in journal_rows("heir", state=options.state)]
    assert (kinds.count("receipt"), kinds.count("start")) == (1, 0)
    assert verify("heir", state=options.state, cache=cache)["slices"] == 2


def test_the_last_snapshot_waits_for_what_the_guest_still_does(cache: Path, tmp_path: Path):
    """A slice that belongs to no delivery may be running when the reply is there."""
    agent, file = tmp_path / "busy.wat", tmp_path / "busy.snap"
    agent.write_text(BUSY_AFTERWARDS)
    report = run_agent(agent, None, Options(cache=cache, allow=("memory",), snapshot=file, sync=False))
    facts = inspect_path(file, cache)
    assert facts["memory_digest"] == report.memory_digest
    assert (facts["position"], facts["calls_in_flight"]) == (3, [])
    assert restore_snapshot(file, None, Options(cache=cache, allow=("memory",))).result is None


def test_without_a_snapshot_nobody_waits_for_what_the_guest_still_does(cache: Path, tmp_path: Path):
    """The delivery is over, and a guest that spins on is ended."""
    agent = tmp_path / "spins.wat"
    agent.write_text(BUSY_AFTERWARDS.replace("(br_if $busy (i32.lt_u", "(br $busy) (drop (i32.lt_u"))
    limits = {"fuel": 1 << 60, "timeout_ms": 3_600_000}
    assert run_agent(agent, None, Options(cache=cache, allow=("memory",), limits=limits)).result is None


def test_a_snapshot_that_can_not_be_written_is_the_failure_itself(cache: Path, tmp_path: Path):
    """Not a group of them; also when the agent asked for one in the middle."""
    nowhere = tmp_path / "absent" / "x.snap"
    agent = tmp_path / "agent.wat"
    agent.write_text(FREEZES_WHILE_ASKING)
    for path in (GUESTS / "counter", agent):
        with pytest.raises(EffectError) as caught:
            run_agent(path, None, Options(cache=cache, snapshot=nowhere))
        assert caught.value.report.fuel > 0
        assert caught.value.message == f"{nowhere}: can't be written: no such file or directory"


def test_a_snapshot_that_can_not_be_written_does_not_hide_how_the_delivery_failed(
    cache: Path, tmp_path: Path
):
    """Both are told, the delivery first."""
    nowhere = tmp_path / "absent" / "x.snap"
    with pytest.raises(FuelExhausted) as caught:
        run_agent(GUESTS / "hostile_spinner", None, Options(cache=cache, snapshot=nowhere))
    assert caught.value.details["snapshot"] == f"{nowhere}: can't be written: no such file or directory"


def test_a_snapshot_in_the_middle_that_fails_is_made_up_for_at_the_end(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The delivery goes on: its answer may have been paid for."""
    agent, file = tmp_path / "agent.wat", tmp_path / "x.snap"
    agent.write_text(FREEZES_WHILE_ASKING)
    refused: list[Snapshot] = []

    def refuse_once(path: Path, snapshot: Snapshot, *, sync: bool) -> object:
        if not refused:
            refused.append(snapshot)
            raise UsageError("no room")
        return write(path, snapshot, sync=sync)

    monkeypatch.setattr(WRITE, refuse_once)
    report = run_agent(agent, None, Options(cache=cache, snapshot=file, sync=False))
    assert report.result["text"] == "(scripted) You said: hi"
    assert read(file).state.delivery is None
