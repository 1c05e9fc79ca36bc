"""
The scripted provider: the keyless default, and the double that tests use.

The same script and the same requests in the same order give the same events: it has no clock of its own
and no randomness. Tokens are words, so that budgets can be tried without a real model.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, assert_never

import anyio

from runner.codec import Value
from runner.errors import ProviderError
from runner.package.fields import FieldProblem, Fields, list_of, positive, tally
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Reasoning,
    Stop,
    StopReason,
    StreamEvent,
    TextDelta,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from runner.providers.script import Answer, Fault, Reply, Rule, Script, Step, load_script

SCRIPTED_NAME: Final = "scripted"

SCRIPTED_MODEL: Final = f"{SCRIPTED_NAME}/default"
"""
The model of a host that was told of no other.
"""

BUILT_IN_SCRIPT: Final = Script(rules=(Rule(answer=Reply(template="(scripted) You said: {input}")),))
"""
What it says when it was given no script.
"""

_MOST_PIECES: Final = 64
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 429, *range(500, 600)})
_PLACEHOLDER: Final = re.compile(r"\{(input|turn)\}")

Sleep = Callable[[float], Awaitable[None]]
"""
Waits for some seconds; for ever when they are infinite.
"""


class ScriptedProvider:
    """
    Answers from a script.

    Args:
        script: What to say.
        sleep: How delays are waited for.
    """

    name = SCRIPTED_NAME

    def __init__(self, script: Script = BUILT_IN_SCRIPT, *, sleep: Sleep = anyio.sleep) -> None:
        self._script = script
        self._sleep = sleep
        self._requests = 0
        # Numbers of requests that are being answered, and of those that a snapshot caught at it.
        self._open: set[int] = set()
        self._again: list[int] = []

    @classmethod
    def from_file(cls, path: Path, *, sleep: Sleep = anyio.sleep) -> ScriptedProvider:
        """
        The provider that follows the script in a file.

        Raises:
            ConfigError: If the file is no script; names the key.
        """
        return cls(load_script(path), sleep=sleep)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        The answer of the next turn, or of the first rule that applies when the turns are used up.

        Raises:
            ProviderError: If the script says so, or has no answer.
        """
        number = self._next_number()
        self._open.add(number)
        try:
            for step in _steps(self._answer(request, number), request, number):
                if step.delay_ms:
                    await self._sleep(step.delay_ms / 1000)
                if isinstance(step.event, Fault):
                    await self._fail(step.event)
                else:
                    yield step.event
        finally:
            self._open.discard(number)

    def to_wire(self) -> Value:
        """
        How far the script has been followed, as CBOR-compatible data.

        A request that is being answered counts as one that will be made again, first of all, for that is
        what becomes of it after a restore.
        """
        return {"again": sorted({*self._again, *self._open}), "requests": self._requests}

    def restore(self, wire: Value) -> None:
        """
        Go on where `to_wire` was called.

        Raises:
            FieldProblem: If that is not what `to_wire` wrote; a `ValueError`.
        """
        with Fields(wire) as fields:
            requests = fields.required("requests", tally)
            again = fields.required("again", list_of(positive))
        if list(again) != sorted(set(again)) or (again and again[-1] > requests):
            raise FieldProblem("again", "expected numbers of requests, ascending")
        self._requests, self._again = requests, list(again)

    def _next_number(self) -> int:
        if self._again:
            return self._again.pop(0)
        self._requests += 1
        return self._requests

    def _answer(self, request: ModelRequest, number: int) -> Answer:
        script = self._script
        if number <= len(script.turns):
            return script.turns[number - 1]
        message = request.last_user_text
        for rule in script.rules:
            if rule.applies(message):
                return rule.answer
        raise ProviderError(self.name, f"the script has no turn {number} and no rule that applies")

    async def _fail(self, fault: Fault) -> None:
        match fault.kind:
            case "hang":
                await self._sleep(math.inf)
            case "reset":
                raise ProviderError(self.name, "connection reset", retryable=True)
            case "malformed":
                raise ProviderError(self.name, "malformed event in the stream")
            case "http":
                raise ProviderError(
                    self.name,
                    f"HTTP status {fault.status}",
                    status=fault.status,
                    retryable=fault.status in _RETRYABLE_STATUSES,
                    retry_after_ms=fault.retry_after_ms,
                )
            case _:
                assert_never(fault.kind)


def _steps(answer: Answer, request: ModelRequest, turn: int) -> Iterator[Step]:
    """
    The answer's steps, with the usage and the stop that it leaves out.
    """
    steps = _reply_steps(answer, request, turn) if isinstance(answer, Reply) else answer.steps
    written: list[str] = []
    reported = False
    calls = 0
    for step in steps:
        event = step.event
        if isinstance(event, Stop) and not reported:
            yield Step(_counted(request, written))
        if isinstance(event, ToolCall):
            calls += 1
            step = Step(replace(event, id=event.id or f"call-{turn}-{calls}"), step.delay_ms)
        yield step
        if isinstance(event, Stop | Fault):
            return
        if isinstance(event, TextDelta):
            written.append(event.text)
        reported = reported or isinstance(event, Usage)
    if not reported:
        yield Step(_counted(request, written))
    yield Step(Stop("tool_calls" if calls else "end"))


def _reply_steps(reply: Reply, request: ModelRequest, turn: int) -> Iterator[Step]:
    pieces, stop = _pieces(_filled(reply.template, request, turn), request.max_tokens, reply.stop)
    for piece in pieces:
        yield Step(TextDelta(piece), reply.delay_ms)
    if reply.usage is not None:
        yield Step(reply.usage)
    yield Step(Stop(stop))


def _filled(template: str, request: ModelRequest, turn: int) -> str:
    values = {"input": request.last_user_text, "turn": str(turn)}
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def _pieces(text: str, max_words: int | None, stop: StopReason) -> tuple[list[str], StopReason]:
    """
    The text word by word, or in some dozens of pieces when it is long.
    """
    # Not `\s*\S+\s*`: on a long run of spaces that takes time by its square, and guests choose the text.
    words = re.findall(r"\S+\s*", text)
    if words:
        words[0] = text[: len(text) - len(text.lstrip())] + words[0]
    if max_words is not None and len(words) > max_words:
        words, stop = words[:max_words], "max_tokens"
    size = max(1, math.ceil(len(words) / _MOST_PIECES))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)], stop


def _counted(request: ModelRequest, written: list[str]) -> Usage:
    read = [request.system or "", *(text for message in request.messages for text in _texts(message))]
    return Usage(
        input_tokens=sum(len(text.split()) for text in read), output_tokens=len("".join(written).split())
    )


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case TextPart():
                yield part.text
            case ToolResult():
                yield from _texts(Message("user", part.content))
            case ImagePart() | ToolCall() | Reasoning():
                # Words are what is counted, and what others can be sure of is none.
                pass
            case _:
                assert_never(part)
