"""
The inside of one call while it runs: steps that go on record one by one.

A step is a record of the call itself, told apart by its execution, `ATTEMPT/PART`: a receipt of status `PART`
says what came of a part, a start that a tool begins. So the table in `recovery` needs no rows of its own: a
tool that was begun and not reported is as uncertain as any effect, and a question inside parks the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from runner import codec
from runner.capabilities.base import Parked, StepUnwritten
from runner.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.capabilities.base import StepRecord
    from runner.session.chronicle import Chronicle, Execution

T = TypeVar("T")


class Inside:
    """
    The steps of one attempt: `runner.capabilities.base.Steps` over a journal.

    Args:
        chronicle: Where they go.
        execution: The attempt.
        end: Called when one could not be written: then nothing may go on.
    """

    def __init__(
        self, chronicle: Chronicle, execution: Execution, end: Callable[[RunnerError], None]
    ) -> None:
        self._chronicle = chronicle
        self._attempt = execution
        self._end = end
        self.past: tuple[StepRecord, ...] = chronicle.inside(execution.call.number)

    @property
    def execution(self) -> str:
        """
        Identity of the attempt.
        """
        return self._attempt.key

    async def note(self, part: str, payload: codec.Value) -> None:
        """
        Write down what came of a part.
        """
        data = codec.encode(payload)
        await self._do(lambda: self._chronicle.note_step(self._attempt, part, data))

    async def rule(self, part: str, name: str, arguments: codec.Value) -> str | None:
        """
        Have policy rule on a tool.

        Raises:
            Parked: If a person has to rule first.
        """
        ruling = await self._do(lambda: self._chronicle.rule_on_step(self._attempt, part, name, arguments))
        if ruling.verdict == "ask":
            raise Parked
        return ruling.rule if ruling.verdict == "deny" else None

    async def begin(self, part: str, name: str, arguments: codec.Value) -> None:
        """
        Begin a tool that a person allowed.
        """
        await self._do(lambda: self._chronicle.start_step(self._attempt, part, name, arguments))

    async def _do(self, write: Callable[[], T]) -> T:
        try:
            # What it says has happened, so its writer ends before whoever gives the call up is heard.
            return await anyio.to_thread.run_sync(write)
        except RunnerError as error:
            self._end(error)
            raise StepUnwritten from error
