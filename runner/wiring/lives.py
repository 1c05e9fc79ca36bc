"""
What the command line does with named instances, as functions: each opens what it needs, and closes it.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from runner import codec
from runner.capabilities.progress import tool_in_question
from runner.errors import InstanceBusy, LimitExceeded, UsageError
from runner.journal.records import Slice, Stopped
from runner.snapshot import read as read_snapshot
from runner.wiring.held import read_host_part
from runner.wiring.host import Host
from runner.wiring.line import journal_of, state_of
from runner.wiring.lineage import adopt_snapshot, write_frozen
from runner.wiring.lineage import fork as fork_line
from runner.wiring.models import provider_of
from runner.wiring.named import decide, give_birth, opened, resolve, stop, upgrade_life, whoever
from runner.wiring.purse import persona_of
from runner.wiring.serving import NO_MESSAGE, Serving
from runner.wiring.stopwatch import Stopwatch
from runner.wiring.thaw import agents_for
from runner.wiring.upgrading import Rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.codec import Value
    from runner.journal import InstanceRow, StateDirectory
    from runner.journal.records import Ruling
    from runner.kernel.state import Call
    from runner.wiring.line import Past
    from runner.wiring.options import Options, Report

_PATIENCE_S: Final = 40.0
"""
How long a holder that was told to stop may take: its slice must come to an end, which takes its timeout.
"""

_LOOK_EVERY_S: Final = 0.05
_ASLEEP: Final = "idle"


def run_named(path: Path, name: str, value: Value, options: Options, ask: tuple[str, ...] = ()) -> Report:
    """
    Make a named instance of the agent at `path`, deliver one message, and report.

    Args:
        path: The agent.
        name: What the instance is called.
        value: The message.
        options: Choices; grants and limits stay the instance's own for good.
        ask: What a person must approve at each call, as `CAP[:SELECTOR]`.

    Raises:
        NeedsDecision: If a person has to rule on a call first; everything is durable.
        RunnerError: Why it could not be made, or how the delivery failed.
    """
    clock = Stopwatch()
    provider_of(options)
    persona_of(options)
    host = Host(options.cache)
    with state_of(options.state, options.max_state_bytes) as state:
        give_birth(state, host, host.load(path, progress=options.on_progress), name, options, ask)
        return _serve(state, host, name, value, options, clock)


def send(name: str, value: Value, options: Options) -> Report:
    """
    Deliver one message to a named instance, once it has finished what was open.

    Args:
        name: The instance.
        value: The message.
        options: Choices; its grants and limits are its own.

    Raises:
        InstanceUnknown: If there is none of that name.
        InstanceBusy: If another process has it.
        NeedsDecision: If a person has to rule on a call first.
        RunnerError: How the delivery failed.
    """
    with state_of(options.state, options.max_state_bytes) as state:
        return _serve(state, Host(options.cache), name, value, options, Stopwatch())


def resume(name: str | None, options: Options, *, last: bool = False) -> Report:
    """
    Go on with what a named instance was doing. With nothing open, the report repeats its last answer.

    Args:
        name: The instance, or `None` for the only one that has something open.
        options: Choices; its grants and limits are its own.
        last: Take the one that was written to last.

    Raises:
        UsageError: If it is not clear which one is meant.
        RunnerError: As for `send`.
    """
    with state_of(options.state, options.max_state_bytes) as state:
        chosen = name if name is not None else _choose(state.names(), last=last)
        return _serve(state, Host(options.cache), chosen, NO_MESSAGE, options, Stopwatch())


def _choose(rows: list[InstanceRow], *, last: bool) -> str:
    candidates = rows if last else [row for row in rows if row.status != _ASLEEP]
    if last and rows:
        return max(rows, key=lambda row: (row.updated_at_ms, row.name)).name
    if len(candidates) != 1:
        names = ", ".join(row.name for row in candidates) or "none"
        msg = f"which instance? with something open: {names}"
        raise UsageError(msg, hint="name one, or say --last for the one that was written to last")
    return candidates[0].name


def restore_named(
    path: Path,
    name: str,
    value: Value | None,
    options: Options,
    *,
    agent: Path | None = None,
    ask: tuple[str, ...] = (),
) -> Report:
    """
    Make a named instance that begins at a snapshot, and go on with it.

    Args:
        path: The snapshot.
        name: What the instance is called.
        value: The message, or `None` when there is none.
        options: Choices; grants and limits are the operator's, nothing of them comes from the snapshot.
        agent: The agent; needed where this host has not run it before. Another than it was taken of takes
            over from that.
        ask: What a person must approve at each call, as `CAP[:SELECTOR]`.

    Raises:
        SnapshotCorrupt: If the file is damaged.
        SnapshotIncompatible: If it is not of this agent, which can't take over from it.
        RunnerError: As for `run_named`.
    """
    clock = Stopwatch()
    provider_of(options)
    persona_of(options)
    host = Host(options.cache)
    snapshot = read_snapshot(path)
    part = read_host_part(snapshot.host, snapshot.state.calls, path)
    agents = agents_for(host, snapshot, part, path, options, agent)
    with state_of(options.state, options.max_state_bytes) as state:
        adopt_snapshot(state, host, name, snapshot, part, agents, options=options, ask=ask)
        return _serve(state, host, name, NO_MESSAGE if value is None else value, options, clock)


def upgrade_named(name: str, path: Path, options: Options, ask: tuple[str, ...] = ()) -> dict[str, Any]:
    """
    Let a named instance go on under another agent, to which the one that it has hands over what it knows.

    Args:
        name: The instance.
        path: The agent.
        options: Rules and bounds beside those that the instance has; a refusal that it has stays.
        ask: What a person must approve at each call, likewise.

    Returns:
        `instance`, `agent`, `version`, `before`, `records` and `fuel`.

    Raises:
        UsageError: If it is in the middle of something, or has this agent already.
        SnapshotIncompatible: If one of the two agents has nothing for upgrades.
        RunnerError: Why the new agent was refused, or one of them failed; the instance is as it was.
    """
    host = Host(options.cache)
    with (
        state_of(options.state, options.max_state_bytes) as state,
        opened(state, host, name, write=True) as life,
    ):
        old = life.prepared.package
        heir = host.load(path, progress=options.on_progress)
        fuel = upgrade_life(life, heir, Rules(options.allow, options.deny, ask), options)
        new = life.prepared.package
        return {
            "instance": name,
            "agent": new.name,
            "version": new.manifest.version,
            "before": {"agent": old.name, "version": old.manifest.version},
            "records": life.journal.position,
            "fuel": fuel,
        }


def _serve(
    state: StateDirectory, host: Host, name: str, value: Value, options: Options, clock: Stopwatch
) -> Report:
    with opened(state, host, name, provider_of(options), write=True) as life:
        clock.lap("start")
        serving = Serving(host, life, options, clock, str(state.root))
        report = anyio.run(serving.go, value)
        if value is NO_MESSAGE and not serving.outcomes:
            return replace(report, result=_last_answer(life))
        return report


def _last_answer(past: Past) -> Value:
    """
    What it replied last, when that was an answer.
    """
    replies = [record.reply for record in past.line.records if isinstance(record, Slice) and record.reply]
    return codec.decode(replies[-1][1]) if replies and replies[-1][0] else None


def list_instances(state: Path | None = None) -> list[dict[str, Any]]:
    """
    Every instance: `name`, `agent`, `status`, `records`, `created_at`, `updated_at`, `pid`, `parent`.
    """
    with state_of(state) as directory:
        return [
            {
                "name": row.name,
                "agent": row.agent,
                "status": row.status,
                "records": row.position,
                "created_at": show_time(row.created_at_ms),
                "updated_at": show_time(row.updated_at_ms),
                "pid": row.locked_by,
                "parent": f"{row.parent[0]}@{row.parent[1]}" if row.parent else None,
            }
            for row in directory.names()
        ]


def show_time(at_ms: int) -> str:
    """
    A time in UTC, to the second.
    """
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")


def snapshot_named(
    name: str, out: Path, *, state: Path | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """
    Write an instance to a snapshot file, as it is after the last record that is written; also while another
    process runs it.

    Returns:
        `instance`, `position`, `path`, and what writing it took.
    """
    host = Host(cache)
    with state_of(state) as directory, opened(directory, host, name, write=False) as life:
        facts = write_frozen(life, out)
        host.remember_agent(life.line.packed)
        return {"instance": name, "position": life.fold.position, **facts}


def fork_named(
    name: str,
    new_name: str,
    *,
    at: int | None = None,
    deterministic: bool = False,
    state: Path | None = None,
) -> dict[str, Any]:
    """
    A second instance from the same point.

    Args:
        name: The instance.
        new_name: The other.
        at: Sequence number of the last record that they share, or `None` for all that there are.
        deterministic: Whether it goes on with the old stream of randomness.
        state: Where both live.

    Returns:
        `instance`, `parent` and `records` that they share.
    """
    with state_of(state) as directory:
        until = None if at is None else at + 1
        shared = fork_line(directory, name, new_name, until, deterministic=deterministic)
        return {"instance": new_name, "parent": name, "records": shared}


def stop_named(name: str, *, state: Path | None = None) -> dict[str, Any]:
    """
    Stop an instance; whoever holds it is told to end, and does between two slices. It may be resumed.

    Returns:
        `instance`, and the `pid` that was told, or `None`.

    Raises:
        InstanceBusy: If its holder does not end.
    """
    with state_of(state) as directory:
        told = None
        give_up_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with journal_of(directory, name, write=True) as journal:
                    records = [record for _, record in journal.read(max(journal.position - 1, 0))]
                    if not isinstance(records[-1], Stopped):
                        stop(journal, "the operator stopped it")
                    return {"instance": name, "pid": told}
            except InstanceBusy as busy:
                if busy.pid in (None, os.getpid()) or time.monotonic() >= give_up_s:
                    raise
                if told != busy.pid and _terminate(directory, name, busy):
                    told = busy.pid
            time.sleep(_LOOK_EVERY_S)


def _terminate(state: StateDirectory, name: str, busy: InstanceBusy) -> bool:
    """
    Tell the holder to end; whether it was told. Nobody else is, whatever number the holder left.
    """
    if busy.pid is None or not state.is_held_by(name, busy.pid):
        return False
    try:
        os.kill(busy.pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise busy from None
    return True


def remove_named(names: Iterable[str], *, state: Path | None = None) -> list[str]:
    """
    Remove instances with their journals and snapshots.

    Raises:
        InstanceUnknown: If one of them is not there; then none was removed.
        InstanceBusy: If another process has one; those before it are removed.
    """
    wanted = list(dict.fromkeys(names))
    with state_of(state) as directory:
        for name in wanted:
            with journal_of(directory, name, write=False):
                pass
        for name in wanted:
            directory.remove(name)
    return wanted


def approvals(
    name: str | None = None, *, state: Path | None = None, cache: Path | None = None
) -> list[dict[str, Any]]:
    """
    Calls that a person has to rule on: `instance`, `call`, `question`, `operation`, `request`.

    Args:
        name: The instance, or `None` for all.
        state: Where they live.
        cache: Where compiled code is kept.
    """
    host = Host(cache)
    rows: list[dict[str, Any]] = []
    with state_of(state) as directory:
        names = [name] if name is not None else _with_questions(directory.names())
        for each in names:
            with opened(directory, host, each, write=False) as life:
                rows += [_question(life, "approve", call) for call in life.parked()]
                rows += [_question(life, "uncertain", call) for call in life.uncertain()]
    return rows


def _with_questions(rows: list[InstanceRow]) -> list[str]:
    # A stopped one may have questions too; an open one that is held is asked by its holder.
    return [row.name for row in rows if row.status in ("waiting", "uncertain", "stopped")]


def _question(past: Past, question: str, call: Call) -> dict[str, Any]:
    """
    What a person has to know: the call, or the tool that a model wants to use inside it.
    """
    operation, request = call.operation, codec.decode(call.request)
    inner = tool_in_question(past.fold.history.inside(call.number))
    if inner is not None:
        operation, request = f"tool.call inside {operation}", inner
    return {
        "instance": past.name,
        "call": call.number,
        "question": question,
        "operation": operation,
        "request": request,
    }


def rule_on(
    name: str,
    call: int,
    verdict: Literal["allow", "deny"],
    *,
    because: str | None = None,
    state: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """
    Write down what a person said of a call that waits for approval; `resume` acts on it.

    Returns:
        `instance`, `call` and `verdict`.

    Raises:
        UsageError: If the call does not wait for a verdict.
    """
    with state_of(state) as directory, opened(directory, Host(cache), name, write=True) as life:
        decide(life, call, allow=verdict == "allow", by=whoever(), because=because)
    return {"instance": name, "call": call, "verdict": verdict}


def resolve_call(
    name: str,
    call: int,
    ruling: Ruling,
    value: Value = None,
    *,
    state: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """
    Write down what a person says of a call of which nobody knows whether it happened; final.

    Args:
        name: The instance.
        call: The call.
        ruling: `rerun` makes it again, `done` answers it with `value`, `abandon` answers that it failed.
        value: Its answer, for `done`.
        state: Where it lives.
        cache: Where compiled code is kept.

    Returns:
        `instance`, `call` and `ruling`.

    Raises:
        UsageError: If the call is not uncertain.
        LimitExceeded: If the answer is larger than the agent accepts.
    """
    payload = codec.encode(value) if ruling == "done" else b""
    with state_of(state) as directory, opened(directory, Host(cache), name, write=True) as life:
        bound = life.prepared.limits.payload_bytes
        if len(payload) > bound:
            raise LimitExceeded("payload_bytes", len(payload), bound)
        resolve(life, call, ruling, payload, by=whoever())
    return {"instance": name, "call": call, "ruling": ruling}


def collect_garbage(keep: int, *, state: Path | None = None) -> dict[str, Any]:
    """
    Remove all but the latest snapshots of each instance, and what nothing refers to any more.

    Args:
        keep: Snapshots to keep of each instance.
        state: The state directory.

    Returns:
        What was removed.
    """
    with state_of(state) as directory:
        return asdict(directory.gc(keep))
