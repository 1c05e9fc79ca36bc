"""
Handlers that do what a test says, and a session that can't hang one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import anyio
import anyio.lowlevel

from runner.capabilities.base import CallResult, Steps
from runner.codec import Value
from runner.kernel.abi import Status
from runner.kernel.machine import Machine
from runner.kernel.slice import LogLine
from runner.kernel.state import Answer
from runner.session.session import Session
from runner.session.ticker import Ticker

Emit = Callable[[Value], Awaitable[None]]


class Scripted:
    """
    Handlers that do what a test says.
    """

    def __init__(self, behave: Callable[[str, Value, Emit], Awaitable[CallResult]]) -> None:
        self._behave = behave
        self.started: list[str] = []
        self.cancelled = 0

    async def handle(
        self, operation: str, request: Value, emit: Emit, *, execution: str = "", steps: Steps | None = None
    ) -> CallResult:
        """Answer one call."""
        assert execution
        assert steps is not None
        self.started.append(operation)
        try:
            return await self._behave(operation, request, emit)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise


async def at_once(operation: str, request: Value, emit: Emit) -> CallResult:
    """Answer nothing much, immediately."""
    del operation, request, emit
    return CallResult(Status.OK, {})


async def never(operation: str, request: Value, emit: Emit) -> CallResult:
    """Wait until the call is given up."""
    del operation, request, emit
    await anyio.sleep_forever()
    raise AssertionError


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something has come about; bounded by `opened`."""
    while not condition():
        await anyio.lowlevel.checkpoint()


@contextlib.asynccontextmanager
async def opened(
    machine: Machine,
    ticker: Ticker,
    handlers: Scripted | None = None,
    logs: list[LogLine] | None = None,
    on_snapshot: Callable[[str], None] | None = None,
    answers: Iterable[Answer] = (),
) -> AsyncIterator[Session]:
    """A session that can't hang a test."""
    lines = [] if logs is None else logs
    session = Session(
        machine,
        handlers or Scripted(at_once),
        ticker,
        on_log=lines.append,
        on_snapshot=on_snapshot,
        answers=answers,
    )
    with anyio.fail_after(20):
        async with session:
            yield session
