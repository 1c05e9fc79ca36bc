"""
Where an instance stands, by its records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.journal import standing as standings
from runner.journal.records import (
    Abandoned,
    Decision,
    Delivery,
    Intent,
    Receipt,
    Record,
    Resolution,
    Slice,
    Start,
    Stopped,
    Upgraded,
    Wake,
    Woken,
)
from runner.journal.shapes import ShapeError
from runner.journal.standing import Standing, at_birth
from runner.kernel.state import Call, MachineState, Mind, OpenDelivery
from tests.journal.samples import HELLO, NULL, any_record, born

ASKED: Final = (
    Delivery(number=1, kind=1, payload=HELLO, now_ms=0),
    Slice(calls=(Intent(number=1, operation="tool.call", request=HELLO),)),
)
PARKED: Final = (*ASKED, Decision(call=1, verdict="ask", rule="ask tool", by="policy", at_ms=0))
ALLOWED: Final = Decision(call=1, verdict="allow", rule="granted", by="policy", at_ms=0)
STARTED: Final = (*ASKED, ALLOWED, Start(call=1, execution="one-1-1", effect="effectful"))
FAILED: Final = {"kind": "trap", "message": "it trapped"}


@pytest.mark.parametrize(
    ("records", "status", "held"),
    [
        ((), "idle", "idle"),
        (ASKED, "open", "open"),
        ((*ASKED, Slice(reply=(False, NULL))), "idle", "idle"),
        ((*ASKED, Slice(error=FAILED)), "idle", "idle"),
        (PARKED, "waiting", "waiting"),
        ((*PARKED, ALLOWED), "open", "open"),
        ((*PARKED, Slice(error=FAILED)), "idle", "idle"),
        ((*PARKED, Slice(cancelled=(1,))), "open", "open"),
        ((*PARKED, Slice(cancelled=(2,))), "waiting", "waiting"),
        ((*PARKED, Abandoned(delivery=1, error=FAILED)), "idle", "idle"),
        (STARTED, "uncertain", "open"),
        (
            (*STARTED, Receipt(call=1, execution="one-1-1", status=0, payload=NULL)),
            "open",
            "open",
        ),
        ((*STARTED, Resolution(call=1, ruling="abandon", payload=b"", by="me", at_ms=0)), "open", "open"),
        ((*STARTED, Slice(cancelled=(1,))), "open", "open"),
        ((*STARTED, Slice(cancelled=(2,))), "uncertain", "open"),
        ((*STARTED, Start(call=1, execution="one-1-2", effect="effectful")), "uncertain", "open"),
        ((*ASKED, Start(call=1, execution="one-1-1", effect="idempotent")), "open", "open"),
        ((*ASKED, Stopped(reason="", at_ms=0)), "stopped", "stopped"),
        ((*STARTED, Stopped(reason="", at_ms=0)), "uncertain", "stopped"),
        ((Stopped(reason="", at_ms=0), Woken(count=1, generation=1, at_ms=0)), "idle", "idle"),
        ((Stopped(reason="", at_ms=0), *ASKED), "open", "open"),
        ((*STARTED, Slice(error=FAILED)), "idle", "idle"),
        ((*STARTED, Abandoned(delivery=1, error=FAILED)), "idle", "idle"),
        ((*ASKED, Wake(call=1, status=0, payload=NULL, now_ms=0)), "open", "open"),
    ],
)
def test_a_status_follows_from_the_records(records: tuple[Record, ...], status: str, held: str) -> None:
    """
    Whoever holds the instance knows what it has started; nobody else does.
    """
    standing = at_birth(born(), 0).after(records, 5)
    assert (standing.status(is_held=False), standing.status(is_held=True)) == (status, held)
    assert standing.updated_at_ms == 5


def test_a_call_parked_outside_any_delivery_outlives_the_next_failure() -> None:
    """
    A failed delivery takes along only what it asked for.
    """
    timer = (
        Slice(reply=(True, NULL)),
        Decision(call=1, verdict="ask", rule="ask tool", by="policy", at_ms=0),
        Start(call=2, execution="one-2-1", effect="effectful"),
        Delivery(number=2, kind=1, payload=HELLO, now_ms=0),
        Decision(call=3, verdict="ask", rule="ask tool", by="policy", at_ms=0),
        Start(call=4, execution="one-4-1", effect="effectful"),
        Slice(error=FAILED),
    )
    standing = at_birth(born(), 0).after(timer, 0)
    assert (standing.parked, standing.started) == ((1,), (2,))
    assert standing.status(is_held=False) == "uncertain"
    # A slice that fails outside any delivery has asked for nothing.
    assert at_birth(born(), 0).after((timer[1], timer[-1]), 0).parked == (1,)
    resolved = Resolution(call=2, ruling="abandon", payload=b"", by="me", at_ms=0)
    assert standing.after([resolved], 0).status(is_held=False) == "waiting"


@pytest.mark.parametrize(
    "end", [Slice(error=FAILED), Abandoned(delivery=3, error=FAILED)], ids=["failed", "abandoned"]
)
def test_a_restored_delivery_takes_its_calls_along_when_it_fails(end: Record) -> None:
    """
    Which is open, and which calls were made in it, says the snapshot that the life begins with.
    """
    calls = (Call(1, "tool.call", HELLO, 1), Call(4, "tool.call", HELLO, 3))
    before = Mind(0, {}, ())
    state = MachineState(
        before, calls, next_call=5, last_delivery=3, delivery=OpenDelivery(3, 1, before, calls[:1])
    )
    history = [Start(call=call.number, execution="before", effect="effectful") for call in calls]
    standing = at_birth(born(), 0, state).after(history, 0)
    assert (standing.delivery, standing.calls, standing.calls_before) == (3, 4, 1)
    assert standing.status(is_held=True) == "open"
    assert standing.after([end], 0).started == (1,)
    without = at_birth(born(), 0, replace(state, delivery=None, calls=()))
    assert (without.delivery, without.calls, without.calls_before) == (0, 4, 0)
    alone = replace(state, calls=calls[1:], delivery=OpenDelivery(3, 1, before))
    assert at_birth(born(), 0, alone).after([history[1], end], 0).status(is_held=False) == "idle"


def test_an_upgraded_instance_is_listed_under_its_new_agent() -> None:
    """
    Nothing else of where it stands changes.
    """
    parked = at_birth(born(), 0).after(PARKED, 5)
    record = Upgraded(
        agent="counter-two",
        package=bytes(32),
        code_digest=bytes(32),
        image_digest=bytes(32),
        limits={},
        allow=(),
        deny=(),
        ask=(),
        at_ms=0,
        timers=False,
    )
    assert parked.after([record], 5) == replace(parked, agent="counter-two")


@given(st.lists(any_record, max_size=8))
def test_a_standing_is_stored_as_it_is(records: list[Record]) -> None:
    """
    After any records.
    """
    standing = at_birth(born(parent=("zero", 4)), 0).after(records, 7)
    assert standings.from_bytes(standing.to_bytes()) == standing


@pytest.mark.parametrize("data", [b"", b"\xa0", codec.encode([1])])
def test_other_bytes_are_no_standing(data: bytes) -> None:
    """
    Refused, not guessed.
    """
    with pytest.raises(ShapeError):
        standings.from_bytes(data)


def test_a_standing_says_who_it_is_of() -> None:
    """
    From the birth alone.
    """
    assert at_birth(born("bob", parent=("eve", 2)), 3) == Standing("bob", ("eve", 2), 1_800_000_000_000, 3)
