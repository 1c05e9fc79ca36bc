"""
The crash test itself: clean lives are found clean, and each planted defect is found.
"""

from __future__ import annotations

import re
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


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    """Two versions of the courier, the second of which takes over with nothing."""
    text = (COURIER / "agent.wat").read_text()
    found = re.search(r'\(import "agent" "reply" \(func \$(\w+)', text)
    assert found is not None
    paths = []
    for version, body in enumerate(("", "(nop)"), 1):
        export = f"""(func (export "agent_upgrade") (param $n i32) (param $kind i32) (param $size i32) {body}
          (i32.store8 (i32.const 65000) (i32.const 0xf6))
          (drop (call ${found[1]} (local.get $n) (i32.const 65000) (i32.const 1))))"""
        paths.append(tmp_path / f"courier{version}.wat")
        paths[-1].write_text(text.rstrip().removesuffix(")") + export + ")")
    return paths[0], paths[1]


def _upgraded(cache: Path, versions: tuple[Path, Path], kills: int) -> Verdict:
    return crashtest(
        versions[0],
        "go",
        options=Options(allow=GRANTS, cache=cache),
        kills=kills,
        deliveries=2,
        upgrade=versions[1],
        progress=lambda _line: None,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_death_around_an_upgrade_loses_or_repeats_an_effect(
    cache: Path, versions: tuple[Path, Path]
) -> None:
    """Before, in and after it, and in the recoveries from there."""
    verdict = _upgraded(cache, versions, 150)
    assert (verdict.kills, verdict.findings) == (150, [])


@pytest.mark.timeout(300)
def test_deaths_at_some_boundaries_of_an_upgraded_life_do_no_harm(
    cache: Path, versions: tuple[Path, Path]
) -> None:
    """The short form of the above."""
    verdict = _upgraded(cache, versions, 8)
    assert (verdict.kills, verdict.findings) == (8, [])


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
