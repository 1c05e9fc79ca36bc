"""
Records as bytes: each comes back as it was, and nothing else is taken for one.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import InternalError, JournalCorrupt
from runner.journal import wire
from runner.journal.records import Decision, Delivery, Intent, Record, Slice, Start, Stopped, Wake
from runner.kernel.abi import DeliveryKind, Status
from tests.journal.samples import HELLO, STRATEGIES, any_record, born, turn

STOPPED: Final = {"at_ms": 1, "reason": "enough"}
RECEIPT: Final = {"call": 1, "execution": "bob-1-1", "payload": HELLO, "status": 0}
SLICE: Final = {
    "by_clock": False,
    "calls": [],
    "cancelled": [],
    "digest": b"",
    "error": None,
    "fuel": 0,
    "reply": None,
}


def refusal(value: Any) -> str:
    """
    Why these bytes, or the encoding of this value, are no record.
    """
    data = value if isinstance(value, bytes) else codec.encode(value)
    with pytest.raises(JournalCorrupt) as caught:
        wire.decode(data, name="bob", seq=3)
    assert caught.value.seq == 3
    start = "journal of bob is damaged at record 3: "
    assert caught.value.message.startswith(start)
    return caught.value.message.removeprefix(start)


@pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: str(kind.__name__))
def test_a_record_comes_back_as_it_was(kind: type[Record]) -> None:
    """
    Each kind, with any fields.
    """

    @given(STRATEGIES[kind])
    def check(record: Record) -> None:
        data = wire.encode(record)
        back = wire.decode(data, name="bob", seq=0)
        assert back == record
        assert type(back) is kind
        assert wire.encode(back) == data

    check()


def test_every_kind_of_the_union_has_a_row_and_every_field_a_shape() -> None:
    """
    A kind or a field that the table lacks could not be written.
    """
    assert [kind for kind, _ in wire.RECORDS.values()] == list(get_args(Record))
    assert list(STRATEGIES) == list(get_args(Record))
    for kind, fields in wire.RECORDS.values():
        assert list(fields) == [field.name for field in dataclasses.fields(kind)]
    assert list(wire.INTENT) == [field.name for field in dataclasses.fields(Intent)]


def test_a_kind_is_named_as_its_class() -> None:
    """
    In lower case, words apart.
    """
    assert wire.kind_of(born()) == "born"
    names = {name: kind.__name__.lower() for name, (kind, _) in wire.RECORDS.items()}
    assert {name.replace("_", "") for name in names} == set(names.values())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    """
    Nothing but the one error comes out.
    """
    try:
        record = wire.decode(data, name="bob", seq=0)
    except JournalCorrupt:
        return
    assert wire.encode(record) == data


@given(any_record, st.data())
def test_a_record_with_one_bit_changed_is_another_or_refused(record: Record, data: st.DataObject) -> None:
    """
    Never the same, and never another error.
    """
    encoded = bytearray(wire.encode(record))
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    try:
        other = wire.decode(bytes(encoded), name="bob", seq=0)
    except JournalCorrupt:
        return
    assert wire.encode(other) == encoded


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "payload ends early at byte 0"),
        (b"\x9f\xff", "indefinite or reserved length at byte 0"),
        ({}, "not a record"),
        (["stopped"], "not a record"),
        (["stopped", STOPPED, None], "not a record"),
        (["halted", STOPPED], "kind 'halted' is unknown"),
        ([7, STOPPED], "kind 7 is unknown"),
        (["stopped", []], "stopped: list, not a map"),
        (["stopped", {"at_ms": 1}], "stopped: key 'reason' is missing"),
        (["stopped", {**STOPPED, "by": "me"}], "stopped: key 'by' is unknown"),
        (["stopped", {**STOPPED, "at_ms": "1"}], "stopped: at_ms: str, not an integer"),
        (["stopped", {**STOPPED, "at_ms": True}], "stopped: at_ms: bool, not an integer"),
        (
            ["stopped", {**STOPPED, "at_ms": -1}],
            "stopped: at_ms: -1 is not between 0 and 9223372036854775807",
        ),
        (["stopped", {**STOPPED, "reason": b"x"}], "stopped: reason: bytes, not text"),
        (["receipt", {**RECEIPT, "call": 0}], "receipt: call: 0 is not between 1 and 2147483647"),
        (["receipt", {**RECEIPT, "execution": ""}], "receipt: execution: text of 0 characters"),
        (["receipt", {**RECEIPT, "execution": "x" * 257}], "receipt: execution: text of 257 characters"),
        (
            ["receipt", {**RECEIPT, "status": 77}],
            f"receipt: status: 77 is none of {sorted(int(status) for status in Status)}",
        ),
        (["receipt", {**RECEIPT, "payload": "x"}], "receipt: payload: str, not bytes"),
        (["receipt", {**RECEIPT, "payload": b""}], "receipt: payload: payload ends early at byte 0"),
        (["receipt", {**RECEIPT, "payload": b"\xf6\xf6"}], "receipt: payload: trailing bytes at byte 1"),
        (["slice", {**SLICE, "by_clock": 0}], "slice: by_clock: int, not a truth value"),
        (["slice", {**SLICE, "calls": {}}], "slice: calls: dict, not an array"),
        (["slice", {**SLICE, "calls": [{}]}], "slice: calls: key 'number' is missing"),
        (["slice", {**SLICE, "digest": b"x"}], "slice: digest: 1 bytes"),
        (["slice", {**SLICE, "digest": None}], "slice: digest: NoneType, not bytes"),
        (["slice", {**SLICE, "error": {}}], "slice: error: dict, not bytes"),
        (["slice", {**SLICE, "error": b"\x80"}], "slice: error: list inside, not a map"),
        (["slice", {**SLICE, "reply": [True]}], "slice: reply: list, not an array of two"),
    ],
)
def test_what_is_no_record_is_refused_by_its_fault(value: Any, problem: str) -> None:
    """
    The message says what is wrong, and where.
    """
    assert refusal(value) == problem


def test_a_word_outside_its_set_is_refused() -> None:
    """
    And a limit of zero, which no instance has.
    """
    start = {"call": 1, "effect": "maybe", "execution": "bob-1-1"}
    assert refusal(["start", start]) == "start: effect: 'maybe' is none of pure, idempotent, effectful"
    data = codec.decode(wire.encode(born()))
    data[1]["limits"] = {"fuel": 0}
    assert refusal(data) == "born: limits: 0 is not between 1 and 9223372036854775807"
    data[1]["limits"] = None
    assert refusal(data) == "born: limits: NoneType, not a map"


def test_what_could_not_be_read_again_is_not_written() -> None:
    """
    A mistake of ours is found before it is on record for ever.
    """
    cases: list[tuple[Record, str]] = [
        (
            Delivery(number=0, kind=1, payload=HELLO, now_ms=0),
            "a record delivery can't be written: number: 0 is not between 1 and 2147483647",
        ),
        (
            Wake(call=1, status=0, payload=b"\x81", now_ms=0),
            "a record wake can't be written: payload: container ends early at byte 0",
        ),
        (
            Start(call=1, execution="x", effect="perhaps"),  # type: ignore[arg-type]
            "a record start can't be written: effect: 'perhaps' is none of pure, idempotent, effectful",
        ),
    ]
    for record, problem in cases:
        with pytest.raises(InternalError) as caught:
            wire.encode(record)
        assert caught.value.message == problem
    with pytest.raises(InternalError, match=r"^a record slice can't be written: not a payload value: "):
        wire.encode(Slice(error={"when": object()}))


def test_members_of_enums_are_written_as_their_numbers() -> None:
    """
    A record made with one reads back equal to it.
    """
    record = turn(1)[0]
    assert isinstance(record, Delivery)
    assert type(record.kind) is DeliveryKind
    back = wire.decode(wire.encode(record), name="bob", seq=0)
    assert back == record
    assert isinstance(back, Delivery)
    assert type(back.kind) is int


def test_a_failure_with_more_items_than_a_record_may_have_is_still_written() -> None:
    """
    What a guest put into its error does not count as the record's own.
    """
    failed = Slice(error={"kind": "guest", "details": {"data": list(range(65_000))}})
    assert wire.decode(wire.encode(failed), name="bob", seq=0) == failed
    assert wire.kind_of(Decision(call=1, verdict="ask", rule="", by="policy", at_ms=0)) == "decision"
    assert wire.kind_of(Stopped(reason="", at_ms=0)) == "stopped"
