"""
How far the inside of an `llm` call has come, as data: a fold over what is on record of it.

A step is a map with the key `step`:

| step | of part | what it says |
|---|---|---|
| `request` | `TURN` | a model is about to be asked; so much is reserved for it |
| `retry` | `TURN` | an attempt failed, and another is made |
| `failed` | `TURN` | the request came to nothing, and what it cost |
| `turn` | `TURN` | the model's turn, whole: its parts, why it stopped, what it cost |
| `ask` | `TURN.INDEX` | a person is asked about a tool of that turn |
| `result` | `TURN.INDEX` | what came of a tool of that turn |

A tool begins with a start of its own, and what a person says of it is a decision or a resolution of the call.

Input: of a snapshot file, anybody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from runner import codec
from runner.capabilities.requests import part_to_wire, read_part
from runner.capabilities.usage import charge_to_wire, read_charge, read_usage, usage_to_wire
from runner.journal.records import Decision, Receipt, Resolution, Start
from runner.package.fields import Fields, anything, count, flag, list_of, one_of, or_null, positive, text
from runner.providers.base import STOP_REASONS, Part, StopReason, TextPart, ToolCall, Usage

if TYPE_CHECKING:
    from runner.capabilities.base import StepRecord
    from runner.capabilities.usage import UsageMeter
    from runner.codec import Value
    from runner.policy.budgets import Charge

_INSIDE: Final = "/"
_GIVEN_UP: Final = "the outcome of this tool is not known, and it was given up"


class Ended(NamedTuple):
    """
    What a request came to.

    Attributes:
        model: `PROVIDER/MODEL`.
        usage: Tokens.
        cost_pico: Money, or `None` when unknown.
        reserved: What had been reserved for it.
        wall_ms: Wall time.
    """

    model: str
    usage: Usage
    cost_pico: int | None
    reserved: Charge
    wall_ms: int


class Turn(NamedTuple):
    """
    One turn of a model, whole: what was paid for.

    Attributes:
        parts: What it said, in order.
        stop: Why it ended.
        ended: What it cost.
    """

    parts: tuple[Part, ...]
    stop: StopReason
    ended: Ended

    @property
    def text(self) -> str:
        """
        All text in it.
        """
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """
        The tools that it wants, in order.
        """
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class Result(NamedTuple):
    """
    What came of a tool, as the model is told.
    """

    content: str
    is_error: bool


@dataclass(slots=True)
class Progress:
    """
    What is on record.

    Attributes:
        turns: By number, from 1.
        ended: Every request that ended, the failed ones too.
        results: By part.
        allowed: Parts that a person allowed.
        refused: Parts that a person refused, with what they said.
        begun: Parts that began and have no result.
    """

    turns: dict[int, Turn] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    allowed: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    begun: dict[str, str] = field(default_factory=dict)
    _asked: str | None = None

    @classmethod
    def of(cls, past: Iterable[StepRecord]) -> Progress:
        """
        How far these records have come.

        Raises:
            FieldProblem: If one of them is none of an `llm` call.
        """
        progress = cls()
        for record in past:
            progress.take(record)
        return progress

    def take(self, record: StepRecord) -> None:
        """
        Take in the next record.
        """
        match record:
            case Receipt():
                self._take_step(codec.decode(record.payload))
            case Start():
                self.begun[record.execution.partition(_INSIDE)[2]] = record.effect
            case Decision():
                self._take_decision(record)
            case Resolution():
                self._take_resolution(record)

    def _take_step(self, step: Value) -> None:
        with Fields(step) as fields:
            match fields.required("step", one_of(("request", "retry", "failed", "turn", "ask", "result"))):
                case "turn":
                    number = fields.required("turn", positive)
                    ended = _read_ended(fields)
                    parts = fields.required("parts", list_of(read_part))
                    self.turns[number] = Turn(parts, fields.required("stop", one_of(STOP_REASONS)), ended)
                    self.ended.append(ended)
                case "failed":
                    self.ended.append(_read_ended(fields))
                    fields.required("turn", positive)
                    fields.required("problem", text)
                case "ask":
                    self._asked = fields.required("part", text)
                    fields.required("name", text)
                    fields.required("arguments", anything)
                case "result":
                    part = fields.required("part", text)
                    content = fields.required("content", text)
                    self.results[part] = Result(content, fields.required("is_error", flag))
                    self.begun.pop(part, None)
                case _:
                    for key in ("turn", "reserved", "model", "attempt", "problem", "status"):
                        fields.optional(key, anything)

    def _take_decision(self, decision: Decision) -> None:
        if decision.verdict == "ask" or self._asked is None:
            return
        if decision.verdict == "allow":
            self.allowed.add(self._asked)
        else:
            self.refused[self._asked] = decision.rule
        self._asked = None

    def _take_resolution(self, resolution: Resolution) -> None:
        doubtful = [part for part, effect in self.begun.items() if effect == "effectful"]
        if not doubtful:
            return
        part = doubtful[-1]
        del self.begun[part]
        if resolution.ruling == "rerun":
            self.allowed.add(part)
        elif resolution.ruling == "done":
            self.results[part] = Result(told(codec.decode(resolution.payload)), is_error=False)
        else:
            self.results[part] = Result(_GIVEN_UP, is_error=True)


def told(value: Value) -> str:
    """
    A tool's answer as a model is told it: text as it is, anything else as JSON.
    """
    if isinstance(value, str):
        return value
    import json  # noqa: PLC0415 - most calls use no tool

    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def request_step(turn: int, model: str, reserved: Charge) -> dict[str, Value]:
    """
    That a model is about to be asked.
    """
    return {"step": "request", "turn": turn, "model": model, "reserved": charge_to_wire(reserved)}


def turn_step(number: int, turn: Turn) -> dict[str, Value]:
    """
    That the model's turn is whole.
    """
    parts: list[Value] = [part_to_wire(part) for part in turn.parts]
    return {"step": "turn", "turn": number, "parts": parts, "stop": turn.stop, **_ended_to_wire(turn.ended)}


def failed_step(turn: int, problem: str, ended: Ended) -> dict[str, Value]:
    """
    That a request came to nothing.
    """
    return {"step": "failed", "turn": turn, "problem": problem, **_ended_to_wire(ended)}


def result_step(part: str, result: Result) -> dict[str, Value]:
    """
    What came of a tool.
    """
    return {"step": "result", "part": part, "content": result.content, "is_error": result.is_error}


def meter_step(meter: UsageMeter, payload: bytes) -> bool:
    """
    Bring totals up to one step on record: the one way to it, live or folded.

    Returns:
        Whether it was the end of a request.

    Raises:
        FieldProblem: If it is no step.
    """
    step = codec.decode(payload)
    word = step.get("step") if isinstance(step, dict) else None
    if word == "request":
        meter.begin(read_charge(step.get("reserved"), "reserved"))
    if word not in ("turn", "failed"):
        return False
    with Fields(step) as fields:
        ended = _read_ended(fields)
        for key in ("step", "turn", "parts", "stop", "problem"):
            fields.optional(key, anything)
    meter.end(ended.reserved, ended.model, ended.usage, ended.cost_pico, ended.wall_ms)
    return True


def tool_in_question(past: Iterable[StepRecord]) -> dict[str, Value] | None:
    """
    The tool inside a call that a person has to rule on, with its `name` and `arguments`: one that they are
    asked about, or one that began and was not reported. `None` if it is about the call itself.
    """
    records = tuple(past)
    match records[-1] if records else None:
        case Decision(verdict="ask"):
            step = codec.decode(records[-2].payload) if isinstance(records[-2], Receipt) else {}
            if isinstance(step, dict) and step.get("step") == "ask":
                return {"name": step.get("name"), "arguments": step.get("arguments")}
            return None
        case Start() as start:
            part = start.execution.partition(_INSIDE)[2]
            for number, turn in Progress.of(records).turns.items():
                for index, call in enumerate(turn.calls):
                    if part == f"{number}.{index}":
                        return {"name": call.name, "arguments": dict(call.arguments)}
            return None
        case _:
            return None


def _ended_to_wire(ended: Ended) -> dict[str, Value]:
    return {
        "model": ended.model,
        "usage": usage_to_wire(ended.usage),
        "cost_pico": ended.cost_pico,
        "reserved": charge_to_wire(ended.reserved),
        "wall_ms": ended.wall_ms,
    }


def _read_ended(fields: Fields) -> Ended:
    return Ended(
        model=fields.required("model", text),
        usage=fields.required("usage", read_usage),
        cost_pico=fields.required("cost_pico", or_null(count)),
        reserved=fields.required("reserved", read_charge),
        wall_ms=fields.required("wall_ms", count),
    )
