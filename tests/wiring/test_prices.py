"""
What models cost, with and without the package that says so.
"""

from __future__ import annotations

from importlib import util

import pytest

from runner.policy.prices import FREE, PINNED, per_million
from runner.wiring.prices import price_table

HAIKU = per_million(1, 5, 0.1, 1.25)


def test_the_package_and_the_table_of_our_own_agree_on_a_model():
    """One that both know."""
    pytest.importorskip("genai_prices")
    table = price_table()
    assert table.id == "genai-prices"
    assert table.price("anthropic/claude-haiku-4-5") == PINNED.price("anthropic/claude-haiku-4-5") == HAIKU


def test_of_a_model_that_nobody_knows_no_price_is_made_up():
    """The scripted one is free, as every host knows."""
    assert price_table().price("vendor/unheard-of") is None
    assert price_table().price("scripted/default") == FREE


def test_without_the_package_the_table_of_our_own_serves(monkeypatch: pytest.MonkeyPatch):
    """With its own id and version."""
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    assert (price_table().id, price_table().version) == ("runner", "2026-11-30")
