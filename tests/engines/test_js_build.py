"""
The JavaScript engine is made of pinned sources, and the same each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.build.engines import fetch_problem, make_engine, recipe_of
from runner.build.engines.js import TOLLS, patched
from runner.cache import BlobCache
from runner.errors import BuildFailed

pytestmark = pytest.mark.js


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_sources_give_the_same_engine(engine_js: bytes, tmp_path: Path) -> None:
    """
    Byte for byte, wherever it is made.
    """
    problem = fetch_problem(recipe_of("js").source)
    if problem is not None:
        pytest.skip(problem)
    assert make_engine("js", BlobCache(tmp_path / "elsewhere")) == engine_js


def test_the_engine_is_small(engine_js: bytes) -> None:
    """
    And keeps nothing of the place where it was made.
    """
    assert len(engine_js) < 1_000_000
    assert b"/tmp" not in engine_js
    assert str(Path(__file__).parents[2]).encode() not in engine_js


def test_other_sources_than_the_pinned_are_not_patched() -> None:
    """
    A function that is not where it was is an error, and no silent difference.
    """
    with pytest.raises(BuildFailed) as caught:
        patched("int main(void)\n{\n}\n")
    assert next(iter(TOLLS)) in caught.value.message + str(caught.value.to_wire())
