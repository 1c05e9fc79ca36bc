"""
Running and restoring one instance in this process.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import anyio

from runner.capabilities.standard import standard_handlers
from runner.digest import show
from runner.errors import SnapshotCorrupt, SnapshotIncompatible, UsageError
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Machine, digest_of
from runner.kernel.state import Restored
from runner.package.agent import AgentPackage, unpack
from runner.session.chronicle import Chronicle, OpenGate
from runner.session.recording import Unrecorded
from runner.session.recovery import Await, CallHistory, Unknown
from runner.session.session import Session, wall_clock_ms
from runner.snapshot import Snapshot
from runner.snapshot import read as read_snapshot
from runner.snapshot import write as write_snapshot
from runner.wiring.held import Held
from runner.wiring.host import Host
from runner.wiring.models import model_of, provider_of
from runner.wiring.options import Options, Report
from runner.wiring.prepare import Prepared, agent_key, prepare_under
from runner.wiring.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from runner.capabilities.base import Handlers
    from runner.codec import Value
    from runner.session.outcome import Outcome

_SEED_BYTES: Final = 32
_NO_INPUT: Final = object()


def run_agent(path: Path, value: Value, options: Options) -> Report:
    """
    Start an instance of the agent at `path`, deliver one message, and report.

    Raises:
        RunnerError: Why it could not be started, or how the delivery failed. A snapshot that was asked for
            is written all the same once the instance had started.
    """
    clock = Stopwatch()
    provider = provider_of(options)
    host = Host(options.cache)
    prepared = prepare_under(host, host.load(path), options)
    machine = Machine(
        prepared.program,
        prepared.image,
        prepared.limits,
        entropy=os.urandom(_SEED_BYTES),
        keeps_snapshots=options.snapshot is not None,
    )
    clock.lap("start")
    live = _Live(host, prepared, machine, options, Held(provider), clock)
    return anyio.run(live.serve, value)


def restore_snapshot(path: Path, value: Value | None, options: Options, agent: Path | None = None) -> Report:
    """
    Go on with the instance in a snapshot: finish what was open, tell it that it was restored, and deliver.

    Args:
        path: The snapshot.
        value: The message, or `None` when there is none: then the report is of what was open, or of the
            restore event.
        options: Choices; grants and limits are the operator's, nothing of them comes from the snapshot.
        agent: The agent; needed where this host has not run it before.

    Raises:
        SnapshotCorrupt: If the file is damaged.
        SnapshotIncompatible: If it is not of this agent.
        RunnerError: As for `run_agent`.
    """
    clock = Stopwatch()
    held = Held(provider_of(options))
    host = Host(options.cache)
    snapshot = read_snapshot(path)
    prepared = prepare_under(host, agent_of(host, snapshot, agent, path), options)
    check_identity(snapshot, prepared)
    machine = _thaw(host, snapshot, prepared, options)
    held.take_back(snapshot.host, path)
    clock.lap("start")
    live = _Live(host, prepared, machine, options, held, clock)
    live.position = snapshot.position
    live.history = _history_of(snapshot, machine, path)
    return anyio.run(live.resume, _NO_INPUT if value is None else value)


def _history_of(snapshot: Snapshot, machine: Machine, path: Path) -> CallHistory:
    """
    What is known of the calls in flight, so that none is made twice.

    Raises:
        UsageError: If a person must rule on one, who needs a name for the instance.
    """
    from runner.wiring.lineage import history_of  # noqa: PLC0415 - it loads the state directory

    history = history_of(snapshot, str(path))
    actions = history.actions(call.number for call in machine.calls)
    waiting = [str(number) for number, action in actions.items() if isinstance(action, Await | Unknown)]
    if waiting:
        msg = f"{path}: a person has to rule on call {', '.join(waiting)} before this snapshot goes on"
        raise UsageError(msg, hint=f"give it a name: runner restore {path} --as NAME", path=str(path))
    return history


def agent_of(host: Host, snapshot: Snapshot, agent: Path | None, path: Path) -> AgentPackage:
    """
    The agent of a snapshot: the one that is named, or the one that this host ran.

    Raises:
        UsageError: If it is neither named nor known.
    """
    if agent is not None:
        return host.load(agent)
    packed = host.recall_agent(agent_key(snapshot.code_digest, snapshot.image_digest))
    if packed is None:
        msg = f"{path}: the agent of this snapshot is not known here: {show(snapshot.code_digest)}"
        raise UsageError(msg, hint="name it with --agent PATH", path=str(path))
    parts = unpack(packed, origin=path)
    if parts.manifest is None:
        raise SnapshotCorrupt("the agent that was kept for it has no manifest", path=str(path))
    return AgentPackage(parts.manifest, parts.wasm, path, parts.image)


def check_identity(snapshot: Snapshot, prepared: Prepared) -> None:
    """
    Raises:
        SnapshotIncompatible: If a snapshot is not of this agent.
    """
    hint = f"restore it with the agent that it was taken from, {snapshot.agent!r}"
    pairs = {
        "code_digest": (prepared.admitted.code_digest, snapshot.code_digest),
        "image_digest": (prepared.image.digest, snapshot.image_digest),
    }
    for name, (expected, found) in pairs.items():
        if expected != found:
            raise SnapshotIncompatible(name, show(expected), show(found), hint=hint)


def _thaw(host: Host, snapshot: Snapshot, prepared: Prepared, options: Options) -> Machine:
    before = snapshot.state.restored
    key = snapshot.memory_digest + snapshot.position.to_bytes(8, "little")
    restored = Restored(
        count=(before.count if before else 0) + 1,
        generation=host.next_generation(key),
        at_ms=wall_clock_ms(),
    )
    if options.deterministic:
        restored = Restored(count=restored.count, generation=1, at_ms=snapshot.created_at_ms)
    machine = Machine.thaw(
        prepared.program,
        prepared.image,
        prepared.limits,
        snapshot.state,
        entropy=None if options.deterministic else os.urandom(_SEED_BYTES),
        restored=restored,
        keeps_snapshots=options.snapshot is not None,
    )
    if machine.digest() != snapshot.memory_digest:
        raise SnapshotCorrupt("its memory digest is another")
    return machine


class _Live:
    """
    One instance with everything around it, for the length of one command.
    """

    def __init__(
        self,
        host: Host,
        prepared: Prepared,
        machine: Machine,
        options: Options,
        held: Held,
        clock: Stopwatch,
    ) -> None:
        self._host = host
        self._prepared = prepared
        self._machine = machine
        self._options = options
        self._held = held
        self._clock = clock
        self._written: dict[str, Value] | None = None
        self._outcomes: list[Outcome] = []
        self.position = 0
        self.history = CallHistory()
        self._session: Session

    async def serve(self, value: Value) -> Report:
        """
        Deliver one message.
        """
        return await self._with_session(value, restored=False)

    async def resume(self, value: Value) -> Report:
        """
        Finish what was open, tell of the restore, then deliver the message, if there is one.
        """
        return await self._with_session(value, restored=True)

    async def _with_session(self, value: Value, *, restored: bool) -> Report:
        session = Session(
            self._machine,
            self._handlers(),
            self._host.ticker,
            on_log=self._options.on_log,
            on_snapshot=self._snapshot if self._options.snapshot else None,
            chronicle=Chronicle(
                Unrecorded(), OpenGate(), self.history, name="instance", clock_ms=wall_clock_ms
            ),
        )
        self._session = session
        async with session, anyio.create_task_group() as watchers:
            watchers.start_soon(_interrupt_on_signal, session)
            try:
                async for outcome in self._deliveries(session, value, restored=restored):
                    self._outcomes.append(outcome)
            finally:
                watchers.cancel_scope.cancel()
                if self._options.snapshot:
                    self._snapshot("")
        # Outside: what is raised inside a task group comes out as a group.
        self._clock.lap("serve")
        return self._report()

    async def _deliveries(self, session: Session, value: Value, *, restored: bool) -> AsyncIterator[Outcome]:
        deadline_ms = self._options.deadline_ms
        if restored:
            opened = await session.finish_open(deadline_ms=deadline_ms)
            if opened is not None:
                yield opened
            yield await session.deliver(DeliveryKind.RESTORE, self._restore_event(), deadline_ms=deadline_ms)
        if value is not _NO_INPUT:
            yield await session.deliver(DeliveryKind.MESSAGE, value, deadline_ms=deadline_ms)

    def _restore_event(self) -> Value:
        known = self._machine.freeze().restored
        return asdict(known) if known else None

    def _handlers(self) -> Handlers:
        return standard_handlers(
            providers=self._held.providers,
            default_model=model_of(self._options),
            grants=self._prepared.grants,
            notes=self._held.notes,
            usage=self._held.usage,
        )

    def _snapshot(self, reason: str) -> None:
        path = self._options.snapshot
        if path is None:
            return
        prepared, state = self._prepared, self._machine.freeze()
        snapshot = Snapshot(
            agent=prepared.package.name,
            code_digest=prepared.admitted.code_digest,
            image_digest=prepared.image.digest,
            imports=prepared.admitted.imports,
            limits=prepared.limits,
            position=self.position + self._session.position,
            created_at_ms=wall_clock_ms(),
            state=state,
            host=self._held.to_wire(),
            memory_digest=digest_of(state.mind, prepared.image),
        )
        stats = write_snapshot(path, snapshot, sync=self._options.sync)
        self._host.remember_agent(prepared.key, prepared.packed)
        self._written = {"path": str(path), "reason": reason, **asdict(stats)}

    def _report(self) -> Report:
        last = self._outcomes[-1]
        for outcome in self._outcomes:
            outcome.unwrap()
        prepared = self._prepared
        return Report(
            result=last.result,
            instance=f"{prepared.package.name}-{secrets.token_hex(4)}",
            agent=prepared.package.name,
            snapshot=self._written,
            usage=self._held.usage.to_wire(),
            limits=prepared.limits.to_wire(),
            fuel=sum(outcome.fuel for outcome in self._outcomes),
            timing_ms=self._clock.report(sum(outcome.guest_ms for outcome in self._outcomes)),
            memory_digest=show(self._machine.digest()),
        )


async def _interrupt_on_signal(session: Session) -> None:
    """
    Ctrl-C ends the delivery, also while the guest spins: the loop is free, because slices run elsewhere.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            session.interrupt()
