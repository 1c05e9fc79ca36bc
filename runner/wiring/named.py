"""
Named instances: lives that survive their process.

An instance is its image and its journal. Opening one folds the journal over the image, or over the latest
snapshot, which is only a memo of that; what must happen next follows from the records alone.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from runner.digest import digest as file_digest
from runner.digest import show
from runner.errors import (
    InstanceUnknown,
    JournalCorrupt,
    SnapshotCorrupt,
    SnapshotIncompatible,
    UsageError,
)
from runner.journal import StateDirectory
from runner.journal.records import Born, Decision, Delivery, Resolution, SnapshotTaken, Stopped, Woken
from runner.kernel.abi import DeliveryKind
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.package.agent import AgentPackage, unpack
from runner.policy.gate import Gate
from runner.policy.grants import Grants
from runner.session.chronicle import BY_POLICY, Chronicle
from runner.session.folding import Fold
from runner.session.recovery import Await, Unknown
from runner.session.session import Session, wall_clock_ms
from runner.wiring.held import Held, read_host_part
from runner.wiring.held_fold import HeldFold
from runner.wiring.prepare import Prepared, prepare, prepare_under
from runner.wiring.thaw import SEED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.codec import Value
    from runner.journal import Journal
    from runner.journal.records import Record, Ruling, Verdict
    from runner.journal.snapshots import StoredSnapshot
    from runner.kernel.state import Call, MachineState
    from runner.providers.scripted import ScriptedProvider
    from runner.session.effects import Handlers
    from runner.wiring.host import Host
    from runner.wiring.options import Options

ORIGIN: Final = "origin"
"""
Reason of the snapshot that a life begins with when it does not begin at its image.
"""

_LEAVING_RECORDS: Final = 256
"""
Records since the last snapshot that make it worth taking one when a command ends.
"""


class Memo(NamedTuple):
    """
    An instance as it is after some records.

    Attributes:
        position: How many.
        state: The machine.
        host: What the host holds for it.
        digest: Digest of its mind.
    """

    position: int
    state: MachineState
    host: dict[str, Value]
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    All that is written of one instance.

    Attributes:
        name: Its name.
        packed: Its agent, as one file.
        records: Its journal.
        memo: Where folding may begin, or `None` for its image.
    """

    name: str
    packed: bytes
    records: Sequence[Record]
    memo: Memo | None = None

    @property
    def born(self) -> Born:
        """
        The first record.

        Raises:
            JournalCorrupt: If it is none of a birth.
        """
        first = self.records[0] if self.records else None
        if not isinstance(first, Born):
            raise JournalCorrupt(self.name, 0, "does not begin with a birth")
        return first

    @property
    def has_origin(self) -> bool:
        """
        Whether it begins at a snapshot, and not at its image.
        """
        second = self.records[1] if len(self.records) > 1 else None
        return isinstance(second, SnapshotTaken) and second.reason == ORIGIN

    def check_whole(self) -> None:
        """
        Raises:
            JournalCorrupt: If it is a fork or a restored instance whose making was cut short.
        """
        if self.born.parent and not any(isinstance(record, Woken) for record in self.records):
            raise JournalCorrupt(
                self.name, 1, f"was not made to its end; remove it with runner rm {self.name}"
            )


@dataclass(slots=True, kw_only=True)
class Past:
    """
    One instance, brought up to some record; nothing new has happened.

    Attributes:
        line: What is written of it.
        prepared: Its agent under its grants and limits.
        fold: Machine and history.
        held_fold: What the host holds for it.
    """

    line: Line
    prepared: Prepared
    fold: Fold
    held_fold: HeldFold

    @property
    def name(self) -> str:
        """
        The instance's name.
        """
        return self.line.name

    @property
    def machine(self) -> Machine:
        """
        The instance.
        """
        return self.fold.machine

    @property
    def held(self) -> Held:
        """
        What the host holds for it.
        """
        return self.held_fold.held

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

    def take(self, seq: int, record: Record) -> None:
        """
        Fold one more record.

        Raises:
            Nondeterminism: If the guest does not do again what it did.
            JournalCorrupt: If it can't follow what came before it.
        """
        try:
            self.fold.take([(seq, record)])
            self.held_fold.note(seq, record)
        except (ValueError, KeyError, TypeError) as error:
            raise JournalCorrupt(self.name, seq, f"can't follow what came before it: {error}") from error

    def _where(self, kind: type[Await | Unknown]) -> tuple[Call, ...]:
        calls = self.machine.calls
        return tuple(call for call in calls if isinstance(self.fold.history.action(call.number), kind))


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
        limits=prepared.limits.to_wire(),
        allow=options.allow,
        deny=options.deny,
        ask=ask,
        entropy=os.urandom(SEED_BYTES),
        at_ms=wall_clock_ms(),
        parent=parent,
    )


