"""
Models and tools that do what a test says, and a call with its steps in memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from runner import codec
from runner.capabilities.asking import Purse
from runner.capabilities.base import CallResult, Forgetful, Handlers
from runner.capabilities.standard import standard_handlers
from runner.capabilities.usage import UsageMeter
from runner.codec import Value
from runner.journal.records import EffectClass
from runner.memory.notes import InMemoryNotes
from runner.policy.budgets import Budget
from runner.policy.grants import Grants
from runner.policy.prices import PINNED, PriceTable
from runner.providers.base import (
    Message,
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from runner.tools.base import Tool
from runner.tools.registry import ToolRegistry

HI: dict[str, Value] = {"messages": [{"role": "user", "content": "hi there"}]}

Turn = Sequence[StreamEvent | Exception]


def says(text: str, usage: Usage | None = None, stop: str = "end") -> Turn:
    """A turn of text alone."""
    return [TextDelta(text), usage or Usage(2, 2), Stop(stop)]  # type: ignore[arg-type]


def calls(*names: str, text: str = "", usage: Usage | None = None) -> Turn:
    """A turn that calls tools, each with its place among them as `n`."""
    wanted = [ToolCall(f"c{index}", name, {"n": index}) for index, name in enumerate(names)]
    return [*([TextDelta(text)] if text else []), *wanted, usage or Usage(2, 2), Stop("tool_calls")]


class Model:
    """
    A provider with a turn for each request, the last of them for ever.
    """

    def __init__(self, *turns: Turn, name: str = "scripted", hangs: bool = False) -> None:
        self.name = name
        self.turns = turns
        self.hangs = hangs
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The next turn."""
        self.asked.append(request)
        for event in self.turns[min(len(self.asked), len(self.turns)) - 1]:
            if self.hangs:
                await anyio.sleep_forever()
            if isinstance(event, Exception):
                raise event
            yield event

    @property
    def last(self) -> tuple[Message, ...]:
        """The conversation of the newest request."""
        return self.asked[-1].messages

    def results(self) -> list[tuple[str, str, bool]]:
        """What the newest request tells of tools: id, content, and whether it is an error."""
        parts = [part for message in self.last for part in message.parts if isinstance(part, ToolResult)]
        return [(part.call_id, str(part.content), part.is_error) for part in parts]


@dataclass(slots=True)
class Shed:
    """
    Tools that leave a mark when they are used.
    """

    marks: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0

    def tool(
        self,
        name: str,
        effect: EffectClass = "pure",
        work: Callable[[Any], Awaitable[Value]] | None = None,
    ) -> Tool:
        """One of them; it answers with its name and its arguments."""

        async def use(arguments: Any, context: object) -> Value:
            del context
            self.marks.append(f"{name} {arguments['n']}")
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                for _ in range(3):
                    await anyio.lowlevel.checkpoint()
                if work is not None:
                    return await work(arguments)
                return f"{name} did {json.dumps(arguments)}"
            finally:
                self.running -= 1

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return Tool(
            name=name,
            description=f"Does {name}.",
            input_schema=schema,
            check=lambda value: value,
            work=use,
            effect=effect,
        )


@dataclass(slots=True, kw_only=True)
class Agent:
    """
    One instance's handlers around a model and some tools.
    """

    model: Model
    tools: Sequence[Tool] = ()
    budget: Budget = field(default_factory=Budget)
    prices: PriceTable = PINNED
    persona: str | None = None
    grants: Grants = field(default_factory=lambda: Grants.parse(["llm", "tool"]))
    usage: UsageMeter = field(default_factory=UsageMeter)
    parts: list[Value] = field(default_factory=list)
    steps: list[Value] = field(default_factory=list)

    def handlers(self, registry: ToolRegistry) -> Handlers:
        """All of them."""
        return standard_handlers(
            providers={self.model.name: self.model},
            default_model="scripted/default",
            grants=self.grants,
            notes=InMemoryNotes(),
            purse=Purse(usage=self.usage, budget=self.budget, prices=self.prices),
            tools=registry,
            persona=self.persona,
        )

    def call(self, operation: str = "llm.chat", **request: Value) -> CallResult:
        """The result of one call; a message is there anyway."""
        return anyio.run(self.ask, operation, {**HI, **request})

    async def ask(self, operation: str, request: Value) -> CallResult:
        """The same, inside a loop."""

        async def emit(part: Value) -> None:
            self.parts.append(part)

        agent = self

        class Noting(Forgetful):
            async def note(self, part: str, payload: Value) -> None:
                del part
                agent.steps.append(codec.decode(codec.encode(payload)))

        with anyio.fail_after(20):
            async with ToolRegistry(self.tools) as registry:
                return await self.handlers(registry).handle(
                    operation, codec.decode(codec.encode(request)), emit, steps=Noting("agent-1-1")
                )
