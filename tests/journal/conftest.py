"""
A state directory of the test's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.journal import StateDirectory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """
    Where the state directory is, or will be.
    """
    return tmp_path / "state"


@pytest.fixture
def state(root: Path) -> Iterator[StateDirectory]:
    """
    An empty state directory, open.
    """
    with StateDirectory(root, now_ms=lambda: 1_800_000_000_001) as state:
        yield state
