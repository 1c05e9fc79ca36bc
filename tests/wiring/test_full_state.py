"""
A state directory with no room left.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import StateFull
from runner.wiring import Options, resume, run_named, send, verify

GUESTS = Path(__file__).parents[2] / "guests"

OptionsFor = Callable[..., Options]


def test_what_can_not_be_written_is_told_as_what_it_is_and_loses_nothing(
    options: OptionsFor, state: Path, cache: Path
):
    """Not as a group of failures; with room again it goes on where its record ends."""
    run_named(GUESTS / "counter", "tally", "one", options())
    with pytest.raises(StateFull):
        send("tally", "x" * 100_000, options(max_state_bytes=1))
    assert resume("tally", options()).result == 1
    assert verify("tally", state=state, cache=cache)["slices"] == 1
    assert send("tally", "two", options()).result == 2
