"""
Where an instance stands, kept up with each record: enough to list instances without reading their journals.

It is a memo. What must happen next is derived from the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from runner import codec
from runner.journal import shapes
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    Receipt,
    Record,
    Resolution,
    Slice,
    Start,
    Stopped,
    Upgraded,
    Woken,
)
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS, ShapeError
from runner.kernel.state import MAX_NUMBER, MachineState

Status = Literal["idle", "open", "waiting", "uncertain", "stopped"]
"""
`idle`: nothing is open. `open`: a delivery has no answer yet. `waiting`: a call waits for a person's
approval. `uncertain`: an effect was started, its holder is gone, and nobody knows whether it happened.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """
    What the records so far say of an instance.

    Attributes:
        agent: Name of its agent.
        parent: Name and position of the journal that it was forked from, or `None`.
        created_at_ms: When it was made, by the host's clock.
        updated_at_ms: When it was last written to, by the host's clock; nothing is ordered by it.
        delivery: The open delivery, or 0.
        calls: Highest number of a call so far.
        calls_before: The same when the open delivery, or the last one, began: those above it go with it when
            it fails.
        parked: Calls that wait for a person.
        started: Effects that may not be repeated, have no receipt and were not given up.
        stopped: Whether its operator stopped it.
    """

    agent: str
    parent: tuple[str, int] | None
    created_at_ms: int
    updated_at_ms: int
    delivery: int = 0
    calls: int = 0
    calls_before: int = 0
    parked: tuple[int, ...] = ()
    started: tuple[int, ...] = ()
    stopped: bool = False

    def status(self, *, is_held: bool) -> Status:
        """
        In one word. Whoever holds the instance knows what it has started.
        """
        if self.started and not is_held:
            return "uncertain"
        if self.stopped:
            return "stopped"
        if self.parked:
            return "waiting"
        return "open" if self.delivery else "idle"

    def after(self, records: Iterable[Record], now_ms: int) -> Standing:
        """
        Where it stands after more records.
        """
        standing = self
        for record in records:
            standing = _after(standing, record)
        return replace(standing, updated_at_ms=now_ms)

    def to_bytes(self) -> bytes:
        """
        As it is stored.
        """
        return codec.encode_typed(_STANDING.pack(self))


def at_birth(born: Born, now_ms: int, origin: MachineState | None = None) -> Standing:
    """
    Where an instance stands that has one record.

    Args:
        born: That record.
        now_ms: When, by the host's clock.
        origin: What it begins with, when it does not begin at its image.
    """
    standing = Standing(born.agent, born.parent, born.at_ms, now_ms)
    if origin is None:
        return standing
    opened = origin.delivery
    return replace(
        standing,
        delivery=opened.number if opened else 0,
        calls=origin.next_call - 1,
        calls_before=max((call.number for call in opened.calls_before), default=0) if opened else 0,
    )


def from_bytes(data: bytes) -> Standing:
    """
    What `to_bytes` wrote.

    Raises:
        ShapeError: If it did not.
    """
    try:
        standing: Standing = _STANDING.unpack(codec.decode(data))
    except codec.CodecError as error:
        raise ShapeError(str(error)) from error
    return standing


_COUNT: Final = shapes.integer(0, MAX_COUNT, "count")
_NUMBER: Final = shapes.integer(1, MAX_NUMBER, "number")
_MAYBE_NUMBER: Final = shapes.integer(0, MAX_NUMBER, "0..MAX_NUMBER")
_NAME: Final = shapes.text("name", low=1, high=MAX_NAME_CHARS)

FIELDS: Final = {
    "agent": _NAME,
    "parent": shapes.nullable(shapes.pair(_NAME, _COUNT, "[name, count]")),
    "created_at_ms": _COUNT,
    "updated_at_ms": _COUNT,
    "delivery": _MAYBE_NUMBER,
    "calls": _MAYBE_NUMBER,
    "calls_before": _MAYBE_NUMBER,
    "parked": shapes.several(_NUMBER),
    "started": shapes.several(_NUMBER),
    "stopped": shapes.truth(),
}
_STANDING: Final = shapes.structure(Standing, FIELDS, "standing")


def _after(standing: Standing, record: Record) -> Standing:
    match record:
        case Delivery():
            return replace(standing, delivery=record.number, calls_before=standing.calls, stopped=False)
        case Slice():
            return _after_slice(standing, record)
        case Abandoned():
            return _without_delivery(standing)
        case Decision():
            parked = _without(standing.parked, record.call)
            if record.verdict == "ask":
                parked = (*parked, record.call)
            return replace(standing, parked=parked, calls=max(standing.calls, record.call))
        case Start():
            started = _without(standing.started, record.call)
            if record.effect == "effectful":
                started = (*started, record.call)
            return replace(standing, started=started, calls=max(standing.calls, record.call))
        case Receipt() | Resolution():
            return replace(standing, started=_without(standing.started, record.call))
        case Woken():
            return replace(standing, stopped=False)
        case Upgraded():
            return replace(standing, agent=record.agent)
        case Stopped():
            return replace(standing, stopped=True)
        case _:
            return standing


def _without(calls: tuple[int, ...], call: int) -> tuple[int, ...]:
    return tuple(each for each in calls if each != call)


def _after_slice(standing: Standing, record: Slice) -> Standing:
    if record.error is not None:
        return _without_delivery(standing)
    calls = max((call.number for call in record.calls), default=0)
    # What a guest has given up is over for it, whatever became of it.
    standing = replace(
        standing,
        calls=max(standing.calls, calls),
        parked=tuple(call for call in standing.parked if call not in record.cancelled),
        started=tuple(call for call in standing.started if call not in record.cancelled),
    )
    return replace(standing, delivery=0) if record.reply is not None else standing


def _without_delivery(standing: Standing) -> Standing:
    """
    A delivery that failed takes along the calls that were made while it was open. What failed outside any has
    not asked for anything.
    """
    if not standing.delivery:
        return standing
    before = standing.calls_before
    return replace(
        standing,
        delivery=0,
        parked=tuple(call for call in standing.parked if call <= before),
        started=tuple(call for call in standing.started if call <= before),
    )
