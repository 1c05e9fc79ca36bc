"""
The effects of one instance's calls, while they run.

Each call in flight is one task. Its answers, whole or in parts, go to one inbox in the order in which they
come up. The effect of a call that is given up is cancelled; what it still answers is for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio

from runner import codec
from runner.capabilities.base import OutcomeUnknown, Parked, StepUnwritten
from runner.kernel.abi import Status
from runner.kernel.state import Answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from anyio.abc import TaskGroup

    from runner.capabilities.base import CallResult, Steps
    from runner.session.chronicle import Execution

    Emit = Callable[[codec.Value], Awaitable[None]]


class Handlers(Protocol):
    """
    What operations mean: the port to `runner.capabilities`.
    """

    async def handle(
        self,
        operation: str,
        request: codec.Value,
        emit: Emit,
        *,
        execution: str = "",
        steps: Steps | None = None,
    ) -> CallResult:
        """
        Do what a call asks for.

        Args:
            operation: Such as `llm.chat`.
            request: The guest's request, decoded.
            emit: Hands over one part of a streamed answer.
            execution: Identity of this attempt: the same for no other.
            steps: The inside of the call, on record.

        Raises:
            OutcomeUnknown: If it was given up and nobody knows whether it happened.
            Parked: If a person has to rule before it can go on.
        """


class Effects:
    """
    Calls in flight as tasks.

    Args:
        tasks: Where the calls run; ending it ends them all.
        handlers: What they do.
        deliver_answer: Takes each answer. Between the end of an effect and this there is no point at which
            anything else could run, so an effect that has happened always has its answer there.
        leave_unknown: Takes the number of each call of which nobody knows whether it happened, and why.
        park: Takes the number of each call that can't go on before a person has ruled.
        steps_of: The inside of a call that begins.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        handlers: Handlers,
        deliver_answer: Callable[[Answer], Awaitable[None]],
        leave_unknown: Callable[[int, str], Awaitable[None]],
        park: Callable[[int], None],
        steps_of: Callable[[Execution], Steps],
    ) -> None:
        self._tasks = tasks
        self._handlers = handlers
        self._deliver = deliver_answer
        self._leave_unknown = leave_unknown
        self._park = park
        self._steps_of = steps_of
        self._scopes: dict[int, anyio.CancelScope] = {}

    def start(self, executions: Iterable[Execution]) -> None:
        """
        Begin effects.
        """
        for execution in executions:
            scope = self._scopes[execution.call.number] = anyio.CancelScope()
            self._tasks.start_soon(self._run, execution, scope)

    @property
    def running(self) -> int:
        """
        Effects that have not ended.
        """
        return len(self._scopes)

    def give_up(self, numbers: Iterable[int]) -> None:
        """
        Cancel effects; does nothing for a call that has ended.
        """
        for number in numbers:
            scope = self._scopes.pop(number, None)
            if scope is not None:
                scope.cancel()

    async def _run(self, execution: Execution, scope: anyio.CancelScope) -> None:
        call, key = execution

        async def emit(part: codec.Value) -> None:
            await self._deliver(Answer(call.number, Status.PART, codec.encode(part)))

        with scope:
            try:
                result = await self._handlers.handle(
                    call.operation,
                    codec.decode(call.request),
                    emit,
                    execution=key,
                    steps=self._steps_of(execution),
                )
            except StepUnwritten:
                # Whoever writes has told the session.
                self._scopes.pop(call.number, None)
                return
            except Parked:
                self._scopes.pop(call.number, None)
                self._park(call.number)
                return
            except OutcomeUnknown as unknown:
                self._scopes.pop(call.number, None)
                await self._leave_unknown(call.number, str(unknown))
                return
            await self._deliver(Answer(call.number, result.status, codec.encode(result.payload)))
            self._scopes.pop(call.number, None)
