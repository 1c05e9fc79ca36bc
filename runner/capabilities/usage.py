"""
What an instance has used of models. What is unknown is `None` and stays so: a sum with an unknown part is
not known either, and zero would be a lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from runner.codec import Value
from runner.package.fields import FieldProblem, Fields, any_map, count, or_null, tally, text
from runner.policy.budgets import NOTHING, Charge
from runner.policy.prices import PICO
from runner.providers.base import Usage

_CACHE: Final = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_MAX_AMOUNT: Final = 1 << 62
_TOKENS: Final = ("input_tokens", "output_tokens", *_CACHE)


@dataclass(slots=True)
class Tally:
    """
    Running totals.

    Attributes:
        calls: Requests to a model that ended, however they did.
        input_tokens: Tokens read, those from and into a cache included, or `None` when unknown.
        output_tokens: Tokens written, those of reasoning included, or `None` when unknown.
        cache_read_tokens: Of the tokens read, those that came from a cache, or `None`.
        cache_write_tokens: Of the tokens read, those that went into one, or `None`.
        reasoning_tokens: Of the tokens written, those that were thinking, or `None`.
        cost_pico: What they cost, in 10^-12 US dollars, or `None` when unknown.
    """

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    cache_write_tokens: int | None = 0
    reasoning_tokens: int | None = 0
    cost_pico: int | None = 0

    def add(self, usage: Usage, cost_pico: int | None = None) -> None:
        """
        Count one request.
        """
        self.calls += 1
        for name in _TOKENS:
            setattr(self, name, _sum(getattr(self, name), getattr(usage, name)))
        self.cost_pico = _sum(self.cost_pico, cost_pico)

    def to_wire(self) -> dict[str, Value]:
        """
        The totals as the ABI's `usage`: what caches and thinking had of them where that is known.
        """
        wire: dict[str, Value] = {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        wire.update({name: getattr(self, name) for name in _CACHE if getattr(self, name)})
        if self.cost_pico:
            wire["cost_usd"] = self.cost_pico / PICO
        return wire

    def to_state(self) -> dict[str, Value]:
        """
        All of it, to be read back.
        """
        names = ("calls", *_TOKENS, "cost_pico")
        return {name: getattr(self, name) for name in names}


def read_tally(fields: Fields) -> Tally:
    """
    The totals that `Tally.to_state` wrote; those of an older snapshot have fewer keys.

    Raises:
        FieldProblem: If they are none.
    """
    known = {name: fields.required(name, or_null(tally)) for name in ("input_tokens", "output_tokens")}
    calls = fields.required("calls", tally)
    for name in (*_CACHE, "cost_pico"):
        # What was not counted then is not known now.
        absent = None if calls else 0
        known[name] = fields.optional(name, or_null(tally)) if fields.has(name) else absent
    return Tally(calls=calls, **known)


@dataclass(slots=True)
class UsageMeter:
    """
    The running totals of one instance, by model, and what it has reserved.

    Both follow from what is on record of its calls: whoever takes in the same steps has the same totals.

    Attributes:
        total: Of all models.
        models: By `PROVIDER/MODEL`.
        charged: What counts against a budget: what was settled, and what was reserved and not settled.
        ledger: Which account it charges, as its operator's machine knows it; empty for its own.
    """

    total: Tally = field(default_factory=Tally)
    models: dict[str, Tally] = field(default_factory=dict)
    charged: Charge = NOTHING
    ledger: bytes = b""

    @property
    def calls(self) -> int:
        """
        Requests to a model that ended.
        """
        return self.total.calls

    def add(self, usage: Usage, model: str | None = None, cost_pico: int | None = None) -> None:
        """
        Count one request that ended.
        """
        self.total.add(usage, cost_pico)
        if model is not None:
            self.models.setdefault(model, Tally()).add(usage, cost_pico)

    def begin(self, reserved: Charge) -> None:
        """
        A request begins. Without an end of it, what was reserved stays spent.
        """
        self.charged = self.charged.plus(reserved)

    def end(self, reserved: Charge, model: str, usage: Usage, cost_pico: int | None, wall_ms: int) -> Charge:
        """
        A request ended: what was reserved for it gives way to what it came to, as far as that is known.

        Returns:
            What it came to.
        """
        tokens = total_tokens(usage)
        actual = Charge(
            calls=1,
            tokens=reserved.tokens if tokens is None else tokens,
            usd_pico=reserved.usd_pico if cost_pico is None else cost_pico,
            wall_ms=wall_ms,
        )
        self.charged = self.charged.minus(reserved).plus(actual)
        self.add(usage, model, cost_pico)
        return actual

    def to_wire(self) -> dict[str, Value]:
        """
        The totals as the ABI's `usage`.
        """
        return self.total.to_wire()

    def to_state(self) -> dict[str, Value]:
        """
        All of it, for a snapshot.
        """
        # What is open now may never be settled there, so it counts as spent.
        return {
            **self.total.to_state(),
            "charged": charge_to_wire(self.charged),
            "ledger": self.ledger,
            "models": {model: each.to_state() for model, each in sorted(self.models.items())},
        }

    @classmethod
    def from_state(cls, state: Value) -> UsageMeter:
        """
        What `to_state` wrote, of this release or an older one.

        Raises:
            FieldProblem: If it did not; a `ValueError` that says where and why.
        """
        with Fields(state) as fields:
            meter = cls(total=read_tally(fields))
            models = fields.optional("models", any_map) or {}
            charged = fields.optional("charged", read_charge)
            meter.ledger = fields.optional("ledger", _octets) or b""
        for model, each in models.items():
            with Fields(each, f"models.{model}") as fields:
                meter.models[str(model)] = read_tally(fields)
        total = meter.total
        spent = (total.input_tokens or 0) + (total.output_tokens or 0)
        meter.charged = charged or Charge(calls=total.calls, tokens=spent)
        return meter

    def copy(self) -> UsageMeter:
        """
        The same, to go on by itself.
        """
        return UsageMeter.from_state(self.to_state())


def total_tokens(usage: Usage) -> int | None:
    """
    All tokens of a request, if they are known.
    """
    return _sum(usage.input_tokens, usage.output_tokens)


def usage_to_wire(usage: Usage) -> dict[str, Value]:
    """
    What one request cost, as data.
    """
    return {name: getattr(usage, name) for name in _TOKENS}


def read_usage(value: Value, at: str) -> Usage:
    """
    What `usage_to_wire` wrote.

    Raises:
        FieldProblem: If it did not.
    """
    with Fields(value, at) as fields:
        return Usage(**{name: fields.required(name, or_null(tally)) for name in _TOKENS})


def read_charge(value: Value, at: str) -> Charge:
    """
    What `charge_to_wire` wrote.

    Raises:
        FieldProblem: If it did not.
    """
    with Fields(value, at) as fields:
        return Charge(**{name: fields.required(name, _amount) for name in Charge._fields})


def charge_to_wire(charge: Charge) -> dict[str, Value]:
    """
    An amount as data.
    """
    return charge._asdict()


def _amount(value: Value, at: str) -> int:
    amount = count(value, at)
    if amount > _MAX_AMOUNT:
        raise FieldProblem(at, f"expected at most {_MAX_AMOUNT}")
    return amount


def _octets(value: Value, at: str) -> bytes:
    if not isinstance(value, bytes):
        text(value, at)
    return bytes(value)


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
