"""
Named instances: lives that survive their process.

An instance is its image and its journal. Opening it folds the one over the other; what must happen next
follows from the records alone.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio

from runner.digest import digest as file_digest
from runner.errors import RunnerError, UsageError
from runner.journal import StateDirectory
from runner.journal.records import (
    Born,
    Decision,
    Delivery,
    Resolution,
    SnapshotTaken,
    Stopped,
    Tried,
    Woken,
)
from runner.kernel.abi import DeliveryKind
from runner.kernel.state import LastSnapshot
from runner.package.agent import AgentPackage
from runner.policy.budgets import Budget
from runner.policy.gate import Gate
from runner.policy.grants import Grants
from runner.session.chronicle import BY_POLICY, Chronicle
from runner.session.session import Session, wall_clock_ms
from runner.wiring.line import Past, fold, journal_of, line_of
from runner.wiring.prepare import Prepared, prepare_under
from runner.wiring.thaw import SEED_BYTES
from runner.wiring.upgrading import Rules, bounds_of_successor, hand_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.journal import Journal
    from runner.journal.records import Record, Ruling, Verdict
    from runner.kernel.machine import Machine
    from runner.policy.gate import ToolEffect
    from runner.providers.scripted import ScriptedProvider
    from runner.session.crew import Confirm
    from runner.session.effects import Handlers
    from runner.wiring.host import Host
    from runner.wiring.options import Options

_LEAVING_RECORDS: Final = 256
"""
Records since the last snapshot that make it worth taking one when a command ends.
"""


@dataclass(slots=True, kw_only=True)
class Life(Past):
    """
    One named instance at the end of its journal.

    Attributes:
        journal: Open; for writing or for reading.
    """

    journal: Journal

    def owes_restore_event(self) -> bool:
        """
        Whether it goes on in another life and has not been told.
        """
        for record in reversed(self.line.records):
            if isinstance(record, Woken):
                return True
            if isinstance(record, Delivery) and record.kind == DeliveryKind.RESTORE:
                return False
        return False

    def go_on_as(self, prepared: Prepared, machine: Machine, records: Sequence[Record]) -> None:
        """
        Take in an upgrade that has been written down.
        """
        agents = (*self.line.agents, prepared.packed)
        self.line = replace(self.line, agents=agents, records=[*self.line.records, *records])
        self.prepared, self.fold.machine = prepared, machine
        for record in records:
            self.fold.history.note(record)
            self.held_fold.note(self.fold.position, record)
            self.fold.position += 1


class Writer:
    """
    The journal of a live instance, as its session sees it. Safe between threads.

    Beside it the host's part is folded over what was written: what a snapshot keeps must be true of its
    position, while the live part may be ahead of it.

    Args:
        life: Open for writing.
    """

    keeps = True

    def __init__(self, life: Life) -> None:
        self._life = life
        self._written = life.held_fold.fork()
        self._agent = file_digest(life.line.packed)
        self._lock = threading.Lock()
        memo = life.line.memo
        self._memo_position = memo.position if memo else 0
        # Handed in and perhaps not durable, in order; and the position up to which all is, and folded.
        self._open: deque[Sequence[Record]] = deque()
        self._position = life.journal.position

    def hand_in(self, records: Sequence[Record]) -> Confirm[object]:
        """
        Have records written as one. See `Recorder.hand_in`.
        """
        with self._lock:
            confirm = self._life.journal.hand_in(records)
            self._open.append(records)

        def finish() -> None:
            position = confirm()
            with self._lock:
                self._fold_to(position)

        return finish

    @property
    def since_snapshot(self) -> int:
        """
        Records since the latest snapshot, or the latest attempt at one.
        """
        return self._position - self._memo_position

    def take_snapshot(self, reason: str) -> None:
        """
        Keep a memo of the instance as it is, so that opening it folds less. While no slice runs.

        That there is none is no failure of anything else: it is written down, and the instance may ask.

        Raises:
            RunnerError: If nothing can be written down at all.
        """
        life = self._life
        with self._lock:
            digest = life.machine.digest()
            held = self._written.held.to_wire(self._agent)
            try:
                row = life.journal.put_snapshot(self._position, life.machine.freeze(), held, digest)
            except RunnerError as error:
                # Its kind and no more: what goes wrong on this host is not for a guest to read.
                tried = Tried(ok=False, size_bytes=0, at_ms=wall_clock_ms(), error=error.kind)
                self._append([tried])
            else:
                tried = Tried(ok=True, size_bytes=row.size_bytes, at_ms=wall_clock_ms())
                self._append([SnapshotTaken(digest=digest, reason=reason), tried])
            self._memo_position = self._position
            life.machine.learn_snapshot(LastSnapshot(tried.ok, tried.size_bytes, tried.at_ms, tried.error))

    def _append(self, records: Sequence[Record]) -> None:
        confirm = self._life.journal.hand_in(records)
        self._open.append(records)
        self._fold_to(confirm())

    def _fold_to(self, position: int) -> None:
        """
        Take in what is durable: whatever was handed in before it is so too.
        """
        while self._position < position:
            for record in self._open.popleft():
                self._written.note(self._position, record)
                self._position += 1


def give_birth(
    state: StateDirectory,
    host: Host,
    package: AgentPackage,
    name: str,
    options: Options,
    ask: tuple[str, ...],
) -> None:
    """
    Make a named instance at its image; it has not been handed anything yet.

    Raises:
        RunnerError: If the agent is refused, the name is taken or no name, or a rule of `ask` is none.
    """
    prepared = prepare_under(host, package, options)
    state.create(name, born_of(prepared, options, ask), prepared.packed)


def born_of(
    prepared: Prepared, options: Options, ask: tuple[str, ...], parent: tuple[str, int] | None = None
) -> Born:
    """
    The first record of an instance under the options' grants and limits.

    Raises:
        UsageError: If a rule of `ask` is none.
    """
    Gate(prepared.grants, ask)
    return Born(
        agent=prepared.package.name,
        code_digest=prepared.admitted.code_digest,
        image_digest=prepared.image.digest,
        limits={**prepared.limits.to_wire(), **Budget.parse(options.budget).to_limits()},
        allow=options.allow,
        deny=options.deny,
        ask=ask,
        entropy=os.urandom(SEED_BYTES),
        at_ms=wall_clock_ms(),
        parent=parent,
        timers=False,
    )


@contextmanager
def opened(
    state: StateDirectory, host: Host, name: str, provider: ScriptedProvider | None = None, *, write: bool
) -> Iterator[Life]:
    """
    An instance, brought up to the end of its journal; closed in the end.

    Args:
        state: Where it lives.
        host: What runs it.
        name: Its name.
        provider: What will answer its model calls, if anything is to be asked.
        write: Whether anything is to happen; then no other process may have it open.

    Raises:
        InstanceUnknown: If there is none of that name.
        InstanceBusy: If another process has it open for writing.
        JournalCorrupt: If its journal is damaged.
        Nondeterminism: If it does not do again what it did.
    """
    with journal_of(state, name, write=write) as journal:
        yield _bring_up(state, host, journal, provider)


async def open_life(
    state: StateDirectory, host: Host, name: str, provider: ScriptedProvider, *, write: bool
) -> Life:
    """
    As `opened`, for an event loop that has other things to do; whoever calls it closes the journal.
    """
    journal = state.open(name, write=write)
    try:
        return await anyio.to_thread.run_sync(_bring_up, state, host, journal, provider)
    except BaseException:
        journal.close()
        raise


def _bring_up(state: StateDirectory, host: Host, journal: Journal, provider: ScriptedProvider | None) -> Life:
    past = fold(host, line_of(state, journal), provider)
    return Life(
        host=host,
        line=past.line,
        prepared=past.prepared,
        fold=past.fold,
        held_fold=past.held_fold,
        journal=journal,
    )


@asynccontextmanager
async def session_of(
    life: Life,
    host: Host,
    options: Options,
    handlers: Handlers,
    tool_effect: ToolEffect | None = None,
) -> AsyncIterator[Session]:
    """
    Go on with an instance: its effects are made, its answers fed, all of it written down first.

    Args:
        life: Open for writing.
        host: What runs it.
        options: Choices for this command.
        handlers: What its calls do.
        tool_effect: The effect class of a tool's call; `None` takes each at its worst.

    Raises:
        EffectUncertain: If a person has to say first whether something happened.
    """
    writer = Writer(life)
    chronicle = Chronicle(
        writer,
        Gate(life.prepared.grants, life.line.terms.ask, tool_effect),
        life.fold.history,
        name=life.name,
        clock_ms=wall_clock_ms,
    )

    def after_slice(ended: bool) -> None:
        due = ended if options.checkpoint == "always" else _is_due(writer, options)
        if due:
            writer.take_snapshot("checkpoint")

    session = Session(
        life.machine,
        handlers,
        host.ticker,
        on_log=options.on_log,
        on_snapshot=writer.take_snapshot,
        after_slice=after_slice,
        chronicle=chronicle,
        crew=host.crew,
    )
    async with session:
        yield session
    if writer.since_snapshot >= _LEAVING_RECORDS:
        writer.take_snapshot("leaving")


def upgrade_life(
    life: Life,
    package: AgentPackage,
    rules: Rules,
    options: Options,
    append: Callable[[Sequence[Record], Sequence[bytes]], object] | None = None,
) -> int:
    """
    Let an instance go on under another agent, to which the one that it has hands over what it knows.

    Args:
        life: Open for writing; it is the new one afterwards.
        package: The other agent.
        rules: What the operator adds to those that hold.
        options: Bounds that they choose now, the cache, and what takes log lines.
        append: What to write through in place of the journal, for a test.

    Returns:
        Fuel that it took.

    Raises:
        UsageError: If it is in the middle of something, or has this agent already.
        SnapshotIncompatible: If one of the two agents has nothing for upgrades.
        RunnerError: Why the new agent was refused, or one of them failed; the instance is as it was, and
            `life` of no use any more.
    """
    old, terms, name = life.prepared, life.line.terms, life.name
    rules = Rules(terms.allow, terms.deny, terms.ask).and_also(rules)
    Gate(Grants.parse(rules.allow, rules.deny), rules.ask)
    bounds = bounds_of_successor(old, options)
    chosen = replace(options, allow=rules.allow, deny=rules.deny, limits=bounds)
    new = prepare_under(life.host, package, chosen)
    rest = f"finish it first: runner resume {name}; what waits for a person: runner approvals {name}"
    successor = hand_on(life.host, life.machine, old, new, rules, options=options, name=name, rest=rest)
    (append or life.journal.append)(successor.records, [new.packed])
    life.go_on_as(new, successor.machine, successor.records)
    # So that opening it need not go through its life under another module.
    Writer(life).take_snapshot("upgrade")
    return successor.fuel


def _is_due(writer: Writer, options: Options) -> bool:
    return isinstance(options.checkpoint, int) and writer.since_snapshot >= options.checkpoint


def decide(life: Life, call: int, *, allow: bool, by: str, because: str | None = None) -> None:
    """
    Write down what a person said of a parked call; it takes effect when the instance goes on.

    The same verdict twice is one verdict.

    Raises:
        UsageError: If the call does not wait for a verdict.
    """
    verdict: Verdict = "allow" if allow else "deny"
    if call not in {parked.number for parked in life.parked()}:
        if verdict == _verdict(life, call):
            return
        msg = f"call {call} of {life.name} does not wait for approval"
        raise UsageError(msg, hint=f"what does: runner approvals {life.name}", instance=life.name, call=call)
    rule = because or f"{by} said so"
    life.journal.append([Decision(call=call, verdict=verdict, rule=rule, by=by, at_ms=wall_clock_ms())])


def _verdict(life: Life, call: int) -> Verdict | None:
    """
    What a person said of a call, if one did.
    """
    for record in reversed(life.line.records):
        if isinstance(record, Decision) and record.call == call:
            return None if record.by == BY_POLICY else record.verdict
    return None


def resolve(life: Life, call: int, ruling: Ruling, payload: bytes, *, by: str) -> None:
    """
    Write down what a person says of an uncertain call; final.

    Raises:
        UsageError: If the call is not uncertain.
    """
    if call not in {unknown.number for unknown in life.uncertain()}:
        msg = f"call {call} of {life.name} is not uncertain"
        raise UsageError(msg, hint=f"what is: runner approvals {life.name}", instance=life.name, call=call)
    life.journal.append([Resolution(call=call, ruling=ruling, payload=payload, by=by, at_ms=wall_clock_ms())])


def stop(journal: Journal, reason: str) -> None:
    """
    Write down that the operator stopped it; it may be resumed.
    """
    journal.append([Stopped(reason=reason, at_ms=wall_clock_ms())])


def whoever() -> str:
    """
    The person who rules, as this machine knows them.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"
