"""
A life goes on under its own module, unless both have something for upgrades: then see `test_upgrading.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import SnapshotIncompatible
from runner.journal import StateDirectory
from runner.wiring import (
    Options,
    approvals,
    fork_named,
    inspect_named,
    list_instances,
    replay,
    restore_named,
    resume,
    rule_on,
    run_named,
    send,
    snapshot_named,
    verify,
)
from runner.wiring.host import Host
from runner.wiring.prepare import prepare_under

GUESTS = Path(__file__).parents[2] / "guests"
TABLES = ("agents", "instances", "records", "snapshots")

OptionsFor = Callable[..., Options]


@pytest.fixture
def twos(tmp_path: Path) -> Path:
    """`counter`, changed to count in twos, and to have nothing for upgrades."""
    folder = tmp_path / "twos"
    folder.mkdir()
    for path in (GUESTS / "counter").iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    text = (folder / "agent.wat").read_text()
    step = "(i32.add (i32.load (i32.const 0)) (i32.const 1))"
    assert text.count(step) == 1
    text = text.replace(step, step.replace("const 1", "const 2"))
    (folder / "agent.wat").write_text(text.replace('(export "agent_upgrade")', '(export "no_upgrade")'))
    return folder


@pytest.fixture
def replaced(twos: Path, options: OptionsFor, state: Path) -> Path:
    """A state directory with an instance of `counter` whose stored agent is the changed one."""
    run_named(GUESTS / "counter", "tally", "one", options())
    host = Host(options().cache)
    other = prepare_under(host, host.load(twos), options()).packed
    with StateDirectory(state) as directory:
        with directory.open("tally", write=False) as journal:
            born, *past = [record for _, record in journal.read()]
        directory.create("changed", born, other, past)  # type: ignore[arg-type]
    return state


def rows_of(state: Path) -> list[tuple[object, ...]]:
    """All that is on record, to the byte."""
    connection = sqlite3.connect(state / "state.db")
    rows = [row for table in TABLES for row in connection.execute(f"SELECT * FROM {table}")]
    connection.close()
    return rows


def test_an_instance_whose_agent_is_another_is_refused_by_every_command(
    replaced: Path, options: OptionsFor, tmp_path: Path
):
    """And not a byte of it changes; the same commands serve the one beside it."""
    cache = options().cache
    before = rows_of(replaced)
    commands: list[Callable[[], object]] = [
        lambda: send("changed", "two", options()),
        lambda: resume("changed", options()),
        lambda: replay("changed", state=replaced, cache=cache),
        lambda: verify("changed", state=replaced, cache=cache),
        lambda: inspect_named("changed", state=replaced, cache=cache),
        lambda: snapshot_named("changed", tmp_path / "x.snap", state=replaced, cache=cache),
        lambda: approvals("changed", state=replaced, cache=cache),
        lambda: rule_on("changed", 1, "allow", state=replaced, cache=cache),
    ]
    for command in commands:
        with pytest.raises(SnapshotIncompatible, match="code_digest") as caught:
            command()
        assert caught.value.details["field"] == "code_digest"
    assert rows_of(replaced) == before
    assert not (tmp_path / "x.snap").exists()
    assert send("tally", "two", options()).result == 2


def test_a_fork_of_it_is_no_way_round(replaced: Path, options: OptionsFor):
    """It has the same birth, and is refused alike."""
    fork_named("changed", "child", state=replaced)
    with pytest.raises(SnapshotIncompatible, match="code_digest"):
        send("child", "two", options())


def test_a_snapshot_is_not_restored_under_another_agent(
    twos: Path, options: OptionsFor, state: Path, tmp_path: Path
):
    """No instance is made, and the name stays free."""
    run_named(GUESTS / "counter", "tally", "one", options())
    file = tmp_path / "tally.snap"
    snapshot_named("tally", file, state=state, cache=options().cache)
    before = rows_of(state)
    for agent, name in ((twos, "counter"), (GUESTS / "hello", "hello")):
        with pytest.raises(SnapshotIncompatible) as caught:
            restore_named(file, "heir", "two", options(), agent=agent)
        assert caught.value.hint == (
            "restore it with the agent that it was taken from, 'counter'; "
            f"{name} 1.0.0 can't take over: its module does not export agent_upgrade"
        )
    assert rows_of(state) == before
    assert [row["name"] for row in list_instances(state)] == ["tally"]
    assert restore_named(file, "heir", "two", options(), agent=GUESTS / "counter").result == 2
