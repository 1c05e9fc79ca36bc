"""
What a list says of instances whose deliveries ended badly, or that began in the middle of one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import ApprovalPending
from runner.journal import StateDirectory
from runner.journal.records import Abandoned, Record, Slice, Start
from runner.wiring import (
    Options,
    list_instances,
    restore_named,
    resume,
    rule_on,
    run_named,
    snapshot_named,
    verify,
)

GUESTS = Path(__file__).parents[2] / "guests"

OptionsFor = Callable[..., Options]


def status_of(state: Path, name: str) -> str:
    """What a list says of an instance."""
    return str(next(row["status"] for row in list_instances(state) if row["name"] == name))


def test_a_delivery_that_was_given_up_leaves_nothing_uncertain(options: OptionsFor, state: Path, cache: Path):
    """Its effect may have happened or not, but nobody waits for it any more, and the instance goes on."""
    chosen = options(allow=("tool", "memory"))
    run_named(GUESTS / "courier", "whole", None, chosen)
    with StateDirectory(state) as directory:
        with directory.open("whole", write=False) as journal:
            records = [record for _, record in journal.read()]
        started = next(
            seq for seq, each in enumerate(records) if isinstance(each, Start) and each.effect == "effectful"
        )
        born, *past = records[: started + 1]
        directory.create("cut", born, directory.agent("whole"), past)  # type: ignore[arg-type]
    assert status_of(state, "cut") == "uncertain"
    error = {"kind": "interrupted", "message": "interrupted"}
    # Undone, it has the memory that it began with.
    born_digest = _digest_at_birth(state, cache)
    given_up: list[Record] = [
        Abandoned(delivery=1, error=error),
        Slice(error=error, fuel=0, digest=born_digest),
    ]
    with StateDirectory(state) as directory, directory.open("cut", write=True) as journal:
        journal.append(given_up)
    assert status_of(state, "cut") == "idle"
    assert verify("cut", state=state, cache=cache)["instance"] == "cut"


def _digest_at_birth(state: Path, cache: Path) -> bytes:
    from runner.wiring import replay

    start = replay("whole", to=0, state=state, cache=cache)
    return bytes.fromhex(start.memory_digest.removeprefix("sha256:"))


def test_an_instance_that_begins_in_the_middle_of_a_delivery_is_open(
    options: OptionsFor, state: Path, cache: Path, tmp_path: Path
):
    """The snapshot says so, and no record of its own."""
    file = tmp_path / "asker.snap"
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "asker", "hi", options(), ("llm",))
    snapshot_named("asker", file, state=state, cache=cache)
    with pytest.raises(ApprovalPending):
        restore_named(file, "heir", None, options(), ask=("llm",))
    assert status_of(state, "heir") == "waiting"
    rule_on("heir", 1, "allow", state=state, cache=cache)
    assert status_of(state, "heir") == "open"
    assert resume("heir", options()).result == "(scripted) You said: hi"
    assert status_of(state, "heir") == "idle"
