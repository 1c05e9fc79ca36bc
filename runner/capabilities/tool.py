"""
`tool.*`: what tools an agent has, and calling them.

A tool is there when the operator made it available, and granted when a rule says so. An agent sees those that
are both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from runner.capabilities.base import Emit, Handler, KeyedHandler, OutcomeUnknown, Refusal
from runner.kernel.abi import Status
from runner.package.fields import Fields, any_map, text
from runner.tools.base import ToolFailure, ToolOverran, ToolResult

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.policy.grants import Grants
    from runner.tools.base import Tool
    from runner.tools.registry import ToolRegistry

_SHOWN_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class Tools:
    """
    The tools of one instance, and the handlers of `tool.*`. What a model calls goes the same way.

    Attributes:
        registry: Those that there are.
        grants: Which of them the agent may use.
    """

    registry: ToolRegistry
    grants: Grants

    def handlers(self) -> dict[str, Handler]:
        """
        Handler by operation.
        """
        return {"tool.list": self.listing}

    def keyed_handlers(self) -> dict[str, KeyedHandler]:
        """
        Handlers that are told which attempt they make, by operation.
        """
        return {"tool.call": self.call}

    @property
    def granted(self) -> tuple[Tool, ...]:
        """
        Tools that are there and may be used, in the order of their names.
        """
        return tuple(tool for tool in self.registry.tools if self.grants.decide_tool(tool.name).allowed)

    async def use(self, name: str, arguments: Value, *, execution: str, part: str = "") -> ToolResult:
        """
        Call a tool for the agent, or for a model that it asks.

        Args:
            name: The tool.
            arguments: As they came.
            execution: Identity of the attempt.
            part: Which of several calls of one execution this is.

        Raises:
            ToolFailure: If it is not granted, is not there, or did not do it.
            ToolOverran: If nobody knows whether it did.
        """
        # Granted first, there second: what this host has is no matter of an agent that may not use it.
        decision = self.grants.decide_tool(name)
        if not decision.allowed:
            fix = f"add {decision.flag}" if decision.flag else f"remove {decision.rule}"
            if decision.flag is None and not decision.rule.startswith("--"):
                fix = "no rule could name it"
            raise ToolFailure("denied", f"tool {name[:_SHOWN_CHARACTERS]!r} is not granted; {fix}")
        return await self.registry.call(name, arguments, execution=execution, part=part)

    async def call(self, request: Value, emit: Emit, execution: str) -> Value:
        """
        Call a tool by name.
        """
        del emit
        with Fields(request) as fields:
            name, arguments = fields.required("name", text), fields.optional("arguments", any_map)
        try:
            result = await self.use(name, arguments or {}, execution=execution)
        except ToolFailure as failure:
            known = self.registry.get(name) is not None
            raise _refusal(failure, known=known) from failure
        except ToolOverran as overran:
            raise OutcomeUnknown(str(overran)) from overran
        return result.value

    async def listing(self, request: Value, emit: Emit) -> Value:
        """
        The tools granted.
        """
        del emit
        with Fields(request):
            pass
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.input_schema),
            }
            for tool in self.granted
        ]


def _refusal(failure: ToolFailure, *, known: bool) -> Refusal:
    match failure.kind:
        case "invalid":
            return Refusal(Status.INVALID, failure.message)
        case "denied":
            return Refusal(Status.DENIED, failure.message)
        case "not_found":
            # The status says that there is no such tool; a tool that found nothing has failed.
            if known:
                return Refusal(Status.FAILED, failure.message, kind="not_found")
            return Refusal(Status.NOT_FOUND, failure.message)
        case "timeout" | "failed":
            return Refusal(Status.FAILED, failure.message, kind=failure.kind)
        case _:
            assert_never(failure.kind)
