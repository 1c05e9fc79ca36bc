"""
Running and restoring one instance in this process.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

import anyio
from anyio import TASK_STATUS_IGNORED

from runner.capabilities.standard import standard_handlers
from runner.digest import digest, show
from runner.errors import EffectError, RunnerError, UsageError
from runner.kernel.abi import DeliveryKind
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine, digest_of
from runner.kernel.state import LastSnapshot
from runner.policy.budgets import Budget
from runner.session.chronicle import Chronicle, OpenGate
from runner.session.recording import Unrecorded
from runner.session.recovery import Await, CallHistory, Unknown
from runner.session.session import Session, wall_clock_ms
from runner.snapshot import Snapshot
from runner.snapshot import read as read_snapshot
from runner.snapshot import write as write_snapshot
from runner.wiring.held import Held, read_host_part
from runner.wiring.host import Host
from runner.wiring.models import model_of, provider_of, providers_of
from runner.wiring.options import Options, Report
from runner.wiring.prepare import Prepared, prepare_under
from runner.wiring.purse import Refusals, explained, persona_of, purse_of
from runner.wiring.stopwatch import Stopwatch
from runner.wiring.thaw import SEED_BYTES, agents_for, describe_restore, thaw
from runner.wiring.tools import registry_of
from runner.wiring.upgrading import FINISH, Rules, hand_on

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from anyio.abc import TaskStatus

    from runner.capabilities.base import Handlers
    from runner.codec import Value
    from runner.session.outcome import Outcome
    from runner.tools.registry import ToolRegistry
    from runner.wiring.held import HostPart

_Event = tuple[DeliveryKind, "Value"]
_MEMORY: Final = "memory_bytes"
_UPGRADE_SLICES: Final = 2


def run_agent(path: Path, value: Value, options: Options) -> Report:
    """
    Start an instance of the agent at `path`, deliver one message, and report.

    Raises:
        RunnerError: Why it could not be started, how the delivery failed, or why the snapshot that was asked
            for could not be written. One is written all the same when the delivery failed.
    """
    clock = Stopwatch()
    held = Held(provider_of(options))
    host = Host(options.cache)
    prepared = prepare_under(host, host.load(path, progress=options.on_progress), options)
    machine = Machine(
        prepared.program,
        prepared.image,
        prepared.limits,
        entropy=os.urandom(SEED_BYTES),
        keeps_snapshots=options.snapshot is not None,
    )
    clock.lap("start")
    live = Live(host, prepared, machine, options, held, clock)
    return anyio.run(live.serve, [(DeliveryKind.MESSAGE, value)])


def restore_snapshot(path: Path, value: Value | None, options: Options, agent: Path | None = None) -> Report:
    """
    Go on with the instance in a snapshot: finish what was open, tell it that it was restored, and deliver.

    The first of these that fails ends it: a message that comes after it is not delivered.

    Args:
        path: The snapshot.
        value: The message, or `None` when there is none: then the report is of what was open, or of the
            restore event if nothing was.
        options: Choices; grants and limits are the operator's, nothing of them comes from the snapshot.
        agent: The agent; needed where this host has not run it before. Another than it was taken of takes
            over from that.

    Raises:
        SnapshotCorrupt: If the file is damaged.
        SnapshotIncompatible: If it is not of this agent, which can't take over from it, or not of one with
            these grants.
        RunnerError: As for `run_agent`.
    """
    clock = Stopwatch()
    held = Held(provider_of(options))
    host = Host(options.cache)
    # A manifest can only lower the bound, so what is larger than this fits no instance.
    snapshot = read_snapshot(path, max_memory_bytes=options.limits.get(_MEMORY, Limits().memory_bytes))
    part = read_host_part(snapshot.host, snapshot.state.calls, path)
    prepared, heir = agents_for(host, snapshot, part, path, options, agent)
    held.take_back(part, path)
    restored = describe_restore(host, snapshot, deterministic=options.deterministic)
    machine = thaw(snapshot, prepared, options, restored)
    history = _known_history(part, machine, path)
    position = snapshot.position
    if heir is not None:
        rules = Rules(options.allow, options.deny, ())
        machine = hand_on(
            host, machine, prepared, heir, rules, options=options, name="the snapshot", rest=FINISH
        ).machine
        prepared, position = heir, position + _UPGRADE_SLICES
    clock.lap("start")
    live = Live(host, prepared, machine, options, held, clock, position=position, history=history)
    deliveries: list[_Event] = [(DeliveryKind.RESTORE, asdict(restored))]
    if value is not None:
        deliveries.append((DeliveryKind.MESSAGE, value))
    return anyio.run(live.serve, deliveries)


def _known_history(part: HostPart, machine: Machine, path: Path) -> CallHistory:
    """
    What is known of the calls in flight, so that none is made twice.

    Raises:
        UsageError: If a person must rule on one, who needs a name for the instance.
    """
    history = CallHistory()
    for record in part.history:
        history.note(record)
    actions = history.actions(call.number for call in machine.calls)
    waiting = [str(number) for number, action in actions.items() if isinstance(action, Await | Unknown)]
    if waiting:
        msg = f"{path}: a person has to rule on call {', '.join(waiting)} before this snapshot goes on"
        raise UsageError(msg, hint=f"give it a name: runner restore {path} --as NAME", path=str(path))
    return history


class Live:
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
        *,
        position: int = 0,
        history: CallHistory | None = None,
    ) -> None:
        self._host = host
        self._prepared = prepared
        self._machine = machine
        self._options = options
        self._held = held
        self._clock = clock
        self._position = position
        self._history = history or CallHistory()
        self._written: dict[str, Value] | None = None
        self._unwritten: RunnerError | None = None
        self._refusals = Refusals()
        self._outcomes: list[Outcome] = []
        # What the report is of.
        self._reported: Outcome | None = None
        self._session: Session

    async def serve(self, deliveries: Iterable[_Event]) -> Report:
        """
        Finish what is open, then deliver one after the other until one fails, and report.
        """
        async with registry_of(self._options, os.urandom(SEED_BYTES)) as tools:
            await self._serve(deliveries, tools)
        # Outside: what is raised inside a task group comes out as a group.
        self._clock.lap("serve")
        return self._report()

    async def _serve(self, deliveries: Iterable[_Event], tools: ToolRegistry) -> None:
        kept = False
        self._session = session = Session(
            self._machine,
            self._handlers(tools),
            self._host.ticker,
            on_log=self._options.on_log,
            on_snapshot=self._keep if self._options.snapshot else None,
            answers=self._held.answers,
            chronicle=Chronicle(
                Unrecorded(), OpenGate(), self._history, name="instance", clock_ms=wall_clock_ms
            ),
        )
        try:
            async with anyio.create_task_group() as watchers:
                # Before the first slice and beyond the last: a guest that spins must hear of Ctrl-C.
                await watchers.start(_interrupt_on_signal, session)
                async with session:
                    await self._deliver(session, deliveries)
                    if self._options.snapshot is None:
                        # Nobody will ask what became of calls that the guest left behind.
                        session.interrupt()
                    # Now, while effects are still in flight: they belong to the snapshot.
                    await session.stop()
                    self._keep("")
                    kept = True
                watchers.cancel_scope.cancel()
        finally:
            if not kept:
                self._keep("")

    async def _deliver(self, session: Session, deliveries: Iterable[_Event]) -> None:
        deadline_ms = self._options.deadline_ms
        opened = await session.finish_open(deadline_ms=deadline_ms)
        if opened is not None:
            opened = explained(opened, self._refusals)
            self._outcomes.append(opened)
            self._reported = opened
        for kind, payload in deliveries:
            # One report tells of one failure, and what was not delivered can be delivered again.
            if self._outcomes and self._outcomes[-1].failure is not None:
                return
            delivered = await session.deliver(kind, payload, deadline_ms=deadline_ms)
            outcome = explained(delivered, self._refusals)
            self._outcomes.append(outcome)
            if self._reported is None or kind is DeliveryKind.MESSAGE:
                self._reported = outcome

    def _handlers(self, tools: ToolRegistry) -> Handlers:
        return standard_handlers(
            providers=providers_of(self._held.providers, self._prepared.grants),
            default_model=model_of(self._options),
            grants=self._prepared.grants,
            notes=self._held.notes,
            purse=purse_of(
                self._held.usage, Budget.parse(self._options.budget), self._refusals, self._options
            ),
            tools=tools,
            persona=persona_of(self._options),
        )

    def _keep(self, reason: str) -> None:
        """
        Write a snapshot, if one is wanted; no slice may run.

        That it can't be written is told when all else has been done; a later one may make up for it.
        """
        path = self._options.snapshot
        if path is None:
            return
        try:
            stats = write_snapshot(path, self._freeze(), sync=self._options.sync)
        except RunnerError as error:
            self._unwritten = error
            # Its kind and no more: what goes wrong on this host is not for a guest to read.
            self._machine.learn_snapshot(LastSnapshot(False, 0, wall_clock_ms(), error.kind))
            return
        self._written, self._unwritten = {"path": str(path), "reason": reason, **asdict(stats)}, None
        self._machine.learn_snapshot(LastSnapshot(True, stats.size_bytes, wall_clock_ms()))
        try:
            self._host.remember_agent(self._packed)
        except RunnerError as error:
            self._unwritten = error

    def _freeze(self) -> Snapshot:
        prepared, state = self._prepared, self._machine.freeze()
        return Snapshot(
            agent=prepared.package.name,
            code_digest=prepared.admitted.code_digest,
            image_digest=prepared.image.digest,
            imports=prepared.admitted.imports,
            limits=prepared.limits,
            position=self._position + self._session.position,
            created_at_ms=wall_clock_ms(),
            state=state,
            host=self._held.to_wire(
                digest(self._packed),
                self._session.answers,
                self._history.records(
                    call.number for call in state.calls if self._history.inside(call.number)
                ),
            ),
            memory_digest=digest_of(state.mind, prepared.image),
        )

    @cached_property
    def _packed(self) -> bytes:
        return self._prepared.packed

    def _report(self) -> Report:
        """
        Report of the message, or of what was open, or of the restore event: what there was of these.
        """
        last, report = self._outcomes[-1], self._make_report()
        if last.failure is not None:
            last.failure.report = report
            if self._unwritten is not None:
                last.failure.details["snapshot"] = self._unwritten.message
            raise last.failure from self._unwritten
        if self._unwritten is not None:
            failure = EffectError(self._unwritten.message, hint=self._unwritten.hint)
            failure.report = report
            raise failure from self._unwritten
        return report

    def _make_report(self) -> Report:
        prepared = self._prepared
        return Report(
            result=self._reported.result if self._reported else None,
            instance=f"{prepared.package.name}-{secrets.token_hex(4)}",
            agent=prepared.package.name,
            snapshot=self._written,
            usage=self._held.usage.to_wire(),
            limits=prepared.limits.to_wire(),
            fuel=sum(outcome.fuel for outcome in self._outcomes),
            timing_ms=self._clock.report(sum(outcome.guest_ms for outcome in self._outcomes)),
            memory_digest=show(self._machine.digest()),
        )


async def _interrupt_on_signal(
    session: Session, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    """
    Ctrl-C ends the delivery, also while the guest spins: the loop is free, because slices run elsewhere.
    """
    if threading.current_thread() is not threading.main_thread():
        task_status.started()
        return
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            session.interrupt()
