"""
Named instances: lives that survive their process.

An instance is its image and its journal. Opening one folds the journal over the image, or over the latest
snapshot, which is only a memo of that; what must happen next follows from the records alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner.digest import show
from runner.errors import JournalCorrupt, SnapshotIncompatible
from runner.journal import StateDirectory
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    Resolution,
    SnapshotTaken,
    Stopped,
    Wake,
    Woken,
)
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.package.agent import AgentPackage, unpack
from runner.policy.gate import Gate
from runner.policy.grants import Grants
from runner.session.chronicle import Chronicle
from runner.session.folding import Fold
from runner.session.recovery import Await, Unknown
from runner.session.session import Session, wall_clock_ms
from runner.wiring.held import Held, HeldFold
from runner.wiring.prepare import Prepared, prepare

if TYPE_CHECKING:
    from runner.journal import Journal
    from runner.journal.records import Record
    from runner.kernel.state import Call
    from runner.providers.scripted import ScriptedProvider
    from runner.wiring.host import Host
    from runner.wiring.options import Options

_SEED_BYTES: Final = 32


@dataclass(slots=True)
class Life:
    """
    One named instance, brought up to the end of its journal; nothing new has happened.

    Attributes:
        journal: Open; for writing or for reading.
        born: Its first record.
        prepared: Its agent under its grants and limits.
        fold: Machine and history.
        held: What the host holds for it.
    """

    journal: Journal
    born: Born
    prepared: Prepared
    fold: Fold
    held: Held

    @property
    def machine(self) -> Machine:
        """
        The instance.
        """
        return self.fold.machine

    def parked(self) -> tuple[Call, ...]:
        """
        Calls that wait for a person to allow or deny them.
        """
        return self._where(Await)

    def uncertain(self) -> tuple[Call, ...]:
        """
        Calls of which nobody knows whether they happened.
        """
        return self._where(Unknown)

    def _where(self, kind: type[Await | Unknown]) -> tuple[Call, ...]:
        calls = self.machine.calls
        return tuple(call for call in calls if isinstance(self.fold.history.action(call.number), kind))


def give_birth(
    state: StateDirectory, host: Host, package: AgentPackage, name: str, options: Options, ask: tuple[str, ...]
) -> None:
    """
    Make a named instance; it has not been handed anything yet.

    Raises:
        RunnerError: If the agent is refused, or the name is taken.
    """
    prepared = prepare_for(host, package, options)
    Gate(prepared.grants, ask)
    born = Born(
        agent=package.name,
        code_digest=prepared.admitted.code_digest,
        image_digest=prepared.image.digest,
        limits=prepared.limits.to_wire(),
        allow=options.allow,
        deny=options.deny,
        ask=ask,
        entropy=os.urandom(_SEED_BYTES),
        at_ms=wall_clock_ms(),
    )
    state.create(name, born, prepared.packed)


def prepare_for(host: Host, package: AgentPackage, options: Options) -> Prepared:
    """
    An agent under the options' grants and limits.
    """
    grants = Grants.parse(options.allow, options.deny)
    return prepare(host, package, grants=grants, limits=options.limits, on_log=options.on_log)


async def open_life(
    state: StateDirectory,
    host: Host,
    name: str,
    provider: ScriptedProvider,
    *,
    write: bool,
    until: int | None = None,
    use_snapshots: bool = True,
) -> Life:
    """
    Bring an instance up to the end of its journal, or to a record before.

    Args:
        state: Where it lives.
        host: What runs it.
        name: Its name.
        provider: What will answer its model calls.
        write: Whether anything is to happen; then no other process may have it open.
        until: Number of records to take, or `None` for all.
        use_snapshots: Whether to start from the latest snapshot; without, everything is folded anew.

    Raises:
        InstanceUnknown: If there is none of that name.
        InstanceBusy: If another process has it open for writing.
        JournalCorrupt: If its journal is damaged.
        Nondeterminism: If it does not do again what it did.
    """
    journal = state.open(name, write=write)
    try:
        return await _fold(state, host, journal, provider, until, use_snapshots=use_snapshots)
    except BaseException:
        journal.close()
        raise


async def _fold(
    state: StateDirectory,
    host: Host,
    journal: Journal,
    provider: ScriptedProvider,
    until: int | None,
    *,
    use_snapshots: bool,
) -> Life:
    end = journal.position if until is None else until
    records = list(journal.read())[:end]
    born = records[0][1] if records else None
    if not isinstance(born, Born):
        raise JournalCorrupt(journal.name, 0, "does not begin with a birth")
    prepared = _prepare_born(host, state.agent(journal.name), born, journal.name)
    held = Held(provider)
    stored = journal.latest_snapshot(at_most=end) if use_snapshots else None
    if stored is not None:
        machine = Machine.thaw(
            prepared.program, prepared.image, prepared.limits, stored.state, keeps_snapshots=True
        )
        held.take_back(stored.host, Path(journal.name))
    else:
        machine = Machine(
            prepared.program, prepared.image, prepared.limits, entropy=born.entropy, keeps_snapshots=True
        )
    start = stored.position if stored else 1
    fold, held_fold = Fold(machine, start), HeldFold(held, journal.name)
    for seq, record in records:
        if seq < start:
            fold.history.note(record)
            held_fold.learn(record)
        else:
            fold.take([(seq, record)])
            await held_fold.note(seq, record)
    return Life(journal, born, prepared, fold, held)


def _prepare_born(host: Host, packed: bytes, born: Born, name: str) -> Prepared:
    parts = unpack(packed, origin=Path(name))
    if parts.manifest is None:
        raise JournalCorrupt(name, 0, "its agent has no manifest")
    package = AgentPackage(parts.manifest, parts.wasm, Path(name), parts.image)
    grants = Grants.parse(born.allow, born.deny)
    limits = Limits.from_wire(born.limits).to_wire()
    prepared = prepare(host, package, grants=grants, limits=limits, on_log=_ignore)
    for what, expected, found in (
        ("code_digest", born.code_digest, prepared.admitted.code_digest),
        ("image_digest", born.image_digest, prepared.image.digest),
    ):
        if expected != found:
            raise SnapshotIncompatible(what, show(expected), show(found))
    return prepared


def _ignore(line: object) -> None:
    # What the agent logged while it booted was shown when it was born.
    del line


@asynccontextmanager
async def session_of(life: Life, host: Host, options: Options, handlers: object) -> AsyncIterator[Session]:
    """
    Go on with an instance: its effects are made, its answers fed, all of it written down first.

    Raises:
        EffectUncertain: If a person has to say first whether something happened.
    """
    chronicle = Chronicle(
        life.journal,
        Gate(life.prepared.grants, life.born.ask),
        life.fold.history,
        name=life.journal.name,
        clock_ms=wall_clock_ms,
    )

    def snapshot(reason: str) -> None:
        take_snapshot(life, reason)

    session = Session(
        life.machine,
        handlers,  # type: ignore[arg-type]
        host.ticker,
        on_log=options.on_log,
        on_snapshot=snapshot,
        chronicle=chronicle,
    )
    async with session:
        yield session


def take_snapshot(life: Life, reason: str) -> None:
    """
    Keep a memo of the instance as it is, so that opening it folds less.
    """
    position = life.journal.position
    digest = life.machine.digest()
    life.journal.put_snapshot(position, life.machine.freeze(), life.held.to_wire(), digest)
    life.journal.append([SnapshotTaken(digest=digest, reason=reason)])


def decide(life: Life, call: int, *, allow: bool, by: str) -> None:
    """
    Write down what a person said of a parked call; it takes effect when the instance goes on.

    Raises:
        ValueError: If the call is not parked.
    """
    if call not in {parked.number for parked in life.parked()}:
        msg = f"call {call} does not wait for a decision"
        raise ValueError(msg)
    verdict: Final = "allow" if allow else "deny"
    ruled = Decision(call=call, verdict=verdict, rule=f"{by} said so", by=by, at_ms=wall_clock_ms())
    life.journal.append([ruled])


def resolve(life: Life, call: int, ruling: str, payload: bytes, *, by: str) -> None:
    """
    Write down what a person says of an uncertain call; final.

    Raises:
        ValueError: If the call is not uncertain.
    """
    if call not in {unknown.number for unknown in life.uncertain()}:
        msg = f"call {call} is not uncertain"
        raise ValueError(msg)
    resolution = Resolution(
        call=call,
        ruling=ruling,  # type: ignore[arg-type]
        payload=payload,
        by=by,
        at_ms=wall_clock_ms(),
    )
    life.journal.append([resolution])


def fork(state: StateDirectory, name: str, new_name: str, at: int | None, *, deterministic: bool) -> int:
    """
    A second instance from the same point: the records up to there are its past, the rest is its own.

    Returns:
        Number of records that it shares.
    """
    with_past = state.open(name, write=False)
    try:
        records: list[Record] = [record for _, record in with_past.read()]
    finally:
        with_past.close()
    end = len(records) if at is None else at
    first = records[0]
    if not isinstance(first, Born) or not 0 < end <= len(records):
        msg = f"{name} has records 1 to {len(records)}"
        raise ValueError(msg)
    state.create(new_name, _child(first, name, end), state.agent(name))
    journal = state.open(new_name, write=True)
    try:
        past = [record for record in records[1:end] if not isinstance(record, SnapshotTaken | Stopped)]
        if past and isinstance(past[-1], Delivery | Wake | Abandoned):
            # Cut off from the slice that it led to, it never happened.
            past.pop()
        count = 1 + sum(isinstance(record, Woken) for record in past)
        life = Woken(
            count=count,
            generation=_generation(state, name),
            at_ms=wall_clock_ms(),
            entropy=b"" if deterministic else os.urandom(_SEED_BYTES),
        )
        journal.append([*past, life])
    finally:
        journal.close()
    return end


def _child(born: Born, parent: str, at: int) -> Born:
    from dataclasses import replace  # noqa: PLC0415 - one use

    return replace(born, parent=(parent, at))


def _generation(state: StateDirectory, name: str) -> int:
    children = 0
    for row in state.names():
        journal = state.open(row.name, write=False)
        try:
            first = next(iter(journal.read()), None)
        finally:
            journal.close()
        if first and isinstance(first[1], Born) and first[1].parent and first[1].parent[0] == name:
            children += 1
    return children + 1


def stop(life: Life, reason: str) -> None:
    """
    Write down that the operator stopped it; it may be resumed.
    """
    life.journal.append([Stopped(reason=reason, at_ms=time.time_ns() // 1_000_000)])
