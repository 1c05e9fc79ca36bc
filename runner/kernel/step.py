"""
What goes into a machine and what comes out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from runner.errors import RunnerError
    from runner.kernel.abi import DeliveryKind
    from runner.kernel.slice import LogLine, Reply
    from runner.kernel.state import Answer, Call


@dataclass(frozen=True, slots=True)
class Deliver:
    """
    Hand the instance one event.

    Attributes:
        number: Greater than any delivery before it.
        kind: Why.
        payload: Deterministic CBOR.
        now_ms: Time of the slice, in milliseconds since the Unix epoch.
    """

    number: int
    kind: DeliveryKind
    payload: bytes
    now_ms: int


@dataclass(frozen=True, slots=True)
class Wake:
    """
    Hand the instance the answer to a call in flight, or a part of it.

    Attributes:
        answer: The answer.
        now_ms: Time of the slice, in milliseconds since the Unix epoch.
    """

    answer: Answer
    now_ms: int


Input: TypeAlias = Deliver | Wake


@dataclass(frozen=True, slots=True)
class StepResult:
    """
    What a slice asked for. After a failure all of it is empty but `fuel`, and `failure` says why.

    Attributes:
        calls: New calls, in order.
        cancelled: Calls given up, by number.
        reply: How the open delivery ended, or `None`.
        logs: Log lines, in order.
        logs_dropped: Lines beyond the limit.
        snapshot_reason: Set when the guest asked for a snapshot; may be empty.
        fuel: Fuel charged; all that was left, when the slice failed.
        failure: Why the slice failed, or `None`.
        failed_delivery: The delivery that the failure ended, or 0.
        abandoned: Calls that nobody waits for any more: those of the failed delivery, or the one whose
            answer failed outside any.
        undone: Answers to earlier calls that the failure took back, or the one that an interrupt outside any
            delivery did: step them again.
    """

    calls: tuple[Call, ...] = ()
    cancelled: tuple[int, ...] = ()
    reply: Reply | None = None
    logs: tuple[LogLine, ...] = ()
    logs_dropped: int = 0
    snapshot_reason: str | None = None
    fuel: int = 0
    failure: RunnerError | None = None
    failed_delivery: int = 0
    abandoned: tuple[int, ...] = ()
    undone: tuple[Answer, ...] = ()
