"""
Named instances: lives that survive their process.

An instance is its image and its journal. Opening it folds the one over the other; what must happen next
follows from the records alone.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from runner.digest import digest as file_digest
from runner.errors import UsageError
from runner.journal import StateDirectory
from runner.journal.records import Born, Decision, Delivery, Resolution, SnapshotTaken, Stopped, Woken
from runner.kernel.abi import DeliveryKind
from runner.package.agent import AgentPackage
from runner.policy.budgets import Budget
from runner.policy.gate import Gate
from runner.session.chronicle import BY_POLICY, Chronicle
from runner.session.session import Session, wall_clock_ms
from runner.wiring.line import Past, fold, journal_of, line_of
from runner.wiring.prepare import Prepared, prepare_under
from runner.wiring.thaw import SEED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.journal import Journal
    from runner.journal.records import Record, Ruling, Verdict
    from runner.policy.gate import ToolEffect
    from runner.providers.scripted import ScriptedProvider
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

    def append(self, records: Sequence[Record]) -> int:
        """
        Write records as one.

        Raises:
            RunnerError: If they could not be written; nothing may go on then.
        """
        with self._lock:
            return self._append(records)

    @property
    def since_snapshot(self) -> int:
        """
        Records since the latest snapshot.
        """
        return self._life.journal.position - self._memo_position

    def take_snapshot(self, reason: str) -> None:
        """
        Keep a memo of the instance as it is, so that opening it folds less. While no slice runs.
        """
        life = self._life
        with self._lock:
            digest = life.machine.digest()
            position = life.journal.position
            life.journal.put_snapshot(
                position, life.machine.freeze(), self._written.held.to_wire(self._agent), digest
            )
            self._append([SnapshotTaken(digest=digest, reason=reason)])
            self._memo_position = life.journal.position

    def _append(self, records: Sequence[Record]) -> int:
        end = self._life.journal.append(records)
        first = self._life.journal.position - len(records)
        for offset, record in enumerate(records):
            self._written.note(first + offset, record)
        return end


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
        Gate(life.prepared.grants, life.line.born.ask, tool_effect),
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
    )
    async with session:
        yield session
    if writer.since_snapshot >= _LEAVING_RECORDS:
        writer.take_snapshot("leaving")


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
