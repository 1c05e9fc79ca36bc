"""
Looking at what a named instance did: its journal as rows or as a file, and all of it done again, offline.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, assert_never

from runner import codec
from runner.digest import show
from runner.errors import InstanceUnknown, JournalCorrupt, LimitExceeded, Nondeterminism, UsageError
from runner.journal import export, wire
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    Receipt,
    Record,
    Resolution,
    Slice,
    SnapshotTaken,
    Start,
    Upgraded,
    Wake,
)
from runner.journal.state import NAME, default_state_root
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.limits import Limits
from runner.policy.budgets import Budget
from runner.session.recovery import Action, Await, Decide, Execute, Feed, Unknown
from runner.snapshot import Snapshot
from runner.snapshot import decode as decode_snapshot
from runner.snapshot import encode as encode_snapshot
from runner.wiring.host import Host
from runner.wiring.line import Line, Memo, Past, begin, fold, journal_of, line_of, state_of
from runner.wiring.lineage import freeze
from runner.wiring.looking import describe_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAYLOADS: Final = frozenset({"payload", "request"})
_DIGESTS: Final = frozenset({"code_digest", "image_digest", "digest", "package"})
_HIDDEN: Final = frozenset({"entropy"})
_FLAGS: Final = {"memory_bytes": "--max-memory", "fuel": "--max-fuel", "timeout_ms": "--timeout"}


class Replay(NamedTuple):
    """
    A journal, done again.

    Attributes:
        name: The instance.
        rows: For each slice `seq`, `input`, `calls`, `end`, `fuel`, `memory_digest` and `recorded`.
        records: Number of records that were taken.
        memory_digest: Digest of the mind at the end.
        failure: Where it differed from the record, or `None`.
    """

    name: str
    rows: list[dict[str, Any]]
    records: int
    memory_digest: str
    failure: Nondeterminism | None


def journal_rows(name: str, *, state: Path | None = None) -> list[dict[str, Any]]:
    """
    The records of an instance: `seq`, `kind` and `fields`, payloads decoded. The seeds of its randomness are
    left out.

    Raises:
        InstanceUnknown: If there is none of that name.
        JournalCorrupt: If its journal is damaged.
    """
    with state_of(state) as directory, journal_of(directory, name, write=False) as journal:
        return [
            {"seq": seq, "kind": wire.kind_of(record), "fields": _fields(record)}
            for seq, record in journal.read()
        ]


def _fields(record: Record) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(record).items() if name not in _HIDDEN}
    if isinstance(record, Slice):
        fields["calls"] = [{**asdict(call), "request": codec.decode(call.request)} for call in record.calls]
        fields["reply"] = (
            {"ok": record.reply[0], "payload": codec.decode(record.reply[1])} if record.reply else None
        )
    for name in fields.keys() & _PAYLOADS:
        fields[name] = codec.decode(fields[name]) if fields[name] else None
    for name in fields.keys() & _DIGESTS:
        fields[name] = show(fields[name]) if fields[name] else None
    if isinstance(record, Wake | Receipt):
        fields["status"] = Status(record.status).name.lower()
    if isinstance(record, Delivery):
        fields["kind"] = DeliveryKind(record.kind).name.lower()
    return fields


def export_journal(
    name: str, out: Path, *, state: Path | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """
    Write an instance's journal to a file, with its agent: all that replaying it takes, its seeds included.

    Returns:
        `instance`, `records`, `path` and `size_bytes`.
    """
    with state_of(state) as directory, journal_of(directory, name, write=False) as journal:
        line = line_of(directory, journal, use_snapshots=False)
    origin = _encoded_origin(line, Host(cache)) if line.memo else None
    exported = export.JournalFile(name=name, agents=line.agents, records=tuple(line.records), origin=origin)
    size = export.write(out, exported)
    return {"instance": name, "records": len(line.records), "path": str(out), "size_bytes": size}


def _encoded_origin(line: Line, host: Host) -> bytes:
    memo, born = line.memo, line.born
    past = begin(host, line)
    assert memo is not None  # noqa: S101 - asked by the caller
    return encode_snapshot(
        Snapshot(
            agent=born.agent,
            code_digest=born.code_digest,
            image_digest=born.image_digest,
            imports=past.prepared.admitted.imports,
            limits=Limits.from_wire(Budget.from_limits(born.limits)[1]),
            position=memo.position,
            created_at_ms=born.at_ms,
            state=memo.state,
            host=memo.host,
            memory_digest=memo.digest,
        )
    )


def _imported(path: Path, limits: Mapping[str, int]) -> Line:
    """
    Raises:
        JournalCorrupt: If the file is damaged.
        LimitExceeded: If it asks for more than `limits`, or the defaults, give.
    """
    journal = export.read(path)
    bounds = Limits(**limits)
    _check_bounds(journal, bounds)
    memo = None
    if journal.origin is not None:
        stored = decode_snapshot(journal.origin, max_memory_bytes=bounds.memory_bytes)
        memo = Memo(stored.position, stored.state, stored.host, stored.memory_digest)
    line = Line(name=journal.name, agents=journal.agents, records=journal.records, memo=memo)
    line.check_whole()
    _check_beginning(line)
    return line


def _check_bounds(journal: export.JournalFile, bounds: Limits) -> None:
    """
    See that a stranger's journal takes no more of this machine than its operator gives.

    Raises:
        LimitExceeded: If it asks for more.
        JournalCorrupt: If it asks for what is no bound.
    """
    given = bounds.to_wire()
    for seq, record in enumerate(journal.records):
        if isinstance(record, Born | Upgraded):
            try:
                asked = Limits.from_wire(Budget.from_limits(record.limits)[1]).to_wire()
            except ValueError as error:
                raise JournalCorrupt(journal.name, seq, str(error)) from error
            for name, value in asked.items():
                if value > given[name]:
                    flag = _FLAGS.get(name, f"-W {name}={value}")
                    raise LimitExceeded(name, value, given[name], flag=flag)


def _check_beginning(line: Line) -> None:
    """
    See that nothing is left out of what is done again.

    Raises:
        JournalCorrupt: If it begins later than it says.
    """
    if line.has_origin != (line.memo is not None) or (line.memo is not None and line.memo.position != 1):
        raise JournalCorrupt(line.name, 1, "does not begin with its snapshot")
    for seq, record in enumerate(line.records[2 : line.beginning], 2):
        if not isinstance(record, Decision | Start | Receipt | Resolution):
            raise JournalCorrupt(line.name, seq, "comes before the beginning of its life")


def _line_at(what: str, until: int | None, state: Path | None, limits: Mapping[str, int]) -> Line:
    """
    What is written of an instance here, or in a file; not to be folded from a later snapshot.

    Raises:
        InstanceUnknown: If it is neither.
        LimitExceeded: If it is a file that asks for more than `limits`, or the defaults, give.
    """
    path = Path(what)
    if NAME.fullmatch(what):
        try:
            with state_of(state) as directory, journal_of(directory, what, write=False) as journal:
                return line_of(directory, journal, until=until, use_snapshots=False)
        except InstanceUnknown:
            if not path.exists():
                raise
    line = _imported(path, limits)
    return line if until is None else replace(line, records=line.records[: max(until, 1)])


def replay(
    what: str,
    *,
    to: int | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    state: Path | None = None,
    cache: Path | None = None,
) -> Replay:
    """
    Do all that an instance did again, from its beginning and without reaching outside.

    Args:
        what: The instance, or a file that `export_journal` wrote.
        to: Sequence number of the last record to take, or `None` for all.
        limits: Of a file: what its instance may have been given at most, by field of `Limits`, where not the
            default. An instance of this host has what its operator gave it.
        state: Where instances live.
        cache: Where compiled code is kept.

    Raises:
        JournalCorrupt: If the journal is damaged.
        LimitExceeded: If a file asks for more than `limits`.
        Interrupted: On Ctrl-C: how many slices there are, the journal says, and it may come from a stranger.
    """
    line = _line_at(what, None if to is None else to + 1, state, limits)
    host = Host(cache)
    return host.apart(partial(_do_again, begin(host, line)))


def _do_again(past: Past) -> Replay:
    line = past.line
    rows: list[dict[str, Any]] = []
    given, failure = "", None
    for seq in range(past.fold.position, len(line.records)):
        record = line.records[seq]
        given = _input(record) or given
        try:
            past.take(seq, record)
            if isinstance(record, SnapshotTaken) and record.digest != past.machine.digest():
                raise Nondeterminism(seq, "snapshot", show(record.digest), show(past.machine.digest()))  # noqa: TRY301
        except Nondeterminism as error:
            failure = error
        if isinstance(record, Slice):
            rows.append(_slice_row(seq, given, record, show(past.machine.digest())))
        if failure is not None:
            break
    return Replay(line.name, rows, past.fold.position, show(past.machine.digest()), failure)


def verify(
    what: str,
    *,
    limits: Mapping[str, int] = MappingProxyType({}),
    state: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """
    See that an instance, done again, asks for the same and ends with the same memory at each slice.

    Args:
        what: As for `replay`.
        limits: As for `replay`.
        state: Where instances live.
        cache: Where compiled code is kept.

    Returns:
        `instance`, `records`, `slices` and `memory_digest`.

    Raises:
        Nondeterminism: Where it does not, with both sides.
        JournalCorrupt: If the journal is damaged.
        LimitExceeded: If a file asks for more than `limits`.
    """
    done = replay(what, limits=limits, state=state, cache=cache)
    if done.failure is not None:
        raise done.failure
    return {
        "instance": done.name,
        "records": done.records,
        "slices": len(done.rows),
        "memory_digest": done.memory_digest,
    }


def _input(record: Record) -> str | None:
    match record:
        case Delivery():
            return f"delivery {record.number} {DeliveryKind(record.kind).name.lower()}"
        case Wake():
            return f"answer {record.call} {Status(record.status).name.lower()}"
        case Abandoned():
            return f"end of delivery {record.delivery}"
        case _:
            return None


def _slice_row(seq: int, given: str, record: Slice, digest: str) -> dict[str, Any]:
    return {
        "seq": seq,
        "input": given,
        "calls": [f"{call.number} {call.operation}" for call in record.calls],
        "end": _end(record),
        "fuel": record.fuel,
        "memory_digest": digest,
        "recorded": show(record.digest),
    }


def _end(record: Slice) -> str | None:
    if record.error is not None:
        return str(record.error.get("kind", "error"))
    if record.reply is None:
        return None
    return "reply" if record.reply[0] else "error"


def inspect_named(
    name: str, *, at: int | None = None, state: Path | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """
    What an instance is now, or was after a record.

    Args:
        name: The instance.
        at: Sequence number of that record, or `None` for the last.
        state: Where it lives.
        cache: Where compiled code is kept.

    Raises:
        InstanceUnknown: If there is none of that name.
        UsageError: If there is no such record.
    """
    with state_of(state) as directory, journal_of(directory, name, write=False) as journal:
        last = journal.position - 1
        if at is not None and at > last:
            msg = f"{name} has no record {at}"
            raise UsageError(msg, hint=f"its last one is {last}; see runner journal {name}", instance=name)
        line = line_of(directory, journal, until=None if at is None else at + 1)
    past = fold(Host(cache), line)
    facts = describe_snapshot(freeze(past))
    history = past.fold.history
    return {
        "kind": "instance",
        "name": name,
        **{key: value for key, value in facts.items() if key not in ("kind", "file_bytes", "created_at")},
        "calls_in_flight": [
            {**row, "next": _next(history.action(row["number"]))} for row in facts["calls_in_flight"]
        ],
        "allow": list(line.terms.allow),
        "deny": list(line.terms.deny),
        "ask": list(line.terms.ask),
        "parent": f"{line.born.parent[0]}@{line.born.parent[1]}" if line.born.parent else None,
    }


def _next(action: Action) -> str:
    match action:
        case Decide():
            return "policy rules"
        case Await():
            return "waits for approval"
        case Execute():
            return "is made"
        case Unknown():
            return "uncertain"
        case Feed():
            return "is answered"
        case _:
            assert_never(action)


def is_instance(name: str, *, state: Path | None = None) -> bool:
    """
    Whether there is an instance of that name; makes no state directory for the answer.
    """
    if not NAME.fullmatch(name) or not (state or default_state_root()).exists():
        return False
    with state_of(state) as directory:
        return any(row.name == name for row in directory.names())
