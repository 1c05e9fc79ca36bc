"""
A short run of `python -m benchmarks.fuzz_imports`, and a check that it would notice.
"""

from __future__ import annotations

import json
import random
import sys

import pytest

from benchmarks import fuzz_imports
from benchmarks.fuzz_imports import attempts, fuzz, main
from runner.kernel.abi import IMPORTS


def test_every_answer_to_hostile_arguments_is_documented() -> None:
    """No crash, no exception, no answer that the ABI does not have, and a bounded allocation."""
    report = fuzz(300, seed=1)
    assert report.violations == []
    assert report.peak_bytes < fuzz_imports.ALLOCATION_BOUND_BYTES
    assert sum(report.outcomes.values()) == 300
    assert {outcome.split()[0] for outcome in report.outcomes} == {entry.operation for entry in IMPORTS}


def test_the_same_seed_makes_the_same_attempts() -> None:
    """So that a violation can be looked into."""
    one, same, other = (attempts(random.Random(seed), 50) for seed in (1, 1, 2))
    assert one == same != other


def test_a_violation_is_shown_and_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here a bound that nothing can keep."""
    monkeypatch.setattr(sys, "argv", ["fuzz_imports", "--count", "30", "--json"])
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["violations"] == []
    monkeypatch.setattr(fuzz_imports, "ALLOCATION_BOUND_BYTES", 1)
    assert main() == 1
    report = json.loads(capsys.readouterr().out)
    assert report["count"] == 30
    assert len(report["violations"]) == 30
