"""
A session: deliveries in, outcomes out, for one instance.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Self

import anyio

from runner import codec
from runner.errors import (
    ApprovalPending,
    DeadlineExceeded,
    EffectUncertain,
    GuestReturnedError,
    Interrupted,
    RunnerError,
)
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Deliver, Wake
from runner.session.chronicle import Chronicle, Disposition, OpenGate
from runner.session.effects import Effects, Handlers
from runner.session.outcome import Outcome
from runner.session.recording import Unrecorded
from runner.session.recovery import CallHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from runner.kernel.machine import Input, Machine, StepResult
    from runner.kernel.slice import LogLine
    from runner.kernel.state import Answer
    from runner.session.ticker import Ticker


_MAX_WAITING_ANSWERS: Final = 64
"""
Answers that may wait for the guest; a provider that streams faster is held back.
"""


def wall_clock_ms() -> int:
    """
    Milliseconds since the Unix epoch.
    """
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class _Pending:
    """
    A delivery on its way: its tallies, and who waits for it.
    """

    number: int
    kind: DeliveryKind
    payload: bytes
    deadline_ms: int | None = None
    started_s: float = 0.0
    guest_ms: float = 0.0
    fuel: int = 0
    outcome: Outcome | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


class Session:
    """
    One instance, live. An async context manager; leaving it gives up what is in flight.

    Deliveries are served one at a time, in the order in which they came. Answers to calls are fed to the
    instance as they arrive, also between deliveries.

    Args:
        machine: The instance. The session is its only user.
        handlers: What its calls do.
        ticker: Clock of the machine's engine.
        on_log: Takes each line that the guest logs. Untrusted text.
        on_snapshot: Called with the reason when the guest asked for a snapshot, once the slice has ended
            and no slice runs; or `None`.
        after_slice: Called after each slice, while none runs, with whether it ended a delivery; or `None`.
        chronicle: The instance's journal, already folded over the machine; `None` for one that leaves
            nothing behind.
        clock_ms: What `agent.now` answers.
    """

    def __init__(
        self,
        machine: Machine,
        handlers: Handlers,
        ticker: Ticker,
        *,
        on_log: Callable[[LogLine], None],
        on_snapshot: Callable[[str], None] | None = None,
        after_slice: Callable[[bool], None] | None = None,
        chronicle: Chronicle | None = None,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.machine = machine
        self._handlers = handlers
        self._ticker = ticker
        self._on_log = on_log
        self._on_snapshot = on_snapshot
        self._after_slice = after_slice
        self._clock_ms = clock_ms
        self._chronicle = chronicle or Chronicle(
            Unrecorded(), OpenGate(), CallHistory(), name="instance", clock_ms=clock_ms
        )
        self._parked: dict[int, None] = {}
        self._queue: deque[_Pending] = deque()
        self._answers: deque[Answer] = deque()
        self._news = anyio.Event()
        self._idle = anyio.Event()
        self._open: _Pending | None = None
        self._numbers = machine.last_delivery
        self._stack = AsyncExitStack()
        self._effects: Effects
        self._room = anyio.Event()
        self._interrupted = False
        self.position = 0

    async def __aenter__(self) -> Self:
        """
        Begin to serve; an instance that was restored with calls in flight goes on with them.

        Raises:
            EffectUncertain: If nobody knows of one of them whether it happened; nothing has been done then.
        """
        begun = await anyio.to_thread.run_sync(self._chronicle.resume, self.machine.calls)
        if begun.uncertain:
            raise EffectUncertain(self._chronicle.name, begun.uncertain)
        await self._stack.__aenter__()
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        limit = self.machine.limits.payload_bytes
        self._effects = Effects(tasks, self._handlers, self._take_answer, limit)
        if self.machine.open_delivery:
            self._open = _Pending(self.machine.open_delivery, DeliveryKind.MESSAGE, b"")
            self._open.started_s = time.monotonic()
        self._dispose(begun)
        tasks.start_soon(self._serve)
        self._stack.callback(tasks.cancel_scope.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """
        Give up what is in flight.
        """
        return await self._stack.__aexit__(kind, error, trace)

    # -- for the owner ------------------------------------------------------------------------

    async def decide(self, call: int, verdict: Literal["allow", "deny"], *, rule: str, by: str) -> None:
        """
        Rule on a parked call, as a person; durable when this returns.

        Raises:
            ValueError: If the call is not parked.
        """
        if call not in self._parked:
            msg = f"call {call} does not wait for a decision"
            raise ValueError(msg)
        del self._parked[call]
        [parked] = [other for other in self.machine.calls if other.number == call]
        write = partial(self._chronicle.decide, parked, verdict, rule=rule, by=by)
        self._dispose(await anyio.to_thread.run_sync(write))
        if self._open is not None and self._open.outcome is not None:
            # Whoever waited for it was told to ask a person; now it goes on.
            self._open.outcome, self._open.done = None, anyio.Event()
        self._news.set()

    async def deliver(
        self, kind: DeliveryKind, payload: codec.Value, *, deadline_ms: int | None = None
    ) -> Outcome:
        """
        Hand the instance one event, and wait for its end.

        Args:
            kind: Why.
            payload: Any codec value.
            deadline_ms: Wall time for all of it, waiting included; `None` for no bound on waiting.

        Raises:
            TypeError: If the payload is no codec value.
        """
        data = codec.encode(payload)
        self._numbers += 1
        pending = _Pending(self._numbers, kind, data, deadline_ms)
        self._queue.append(pending)
        self._news.set()
        return await self._await(pending)

    async def finish_open(self, *, deadline_ms: int | None = None) -> Outcome | None:
        """
        Wait for the delivery that was open when the instance was restored; `None` if none was.
        """
        if self._open is None:
            return None
        self._open.deadline_ms = deadline_ms
        self._news.set()
        return await self._await(self._open)

    async def drain(self) -> None:
        """
        Wait until no effect is under way and every answer was handed over: then only a delivery or a person
        can move the instance on.
        """
        idle = self._idle
        self._news.set()
        await idle.wait()

    def interrupt(self) -> None:
        """
        End the open delivery now, whether the guest runs or waits; its outcome is `Interrupted`.

        Ends the slices of every instance that shares the engine. Call it from the event loop.
        """
        self._interrupted = True
        self.machine.program.engine.interrupt()
        self._news.set()

    @staticmethod
    async def _await(pending: _Pending) -> Outcome:
        await pending.done.wait()
        if pending.outcome is None:
            raise Interrupted
        return pending.outcome

    # -- serving ------------------------------------------------------------------------------

    async def _take_answer(self, answer: Answer) -> None:
        if answer.status != Status.PART:
            if self._chronicle.writes_at_once(answer.call):
                await anyio.to_thread.run_sync(self._chronicle.receipt, answer)
            else:
                self._chronicle.receipt(answer)
        while len(self._answers) >= _MAX_WAITING_ANSWERS:
            self._room = anyio.Event()
            await self._room.wait()
        self._answers.append(answer)
        self._news.set()

    async def _serve(self) -> None:
        while True:
            self._news = anyio.Event()
            if self._open is not None and (failure := self._overdue(self._open)):
                await self._abandon(self._open, failure)
            elif (event := self._next_input()) is not None:
                await self._step(event)
            else:
                self._settle_if_blocked()
                if not self._effects.running:
                    self._idle.set()
                    self._idle = anyio.Event()
                with anyio.move_on_after(self._patience_s()):
                    await self._news.wait()

    async def _abandon(self, pending: _Pending, failure: RunnerError) -> None:
        result = self.machine.abandon(failure)
        write = partial(self._chronicle.abandon, pending.number, failure, result, self.machine)
        await anyio.to_thread.run_sync(write)
        self._apply(result, Disposition())

    def _settle_if_blocked(self) -> None:
        """
        Tell who waits that only a person can move the open delivery on. It stays open.
        """
        pending = self._open
        if pending is None or not self._parked or self._effects.running or pending.outcome:
            return
        failure = ApprovalPending(self._chronicle.name, tuple(self._parked))
        pending.outcome = self._outcome(pending, failure=failure)
        pending.done.set()

    def _dispose(self, what: Disposition) -> None:
        self._effects.start(what.execute)
        self._answers.extend(what.feed)
        self._parked.update(dict.fromkeys(what.parked))

    def _overdue(self, pending: _Pending) -> RunnerError | None:
        """
        Why the open delivery may not go on, or `None`.
        """
        if not self.machine.open_delivery:
            return None
        if self._interrupted:
            return Interrupted()
        if pending.deadline_ms is not None and self._spent_ms(pending) >= pending.deadline_ms:
            return self._deadline_error(pending)
        if pending.guest_ms >= self.machine.limits.timeout_ms:
            return self._timeout_error(pending)
        return None

    def _next_input(self) -> Input | None:
        while self._answers:
            answer = self._answers.popleft()
            self._room.set()
            # Its call may have been given up meanwhile: then nobody waits for it.
            if self.machine.is_in_flight(answer.call):
                return Wake(answer, self._clock_ms())
        if self._open is None and self._queue:
            self._open = pending = self._queue.popleft()
            pending.started_s = time.monotonic()
            return Deliver(pending.number, pending.kind, pending.payload, self._clock_ms())
        return None

    async def _step(self, event: Input) -> None:
        allowance_ms = self._allowance_ms()
        pending = self._open
        started_s = time.monotonic()
        try:
            result, disposition = await anyio.to_thread.run_sync(
                partial(self._run_slice, event, allowance_ms)
            )
        except RunnerError as error:
            self._refuse(error)
            return
        if pending is not None:
            pending.guest_ms += (time.monotonic() - started_s) * 1000
            pending.fuel += result.fuel
        self.position += 1
        self._apply(result, disposition)

    def _run_slice(self, event: Input, allowance_ms: int) -> tuple[StepResult, Disposition]:
        with self._ticker.guest_runs():
            result = self.machine.step(event, deadline_ms=allowance_ms)
        return result, self._chronicle.slice(event, result, self.machine)

    def _apply(self, result: StepResult, disposition: Disposition) -> None:
        for line in result.logs:
            self._on_log(line)
        self._give_up((*result.cancelled, *result.abandoned))
        self._dispose(disposition)
        self._answers.extendleft(reversed(result.undone))
        if result.failure is not None and result.failed_delivery:
            self._settle(failure=self._explain(result.failure))
        elif result.reply is not None:
            value = codec.decode(result.reply.payload)
            if result.reply.ok:
                self._settle(result=value)
            else:
                self._settle(failure=GuestReturnedError(value["message"], value.get("data")))
        if result.snapshot_reason is not None and self._on_snapshot is not None:
            self._on_snapshot(result.snapshot_reason)
        if self._after_slice is not None:
            self._after_slice(result.reply is not None or result.failed_delivery > 0)

    def _explain(self, failure: RunnerError) -> RunnerError:
        """
        A deadline as the user stated it: the kernel only knows what was left of it.
        """
        if not isinstance(failure, DeadlineExceeded) or self._open is None:
            return failure
        if self._spent_ms(self._open) >= (self._open.deadline_ms or math.inf):
            return self._deadline_error(self._open)
        return self._timeout_error(self._open)

    def _settle(self, *, result: codec.Value = None, failure: RunnerError | None = None) -> None:
        pending, self._open = self._open, None
        if pending is None:
            return
        pending.outcome = self._outcome(pending, result=result, failure=failure)
        pending.done.set()

    def _outcome(
        self, pending: _Pending, *, result: codec.Value = None, failure: RunnerError | None = None
    ) -> Outcome:
        return Outcome(
            delivery=pending.number,
            result=result,
            failure=failure,
            fuel=pending.fuel,
            guest_ms=pending.guest_ms,
            wall_ms=self._spent_ms(pending),
        )

    def _give_up(self, calls: Iterable[int]) -> None:
        for call in calls:
            self._parked.pop(call, None)
        self._effects.give_up(calls)

    def _refuse(self, error: RunnerError) -> None:
        """
        The machine would not take an input, and has not changed: only a delivery can be at fault.
        """
        self._settle(failure=error)

    # -- wall time ----------------------------------------------------------------------------

    @staticmethod
    def _spent_ms(pending: _Pending) -> float:
        return (time.monotonic() - pending.started_s) * 1000

    def _allowance_ms(self) -> int:
        """
        How long the next slice may run: what is left of the delivery's timeout and deadline.
        """
        pending = self._open
        if pending is None:
            return self.machine.limits.timeout_ms
        left_ms = self.machine.limits.timeout_ms - pending.guest_ms
        if pending.deadline_ms is not None:
            left_ms = min(left_ms, pending.deadline_ms - self._spent_ms(pending))
        return max(1, math.ceil(left_ms))

    def _patience_s(self) -> float:
        """
        How long to wait for news before the open delivery's deadline is over.
        """
        if self._open is None or self._open.deadline_ms is None:
            return math.inf
        return max(0.0, (self._open.deadline_ms - self._spent_ms(self._open)) / 1000)

    def _timeout_error(self, pending: _Pending) -> DeadlineExceeded:
        bound_ms = self.machine.limits.timeout_ms
        return DeadlineExceeded("timeout_ms", max(bound_ms, math.ceil(pending.guest_ms)), bound_ms)

    @staticmethod
    def _deadline_error(pending: _Pending) -> DeadlineExceeded:
        bound_ms = pending.deadline_ms or 0
        return DeadlineExceeded("deadline_ms", max(bound_ms, math.ceil(Session._spent_ms(pending))), bound_ms)
