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
| receipt | happened, once and for all | `Feed` it |
| resolution `rerun` | a person says it did not happen | `Execute` |
| resolution `done` | a person says it did, and how | `Feed` their answer |
| resolution `abandon` | it counts as failed | `Feed` the failure |
| a slice that cancelled it | over, also if its delivery fails later | `Feed` that it was cancelled |

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


class CallHistory:
    """
    What the records say of each call, as far as they were read.
    """

    def __init__(self) -> None:
        self._last: dict[int, Decision | Start | Receipt | Resolution] = {}
        self._attempts: dict[int, int] = {}

    def note(self, record: Record) -> None:
        """
        Take in the next record.
        """
        if isinstance(record, Start):
            self._attempts[record.call] = self._attempts.get(record.call, 0) + 1
        if isinstance(record, _LAST):
            self._last[record.call] = record
        elif isinstance(record, Slice):
            for number in record.cancelled:
                # Should the delivery that cancelled it fail, the guest waits for it again.
                answer = refusal(number, Status.FAILED, "cancelled", "cancelled by the agent")
                self._last[number] = Receipt(
                    call=number, execution="cancelled", status=int(answer.status), payload=answer.payload
                )

    def attempts(self, call: int) -> int:
        """
        How often its effect was started.
        """
        return self._attempts.get(call, 0)

    def records(self, calls: Iterable[int]) -> list[Decision | Start | Receipt | Resolution]:
        """
        The last record of each call that has one.
        """
        return [self._last[call] for call in calls if call in self._last]

    def action(self, call: int) -> Action:
        """
        What must happen next for a call in flight.
        """
        last = self._last.get(call)
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

    def actions(self, calls: Iterable[int]) -> dict[int, Action]:
        """
        What must happen next for each call in flight, in their order.
        """
        return {call: self.action(call) for call in calls}


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
