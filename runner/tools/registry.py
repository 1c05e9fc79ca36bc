"""
The tools of one run: found by name, called under a deadline.

Input: names and arguments are guest-controlled; tools of servers are written by strangers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from runner import codec
from runner.errors import UsageError
from runner.package.fields import FieldProblem
from runner.tools.base import Tool, ToolContext, ToolFailure, ToolOverran, ToolResult

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.abc import TaskGroup

    from runner.codec import Value
    from runner.journal.records import EffectClass

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
"""
What a tool may be called: what every model provider takes, and what a grant can name.
"""

MAX_AT_ONCE: Final = 32
"""
Calls that run side by side; more wait, and their time begins later. An agent may have hundreds in flight,
each with megabytes of an answer.
"""

_SHOWN_CHARACTERS: Final = 64

Source = Callable[["ToolRegistry"], AbstractAsyncContextManager[None]]
"""
Something that has tools while it is open: puts them into the registry, and may change them later.
"""


class ToolRegistry:
    """
    Tools by name, for one run. An async context manager: tools can be called inside it.

    Args:
        tools: Those that are there from the beginning.
        sources: Opened in order, and closed in the end.
        identity: What makes idempotency keys of this run unlike those of any other.

    Raises:
        UsageError: If two tools have one name.
    """

    def __init__(
        self, tools: Iterable[Tool] = (), sources: Iterable[Source] = (), *, identity: bytes = b""
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._sources = tuple(sources)
        self._identity = identity
        self._stack = AsyncExitStack()
        self._slots = anyio.Semaphore(MAX_AT_ONCE)
        self._tasks: TaskGroup
        for tool in tools:
            self._add(tool)

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        try:
            for source in self._sources:
                await self._stack.enter_async_context(source(self))
            self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        except BaseException as error:
            await self._stack.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What was raised inside is nothing of the tasks here: told to them, it would come out as a group.
        del kind, error, trace
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """
        All that there are now, in the order of their names.
        """
        return tuple(self._tools[name] for name in sorted(self._tools))

    def get(self, name: str) -> Tool | None:
        """
        The tool of that name, if there is one.
        """
        return self._tools.get(name)

    def replace(self, source: str, tools: Iterable[Tool]) -> tuple[str, ...]:
        """
        Put `tools` in place of all that a source had.

        Returns:
            Why some of them are absent: a name that is none, or is taken. Whoever wrote them is a stranger,
            so this is no failure of the run.
        """
        self._tools = {name: tool for name, tool in self._tools.items() if tool.source != source}
        problems: list[str] = []
        for tool in tools:
            try:
                self._add(tool)
            except UsageError as error:
                problems.append(error.message)
        return tuple(problems)

    def effect_of(self, name: str, arguments: Value) -> EffectClass:
        """
        What may be done when a call was started and never reported. Total: takes any arguments.
        """
        tool = self._tools.get(name)
        if tool is None:
            # What is not there does nothing; but it may be there when the call is made.
            return "effectful"
        return tool.effect if tool.effect_of is None else tool.effect_of(arguments)

    async def call(self, name: str, arguments: Value, *, execution: str = "", part: str = "") -> ToolResult:
        """
        Call a tool; whether it is granted was decided before.

        Args:
            name: Its name.
            arguments: As the guest or the model gave them.
            execution: Identity of the attempt.
            part: Which of several calls of one execution this is; empty when it is the only one.

        Raises:
            ToolFailure: If it did not do it.
            ToolOverran: If it was given up and nobody knows whether it did.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolFailure("not_found", f"no tool named {name[:_SHOWN_CHARACTERS]!r} is granted")
        try:
            checked = tool.check(arguments)
        except FieldProblem as problem:
            where = "" if problem.key else "arguments: "
            raise ToolFailure("invalid", f"{tool.name}: {where}{problem}") from problem
        effect = self.effect_of(name, arguments)
        context = ToolContext(execution, self._key(execution, part))
        async with self._slots:
            return ToolResult(_fitting(tool, await self._bounded(tool, checked, context, effect)))

    def _key(self, execution: str, part: str) -> str:
        # An attempt is the call and a number: one key for all attempts.
        call = execution.rpartition("-")[0]
        material = b"\0".join((self._identity, call.encode(), part.encode()))
        return hashlib.sha256(material).hexdigest()[:32]

    async def _bounded(self, tool: Tool, checked: Any, context: ToolContext, effect: EffectClass) -> Value:
        """
        Do the work as a task of its own, so that one that does not heed its end is left behind all the same.
        """
        scope, ended = anyio.CancelScope(), anyio.Event()
        answers: list[Value] = []
        errors: list[Exception] = []

        async def run() -> None:
            try:
                with scope:
                    answers.append(await tool.work(checked, context))
            except Exception as error:  # noqa: BLE001 - raised again below
                errors.append(error)
            finally:
                ended.set()

        self._tasks.start_soon(run)
        try:
            with anyio.move_on_after(tool.timeout_ms / 1000):
                await ended.wait()
        finally:
            scope.cancel()
        if errors:
            raise errors[0]
        if answers:
            return answers[0]
        if effect == "effectful":
            raise ToolOverran(tool.name, tool.timeout_ms)
        raise ToolFailure("timeout", f"{tool.name} took more than {tool.timeout_ms} ms and was given up")

    def _add(self, tool: Tool) -> None:
        if not NAME.fullmatch(tool.name):
            msg = f"{tool.source}: {tool.name[:_SHOWN_CHARACTERS]!r} is no name for a tool"
            raise UsageError(msg, hint="letters, digits, _ and -, 128 of them at most")
        other = self._tools.get(tool.name)
        if other is not None:
            msg = f"two tools have the name {tool.name}: of {other.source} and of {tool.source}"
            raise UsageError(msg, hint="rename one of them")
        self._tools[tool.name] = tool


def _fitting(tool: Tool, value: Value) -> Value:
    """
    The answer, if it is one that can be told.
    """
    try:
        size_bytes = len(codec.encode(value))
    except TypeError as error:
        raise ToolFailure("failed", f"{tool.name} answered with what can't be told") from error
    if size_bytes > tool.max_output_bytes:
        msg = f"{tool.name} answered with {size_bytes} bytes, more than {tool.max_output_bytes}"
        raise ToolFailure("failed", msg)
    if tool.check_result is None:
        return value
    try:
        return tool.check_result(value)
    except FieldProblem as problem:
        raise ToolFailure(
            "failed", f"{tool.name} answered otherwise than it promised: {problem}"
        ) from problem
