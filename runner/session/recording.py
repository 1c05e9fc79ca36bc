"""
What a session writes down, and where to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from runner.errors import DeadlineExceeded, Interrupted
from runner.journal.records import Delivery, Intent, Slice, Wake
from runner.kernel.machine import Deliver

if TYPE_CHECKING:
    from runner.journal.records import Record
    from runner.kernel.machine import Input, StepResult


class Recorder(Protocol):
    """
    A journal, as a session sees it.

    Attributes:
        keeps: Whether anything is kept, so that what costs time to find out is found out.
    """

    keeps: bool

    def append(self, records: Sequence[Record]) -> int:
        """
        Write records as one; they are durable when this returns. Called from worker threads.

        Raises:
            RunnerError: If they could not be written; nothing may go on then.
        """


class Unrecorded:
    """
    For an instance that leaves nothing behind.
    """

    keeps = False

    def append(self, records: Sequence[Record]) -> int:
        """
        Forget them.
        """
        return len(records)


def input_record(event: Input) -> Delivery | Wake:
    """
    An input, as it is written down.
    """
    if isinstance(event, Deliver):
        return Delivery(number=event.number, kind=int(event.kind), payload=event.payload, now_ms=event.now_ms)
    answer = event.answer
    return Wake(call=answer.call, status=int(answer.status), payload=answer.payload, now_ms=event.now_ms)


def slice_record(result: StepResult, digest: bytes, *, by_clock: bool | None = None) -> Slice:
    """
    What came of an input, as it is written down.

    Args:
        result: The slice's result.
        digest: Digest of the mind afterwards.
        by_clock: Whether wall time ended it; found from the failure when not given.
    """
    failure = result.failure
    if by_clock is None:
        by_clock = isinstance(failure, DeadlineExceeded | Interrupted)
    reply = result.reply
    return Slice(
        calls=tuple(
            Intent(number=call.number, operation=call.operation, request=call.request)
            for call in result.calls
        ),
        cancelled=result.cancelled,
        reply=(reply.ok, reply.payload) if reply else None,
        error=failure.to_wire() if failure else None,
        by_clock=by_clock,
        fuel=result.fuel,
        digest=digest,
    )
