"""
From a snapshot to a machine, and everything that must hold before.

Input: a snapshot, which anyone may have written. Its bytes were verified by `runner.snapshot`; here it is
held against the agent and against what the operator grants, before any of it reaches an instance.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from runner.digest import show
from runner.errors import LimitExceeded, SnapshotCorrupt, SnapshotIncompatible, UsageError
from runner.kernel.machine import Machine, digest_of
from runner.kernel.state import Restored
from runner.package.agent import AgentPackage, unpack
from runner.package.fields import MAX_TALLY
from runner.session.session import wall_clock_ms
from runner.wiring.prepare import prepare_under
from runner.wiring.upgrading import missing_of

if TYPE_CHECKING:
    from pathlib import Path

    from runner.kernel.state import Call
    from runner.snapshot import Snapshot
    from runner.wiring.held import HostPart
    from runner.wiring.host import Host
    from runner.wiring.options import Options
    from runner.wiring.prepare import Prepared

SEED_BYTES: Final = 32


def recall_agent(host: Host, agent: bytes, path: Path) -> AgentPackage:
    """
    The agent that a snapshot names, if this host has run it before.

    Args:
        host: Where to look.
        agent: Digest of the agent's file.
        path: The snapshot, to name it in a refusal.

    Raises:
        UsageError: If it is not known here.
    """
    packed = host.recall_agent(agent)
    if packed is None:
        msg = f"{path}: the agent of this snapshot is not known here: {show(agent)}"
        raise UsageError(msg, hint="name it with --agent PATH", path=str(path))
    parts = unpack(packed, origin=path)
    if parts.manifest is None:
        raise SnapshotCorrupt("the agent that was kept for it has no manifest", path=str(path))
    return AgentPackage(parts.manifest, parts.wasm, path, parts.image)


class Agents(NamedTuple):
    """
    What an instance is restored as.

    Attributes:
        own: The agent that the snapshot was taken of.
        heir: Another that takes over from it, or `None`.
    """

    own: Prepared
    heir: Prepared | None = None


def agents_for(
    host: Host, snapshot: Snapshot, part: HostPart, path: Path, options: Options, named: Path | None
) -> Agents:
    """
    The agents of a restore, the snapshot held against its own.

    Args:
        host: What will run them.
        snapshot: Read from a file.
        part: What the host held for it.
        path: That file.
        options: Grants and limits, of both.
        named: The agent that the operator named, or `None`.

    Raises:
        UsageError: If the snapshot's own is not known here, and none was named.
        SnapshotIncompatible: If the one that was named is another, and can't take over.
        RunnerError: Why one was refused, or the snapshot.
    """
    if named is None:
        own = prepare_under(host, recall_agent(host, part.agent, path), options)
        check_snapshot(snapshot, own)
        return Agents(own)
    heir = prepare_under(host, host.load(named), options)
    if (heir.admitted.code_digest, heir.image.digest) == (snapshot.code_digest, snapshot.image_digest):
        check_snapshot(snapshot, heir)
        return Agents(heir)
    if host.recall_agent(part.agent) is None:
        # Nobody is there to hand over.
        check_snapshot(snapshot, heir)
    own = prepare_under(host, recall_agent(host, part.agent, path), options)
    missing = missing_of(own, heir)
    if missing is not None:
        check_snapshot(snapshot, heir, missing)
    check_snapshot(snapshot, own)
    return Agents(own, heir)


def check_snapshot(snapshot: Snapshot, prepared: Prepared, missing: str | None = None) -> None:
    """
    Hold a snapshot against its agent and its grants.

    Args:
        snapshot: From anyone.
        prepared: The agent.
        missing: What an upgrade to it lacks, for the hint.

    Raises:
        SnapshotIncompatible: If it is of another agent, or has calls in flight that this agent, under this
            manifest and these grants, can't have made.
        SnapshotCorrupt: If its memory is not what its digest says, or its counts leave no room to count on.
        LimitExceeded: If it has more calls in flight than the limits allow.
    """
    _check_identity(snapshot, prepared, missing)
    _check_counts(snapshot)
    state = snapshot.state
    _check_calls(state.calls, prepared)
    if state.delivery is not None:
        _check_calls(state.delivery.calls_before, prepared)
    if digest_of(state.mind, prepared.image) != snapshot.memory_digest:
        raise SnapshotCorrupt("its memory digest is another")


def thaw(snapshot: Snapshot, prepared: Prepared, options: Options, restored: Restored) -> Machine:
    """
    The machine that a snapshot describes, which `check_snapshot` has let pass.

    Raises:
        MemoryExceeded: If its memory is larger than the limits allow.
        HostExhausted: If the process can hold no more instances.
    """
    return Machine.thaw(
        prepared.program,
        prepared.image,
        prepared.limits,
        snapshot.state,
        entropy=None if options.deterministic else os.urandom(SEED_BYTES),
        restored=restored,
        keeps_snapshots=options.snapshot is not None,
    )


def describe_restore(host: Host, snapshot: Snapshot, *, deterministic: bool) -> Restored:
    """
    What the guest may know of the restore of this snapshot that happens now.
    """
    before = snapshot.state.restored
    count = (before.count if before else 0) + 1
    if deterministic:
        return Restored(count=count, generation=1, at_ms=snapshot.created_at_ms)
    key = snapshot.memory_digest + snapshot.position.to_bytes(8, "little")
    return Restored(count=count, generation=host.next_generation(key), at_ms=wall_clock_ms())


def _check_identity(snapshot: Snapshot, prepared: Prepared, missing: str | None) -> None:
    hint = f"restore it with the agent that it was taken from, {snapshot.agent!r}"
    if missing is not None:
        hint = f"{hint}; {missing}"
    admitted = prepared.admitted
    for name, expected, found in (
        ("code_digest", admitted.code_digest, snapshot.code_digest),
        ("image_digest", prepared.image.digest, snapshot.image_digest),
    ):
        if expected != found:
            raise SnapshotIncompatible(name, show(expected), show(found), hint=hint)
    if snapshot.imports != admitted.imports:
        expected_imports, found_imports = ", ".join(admitted.imports), ", ".join(snapshot.imports)
        raise SnapshotIncompatible("imports", expected_imports, found_imports, hint=hint)


def _check_counts(snapshot: Snapshot) -> None:
    restored = snapshot.state.restored
    for name, value in (
        ("position", snapshot.position),
        ("entropy_used", snapshot.state.entropy_used),
        ("restored.count", restored.count if restored else 0),
    ):
        if value > MAX_TALLY:
            raise SnapshotCorrupt(f"state: {name} {value} leaves no room to count on")


def _check_calls(calls: tuple[Call, ...], prepared: Prepared) -> None:
    """
    Calls in flight are made again, so they need the same grants as when a guest makes them.
    """
    bound = prepared.limits.calls_in_flight
    if len(calls) > bound:
        raise LimitExceeded("calls_in_flight", len(calls), bound)
    granted = prepared.program.granted
    for call in calls:
        if call.operation not in granted:
            expected = "an operation that the agent may use"
            raise SnapshotIncompatible("a call in flight", expected, call.operation)
