"""
The Python engine is made of pinned sources, and the same each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.build.engines import fetch_problem, make_engine, recipe_of
from runner.cache import BlobCache
from runner.kernel.admission import admit
from runner.kernel.engine import Engine

pytestmark = pytest.mark.python


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_sources_give_the_same_engine(engine_python: bytes, tmp_path: Path) -> None:
    """
    Byte for byte, wherever it is made.
    """
    problem = fetch_problem(recipe_of("python").source)
    if problem is not None:
        pytest.skip(problem)
    assert make_engine("python", BlobCache(tmp_path / "elsewhere")) == engine_python


def test_the_engine_is_small(engine_python: bytes) -> None:
    """
    And keeps nothing of the place where it was made.
    """
    assert len(engine_python) < 1_000_000
    assert b"/tmp" not in engine_python
    assert str(Path(__file__).parents[2]).encode() not in engine_python


def test_its_state_is_its_memory_and_one_global(engine_python: bytes) -> None:
    """
    It passes the admission of every agent.
    """
    admitted = admit(engine_python, Engine().wasmtime)
    assert [slot.type for slot in admitted.globals] == ["i32"]
    assert admitted.start is None


def test_its_notices_name_what_is_inside() -> None:
    """
    They travel with the engine.
    """
    notices = recipe_of("python").notices()
    for name in ("MicroPython", "Damien P. George", "Brad Conte", "wasi-libc"):
        assert name in notices
