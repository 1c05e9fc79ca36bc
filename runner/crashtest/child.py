"""
The process that is killed: opens an instance, goes on with it, and dies where it is told to.

    python -m runner.crashtest.child PLAN.json

The plan says where things lie and at which boundary to die. What came of it, if it lived, goes to stdout.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from runner.capabilities.asking import Purse
from runner.capabilities.standard import standard_handlers
from runner.crashtest.defects import FlawedRecorder
from runner.crashtest.ledger import Ledger, LedgerHandlers
from runner.digest import show
from runner.errors import NeedsDecision, RunnerError
from runner.journal import StateDirectory
from runner.journal.records import Slice, Upgraded
from runner.kernel.abi import DeliveryKind
from runner.policy.gate import Gate
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider
from runner.session.chronicle import Chronicle
from runner.session.session import Session
from runner.wiring.host import Host
from runner.wiring.named import Writer, open_life, upgrade_life
from runner.wiring.options import Options
from runner.wiring.upgrading import Rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.codec import Value
    from runner.journal.records import Record
    from runner.wiring.named import Life

_UPGRADE_DELIVERIES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What a child shall do.

    Attributes:
        state: The state directory.
        cache: The cache of compiled code.
        ledger: The world.
        name: The instance.
        message: What to deliver when nothing is open.
        deliveries: How many deliveries its life shall have in all.
        upgrade: Path of the agent that it is upgraded to after its first delivery, or empty.
        die_at: Number of the boundary at which to die, from 1; 0 to live.
        defect: A planted defect, or empty.
    """

    state: str
    cache: str
    ledger: str
    name: str
    message: Value
    deliveries: int
    upgrade: str = ""
    die_at: int = 0
    defect: str = ""

    def write(self, path: Path) -> None:
        """
        Put it where the child finds it.
        """
        path.write_text(json.dumps(asdict(self)))


@dataclass(slots=True)
class Fate:
    """
    Counts the boundaries, and dies at one of them.
    """

    die_at: int
    passed: int = 0

    def boundary(self, where: str) -> None:
        """
        A point at which a process may die.
        """
        del where
        self.passed += 1
        if self.passed == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


async def live(plan: Plan, fate: Fate) -> dict[str, Value]:
    """
    Go on with the instance until it has had all its deliveries.

    Raises:
        EffectUncertain: If a person has to say first whether something happened.
    """
    host = Host(Path(plan.cache))
    provider = ScriptedProvider()
    life = await open_life(StateDirectory(Path(plan.state)), host, plan.name, provider, write=True)
    try:
        is_upgraded = any(isinstance(record, Upgraded) for record in life.line.records)
        if plan.upgrade and not is_upgraded:
            await _serve(life, plan, fate, provider, until=1)
            _upgrade(life, plan, fate)
        more = _UPGRADE_DELIVERIES if plan.upgrade else 0
        await _serve(life, plan, fate, provider, until=plan.deliveries + more)
        slices = [record for _, record in life.journal.read() if isinstance(record, Slice)]
        return _report(slices, life.machine.digest(), fate)
    finally:
        life.journal.close()


async def _serve(life: Life, plan: Plan, fate: Fate, provider: ScriptedProvider, *, until: int) -> None:
    """
    Finish what is open, and deliver until it has had so many.
    """
    handlers = standard_handlers(
        providers={provider.name: provider},
        default_model=SCRIPTED_MODEL,
        grants=life.prepared.grants,
        notes=life.held.notes,
        purse=Purse(usage=life.held.usage),
    )
    ledger = Ledger(Path(plan.ledger))
    chronicle = Chronicle(
        FlawedRecorder(Writer(life), ledger, fate.boundary, plan.defect),
        Gate(life.prepared.grants, life.line.terms.ask),
        life.fold.history,
        name=plan.name,
        clock_ms=_frozen_clock_ms,
    )
    session = Session(
        life.machine,
        LedgerHandlers(handlers, ledger, fate.boundary),
        life.host.ticker,
        on_log=lambda _line: None,
        chronicle=chronicle,
        clock_ms=_frozen_clock_ms,
    )
    async with session:
        await session.finish_open()
        while life.machine.last_delivery < until:
            await session.deliver(DeliveryKind.MESSAGE, plan.message)
        if plan.upgrade:
            # Nothing may be in flight when another takes over.
            await session.drain()


def _upgrade(life: Life, plan: Plan, fate: Fate) -> None:
    def append(records: Sequence[Record], packages: Sequence[bytes]) -> None:
        fate.boundary("before the upgrade is written")
        life.journal.append(records, packages)
        fate.boundary("after the upgrade is written")

    fate.boundary("before the upgrade")
    package = life.host.load(Path(plan.upgrade))
    upgrade_life(life, package, Rules((), (), ()), Options(cache=Path(plan.cache)), append)
    fate.boundary("after the upgrade")


def _frozen_clock_ms() -> int:
    # A guest that reads the clock would make two lives differ for no fault of the host's.
    return 1_700_000_000_000


def _report(slices: list[Slice], digest: bytes, fate: Fate) -> dict[str, Value]:
    """
    How all deliveries ended, by the journal: who was killed after the last commit heard nothing of it.
    """
    replies = [record.reply for record in slices if record.reply]
    errors = [record.error for record in slices if record.error]
    return {
        "result": [[ok, payload.hex()] for ok, payload in replies],
        "failure": errors[-1] if errors else None,
        "digest": show(digest),
        "boundaries": fate.passed,
    }


def main() -> int:
    """
    Run the plan in the first argument.
    """
    plan = Plan(**json.loads(Path(sys.argv[1]).read_text()))
    try:
        report = anyio.run(live, plan, Fate(plan.die_at))
    except NeedsDecision as error:
        report = {"uncertain": list(error.calls)}
    except RunnerError as error:
        report = {"error": error.to_wire()}
    sys.stdout.write(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
