"""
The contract of a tool, whoever wrote it.

Input: arguments are guest-controlled, and so is what a model made of anything that it read. A tool gets them
only after its schema was asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from runner.units import MIB

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.records import EffectClass

FailureKind = Literal["invalid", "denied", "not_found", "timeout", "failed"]
"""
Why a tool did not do what it was asked: the arguments are wrong, a grant does not reach so far, there is no
such thing, it took too long, or the outside failed.
"""

DEFAULT_TIMEOUT_MS: Final = 30_000

DEFAULT_OUTPUT_BYTES: Final = MIB


class ToolFailure(Exception):
    """
    Raised by a tool that did not do what it was asked; an answer like any other.

    Args:
        kind: Why.
        message: One sentence for whoever asked. It carries no secret, and nothing of the host that the grant
            does not show anyway.
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message


class ToolOverran(Exception):
    """
    Raised when a tool whose effect may not be repeated overran its deadline: nobody knows what became of it.
    """

    def __init__(self, name: str, timeout_ms: int) -> None:
        super().__init__(f"{name} was given up after {timeout_ms} ms; nobody knows whether it happened")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """
    What a tool learns beside its arguments.

    Attributes:
        execution: Identity of this attempt; empty outside an instance.
        idempotency_key: The same for every attempt at one call and for no other call, of any instance: for
            the outside to recognise a repetition.
    """

    execution: str = ""
    idempotency_key: str = ""


class ToolResult(NamedTuple):
    """
    What a tool answered.

    Attributes:
        value: Text, or any other value that JSON can say.
    """

    value: Value


Check: TypeAlias = Callable[["Value"], "Value"]
"""
Returns the value as the tool wants it, or raises `FieldProblem`.
"""

Work: TypeAlias = Callable[[Any, ToolContext], Awaitable["Value"]]
"""
Does it: takes what the check returned, answers with a value, or raises `ToolFailure`.

It ends soon after it was cancelled, and does not block the event loop.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    One tool.

    Attributes:
        name: Unique among the tools of a run; `[A-Za-z0-9_-]`, up to 128 characters.
        description: For a model. Of a server's tool it is untrusted text.
        input_schema: JSON Schema of the arguments, an object.
        check: Holds arguments against that schema.
        work: Does it.
        effect: What may be done when it was started and never reported, at its worst.
        source: Where it comes from, for people: `built-in`, a file, a server.
        timeout_ms: Wall time that it may take.
        max_output_bytes: The most that its answer may have, encoded.
        check_result: Holds answers against what the tool promised, or `None`.
        effect_of: A milder effect class for some arguments, or `None`. Total: takes arguments that nobody
            has checked.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    check: Check
    work: Work
    effect: EffectClass = "effectful"
    source: str = "built-in"
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES
    check_result: Check | None = None
    effect_of: Callable[[Value], EffectClass] | None = None
