"""
Bounds: what they may be, and that each is in force by default.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from runner.kernel.limits import Limits

NAMES = [field.name for field in fields(Limits)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1 << 63, 1.5, "1", None, True])
def test_a_bound_is_a_positive_integer(name: str, value: Any) -> None:
    """There is no "unlimited", and nothing that the engine would wrap."""
    with pytest.raises(ValueError, match="positive") as caught:
        Limits(**{name: value})
    assert str(caught.value) == f"limit {name} must be a positive integer, got {value!r}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [1, (1 << 63) - 1])
def test_limits_go_over_the_wire(name: str, value: int) -> None:
    """As a map of integers, and back."""
    limits = Limits(**{name: value})
    wire = limits.to_wire()
    assert wire[name] == value
    assert list(wire) == NAMES
    assert Limits.from_wire(wire) == limits


def test_a_limit_that_is_absent_has_its_default() -> None:
    """A snapshot of an older release may know fewer."""
    assert Limits.from_wire({"fuel": 5}) == Limits(fuel=5)


def test_an_unknown_limit_is_refused() -> None:
    """Ignoring it would lift a bound that somebody set."""
    with pytest.raises(ValueError, match=r"^unknown limit 'a'$"):
        Limits.from_wire({"b": 1, "a": 1})
