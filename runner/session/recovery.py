"""
What a journal says must happen next: derived from its records alone, without I/O.

Every prefix of a journal has exactly one safe continuation for each call in flight:

| the call's last record | what it means | next |
|---|---|---|
| its intent, in a slice | nobody ruled on it | `Decide` |
| decision `ask` | a person has not answered | `Await` |
| decision `deny` | refused; the guest does not know | `Feed` the refusal |
| decision `allow` | nothing has happened | `Execute` |
| start, pure or idempotent | may be done again | `Execute` |
| start, effectful | nobody knows whether it happened | `Unknown` |
| receipt of a part | it came so far | `Execute`: it goes on from there |
| receipt | happened, once and for all | `Feed` it |
| resolution `rerun` | a person says it did not happen | `Execute` |
| resolution `done` | a person says it did, and how | `Feed` their answer |
| resolution `abandon` | it counts as failed | `Feed` the failure |
| a slice that cancelled it | over, also if its delivery fails later | `Feed` that it was cancelled |

What happens inside a call, between its start and its receipt, has records of its own, told apart by their
execution, `ATTEMPT/PART`. A start in there is of a tool, and a question is about one: what a person says then
is for the call to act on when it is made again, a refusal too.

A receipt that says that the effect failed is a receipt like any other: failed is not unknown. A decision that
was written is never made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from runner import codec
from runner.journal.records import Decision, Receipt, Resolution, Slice, Start
from runner.kernel.abi import Status
from runner.kernel.state import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.journal.records import Record


@dataclass(frozen=True, slots=True)
class Decide:
    """
    Policy has to rule on the call.
    """


@dataclass(frozen=True, slots=True)
class Await:
    """
    A person has to rule on the call.
    """


@dataclass(frozen=True, slots=True)
class Execute:
    """
    The effect has to be started.
    """


@dataclass(frozen=True, slots=True)
class Unknown:
    """
    The effect may have happened; a person has to say.

    Attributes:
        execution: The attempt that nobody knows of.
    """

    execution: str


@dataclass(frozen=True, slots=True)
class Feed:
    """
    The guest has to be woken with an answer that is known.
    """

    answer: Answer


Action: TypeAlias = Decide | Await | Execute | Unknown | Feed

_LAST: Final = (Decision, Start, Receipt, Resolution)
_INSIDE: Final = "/"


def inner_execution(attempt: str, part: str) -> str:
    """
    Identity of a part of an attempt.
    """
    return f"{attempt}{_INSIDE}{part}"


def is_step(record: Record) -> bool:
    """
    Whether a record is of the inside of a call.
    """
    return isinstance(record, Start | Receipt) and _INSIDE in record.execution


class CallHistory:
    """
    What the records say of each call, as far as they were read.
    """

    def __init__(self) -> None:
        self._last: dict[int, Decision | Start | Receipt | Resolution] = {}
        self._attempts: dict[int, int] = {}
        self._inside: dict[int, list[Decision | Start | Receipt | Resolution]] = {}
        # Calls whose last question was about a tool inside them, and not about the call.
        self._asked_inside: set[int] = set()

    def note(self, record: Record) -> None:
        """
        Take in the next record.
        """
        if isinstance(record, Start) and not is_step(record):
            self._attempts[record.call] = self._attempts.get(record.call, 0) + 1
        if isinstance(record, _LAST):
            self._note_of_call(record)
        elif isinstance(record, Slice):
            for number in record.cancelled:
                # Should the delivery that cancelled it fail, the guest waits for it again.
                answer = refusal(number, Status.FAILED, "cancelled", "cancelled by the agent")
                self._last[number] = Receipt(
                    call=number, execution="cancelled", status=int(answer.status), payload=answer.payload
                )

    def _note_of_call(self, record: Decision | Start | Receipt | Resolution) -> None:
        call = record.call
        if is_step(record):
            self._inside.setdefault(call, []).append(record)
            if self._is_settled(call):
                # A step that ended after the call was given up, or while a person is asked, changes nothing.
                return
        elif call in self._inside and isinstance(record, Decision | Resolution):
            if isinstance(record, Decision) and record.verdict == "ask":
                is_inner = _asks(self._inside[call][-1])
                (self._asked_inside.add if is_inner else self._asked_inside.discard)(call)
            self._inside[call].append(record)
        self._last[call] = record

    def _is_settled(self, call: int) -> bool:
        last = self._last.get(call)
        if isinstance(last, Decision):
            return last.verdict == "ask"
        return isinstance(last, Receipt) and not is_step(last)

    def inside(self, call: int) -> tuple[Decision | Start | Receipt | Resolution, ...]:
        """
        What is on record of its inside, with what people said about that.
        """
        return tuple(self._inside.get(call, ()))

    def attempts(self, call: int) -> int:
        """
        How often its effect was started.
        """
        return self._attempts.get(call, 0)

    def records(self, calls: Iterable[int]) -> list[Decision | Start | Receipt | Resolution]:
        """
        All that matters of each call: its inside, and its last record.
        """
        known: list[Decision | Start | Receipt | Resolution] = []
        for call in calls:
            last, inside = self._last.get(call), self._inside.get(call, ())
            known += inside
            if last is not None and last not in inside:
                known.append(last)
        return known

    def action(self, call: int) -> Action:
        """
        What must happen next for a call in flight.
        """
        last = self._last.get(call)
        if call in self._inside and last is not None:
            return self._inside_action(call, last)
        match last:
            case None:
                return Decide()
            case Decision():
                return _after_decision(last)
            case Start():
                return Unknown(last.execution) if last.effect == "effectful" else Execute()
            case Receipt():
                return Feed(Answer(call, last.status, last.payload))
            case Resolution():
                return _after_resolution(last)
            case _:
                assert_never(last)

    def asks_inside(self, call: int) -> bool:
        """
        Whether the last question about a call was about a tool inside it.
        """
        return call in self._asked_inside

    def _inside_action(self, call: int, last: Decision | Start | Receipt | Resolution) -> Action:
        match last:
            case Decision():
                is_denied = last.verdict == "deny" and not self.asks_inside(call)
                return Await() if last.verdict == "ask" else Feed(denial(last)) if is_denied else Execute()
            case Start():
                return Unknown(last.execution) if last.effect == "effectful" else Execute()
            case Receipt():
                if not is_step(last):
                    return Feed(Answer(call, last.status, last.payload))
                # Without a start of the call it comes from a snapshot file, which permits nothing.
                return Execute() if self.attempts(call) else Decide()
            case Resolution():
                return Execute()
            case _:
                assert_never(last)

    def actions(self, calls: Iterable[int]) -> dict[int, Action]:
        """
        What must happen next for each call in flight, in their order.
        """
        return {call: self.action(call) for call in calls}


def _asks(record: Record) -> bool:
    if not isinstance(record, Receipt):
        return False
    step = codec.decode(record.payload)
    return isinstance(step, dict) and step.get("step") == "ask"


def refusal(call: int, status: Status, kind: str, message: str) -> Answer:
    """
    An answer that says no.
    """
    return Answer(call, status, codec.encode({"kind": kind, "message": message}))


def _after_decision(decision: Decision) -> Action:
    match decision.verdict:
        case "allow":
            return Execute()
        case "ask":
            return Await()
        case "deny":
            return Feed(denial(decision))
        case _:
            assert_never(decision.verdict)


def denial(decision: Decision) -> Answer:
    """
    How the guest hears of a refusal.
    """
    return refusal(decision.call, Status.DENIED, "denied", f"not allowed: {decision.rule}")


def _after_resolution(resolution: Resolution) -> Action:
    match resolution.ruling:
        case "rerun":
            return Execute()
        case "done":
            return Feed(Answer(resolution.call, Status.OK, resolution.payload))
        case "abandon":
            message = "the outcome of this call is not known, and it was given up"
            return Feed(refusal(resolution.call, Status.FAILED, "abandoned", message))
        case _:
            assert_never(resolution.ruling)
