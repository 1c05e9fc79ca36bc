"""
Kills a life at each of its boundaries, goes on with it, and judges what the world says.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from runner import codec
from runner.crashtest.child import Plan
from runner.crashtest.ledger import EFFECTFUL, Entry, Ledger
from runner.errors import InternalError, UsageError
from runner.journal import StateDirectory
from runner.providers.scripted import ScriptedProvider
from runner.wiring.host import Host
from runner.wiring.named import give_birth, open_life, resolve
from runner.wiring.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.codec import Value

Death: TypeAlias = int | float
"""
A boundary by its number, or an instant in seconds after the process began.
"""

_NAME: Final = "patient"
_MOST_LIVES: Final = 50
_CHILD_TIMEOUT_S: Final = 120


@dataclass(slots=True)
class Verdict:
    """
    What a crash test found.

    Attributes:
        kills: Lives that were cut short at least once.
        kill_points: Boundaries of the uninterrupted life.
        duplicates: Effects that may not be repeated and were.
        losses: Effects that the uninterrupted life had and another had not, and confirmed outcomes that
            were not known any more.
        wrong: Lives that ended with another result or memory.
        unclean: Lives that could not go on.
        uncertain: Effects that a person was asked about; each was one in truth.
        repeated: Effects that may be repeated and were.
        findings: One line for each fault.
    """

    kills: int = 0
    kill_points: int = 0
    duplicates: int = 0
    losses: int = 0
    wrong: int = 0
    unclean: int = 0
    uncertain: int = 0
    repeated: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """
        Whether nothing was found.
        """
        return not (self.duplicates or self.losses or self.wrong or self.unclean)


@dataclass(frozen=True, slots=True)
class _Baseline:
    report: dict[str, Any]
    entries: list[Entry]


def crashtest(
    agent: Path,
    message: Value,
    *,
    options: Options,
    kills: int,
    deliveries: int = 2,
    upgrade: Path | None = None,
    defect: str = "",
    seed: int = 0,
    progress: Callable[[str], None],
) -> Verdict:
    """
    Put an agent through it.

    Args:
        agent: The agent.
        message: What it is delivered each time.
        options: Grants, limits and cache.
        kills: How many lives to cut short: each boundary once, or a choice of them; then pairs, the first
            at a boundary or at a random instant, the second at a boundary of the recovery from it.
        deliveries: How many deliveries a life has.
        upgrade: The agent that takes over after the first of them, or `None`.
        defect: Key of `defects.DEFECTS`, or empty.
        seed: Of the choice of pairs.
        progress: Takes one line for people at a time.

    Raises:
        UsageError: If the agent does not get through without being killed.
    """
    with tempfile.TemporaryDirectory(prefix="runner-crashtest-") as scratch:
        ward = _Ward(
            Path(scratch), agent, message, options, deliveries=deliveries, upgrade=upgrade, defect=defect
        )
        baseline = ward.uninterrupted()
        points = int(baseline.report["boundaries"])
        verdict = Verdict(kill_points=points)
        chance = random.Random(seed)  # noqa: S311 - a choice of tests
        every = range(1, points + 1)
        chosen = every if kills >= points else sorted(chance.sample(every, kills))
        plans: list[tuple[Death, ...]] = [(point,) for point in chosen]
        while len(plans) < kills:
            # By turns: a second death inside the recovery from the first, and one at any instant at all.
            second = chance.randint(1, points)
            first = chance.randint(1, points) if len(plans) % 2 else chance.uniform(0, ward.lifetime_s)
            plans.append((first, second))
        for number, deaths in enumerate(plans, 1):
            _judge(ward.life(deaths), baseline, deaths, verdict)
            progress(f"{number}/{len(plans)} lives, {len(verdict.findings)} faults")
        return verdict


@dataclass(slots=True)
class _Life:
    report: dict[str, Any] | None
    entries: list[Entry]
    uncertain: list[int]
    needless: list[int]
    lives: int
    problem: str = ""


class _Ward:
    """
    Makes lives and ends them.
    """

    def __init__(
        self,
        scratch: Path,
        agent: Path,
        message: Value,
        options: Options,
        *,
        deliveries: int,
        upgrade: Path | None,
        defect: str,
    ) -> None:
        self._scratch = scratch
        self._host = Host(options.cache)
        self._template = scratch / "template"
        state = StateDirectory(self._template)
        give_birth(state, self._host, self._host.load(agent), _NAME, options, ())
        state.close()
        self._plan = Plan(
            state="",
            cache=str(self._host.cache.root),
            ledger="",
            name=_NAME,
            message=message,
            deliveries=deliveries,
            upgrade=str(upgrade.absolute()) if upgrade else "",
            defect=defect,
        )
        self._count = 0
        self.lifetime_s = 0.0

    def uninterrupted(self) -> _Baseline:
        life = self.life(())
        if life.report is None or life.report.get("failure"):
            problem = life.problem or str((life.report or {}).get("failure"))
            raise UsageError(
                f"the agent does not get through by itself: {problem}",
                hint="check the message and the grants with `runner run`",
            )
        return _Baseline(life.report, life.entries)

    def life(self, deaths: tuple[Death, ...]) -> _Life:
        """
        One life, cut short at each of `deaths` in turn, then left alone until it ends.
        """
        self._count += 1
        place = self._scratch / str(self._count)
        shutil.copytree(self._template, place)
        ledger = place / "ledger"
        plan = replace(self._plan, state=str(place), ledger=str(ledger))
        life = _Life(None, [], [], [], 0)
        remaining = list(deaths)
        while life.lives < _MOST_LIVES and not life.problem:
            life.lives += 1
            report = self._child(plan, place, remaining.pop(0) if remaining else 0)
            if report is None:
                continue
            if "uncertain" in report:
                life.uncertain += report["uncertain"]
                life.needless += Ledger(ledger).confirmed().intersection(report["uncertain"])
                anyio.run(self._rule, plan, Ledger(ledger).read(), report["uncertain"])
                continue
            if "error" in report:
                life.problem = str(report["error"]["message"])
                break
            life.report = report
            break
        life.entries = Ledger(ledger).read()
        shutil.rmtree(place)
        return life

    def _child(self, plan: Plan, place: Path, death: Death) -> dict[str, Any] | None:
        path = place / "plan.json"
        boundary = death if isinstance(death, int) else None
        replace(plan, die_at=boundary or 0).write(path)
        command = [sys.executable, "-m", "runner.crashtest.child", str(path)]
        patience_s = death if boundary is None else _CHILD_TIMEOUT_S
        started_s = time.monotonic()
        try:
            # On its timeout the child is killed, without a word.
            done = subprocess.run(command, capture_output=True, timeout=patience_s, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            if boundary is not None:
                raise
            return None
        self.lifetime_s = max(self.lifetime_s, time.monotonic() - started_s)
        if done.returncode == -signal.SIGKILL:
            return None
        if done.returncode != 0:
            raise InternalError(f"a child of the crash test failed:\n{done.stderr.decode()}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    async def _rule(self, plan: Plan, entries: list[Entry], calls: list[int]) -> None:
        """
        Do what a person would: look at the world, and say what happened.
        """
        for call in calls:
            done = any(entry.call == call and entry.operation == EFFECTFUL for entry in entries)
            state = StateDirectory(Path(plan.state))
            life = await open_life(state, self._host, plan.name, ScriptedProvider(), write=True)
            try:
                [request] = [parked.request for parked in life.machine.calls if parked.number == call]
                answer = codec.encode({"tool": codec.decode(request)["name"], "call": call})
                resolve(life, call, "done" if done else "rerun", answer if done else b"", by="crashtest")
            finally:
                life.journal.close()
                state.close()


def _show_death(death: Death) -> str:
    return f"boundary {death}" if isinstance(death, int) else f"{death:.3f} s"


def _judge(life: _Life, baseline: _Baseline, deaths: tuple[Death, ...], verdict: Verdict) -> None:
    verdict.kills += bool(deaths)
    verdict.uncertain += len(life.uncertain)
    where = f"killed at {' then '.join(map(_show_death, deaths))}"
    if life.report is None:
        verdict.unclean += 1
        verdict.findings.append(f"{where}: can't go on: {life.problem or 'it never ends'}")
        return
    for call in life.needless:
        verdict.losses += 1
        verdict.findings.append(f"{where}: the confirmed outcome of call {call} was lost, and asked about")
    effects = Counter((entry.operation, entry.call, entry.request) for entry in life.entries)
    for (operation, call, _), count in effects.items():
        if count > 1 and operation == EFFECTFUL:
            verdict.duplicates += 1
            verdict.findings.append(f"{where}: call {call} of {operation} happened {count} times")
        elif count > 1:
            verdict.repeated += count - 1
    expected = {(entry.operation, entry.call, entry.request) for entry in baseline.entries}
    for operation, call, _ in sorted(expected - effects.keys()):
        verdict.losses += 1
        verdict.findings.append(f"{where}: call {call} of {operation} never happened")
    for what in ("result", "failure", "digest"):
        if life.report[what] != baseline.report[what]:
            verdict.wrong += 1
            verdict.findings.append(f"{where}: another {what} than without")
