"""
A cache of the tests' own, shared by them.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled code is kept."""
    return tmp_path_factory.mktemp("wiring") / "cache"
