"""
Opened from a snapshot that is far behind its journal, an instance takes its effects from the record.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.journal.records import Receipt
from runner.session.recovery import is_step
from runner.wiring import Options
from tests.wiring.counted import GUESTS, Ended, World

OptionsFor = Callable[..., Options]
ALLOW = ("tool", "memory")
EFFECTS = 7


@pytest.fixture
def world(tmp_path: Path, cache: Path, options: OptionsFor) -> World:
    """A courier that has delivered twice, with a snapshot after each slice."""
    made = World(tmp_path, cache)
    made.bear(GUESTS / "courier", "courier", options(allow=ALLOW))
    return made


@pytest.fixture
def uninterrupted(world: World, options: OptionsFor) -> Ended:
    """How it stood after its second delivery."""
    ended = world.serve("courier", "first", "second", options=options(checkpoint=1))
    assert (ended.result, world.effects) == (2 * EFFECTS, 2 * EFFECTS)
    return ended


def test_a_snapshot_five_effects_older_moves_no_effect(
    world: World, uninterrupted: Ended, options: OptionsFor
):
    """From each snapshot on: the same memory, the same notes, and nothing happens again."""
    records = world.records("courier")
    for position in reversed(world.snapshots("courier")):
        world.forget_snapshots(after=position)
        assert world.snapshots("courier")[-1] == position
        ended = world.serve("courier", options=options())
        assert (ended.memory_digest, ended.notes) == (uninterrupted.memory_digest, uninterrupted.notes)
        assert world.effects == 2 * EFFECTS
    # The oldest of them lay before all effects but the first.
    behind = sum(isinstance(record, Receipt) and not is_step(record) for record in records[position:])
    assert behind >= EFFECTS + 5
    assert world.records("courier") == records


def test_killed_in_its_second_delivery_only_what_is_not_on_record_happens(
    world: World, uninterrupted: Ended, options: OptionsFor
):
    """Five effects and more after the snapshot, the rest of the delivery is done, and no more."""
    records = world.records("courier")
    receipts = [
        seq for seq, record in enumerate(records) if isinstance(record, Receipt) and not is_step(record)
    ]
    oldest = world.snapshots("courier")[0]
    for done in range(EFFECTS + 5, 2 * EFFECTS + 1):
        name = f"after-{done}"
        world.cut("courier", name, receipts[done - 1] + 1, at_most=oldest)
        before = world.effects
        ended = world.serve(name, options=options())
        assert (ended.result, ended.memory_digest) == (2 * EFFECTS, uninterrupted.memory_digest)
        assert ended.notes == uninterrupted.notes
        assert world.effects - before == 2 * EFFECTS - done


def test_it_goes_on_from_an_older_snapshot_as_it_would_have(
    world: World, uninterrupted: Ended, options: OptionsFor
):
    """A third delivery has its own effects only, and all of them."""
    del uninterrupted
    world.forget_snapshots(after=world.snapshots("courier")[0])
    third = world.serve("courier", "third", options=options())
    assert (third.result, world.effects) == (3 * EFFECTS, 3 * EFFECTS)
