"""
One named instance, live, for the length of one command.
"""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import TASK_STATUS_IGNORED

from runner.capabilities.standard import standard_handlers
from runner.digest import show
from runner.errors import Interrupted
from runner.kernel.abi import DeliveryKind
from runner.wiring.models import model_of, providers_of
from runner.wiring.named import session_of, stop
from runner.wiring.options import Options, Report
from runner.wiring.purse import Refusals, explained, persona_of, purse_of
from runner.wiring.tools import check_wanted, registry_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskStatus

    from runner.codec import Value
    from runner.session.outcome import Outcome
    from runner.session.session import Session
    from runner.tools.registry import ToolRegistry
    from runner.wiring.host import Host
    from runner.wiring.named import Life
    from runner.wiring.stopwatch import Stopwatch

NO_MESSAGE: Final = object()
"""
In place of a message: only what is open goes on.
"""

_AGAIN: Final = "that was an earlier delivery; the input was not delivered, send it again"


class Serving:
    """
    Goes on with an instance: finishes what is open, tells it of a new life, delivers, and reports.

    Args:
        host: What runs it.
        life: Open for writing.
        options: Choices for this command.
        clock: Running since the command began.
        state: The state directory, for the report.

    Attributes:
        outcomes: Deliveries that ended meanwhile.
    """

    def __init__(self, host: Host, life: Life, options: Options, clock: Stopwatch, state: str) -> None:
        self._host = host
        self._life = life
        self._options = options
        self._clock = clock
        self._state = state
        self.outcomes: list[Outcome] = []
        # What the report is of.
        self._reported: Outcome | None = None
        self._refusals = Refusals()
        self._is_delivered = False
        self._is_stopped = False

    async def go(self, value: Value) -> Report:
        """
        Serve until nothing is under way.

        Args:
            value: The message, or `NO_MESSAGE`; not delivered when what was open before it does not end well.

        Raises:
            NeedsDecision: If a person has to rule on a call first.
            RunnerError: How the last delivery failed.
            Interrupted: If the instance was stopped; what was open stays open.
        """
        with anyio.CancelScope() as scope:
            async with (
                registry_of(self._options, self._identity()) as tools,
                self._session(tools) as session,
                anyio.create_task_group() as watchers,
            ):
                await watchers.start(self._heed_signals, session, scope)
                async for kind, outcome in self._deliveries(session, value):
                    outcome = explained(outcome, self._refusals)
                    self.outcomes.append(outcome)
                    if self._reported is None or kind is DeliveryKind.MESSAGE:
                        self._reported = outcome
                self._is_delivered = value is NO_MESSAGE or self._is_delivered
                await self._drain(session)
                watchers.cancel_scope.cancel()
        # Outside: what is raised inside a task group comes out as a group.
        if self._is_stopped:
            stop(self._life.journal, "terminated")
            raise Interrupted
        self._clock.lap("serve")
        return self._report()

    def _identity(self) -> bytes:
        return self._life.line.born.entropy + self._life.name.encode()

    def _session(self, tools: ToolRegistry) -> AbstractAsyncContextManager[Session]:
        check_wanted(self._life, tools)
        held = self._life.held
        handlers = standard_handlers(
            providers=providers_of(held.providers, self._life.prepared.grants),
            default_model=model_of(self._options),
            grants=self._life.prepared.grants,
            notes=held.notes,
            purse=purse_of(held.usage, self._life.budget, self._refusals, self._options, Path(self._state)),
            tools=tools,
            persona=persona_of(self._options),
        )
        return session_of(self._life, self._host, self._options, handlers, tools.effect_of)

    async def _deliveries(
        self, session: Session, value: Value
    ) -> AsyncIterator[tuple[DeliveryKind | None, Outcome]]:
        """
        What ends, one after the other; its kind, or `None` for what was open.
        """
        deadline_ms = self._options.deadline_ms
        opened = await session.finish_open(deadline_ms=deadline_ms)
        if opened is not None:
            yield None, opened
            if opened.failure is not None:
                # Waiting for a person, it stays open; failed, it is what the caller must hear of.
                return
        if self._life.owes_restore_event():
            known = self._life.machine.freeze().restored
            event = asdict(known) if known else None
            told = await session.deliver(DeliveryKind.RESTORE, event, deadline_ms=deadline_ms)
            yield DeliveryKind.RESTORE, told
            if told.failure is not None:
                return
        if value is not NO_MESSAGE:
            self._is_delivered = True
            ended = await session.deliver(DeliveryKind.MESSAGE, value, deadline_ms=deadline_ms)
            yield DeliveryKind.MESSAGE, ended

    async def _drain(self, session: Session) -> None:
        """
        Leave no effect half done; those of earlier deliveries may still be under way.
        """
        deadline_ms = self._options.deadline_ms
        with anyio.move_on_after(None if deadline_ms is None else deadline_ms / 1000):
            await session.drain()

    async def _heed_signals(
        self,
        session: Session,
        scope: anyio.CancelScope,
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        """
        Ctrl-C ends the delivery. A termination ends the command: between two slices, and nothing is given up.
        """
        if threading.current_thread() is not threading.main_thread():
            task_status.started()
            return
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._options.stopping():
                    self._is_stopped = True
                    scope.cancel()
                    return
                session.interrupt()

    def _report(self) -> Report:
        """
        Report of the message, or of what was open, or of the restore event: what there was of these.

        Raises:
            RunnerError: How the last of them failed, with the report of what was reached.
        """
        report = self._make_report()
        failure = self.outcomes[-1].failure if self.outcomes else None
        if failure is None:
            return report
        failure.report = report
        if not self._is_delivered:
            failure.details["delivered"] = False
            failure.hint = failure.hint or _AGAIN
        raise failure

    def _make_report(self) -> Report:
        life = self._life
        return Report(
            result=self._reported.result if self._reported else None,
            instance=life.name,
            agent=life.line.terms.agent,
            snapshot=None,
            usage=life.held.usage.to_wire(),
            limits=life.prepared.limits.to_wire(),
            fuel=sum(outcome.fuel for outcome in self.outcomes),
            timing_ms=self._clock.report(sum(outcome.guest_ms for outcome in self.outcomes)),
            memory_digest=show(life.machine.digest()),
            journal={"state": self._state, "records": life.journal.position},
            waiting=tuple(call.number for call in life.parked()),
        )
