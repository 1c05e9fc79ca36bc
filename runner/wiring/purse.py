"""
What an instance may spend, by what its operator said, and what stands above all that it tells a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from runner.capabilities.asking import Purse
from runner.digest import digest
from runner.errors import BudgetExceeded, ConfigError, GuestReturnedError
from runner.policy.budgets import NO_BUDGET, Account, Budget, OwnAccount
from runner.units import MIB, show_bytes
from runner.wiring.ledger import SharedAccount
from runner.wiring.prices import price_table

if TYPE_CHECKING:
    from pathlib import Path

    from runner.capabilities.usage import UsageMeter
    from runner.errors import RunnerError
    from runner.journal.records import Born
    from runner.session.outcome import Outcome
    from runner.wiring.options import Options

MAX_PERSONA_BYTES: Final = 1 * MIB


@dataclass(slots=True)
class Refusals:
    """
    Bounds of a budget that a request was refused for, during one command.
    """

    met: list[tuple[str, int, int]] = field(default_factory=list)

    def take(self, name: str, value: int, bound: int) -> None:
        """
        One more.
        """
        self.met.append((name, value, bound))

    def explain(self, failure: RunnerError | None) -> RunnerError | None:
        """
        A failure of an agent that said so when its budget was used up is the end of the budget.
        """
        if not self.met or not isinstance(failure, GuestReturnedError):
            return failure
        return BudgetExceeded(*self.met[-1], said=failure.message)


def explained(outcome: Outcome, refusals: Refusals) -> Outcome:
    """
    An outcome that says so if it is the end of a budget.
    """
    return replace(outcome, failure=refusals.explain(outcome.failure))


def purse_of(
    usage: UsageMeter, budget: Budget, refusals: Refusals, options: Options, root: Path | None = None
) -> Purse:
    """
    What one instance spends from.

    Args:
        usage: Its totals.
        budget: Its bounds.
        refusals: Hears of the bounds that were met.
        options: Who watches.
        root: The state directory that it lives in, or `None`.

    Raises:
        StateUnusable: If the state directory's ledger can't be used.
    """
    account: Account = OwnAccount()
    if root is not None and budget != NO_BUDGET:
        account = SharedAccount(root, usage.ledger, usage.charged)
    return Purse(
        usage=usage,
        budget=budget,
        account=account,
        prices=price_table(),
        on_refusal=refusals.take,
        on_event=options.on_model,
    )


def ledger_of(born: Born) -> bytes:
    """
    Which ledger an instance and all its forks have.
    """
    return digest(b"runner ledger 1\n" + born.entropy)


def persona_of(options: Options) -> str | None:
    """
    The text of the persona that the options name.

    Raises:
        ConfigError: If its file can't be read, or is none.
    """
    path = options.persona
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PERSONA_BYTES + 1)
        text = data.decode().strip()
    except OSError as error:
        raise ConfigError(str(path), None, f"can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), None, "a persona is UTF-8 text") from error
    if len(data) > MAX_PERSONA_BYTES:
        raise ConfigError(str(path), None, f"larger than {show_bytes(MAX_PERSONA_BYTES)}")
    if not text:
        raise ConfigError(str(path), None, "says nothing")
    return text