def state_of(path: Path | None) -> StateDirectory:
    """
    The state directory at a path, or the user's own.
    """
    return StateDirectory(path)


@contextmanager
def journal_of(state: StateDirectory, name: str, *, write: bool) -> Iterator[Journal]:
    """
    An instance's journal, closed in the end.

    Raises:
        InstanceUnknown: If there is none of that name; says which come near.
        InstanceBusy: If another process has it open for writing.
    """
    try:
        journal = state.open(name, write=write)
    except InstanceUnknown as error:
        raise _with_nearest(state, name) from error
    try:
        yield journal
    finally:
        journal.close()


def _with_nearest(state: StateDirectory, name: str) -> InstanceUnknown:
    import difflib  # noqa: PLC0415 - costs milliseconds, and only a refusal needs it

    known = [row.name for row in state.names()]
    return InstanceUnknown(name, tuple(difflib.get_close_matches(name[:64], known, n=2)))


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


def line_of(
    state: StateDirectory, journal: Journal, *, until: int | None = None, use_snapshots: bool = True
) -> Line:
    """
    What is written of an instance.

    Args:
        state: Where it lives.
        journal: Its journal.
        until: Number of records to take, or `None` for all.
        use_snapshots: Whether folding may begin at the latest snapshot.

    Raises:
        JournalCorrupt: If its journal is damaged.
    """
    records = [record for _, record in journal.read()]
    whole = Line(name=journal.name, packed=state.agent(journal.name), records=records)
    whole.check_whole()
    end = len(records) if until is None else min(until, len(records))
    # What is cut off may need the snapshot that it begins with all the same.
    stored = _stored(journal, max(end, 1) if use_snapshots else 1)
    if stored is None and whole.has_origin:
        raise JournalCorrupt(journal.name, 1, "the snapshot that it begins with is missing")
    memo = Memo(stored.position, stored.state, stored.host, stored.digest) if stored else None
    return Line(name=whole.name, packed=whole.packed, records=records[: max(end, 1)], memo=memo)


def _stored(journal: Journal, at_most: int) -> StoredSnapshot | None:
    """
    The latest snapshot that can be read: they are memos, and an older one does as well.
    """
    for position in reversed(journal.snapshots()):
        if position <= at_most:
            with suppress(SnapshotCorrupt):
                return journal.latest_snapshot(at_most=position)
    return None


def fold(host: Host, line: Line, provider: ScriptedProvider | None = None) -> Past:
    """
    Bring an instance up to the end of its line.

    Raises:
        Nondeterminism: If it does not do again what it did.
    """
    past = begin(host, line, provider)
    for seq in range(past.fold.position, len(line.records)):
        past.take(seq, line.records[seq])
    return past


def begin(host: Host, line: Line, provider: ScriptedProvider | None = None) -> Past:
    """
    An instance where folding its line begins.

    Raises:
        JournalCorrupt: If its snapshot is not of its journal.
    """
    born, memo = line.born, line.memo
    prepared = _prepare_born(host, line.packed, born, line.name)
    held = Held(provider)
    if memo is None:
        machine = Machine(
            prepared.program, prepared.image, prepared.limits, entropy=born.entropy, keeps_snapshots=True
        )
    else:
        machine = Machine.thaw(
            prepared.program, prepared.image, prepared.limits, memo.state, keeps_snapshots=True
        )
        if machine.digest() != memo.digest:
            raise JournalCorrupt(line.name, memo.position, "its snapshot has another memory digest")
        origin = Path(line.name)
        held.take_back(read_host_part(memo.host, memo.state.calls, origin), origin)
    start = memo.position if memo else 1
    if memo is not None and line.has_origin and start == 1:
        # What was known when its snapshot was taken is in the snapshot already.
        woken = (seq for seq, record in enumerate(line.records) if isinstance(record, Woken))
        start = next(woken, len(line.records))
    past = Past(line=line, prepared=prepared, fold=Fold(machine, start), held_fold=HeldFold(held, line.name))
    for record in line.records[:start]:
        past.fold.history.note(record)
        past.held_fold.learn(record)
    past.held_fold.learn_calls(machine.calls)
    return past


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
async def session_of(life: Life, host: Host, options: Options, handlers: Handlers) -> AsyncIterator[Session]:
    """
    Go on with an instance: its effects are made, its answers fed, all of it written down first.

    Raises:
        EffectUncertain: If a person has to say first whether something happened.
    """
    writer = Writer(life)
    chronicle = Chronicle(
        writer,
        Gate(life.prepared.grants, life.line.born.ask),
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
