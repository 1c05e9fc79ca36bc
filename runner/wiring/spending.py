"""
What named instances have used of models, by their journals.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.policy.budgets import Budget, Charge
from runner.policy.prices import PICO
from runner.wiring.held import Held, read_host_part
from runner.wiring.held_fold import HeldFold
from runner.wiring.ledger import FILE, read_spent
from runner.wiring.line import journal_of, line_of, state_of
from runner.wiring.prices import price_table
from runner.wiring.purse import ledger_of

if TYPE_CHECKING:
    from runner.capabilities.usage import Tally, UsageMeter
    from runner.journal import StateDirectory
    from runner.wiring.line import Line


def usage_named(name: str, *, state: Path | None = None) -> dict[str, Any]:
    """
    What an instance has used of models in all its life; what it shares with the one that it was forked from
    is in it. Nothing of it runs.

    Returns:
        `instance`, `models` with `model`, `calls`, tokens and `cost_usd` of each, the `total`, the `budget`
        and what is `charged` to it by all that share it, and the id and version of the `prices`.

    Raises:
        InstanceUnknown: If there is none of that name.
        JournalCorrupt: If its journal is damaged.
    """
    with state_of(state) as directory, journal_of(directory, name, write=False) as journal:
        line = line_of(directory, journal, use_snapshots=False)
        meter = _meter(line)
        budget, _ = Budget.from_limits(line.born.limits)
        charged = _charged(directory, line, meter, budget)
    prices = price_table()
    return {
        "instance": name,
        "models": [{"model": model, **_row(each)} for model, each in sorted(meter.models.items())],
        "total": _row(meter.total),
        "budget": _amounts(budget.to_limits()),
        "charged": _amounts({f"budget_{key}": value for key, value in charged._asdict().items()}),
        "prices": f"{prices.id} {prices.version}",
    }


def _meter(line: Line) -> UsageMeter:
    """
    Its totals, folded over receipts alone: no agent is run for them.
    """
    held = Held(None)
    if line.memo is not None:
        origin = Path(line.name)
        held.take_back(read_host_part(line.memo.host, line.memo.state.calls, origin), origin)
    fold = HeldFold(held, line.name)
    if line.memo is not None:
        fold.learn_calls(line.memo.state.calls)
    for seq, record in enumerate(line.records):
        if seq < line.beginning:
            fold.learn(record)
        else:
            fold.note(seq, record)
    return held.usage


def _charged(directory: StateDirectory, line: Line, meter: UsageMeter, budget: Budget) -> Charge:
    shared = (directory.root / FILE).exists() and bool(budget.to_limits())
    if not shared:
        return meter.charged
    return read_spent(directory.root, meter.ledger or ledger_of(line.born)).most(meter.charged)


def _row(tally: Tally) -> dict[str, Any]:
    return {
        "calls": tally.calls,
        "input_tokens": tally.input_tokens,
        "cache_read_tokens": tally.cache_read_tokens,
        "cache_write_tokens": tally.cache_write_tokens,
        "output_tokens": tally.output_tokens,
        "reasoning_tokens": tally.reasoning_tokens,
        "cost_usd": None if tally.cost_pico is None else tally.cost_pico / PICO,
    }


def _amounts(limits: dict[str, int]) -> dict[str, Any]:
    own = {name.removeprefix("budget_"): value for name, value in limits.items()}
    money = own.pop("usd_pico", None)
    return own if money is None else {**own, "usd": money / PICO}
