"""
The crash test itself: clean lives are found clean, and each planted defect is found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.crashtest.defects import DEFECTS
from runner.crashtest.driver import Verdict, crashtest
from runner.errors import UsageError
from runner.wiring import Options

COURIER = Path(__file__).parents[2] / "guests" / "courier"
GRANTS = ("tool", "memory")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the children find compiled code."""
    return tmp_path_factory.mktemp("crashtest") / "cache"


def _verdict(cache: Path, *, kills: int, defect: str = "", seed: int = 0) -> Verdict:
    return crashtest(
        COURIER,
        "go",
        options=Options(allow=GRANTS, cache=cache),
        kills=kills,
        deliveries=1,
        defect=defect,
        seed=seed,
        progress=lambda _line: None,
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_death_at_any_boundary_or_in_any_recovery_loses_or_repeats_an_effect(cache: Path) -> None:
    """Every boundary once, then pairs of them; the ledger outside is the witness."""
    verdict = _verdict(cache, kills=200)
    assert verdict.kills == 200
    assert verdict.findings == []
    assert verdict.clean
    assert verdict.uncertain > 0


@pytest.mark.timeout(300)
def test_deaths_at_some_boundaries_lose_and_repeat_nothing(cache: Path) -> None:
    """The short form of the above."""
    verdict = _verdict(cache, kills=10)
    assert (verdict.kills, verdict.findings) == (10, [])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_a_planted_defect_turns_the_verdict_red(cache: Path, defect: str) -> None:
    """A judge that can't condemn proves nothing."""
    assert not _verdict(cache, kills=12, defect=defect, seed=1).clean


def test_an_agent_that_fails_by_itself_is_not_tested(cache: Path) -> None:
    """There would be nothing to compare with."""
    with pytest.raises(UsageError, match="the agent does not get through by itself"):
        crashtest(
            COURIER.parent / "hostile_spinner",
            "go",
            options=Options(cache=cache),
            kills=1,
            progress=lambda _line: None,
        )
