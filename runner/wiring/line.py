"""
All that is written of an instance, and the instance that follows from it: by folding its records over its
image, or over its latest snapshot, which is only a memo of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runner import codec
from runner.digest import digest as file_digest
from runner.digest import show
from runner.errors import InstanceUnknown, JournalCorrupt, SnapshotCorrupt, SnapshotIncompatible
from runner.journal import StateDirectory
from runner.journal.records import Born, Delivery, Slice, SnapshotTaken, Upgraded, Woken
from runner.kernel.abi import DeliveryKind
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.package.agent import AgentPackage, unpack
from runner.policy.budgets import Budget
from runner.policy.grants import Grants
from runner.session.folding import Fold
from runner.session.recovery import Await, Unknown
from runner.wiring.held import Held, read_host_part
from runner.wiring.held_fold import HeldFold
from runner.wiring.prepare import Prepared, prepare
from runner.wiring.purse import ledger_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.codec import Value
    from runner.journal import Journal
    from runner.journal.records import Record
    from runner.journal.snapshots import StoredSnapshot
    from runner.kernel.state import Call, MachineState
    from runner.providers.scripted import ScriptedProvider
    from runner.wiring.host import Host

ORIGIN: Final = "origin"
"""
Reason of the snapshot that a life begins with when it does not begin at its image.
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
        agents: The agents that it had, each as one file: the one that it was born with, and one for each
            upgrade.
        records: Its journal.
        memo: Where folding may begin, or `None` for its image.
    """

    name: str
    agents: tuple[bytes, ...]
    records: Sequence[Record]
    memo: Memo | None = None

    @property
    def packed(self) -> bytes:
        """
        Its agent after all these records, as one file.
        """
        return self.packed_at(len(self.records))

    def packed_at(self, position: int) -> bytes:
        """
        Its agent after some of these records, as one file.

        Raises:
            JournalCorrupt: If it is not there.
        """
        count = sum(isinstance(record, Upgraded) for record in self.records[:position])
        if count >= len(self.agents):
            raise JournalCorrupt(self.name, None, "an agent that it had is missing")
        return self.agents[count]

    @property
    def terms(self) -> Born | Upgraded:
        """
        What it is and may after all these records, by the last that says so.
        """
        return self.terms_at(len(self.records))

    def terms_at(self, position: int) -> Born | Upgraded:
        """
        What it is and may after some of these records.
        """
        upgrades = [record for record in self.records[:position] if isinstance(record, Upgraded)]
        return upgrades[-1] if upgrades else self.born

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

    @property
    def beginning(self) -> int:
        """
        How many records are there before it begins: its birth; or with it the snapshot that it begins at, and
        what was known of calls then.
        """
        woken = (seq for seq, record in enumerate(self.records) if isinstance(record, Woken))
        return next(woken, len(self.records)) if self.has_origin else 1

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
        host: What runs it.
        line: What is written of it.
        prepared: Its agent under its grants and limits, as far as it is brought up.
        fold: Machine and history.
        held_fold: What the host holds for it.
    """

    host: Host
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

    @property
    def budget(self) -> Budget:
        """
        What it may spend on models.
        """
        return Budget.from_limits(self.line.born.limits)[0]

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
            SnapshotIncompatible: If it is upgraded to another agent than is kept for it.
        """
        try:
            if isinstance(record, Upgraded):
                _check_upgrade(self.line, seq)
                self._go_over(seq, record)
            self.fold.take([(seq, record)])
            self.held_fold.note(seq, record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JournalCorrupt(self.name, seq, f"can't follow what came before it: {error}") from error

    def _go_over(self, seq: int, record: Upgraded) -> None:
        packed = self.line.packed_at(seq + 1)
        if file_digest(packed) != record.package:
            raise JournalCorrupt(self.name, seq, "the agent that it was upgraded to is another")
        prepared = _prepare_as(self.host, packed, record, self.name, seq)
        self.fold.machine = self.machine.upgraded(
            prepared.program, prepared.image, prepared.limits, keeps_timers=record.timers
        )
        self.prepared = prepared

    def _where(self, kind: type[Await | Unknown]) -> tuple[Call, ...]:
        calls = self.machine.calls
        return tuple(call for call in calls if isinstance(self.fold.history.action(call.number), kind))


def state_of(path: Path | None, max_bytes: int | None = None) -> StateDirectory:
    """
    The state directory at a path, or the user's own.
    """
    return StateDirectory(path, max_bytes=max_bytes)


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
    upgrades = [record.package for record in records if isinstance(record, Upgraded)]
    agents = [state.agent(journal.name, package) for package in (None, *upgrades)]
    whole = Line(name=journal.name, agents=tuple(agents), records=records)
    whole.check_whole()
    end = len(records) if until is None else min(until, len(records))
    # What is cut off may need the snapshot that it begins with all the same.
    stored = _stored(journal, max(end, 1) if use_snapshots else 1)
    if stored is None and whole.has_origin:
        raise JournalCorrupt(journal.name, 1, "the snapshot that it begins with is missing")
    memo = Memo(stored.position, stored.state, stored.host, stored.digest) if stored else None
    return replace(whole, records=records[: max(end, 1)], memo=memo)


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
        Interrupted: On Ctrl-C.
    """
    past = begin(host, line, provider)
    host.apart(partial(_take_rest, past))
    return past


