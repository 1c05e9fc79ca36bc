"""
What an instance has used, across snapshots.
"""

from __future__ import annotations

import pytest

from runner import codec
from runner.capabilities.usage import UsageMeter
from runner.package.fields import MAX_TALLY, FieldProblem
from runner.providers.base import Usage


def test_totals_come_back_from_a_snapshot_and_go_on():
    """Also the largest that may stand there: the next sum is still a payload."""
    meter = UsageMeter.from_state({"calls": MAX_TALLY, "input_tokens": MAX_TALLY, "output_tokens": None})
    meter.add(Usage(5, 5))
    wire = {"calls": MAX_TALLY + 1, "input_tokens": MAX_TALLY + 5, "output_tokens": None}
    assert codec.decode(codec.encode(meter.to_wire())) == wire


def test_totals_that_leave_no_room_to_count_are_refused():
    """Or a snapshot of somebody's could make an honest sum unspeakable."""
    with pytest.raises(FieldProblem, match=r"^calls: expected at most 1000000000000000$"):
        UsageMeter.from_state({"calls": MAX_TALLY + 1, "input_tokens": 0, "output_tokens": 0})
