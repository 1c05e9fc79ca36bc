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
    from runner.session.crew import Confirm


class Recorder(Protocol):
    """
    A journal, as a session sees it.

    Attributes:
        keeps: Whether anything is kept, so that what costs time to find out is found out.
    """

    keeps: bool

    def hand_in(self, records: Sequence[Record]) -> Confirm[object]:
        """
        Have records written as one, after those that were handed in before. Called from worker threads.

        Returns:
            Waits until they are durable. It raises, as this does, when they could not be written; nothing may
            go on then.

        Raises:
            RunnerError: If they could not be written.
        """


class Unrecorded:
    """
    For an instance that leaves nothing behind.
    """

    keeps = False

    def hand_in(self, records: Sequence[Record]) -> Confirm[object]:
        """
        Forget them.
        """
        return records.__len__


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
