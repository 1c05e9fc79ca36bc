"""
The tool loop of `llm.chat`: model, tools, model, until the model is done.

Its state is what is on record of the call, and nothing else. So it goes on from there after any death: a turn
that is on record is not paid for again, and a tool whose result is there does not happen again.

Tools of a turn that may be repeated happen side by side, others alone and in their turn; the model gets the
results in the order of its calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from runner.capabilities.base import OutcomeUnknown, Parked, StepUnwritten
from runner.capabilities.progress import Progress, Result, Turn, result_step, told
from runner.providers.base import Message, ToolResult
from runner.tools.base import ToolFailure, ToolOverran

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runner.capabilities.base import Emit, Steps
    from runner.capabilities.tool import Tools
    from runner.codec import Value
    from runner.providers.base import ToolCall

AT_ONCE: Final = 8
"""
Tools of one turn that happen side by side.
"""

_SHOWN_CHARACTERS: Final = 64


@dataclass(slots=True, kw_only=True)
class Loop:
    """
    One `llm.chat`.

    Attributes:
        ask: One turn of the model: its number and the conversation so far.
        tools: What there is to use.
        offered: Names of the tools that the model may call.
        steps: What is on record, and where more goes.
        progress: What is on record, read.
        max_turns: Most turns.
        emit: Takes the text of turns that an earlier attempt has had, or `None`.
        tell: Hears of each tool that is used.
    """

    ask: Callable[[int, tuple[Message, ...]], Awaitable[Turn]]
    tools: Tools
    offered: tuple[str, ...]
    steps: Steps
    progress: Progress
    max_turns: int
    emit: Emit | None
    tell: Callable[[str, Value], None]
    _batch: list[tuple[str, ToolCall]] = field(default_factory=list)
    _doubts: list[str] = field(default_factory=list)
    _unwritten: StepUnwritten | None = None

    async def run(self, messages: tuple[Message, ...]) -> tuple[Turn, bool]:
        """
        The last turn, and whether the model was stopped for having had too many.

        Raises:
            Parked: If a person has to rule on a tool first.
            OutcomeUnknown: If nobody knows whether a tool did what it was asked.
            Refusal: If a budget is used up.
            ProviderError: If a turn came to nothing.
        """
        number = 1
        while True:
            turn = await self._turn(number, messages)
            if turn.stop != "tool_calls":
                return turn, False
            # Nobody would hear of what came of tools after the last turn.
            if number >= self.max_turns:
                return turn, True
            results = await self._use_all(number, turn.calls)
            messages = (*messages, Message("assistant", turn.parts), Message("user", results))
            number += 1

    async def _turn(self, number: int, messages: tuple[Message, ...]) -> Turn:
        known = self.progress.turns.get(number)
        if known is None:
            return await self.ask(number, messages)
        if self.emit is not None and known.text:
            await self.emit({"text": known.text})
        return known

    async def _use_all(self, turn: int, calls: tuple[ToolCall, ...]) -> tuple[ToolResult, ...]:
        try:
            for index, call in enumerate(calls):
                await self._begin(f"{turn}.{index}", call)
        except Parked:
            # What may happen happens first: the question can take days.
            await self._flush()
            raise
        await self._flush()
        results = [self.progress.results[f"{turn}.{index}"] for index in range(len(calls))]
        return tuple(
            ToolResult(call.id, result.content, result.is_error)
            for call, result in zip(calls, results, strict=True)
        )

    async def _begin(self, part: str, call: ToolCall) -> None:
        if part in self.progress.results:
            return
        if call.name not in self.offered:
            await self._keep(part, Result(f"no tool named {call.name[:_SHOWN_CHARACTERS]!r}", is_error=True))
            return
        arguments = dict(call.arguments)
        alone = self.tools.registry.effect_of(call.name, arguments) == "effectful"
        if alone or len(self._batch) >= AT_ONCE:
            await self._flush()
        denial = await self._permit(part, call.name, arguments)
        if denial is not None:
            await self._keep(part, Result(f"not allowed: {denial}", is_error=True))
            return
        self._batch.append((part, call))
        if alone:
            await self._flush()

    async def _permit(self, part: str, name: str, arguments: dict[str, object]) -> str | None:
        progress = self.progress
        if part in progress.refused:
            return progress.refused[part]
        if part in progress.allowed or part in progress.begun:
            await self.steps.begin(part, name, arguments)
            return None
        return await self.steps.rule(part, name, arguments)

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if len(batch) == 1:
            await self._use(*batch[0])
        elif batch:
            async with anyio.create_task_group() as group:
                for part, call in batch:
                    group.start_soon(self._use, part, call)
        if self._unwritten is not None:
            raise self._unwritten
        if self._doubts:
            raise OutcomeUnknown(self._doubts[0])

    async def _use(self, part: str, call: ToolCall) -> None:
        # What ends the call is raised when those beside it have ended, or it would come out as a group.
        try:
            await self._use_one(part, call)
        except StepUnwritten as error:
            self._unwritten = error

    async def _use_one(self, part: str, call: ToolCall) -> None:
        self.tell("tool", {"name": call.name, "arguments": dict(call.arguments)})
        try:
            answer = await self.tools.use(
                call.name, dict(call.arguments), execution=self.steps.execution, part=part
            )
            result = Result(told(answer.value), is_error=False)
        except ToolFailure as failure:
            result = Result(f"{failure.kind}: {failure.message}", is_error=True)
        except ToolOverran as overran:
            self._doubts.append(str(overran))
            return
        await self._keep(part, result)

    async def _keep(self, part: str, result: Result) -> None:
        self.progress.results[part] = result
        # It has happened: whoever gives the call up now must not make that uncertain.
        with anyio.CancelScope(shield=True):
            await self.steps.note(part, result_step(part, result))
