"""
A session: deliveries in, outcomes out, for one instance.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Self

import anyio

from runner import codec
from runner.errors import (
    DeadlineExceeded,
    EffectUncertain,
    GuestReturnedError,
    HostExhausted,
    Interrupted,
    RunnerError,
)
from runner.kernel.abi import DeliveryKind, LogLevel, Status
from runner.kernel.machine import Deliver, Wake
from runner.kernel.slice import LogLine
from runner.kernel.state import Answer
from runner.session.chronicle import Chronicle, Disposition, OpenGate
from runner.session.crew import Crew
from runner.session.effects import Effects, Handlers
from runner.session.inbox import Inbox
from runner.session.inside import Inside
from runner.session.parking import Parking
from runner.session.pending import Pending
from runner.session.recording import Unrecorded
from runner.session.recovery import CallHistory, refusal
from runner.session.slicing import Slicer, Unwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from runner.kernel.machine import Input, Machine, StepResult
    from runner.session.outcome import Outcome
    from runner.session.ticker import Ticker


_RETRY_S: Final = 1
"""
How long an answer waits for a process that can hold no more instances, unless something else happens.
"""

_NULL: Final = codec.encode(None)


def wall_clock_ms() -> int:
    """
    Milliseconds since the Unix epoch; 0 for a clock that is set to before it, as no record has such a time.
    """
    return max(0, time.time_ns() // 1_000_000)


class Session:
    """
    One instance, live. An async context manager; leaving it gives up what is in flight, and waits for the
    end of a slice that runs. It can be entered once.

    Deliveries are served one at a time, in the order in which they came. Answers to calls are fed to the
    instance as they arrive, also between deliveries, in turn with those that wait.

    Args:
        machine: The instance. The session is its only user: until it has been left, nobody else may touch
            the machine but `on_snapshot`.
        handlers: What its calls do.
        ticker: Clock of the machine's engine.
        on_log: Takes each line that the guest logs. Untrusted text.
        on_snapshot: Called with the reason when the guest asked for a snapshot, once the slice has ended
            and no slice runs; or `None`.
        after_slice: Called after each slice, while none runs, with whether it ended a delivery; or `None`.
        chronicle: The instance's journal, already folded over the machine; `None` for one that leaves
            nothing behind.
        clock_ms: What `agent.now` answers.
        answers: What `answers` of the session was from which the machine was frozen: the effects of these
            calls are over.
        crew: The threads that its slices run on, shared with others; `None` for its own.
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
        answers: Iterable[Answer] = (),
        crew: Crew | None = None,
    ) -> None:
        self.machine = machine
        self._handlers = handlers
        self._on_log = on_log
        self._on_snapshot = on_snapshot
        self._after_slice = after_slice
        self._clock_ms = clock_ms
        self._crew = crew or Crew()
        self._chronicle = chronicle or Chronicle(
            Unrecorded(), OpenGate(), CallHistory(), name="instance", clock_ms=clock_ms
        )
        self._slicer = Slicer(machine, ticker, self._crew, self._chronicle)
        self._parking = Parking(machine, self._crew, self._chronicle)
        self._queue: deque[Pending] = deque()
        self._inbox = Inbox(machine.is_in_flight, self._tell_news, answers)
        self._news = anyio.Event()
        self._idle = anyio.Event()
        self._open: Pending | None = None
        self._carried: Pending | None = None
        self._numbers = machine.last_delivery
        self._stack = AsyncExitStack()
        self._effects: Effects
        self._everything: anyio.CancelScope
        self._interrupted = False
        self._stopping = False
        self._stopped = anyio.Event()
        self._left = False
        self._ended_by: RunnerError | None = None
        # Whether an answer had the last turn between deliveries.
        self._woke = False
        self.position = 0

    async def __aenter__(self) -> Self:
        """
        Begin to serve; an instance that was restored with calls in flight goes on with them, but for those
        whose answer is there.

        Raises:
            EffectUncertain: If nobody knows of one of them whether it happened; nothing has been done then.
        """
        answered = {answer.call for answer in self.answers}
        calls = [call for call in self.machine.calls if call.number not in answered]
        with self._crew.staffed():
            begun = await self._crew.do(partial(self._chronicle.resume, calls))
        if begun.uncertain:
            raise EffectUncertain(self._chronicle.name, begun.uncertain)
        await self._stack.__aenter__()
        self._stack.enter_context(self._crew.staffed())
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._effects = Effects(
            tasks,
            self._handlers,
            self._take_answer,
            self._leave_unknown,
            self._park,
            lambda execution: Inside(self._chronicle, execution, self._end),
        )
        if self.machine.open_delivery:
            self._open = self._carried = self._pending(
                self.machine.open_delivery, DeliveryKind.MESSAGE, b"", None
            )
            self._open.begin()
        self._dispose(begun)
        self._everything = tasks.cancel_scope
        tasks.start_soon(self._serve_until_it_fails)
        self._stack.callback(self._everything.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """
        Give up what is in flight; who still waits for a delivery gets `Interrupted`.

        Raises:
            RunnerError: Why the session could not go on, such as a journal that could not be written; whoever
                waited inside was cancelled for it.
        """
        self._left = True
        try:
            suppressed = await self._stack.__aexit__(kind, error, trace)
            if self._ended_by is not None:
                raise self._ended_by
            return suppressed
        finally:
            await self._settle_up()
            for pending in (self._open, *self._queue):
                if pending is not None:
                    pending.done.set()

    async def _settle_up(self) -> None:
        """
        Leave no outcome unwritten, whatever ends the session. If it can't be written the effect is made
        again, as if the process had died here; whoever writes next will be told why.
        """
        if self._ended_by is None and self._chronicle.owes:
            with self._crew.staffed(), suppress(RunnerError):
                await self._crew.do(self._chronicle.settle_up, always=True)

    # -- for the owner ------------------------------------------------------------------------

    async def decide(self, call: int, verdict: Literal["allow", "deny"], *, rule: str, by: str) -> None:
        """
        Rule on a parked call, as a person; durable when this returns.

        Raises:
            ValueError: If the call is not parked.
        """
        self._dispose(await self._parking.decide(call, verdict, rule=rule, by=by))
        if self._open is not None:
            # Whoever waited for it was told to ask a person; now it goes on.
            self._open.go_on()
        self._tell_news()

    async def deliver(
        self, kind: DeliveryKind, payload: codec.Value, *, deadline_ms: int | None = None
    ) -> Outcome:
        """
        Hand the instance one event, and wait for its end.

        Cancelled while it waits its turn, the delivery is withdrawn. Once it has begun it goes on, and only
        its outcome is lost: a guest can't be stopped half way by somebody who has gone.

        Args:
            kind: Why.
            payload: Any codec value.
            deadline_ms: Wall time for all of it from its first slice on, waiting for answers included;
                `None` for no bound on waiting.

        Raises:
            TypeError: If the payload is no codec value.
            Interrupted: If the session is left before the delivery has ended.
        """
        data = codec.encode(payload)
        if self._left:
            raise Interrupted
        self._numbers += 1
        pending = self._pending(self._numbers, kind, data, deadline_ms)
        self._queue.append(pending)
        self._tell_news()
        try:
            return await self._await(pending)
        finally:
            if pending in self._queue:
                self._queue.remove(pending)

    async def finish_open(self, *, deadline_ms: int | None = None) -> Outcome | None:
        """
        Wait for the delivery that was open when the instance was restored, whether or not it has ended
        meanwhile, or for the one that is open now; `None` if there is none.

        Raises:
            Interrupted: If the session is left before the delivery has ended.
        """
        pending = self._carried or self._open
        if pending is None:
            return None
        pending.deadline_ms = deadline_ms
        self._tell_news()
        outcome = await self._await(pending)
        self._carried = None
        return outcome

    async def drain(self) -> None:
        """
        Wait until no effect is under way and every answer was handed over: then only a delivery or a person
        can move the instance on.
        """
        idle = self._idle
        self._tell_news()
        await idle.wait()

    def interrupt(self) -> None:
        """
        End the open delivery now, whether the guest runs or waits, and every one after it; their outcome is
        `Interrupted`.

        Ends the slices of every instance that shares the engine. Call it from the event loop.
        """
        self._interrupted = True
        self.machine.program.engine.interrupt()
        self._tell_news()

    async def stop(self) -> None:
        """
        Feed the instance nothing more; returns when no slice runs, and none will.

        Effects go on until the session is left, and what they answer is among `answers`: so the instance can
        be frozen now with nothing of it given up.
        """
        self._stopping = True
        self._tell_news()
        await self._stopped.wait()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """
        Answers of effects that are over which the guest has not got yet.

        They belong to a snapshot as the calls do, or their effects would happen again after a restore.
        """
        return self._inbox.whole

    def _pending(self, number: int, kind: DeliveryKind, data: bytes, deadline_ms: int | None) -> Pending:
        return Pending(
            number=number,
            kind=kind,
            payload=data,
            timeout_ms=self.machine.limits.timeout_ms,
            deadline_ms=deadline_ms,
        )

    @staticmethod
    async def _await(pending: Pending) -> Outcome:
        await pending.done.wait()
        if pending.outcome is None:
            raise Interrupted
        return pending.outcome

    # -- serving ------------------------------------------------------------------------------

    def _tell_news(self) -> None:
        self._news.set()

    async def _leave_unknown(self, call: int, problem: str) -> None:
        """
        An effect that may not be repeated leaves its start without a receipt, for a person to rule on. Where
        nothing is written down nobody could, so the guest is told.
        """
        if self._chronicle.writes_at_once(call) or self._chronicle.leaves_doubt(call):
            self._parking.doubt(call)
            self._tell_news()
            return
        await self._take_answer(refusal(call, Status.FAILED, "timeout", problem))

    def _park(self, call: int) -> None:
        self._parking.add((call,))
        self._tell_news()

    async def _take_answer(self, answer: Answer) -> None:
        if answer.status != Status.PART:
            if self._chronicle.writes_at_once(answer.call):
                try:
                    # It has happened: whoever leaves or gives up now must not make it uncertain.
                    await self._crew.do(partial(self._chronicle.receipt, answer), always=True)
                except RunnerError as error:
                    self._end(error)
                    return
            else:
                self._chronicle.receipt(answer)
        await self._inbox.put(answer)

    async def _serve_until_it_fails(self) -> None:
        try:
            await self._serve()
        except RunnerError as error:
            self._end(error)

    def _end(self, error: RunnerError) -> None:
        # As itself, not in a group: it is no bug, and whoever opened the session has to tell it.
        self._ended_by = error
        self._everything.cancel()

    async def _serve(self) -> None:
        while not self._stopping:
            self._news = anyio.Event()
            if self._open is not None and (failure := self._overdue(self._open)):
                self._apply(await self._slicer.abandon(self._open, failure), Disposition())
            elif (event := self._next_input()) is not None:
                await self._step(event)
            else:
                if not self._effects.running:
                    self._parking.hold_up(self._open)
                    self._idle.set()
                    self._idle = anyio.Event()
                await self._wait_for_news(self._open.patience_s if self._open else math.inf)
        self._stopped.set()

    async def _wait_for_news(self, patience_s: float) -> None:
        if patience_s == math.inf:
            await self._news.wait()
        else:
            with anyio.move_on_after(patience_s):
                await self._news.wait()

    def _dispose(self, what: Disposition) -> None:
        self._effects.start(what.execute)
        self._inbox.add(what.feed)
        self._parking.add(what.parked)

    def _overdue(self, pending: Pending) -> RunnerError | None:
        """
        Why the open delivery may not go on, or `None`.
        """
        if self._interrupted:
            return Interrupted()
        return pending.deadline_error if pending.is_overdue else None

    def _next_input(self) -> Input | None:
        if self._open is None and self._queue and (self._woke or not self._inbox):
            return self._begin(self._queue.popleft())
        # Between deliveries an interrupt would only lose an answer: nobody waits for what it ends.
        if self._open is not None or not self._interrupted:
            answer = self._inbox.take()
            if answer is not None:
                return Wake(self._fitting(answer), self._clock_ms())
        if self._open is None and self._queue:
            return self._begin(self._queue.popleft())
        return None

    def _begin(self, pending: Pending) -> Deliver:
        self._open = pending
        pending.begin()
        return Deliver(pending.number, pending.kind, pending.payload, self._clock_ms())

    def _fitting(self, answer: Answer) -> Answer:
        """
        The answer, or what the guest gets in place of one that is too large for it.
        """
        bound = self.machine.limits.payload_bytes
        size_bytes = len(answer.payload)
        if size_bytes <= bound:
            return answer
        # What was too large may have been a part of a longer one.
        self._effects.give_up([answer.call])
        for message in (f"answer of {size_bytes} bytes is more than {bound}", "too large"):
            error = codec.encode({"kind": "limit", "message": message})
            if len(error) <= bound:
                return Answer(answer.call, Status.LIMIT, error)
        return Answer(answer.call, Status.LIMIT, _NULL)

    async def _step(self, event: Input) -> None:
        pending = self._open
        try:
            result, disposition = await self._slicer.step(event, pending)
        except Unwritten as unwritten:
            raise unwritten.error from unwritten
        except RunnerError as error:
            await self._refused(event, error)
            return
        except anyio.get_cancelled_exc_class():
            # Before the slice began: later than that, its end is waited for.
            if isinstance(event, Wake):
                self._inbox.put_back([event.answer])
            raise
        self._woke = pending is None
        self.position += 1
        self._apply(result, disposition)

    async def _refused(self, event: Input, error: RunnerError) -> None:
        """
        The machine did not take an input, and has not changed.
        """
        if isinstance(event, Deliver):
            self._settle(failure=error)
            return
        if not isinstance(error, HostExhausted):
            raise error
        # An answer must not get lost because there is no room for its guest just now.
        self._inbox.put_back([event.answer])
        await self._wait_for_news(_RETRY_S)

    def _apply(self, result: StepResult, disposition: Disposition) -> None:
        for line in result.logs:
            self._on_log(line)
        if result.logs_dropped:
            lost = f"{result.logs_dropped} more log lines of the agent were dropped"
            self._on_log(LogLine(LogLevel.WARNING, lost))
        if result.failure is not None and not result.failed_delivery:
            failed = f"the agent failed outside any delivery: {result.failure.message}"
            self._on_log(LogLine(LogLevel.WARNING, failed))
        self._give_up((*result.cancelled, *result.abandoned))
        self._dispose(disposition)
        self._inbox.put_back(result.undone)
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

    def _give_up(self, calls: Iterable[int]) -> None:
        self._parking.give_up(calls)
        self._effects.give_up(calls)

    def _explain(self, failure: RunnerError) -> RunnerError:
        """
        A deadline as the owner stated it: the kernel only knows what was left of it.
        """
        if isinstance(failure, DeadlineExceeded) and self._open is not None:
            return self._open.deadline_error
        return failure

    def _settle(self, *, result: codec.Value = None, failure: RunnerError | None = None) -> None:
        pending, self._open = self._open, None
        if pending is not None:
            pending.settle(result=result, failure=failure)