def _take_rest(past: Past) -> None:
    records = past.line.records
    for seq in range(past.fold.position, len(records)):
        past.take(seq, records[seq])


def begin(host: Host, line: Line, provider: ScriptedProvider | None = None) -> Past:
    """
    An instance where folding its line begins.

    Raises:
        JournalCorrupt: If its snapshot is not of its journal.
    """
    memo = line.memo
    position = memo.position if memo else 1
    terms = line.terms_at(position)
    prepared = _prepare_as(host, line.packed_at(position), terms, line.name, 0)
    held = Held(provider)
    if memo is None:
        machine = Machine(
            prepared.program,
            prepared.image,
            prepared.limits,
            entropy=line.born.entropy,
            keeps_snapshots=True,
            keeps_timers=terms.timers,
        )
    else:
        machine = Machine.thaw(
            prepared.program,
            prepared.image,
            prepared.limits,
            memo.state,
            keeps_snapshots=True,
            keeps_timers=terms.timers,
        )
        if machine.digest() != memo.digest:
            raise JournalCorrupt(line.name, memo.position, "its snapshot has another memory digest")
        origin = Path(line.name)
        held.take_back(read_host_part(memo.host, memo.state.calls, origin), origin)
    held.usage.ledger = held.usage.ledger or ledger_of(line.born)
    # What was known when its first snapshot was taken is in that snapshot already.
    start = max(position, line.beginning)
    past = Past(
        host=host,
        line=line,
        prepared=prepared,
        fold=Fold(machine, start),
        held_fold=HeldFold(held, line.name),
    )
    for record in line.records[:start]:
        past.fold.history.note(record)
        past.held_fold.learn(record)
    past.held_fold.learn_calls(machine.calls)
    return past


def _prepare_as(host: Host, packed: bytes, terms: Born | Upgraded, name: str, seq: int) -> Prepared:
    parts = unpack(packed, origin=Path(name))
    if parts.manifest is None:
        raise JournalCorrupt(name, seq, "its agent has no manifest")
    package = AgentPackage(parts.manifest, parts.wasm, Path(name), parts.image)
    grants = Grants.parse(terms.allow, terms.deny)
    try:
        _, own = Budget.from_limits(terms.limits)
        limits = Limits.from_wire(own).to_wire()
    except ValueError as error:
        raise JournalCorrupt(name, seq, str(error)) from error
    prepared = prepare(host, package, grants=grants, limits=limits, on_log=_ignore)
    for what, expected, found in (
        ("code_digest", terms.code_digest, prepared.admitted.code_digest),
        ("image_digest", terms.image_digest, prepared.image.digest),
    ):
        if expected != found:
            raise SnapshotIncompatible(what, show(expected), show(found))
    return prepared


def _check_upgrade(line: Line, seq: int) -> None:
    """
    See that the old module was asked, and that the new one is given what it said. A line may be cut off then.

    Raises:
        JournalCorrupt: If not.
    """
    asked, gave = line.records[max(seq - 2, 0) : seq] if seq > 1 else (None, None)
    is_asked = isinstance(asked, Delivery) and asked.kind == DeliveryKind.HAND_OVER
    if not is_asked or not isinstance(gave, Slice) or gave.reply is None or not gave.reply[0]:
        raise JournalCorrupt(line.name, seq, "an upgrade to which nothing was handed over")
    given = line.records[seq + 1] if seq + 1 < len(line.records) else None
    if given is None:
        return
    state = codec.decode(gave.reply[1])
    if (
        not isinstance(given, Delivery)
        or given.kind != DeliveryKind.UPGRADE
        or not _holds(given.payload, state)
    ):
        raise JournalCorrupt(line.name, seq + 1, "not what was handed over to the upgrade before it")


def _holds(payload: bytes, state: Value) -> bool:
    value = codec.decode(payload)
    # By their bytes: to Python 1, 1.0 and true are the same.
    return (
        isinstance(value, dict) and "state" in value and codec.encode(value["state"]) == codec.encode(state)
    )


def _ignore(line: object) -> None:
    # What the agent logged while it booted was shown when it was born.
    del line
