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
    Woken,
)
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS, ShapeError
from runner.kernel.state import MAX_NUMBER

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
        parked: Calls that wait for a person, each with the delivery that made it, or 0.
        started: Effects that may not be repeated, have no receipt and were not given up.
        stopped: Whether its operator stopped it.
    """

    agent: str
    parent: tuple[str, int] | None
    created_at_ms: int
    updated_at_ms: int
    delivery: int = 0
    parked: tuple[tuple[int, int], ...] = ()
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


def at_birth(born: Born, now_ms: int) -> Standing:
    """
    Where an instance stands that has one record.
    """
    return Standing(born.agent, born.parent, born.at_ms, now_ms)


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
    "parked": shapes.several(shapes.pair(_NUMBER, _MAYBE_NUMBER, "[number, 0..MAX_NUMBER]")),
    "started": shapes.several(_NUMBER),
    "stopped": shapes.truth(),
}
_STANDING: Final = shapes.structure(Standing, FIELDS, "standing")


def _after(standing: Standing, record: Record) -> Standing:
    match record:
        case Delivery():
            return replace(standing, delivery=record.number, stopped=False)
        case Slice():
            return _after_slice(standing, record)
        case Abandoned():
            return _without_delivery(standing)
        case Decision():
            parked = tuple(pair for pair in standing.parked if pair[0] != record.call)
            if record.verdict == "ask":
                parked = (*parked, (record.call, standing.delivery))
            return replace(standing, parked=parked)
        case Start():
            started = _without(standing.started, record.call)
            if record.effect == "effectful":
                started = (*started, record.call)
            return replace(standing, started=started)
        case Receipt() | Resolution():
            return replace(standing, started=_without(standing.started, record.call))
        case Woken():
            return replace(standing, stopped=False)
        case Stopped():
            return replace(standing, stopped=True)
        case _:
            return standing


def _without(calls: tuple[int, ...], call: int) -> tuple[int, ...]:
    return tuple(each for each in calls if each != call)


def _after_slice(standing: Standing, record: Slice) -> Standing:
    if record.error is not None:
        return _without_delivery(standing)
    if record.cancelled:
        # What a guest has given up is over for it, whatever became of it.
        parked = tuple(pair for pair in standing.parked if pair[0] not in record.cancelled)
        started = tuple(call for call in standing.started if call not in record.cancelled)
        standing = replace(standing, parked=parked, started=started)
    return replace(standing, delivery=0) if record.reply is not None else standing


def _without_delivery(standing: Standing) -> Standing:
    """
    A delivery that failed takes the calls that it made along.
    """
    made = standing.delivery
    parked = tuple(pair for pair in standing.parked if not made or pair[1] != made)
    return replace(standing, delivery=0, parked=parked)
