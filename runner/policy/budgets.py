"""
What an instance may spend, and what it has spent: reserved before each request, settled after it.

What was spent never comes back: neither a fork nor a restore nor a retry refunds any of it. What a request
cost that nobody said the cost of is what was reserved for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, NamedTuple, Protocol

from runner.errors import UsageError
from runner.policy.prices import PICO, show_usd
from runner.units import parse_count, parse_duration_ms

_PREFIX: Final = "budget_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    Bounds of one ledger; `None` where there is none.

    Attributes:
        tokens: Tokens read and written, in all.
        usd_pico: Money, in 10^-12 US dollars, in all.
        calls: Requests to models, in all.
        turns: Turns of the model in one `llm.chat`.
        wall_ms: Wall time that models take to answer, in all.
    """

    tokens: int | None = None
    usd_pico: int | None = None
    calls: int | None = None
    turns: int | None = None
    wall_ms: int | None = None

    @classmethod
    def parse(cls, words: Iterable[str]) -> Budget:
        """
        A budget as the command line says it: `tokens=10000,usd=0.5`, more than once.

        Raises:
            UsageError: If it is none.
        """
        given: dict[str, int] = {}
        for pair in ",".join(words).split(",") if words else ():
            name, equals, text = pair.strip().partition("=")
            if not equals or name not in _KEYS:
                msg = f"--budget {pair!r} is not KEY=VALUE"
                raise UsageError(msg, hint=f"keys: {', '.join(_KEYS)}")
            if name in given:
                msg = f"--budget says {name} twice"
                raise UsageError(msg)
            given[name] = _amount(name, text)
        return cls(**{_KEYS[name]: value for name, value in given.items()})

    @classmethod
    def from_limits(cls, limits: Mapping[str, int]) -> tuple[Budget, dict[str, int]]:
        """
        A budget out of the limits that an instance was born with, and the rest of them.
        """
        names = {field.name for field in fields(cls)}
        own = {
            key.removeprefix(_PREFIX): value
            for key, value in limits.items()
            if key.startswith(_PREFIX) and key.removeprefix(_PREFIX) in names
        }
        rest = {key: value for key, value in limits.items() if key.removeprefix(_PREFIX) not in own}
        return cls(**own), rest

    def to_limits(self) -> dict[str, int]:
        """
        As an instance is born with it.
        """
        own = {f"{_PREFIX}{field.name}": getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in own.items() if value is not None}


_KEYS: Final = {
    "tokens": "tokens",
    "usd": "usd_pico",
    "calls": "calls",
    "turns": "turns",
    "wall": "wall_ms",
}


def _amount(name: str, text: str) -> int:
    try:
        if name == "usd":
            value = round(float(text) * PICO)
        elif name == "wall":
            value = parse_duration_ms(text)
        else:
            value = parse_count(text)
    except (ValueError, OverflowError):
        value = 0
    if not 0 < value < 1 << 63:
        msg = f"--budget {name}={text} is no amount of {name} above zero"
        raise UsageError(msg)
    return value


class Charge(NamedTuple):
    """
    An amount: of a request, or the sum of many.

    Attributes:
        calls: Requests to models.
        tokens: Tokens.
        usd_pico: Money.
        wall_ms: Wall time of models.
    """

    calls: int = 0
    tokens: int = 0
    usd_pico: int = 0
    wall_ms: int = 0

    def plus(self, other: Charge) -> Charge:
        """
        Both together.
        """
        return Charge(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: Charge) -> Charge:
        """
        Without the other.
        """
        return Charge(*(a - b for a, b in zip(self, other, strict=True)))

    def most(self, other: Charge) -> Charge:
        """
        Of each the greater.
        """
        return Charge(*(max(a, b) for a, b in zip(self, other, strict=True)))


NO_BUDGET: Final = Budget()

NOTHING: Final = Charge()

ONE_CALL: Final = Charge(calls=1)


def show_exceeded(name: str, value: int, bound: int) -> str:
    """
    In words that a bound would not hold.
    """
    if name == "usd_pico":
        return f"budget usd is used up: {show_usd(value)} of {show_usd(bound)}"
    return f"budget {name} is used up: {value} of {bound}"


def exceeded(budget: Budget, spent: Charge, wanted: Charge) -> tuple[str, int, int] | None:
    """
    The bound that would not hold if so much more were spent: its name, what would be spent, and the bound.
    """
    total = spent.plus(wanted)
    for name in ("tokens", "usd_pico", "calls"):
        bound = getattr(budget, name)
        if bound is not None and getattr(total, name) > bound:
            return name, getattr(total, name), bound
    if budget.wall_ms is not None and spent.wall_ms >= budget.wall_ms:
        return "wall_ms", spent.wall_ms, budget.wall_ms
    return None


class Account(Protocol):
    """
    Where several instances that are one for their operator put what they spend.
    """

    def spent(self) -> Charge:
        """
        What all of them have spent or reserved.
        """

    def reserve(self, budget: Budget, wanted: Charge, own: Charge) -> tuple[str, int, int] | None:
        """
        Take an amount, unless a bound would not hold: then it says which, as `exceeded`. Of two that ask at
        once only one gets what is left. Durable when it returns.

        Args:
            budget: The bounds.
            wanted: The amount.
            own: What the instance knows itself to have spent, should the account know less.
        """

    def settle(self, reserved: Charge, actual: Charge) -> None:
        """
        Put what it came to in place of what was taken. Durable when it returns.
        """


class OwnAccount:
    """
    For an instance that shares with nobody: it knows itself what it has spent.
    """

    def spent(self) -> Charge:
        """
        Nothing but its own.
        """
        return Charge()

    def reserve(self, budget: Budget, wanted: Charge, own: Charge) -> tuple[str, int, int] | None:
        """
        Hold it against the instance's own.
        """
        return exceeded(budget, own, wanted)

    def settle(self, reserved: Charge, actual: Charge) -> None:
        """
        The instance does.
        """
