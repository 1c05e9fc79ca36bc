"""
Lives that begin with another's past: forks, and instances from snapshot files; and the files themselves.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from runner.digest import digest as file_digest
from runner.digest import show
from runner.errors import UsageError
from runner.journal import StateDirectory, StoredSnapshot
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    Receipt,
    Resolution,
    SnapshotTaken,
    Start,
    Stopped,
    Upgraded,
    Wake,
    Woken,
)
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Machine
from runner.policy.gate import Gate
from runner.session.chronicle import BY_POLICY
from runner.session.recovery import CallHistory
from runner.session.session import wall_clock_ms
from runner.snapshot import Snapshot
from runner.snapshot import write as write_snapshot
from runner.wiring.line import ORIGIN, Memo, journal_of, line_of
from runner.wiring.named import born_of
from runner.wiring.thaw import SEED_BYTES, describe_restore
from runner.wiring.upgrading import FINISH, Rules, hand_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner.journal.records import Record
    from runner.kernel.state import Call, MachineState
    from runner.wiring.held import HostPart
    from runner.wiring.host import Host
    from runner.wiring.line import Line, Past
    from runner.wiring.options import Options
    from runner.wiring.thaw import Agents

_BEFORE: Final = "before"
"""
Execution of an effect that was over before the life of which the journal tells.
"""


def fork(state: StateDirectory, name: str, new_name: str, until: int | None, *, deterministic: bool) -> int:
    """
    A second instance from the same point: the records up to there are its past, the rest is its own.

    Args:
        state: Where both live.
        name: The instance.
        new_name: The other.
        until: Number of records to share, or `None` for all.
        deterministic: Whether it goes on with the old stream of randomness.

    Returns:
        Number of records that it shares.

    Raises:
        RunnerError: If there is no such instance, or the new name is taken or none.
    """
    with journal_of(state, name, write=False) as journal:
        end = journal.position if until is None else until
        if not 0 < end <= journal.position:
            msg = f"{name} has no record {end - 1}"
            hint = f"it has records 0 to {journal.position - 1}; see runner journal {name}"
            raise UsageError(msg, hint=hint, instance=name)
        line = line_of(state, journal, use_snapshots=False)
    # What was known when it began belongs to its beginning.
    end = max(end, line.beginning)
    line = replace(line, records=line.records[:end])
    past = _past_of(line)
    before = _restores(line)
    woken = Woken(
        count=before + 1,
        generation=_generation(state, name),
        at_ms=wall_clock_ms(),
        entropy=b"" if deterministic else os.urandom(SEED_BYTES),
    )
    _create(state, new_name, replace(line.born, parent=(name, end)), line.agents, line.memo, [*past, woken])
    return end


def _past_of(line: Line) -> list[Record]:
    past: list[Record] = [
        record for record in line.records[1:] if not isinstance(record, SnapshotTaken | Stopped)
    ]
    if past and isinstance(past[-1], Delivery | Wake | Abandoned):
        # Cut off from the slice that it led to, it never happened.
        past.pop()
    return _without_open_permits(past[: _end_of_upgrades(past)])


def _end_of_upgrades(past: list[Record]) -> int:
    """
    Where a past must end that was cut in the middle of an upgrade: an upgrade is whole, or never happened.
    """
    begins = None
    for seq, record in enumerate(past):
        if isinstance(record, Delivery) and record.kind == DeliveryKind.HAND_OVER:
            begins = seq
        elif isinstance(record, Delivery) and record.kind == DeliveryKind.UPGRADE:
            begins = None
    return len(past) if begins is None else begins


def _without_open_permits(past: list[Record]) -> list[Record]:
    """
    What a person permitted once, and was not done yet, is for the instance that asked: two would do it.
    """
    last_start = {record.call: seq for seq, record in enumerate(past) if isinstance(record, Start)}
    return [
        record
        for seq, record in enumerate(past)
        if not (_is_permit(record) and last_start.get(record.call, -1) < seq)
    ]


def _is_permit(record: Record) -> TypeGuard[Decision | Resolution]:
    match record:
        case Decision(verdict="allow"):
            return record.by != BY_POLICY
        case Resolution():
            return record.ruling == "rerun"
        case _:
            return False


def _restores(line: Line) -> int:
    counts = [record.count for record in line.records if isinstance(record, Woken)]
    at_origin = line.memo.state.restored if line.memo else None
    return max([*counts, at_origin.count if at_origin else 0])


def _generation(state: StateDirectory, parent: str) -> int:
    return 1 + sum(row.parent is not None and row.parent[0] == parent for row in state.names())


def _create(
    state: StateDirectory,
    name: str,
    born: Born,
    agents: Sequence[bytes],
    memo: Memo | None,
    past: list[Record],
) -> None:
    """
    Make an instance with a past, and with the snapshot that it begins at if it has one: all of it or nothing.
    """
    packed, *later = agents
    upgrades = later[: sum(isinstance(record, Upgraded) for record in past)]
    if memo is None:
        state.create(name, born, packed, past, upgrades=upgrades)
        return
    origin = StoredSnapshot(1, memo.state, memo.host, memo.digest)
    past = [SnapshotTaken(digest=memo.digest, reason=ORIGIN), *past]
    state.create(name, born, packed, past, origin, upgrades)


def freeze(past: Past) -> Snapshot:
    """
    An instance as a snapshot, with what is known of its calls in flight.
    """
    prepared, machine = past.prepared, past.machine
    state = machine.freeze()
    known = past.fold.history.records(_calls(state))
    return Snapshot(
        agent=prepared.package.name,
        code_digest=prepared.admitted.code_digest,
        image_digest=prepared.image.digest,
        imports=prepared.admitted.imports,
        limits=prepared.limits,
        position=past.fold.position,
        created_at_ms=wall_clock_ms(),
        state=state,
        host=past.held.to_wire(file_digest(past.line.packed), history=known),
        memory_digest=machine.digest(),
    )


def write_frozen(past: Past, path: Path, *, sync: bool = True) -> dict[str, Any]:
    """
    Write an instance to a snapshot file.

    Returns:
        `path`, and what writing it took.
    """
    return {"path": str(path), **asdict(write_snapshot(path, freeze(past), sync=sync))}


def adopt_snapshot(
    state: StateDirectory,
    host: Host,
    name: str,
    snapshot: Snapshot,
    part: HostPart,
    agents: Agents,
    *,
    options: Options,
    ask: tuple[str, ...],
) -> None:
    """
    Make a named instance that begins at a snapshot.

    Args:
        state: Where it will live.
        host: Counts how often the snapshot was restored here.
        name: Its name.
        snapshot: Read and checked to be of `agents.own`.
        part: What the host held for it.
        agents: Its agent, under the operator's grants and limits, and the one that takes over from it.
        options: Grants, limits, and whether the old stream of randomness goes on.
        ask: What a person must approve at each call.

    Raises:
        RunnerError: If the name is taken or none, the snapshot does not fit the limits, or the other agent
            does not take over.
    """
    prepared = agents.own
    # Whether it fits the limits is found out before anything is written.
    machine = Machine.thaw(
        prepared.program, prepared.image, prepared.limits, snapshot.state, keeps_snapshots=True
    )
    restored = describe_restore(host, snapshot, deterministic=options.deterministic)
    woken = Woken(
        count=restored.count,
        generation=restored.generation,
        at_ms=restored.at_ms,
        entropy=b"" if options.deterministic else os.urandom(SEED_BYTES),
    )
    opened = snapshot.state.delivery
    # Effects that were over when it was taken are over for its heir too, also if their delivery fails.
    over = [
        Receipt(call=answer.call, execution=_BEFORE, status=int(answer.status), payload=answer.payload)
        for answer in (*part.answers, *(opened.answers if opened else ()))
        if answer.status != Status.PART
    ]
    known = _without_grants(part.history, snapshot.state, Gate(prepared.grants, ask))
    memo = Memo(1, snapshot.state, {**snapshot.host, "answers": [], "history": []}, snapshot.memory_digest)
    born = born_of(prepared, options, ask, (show(snapshot.memory_digest), snapshot.position))
    past = [*known, *over, woken]
    packages = [prepared.packed]
    if agents.heir is not None:
        machine.begin_life(restored, woken.entropy or None)
        rules = Rules(options.allow, options.deny, ask)
        heir = hand_on(
            host, machine, prepared, agents.heir, rules, options=options, name="the snapshot", rest=FINISH
        )
        past += heir.records
        packages.append(agents.heir.packed)
    _create(state, name, born, packages, memo, past)


def _calls(state: MachineState) -> dict[int, Call]:
    """
    The calls that may still want an answer, with those that come back if the open delivery fails.
    """
    before = state.delivery.calls_before if state.delivery else ()
    return {call.number: call for call in (*before, *state.calls)}


def _without_grants(history: Iterable[Record], state: MachineState, gate: Gate) -> list[Record]:
    """
    What a file may say of its calls: outcomes, refusals, questions and doubts. What it says was allowed is
    ruled on again, by whoever runs it now: a file grants nothing.
    """
    known = CallHistory()
    for record in history:
        known.note(record)
    calls = _calls(state)
    kept: list[Record] = []
    for record in known.records(calls):
        match record:
            case Start():
                # It may have happened, whatever the file says that one may do about it.
                if "effectful" in (record.effect, gate.effect(calls[record.call])):
                    kept.append(replace(record, effect="effectful"))
            case Decision(verdict="allow") | Resolution(ruling="rerun"):
                pass
            case _:
                kept.append(record)
    return kept
