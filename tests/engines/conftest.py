"""
The engines, admitted, compiled and booted once for all tests of them.
"""

from __future__ import annotations

import pytest

from tests.engines.driver import Interpreter


@pytest.fixture(scope="session")
def js(engine_js: bytes) -> Interpreter:
    """The JavaScript engine."""
    return Interpreter(engine_js)
