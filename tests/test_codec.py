"""
One value has one encoding, and any bytes are either that or an error with a place.
"""

from __future__ import annotations

import math
import struct
import tracemalloc

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.codec import MAX_DEPTH, MAX_ITEMS, CodecError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 64), (1 << 64) - 1)
    | st.floats()
    | st.text(st.characters(codec="utf-8"))
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=30), inner, max_size=5)
    ),
)


def decoded(data: bytes) -> codec.Value | CodecError:
    """
    What `data` decodes to, or why it doesn't.
    """
    try:
        return codec.decode(data)
    except CodecError as error:
        return error


def in_order(value: codec.Value) -> codec.Value:
    """
    The value with all maps in one order, so that its `repr` tells it from any other, NaN or not.
    """
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def nested(depth: int) -> codec.Value:
    """
    `depth` lists inside each other.
    """
    value: codec.Value = 0
    for _ in range(depth):
        value = [value]
    return value


@given(VALUES)
def test_what_is_encoded_decodes_to_itself(value: codec.Value) -> None:
    """A NaN is some NaN: all of them have one encoding."""
    data = codec.encode(value)
    again = codec.decode(data)
    assert codec.encode(again) == data
    assert repr(in_order(again)) == repr(in_order(value))


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_their_only_encoding_or_not_at_all(data: bytes) -> None:
    """Total, and never lenient."""
    value = decoded(data)
    if isinstance(value, CodecError):
        assert str(value) == f"{value.problem} at byte {value.offset}"
        assert 0 <= value.offset <= len(data)
    else:
        assert codec.encode(value) == data


@given(VALUES, st.data())
def test_a_damaged_payload_is_another_value_or_an_error(value: codec.Value, data: st.DataObject) -> None:
    """Never the same value in a second encoding."""
    good = codec.encode(value)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    other = decoded(bytes(bad))
    assert isinstance(other, CodecError) or codec.encode(other) == bytes(bad) != good


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, "f6"),
        (False, "f4"),
        (True, "f5"),
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (1 << 16, "1a00010000"),
        (1 << 32, "1b0000000100000000"),
        ((1 << 64) - 1, "1bffffffffffffffff"),
        (-1, "20"),
        (-(1 << 64), "3bffffffffffffffff"),
        (0.0, "f90000"),
        (-0.0, "f98000"),
        (1.5, "f93e00"),
        (100000.0, "fa47c35000"),
        (1.1, "fb3ff199999999999a"),
        (math.inf, "f97c00"),
        (math.nan, "f97e00"),
        (5.960464477539063e-08, "f90001"),
        ("", "60"),
        ("ü", "62c3bc"),
        (b"\x01", "4101"),
        ([], "80"),
        ([1, [2]], "82018102"),
        ({}, "a0"),
        ({"b": 1, "a": 2, "aa": 3}, "a3616102616201626161" + "03"),
    ],
)
def test_the_encoding_is_that_of_rfc_8949(value: codec.Value, data: str) -> None:
    """Section 4.2.1: shortest heads and floats, keys in the order of their bytes."""
    assert codec.encode(value).hex() == data
    assert repr(in_order(codec.decode(bytes.fromhex(data)))) == repr(in_order(value))


REFUSED = {
    "": "payload ends early at byte 0",
    "18": "payload ends early at byte 0",
    "8201": "container ends early at byte 0",
    "8118": "payload ends early at byte 1",
    "82811801": "integer or length is not the shortest at byte 2",
    "6261": "string ends early at byte 0",
    "7bffffffffffffffff": "string ends early at byte 0",
    "5bffffffffffffffff": "string ends early at byte 0",
    "9bffffffffffffffff": "container ends early at byte 0",
    "bb8000000000000000": "container ends early at byte 0",
    "bbffffffffffffffff": "container ends early at byte 0",
    "a161": "container ends early at byte 0",
    "a16161": "payload ends early at byte 3",
    "0000": "trailing bytes at byte 1",
    "8000": "trailing bytes at byte 1",
    "1801": "integer or length is not the shortest at byte 0",
    "1900ff": "integer or length is not the shortest at byte 0",
    "1a0000ffff": "integer or length is not the shortest at byte 0",
    "1b00000000ffffffff": "integer or length is not the shortest at byte 0",
    "3817": "integer or length is not the shortest at byte 0",
    "78016b": "integer or length is not the shortest at byte 0",
    "9800": "integer or length is not the shortest at byte 0",
    "b800": "integer or length is not the shortest at byte 0",
    "fb3ff8000000000000": "not the shortest or sorted encoding at byte 0",
    "fa3fc00000": "not the shortest or sorted encoding at byte 0",
    "f97e01": "not the shortest or sorted encoding at byte 0",
    "fb7ff8000000000001": "not the shortest or sorted encoding at byte 0",
    "a2616201616102": "not the shortest or sorted encoding at byte 0",
    "a262616101616202": "not the shortest or sorted encoding at byte 0",
    "a2616101616102": "error decoding map: Duplicate map key: 'a' at byte 0",
    "a10102": "map key is not text at byte 1",
    "a1416102": "map key is not text at byte 1",
    "a1f602": "map key is not text at byte 1",
    "a1a002": "map key is not text at byte 1",
    "a2616102a002": "map key is not text at byte 4",
    "61ff": "error decoding text string at byte 0",
    "c074323031332d30332d32315432303a30343a30305a": "tags are not allowed at byte 0",
    "c24101": "tags are not allowed at byte 0",
    "d81c80": "tags are not allowed at byte 0",
    "81d81d00": "tags are not allowed at byte 1",
    "d9d9f700": "tags are not allowed at byte 0",
    "f7": "simple value is not allowed at byte 0",
    "e0": "simple value is not allowed at byte 0",
    "f818": "simple value is not allowed at byte 0",
    "f8ff": "simple value is not allowed at byte 0",
    "ff": "simple value is not allowed at byte 0",
    "fc": "simple value is not allowed at byte 0",
    "5f4100ff": "indefinite or reserved length at byte 0",
    "7f6161ff": "indefinite or reserved length at byte 0",
    "9fff": "indefinite or reserved length at byte 0",
    "bfff": "indefinite or reserved length at byte 0",
    "1c": "indefinite or reserved length at byte 0",
    "3f": "indefinite or reserved length at byte 0",
    "81" * (MAX_DEPTH + 1) + "00": f"deeper than {MAX_DEPTH} at byte {MAX_DEPTH}",
    "81" * 100_000: f"deeper than {MAX_DEPTH} at byte {MAX_DEPTH}",
}


@pytest.mark.parametrize("data", REFUSED, ids=lambda data: data[:20])
def test_what_is_no_payload_is_refused_with_its_reason(data: str) -> None:
    """Each rule of the codec once at least."""
    with pytest.raises(CodecError) as caught:
        codec.decode(bytes.fromhex(data))
    assert str(caught.value).splitlines()[0] == REFUSED[data]


def test_containers_may_be_as_deep_as_the_bound() -> None:
    """And not one deeper, also on the way out."""
    assert codec.decode(codec.encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(
        TypeError, match=rf"^not a payload value: deeper than {MAX_DEPTH} at byte {MAX_DEPTH}$"
    ):
        codec.encode(nested(MAX_DEPTH + 1))


def test_payloads_may_have_as_many_items_as_the_bound() -> None:
    """And not one more, also on the way out."""
    most = [None] * (MAX_ITEMS - 1)
    assert codec.decode(codec.encode(most)) == most
    with pytest.raises(TypeError, match=rf"^not a payload value: more than {MAX_ITEMS} items at byte 65540$"):
        codec.encode([*most, None])
    with pytest.raises(CodecError, match=rf"^more than {MAX_ITEMS} items at byte 65540$"):
        codec.decode(cbor2.dumps([*most, None, None, None]))


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x9a\x00\x0f\xff\xff" + b"\x80" * 0x0FFFFF,
        b"\x9a\x00\x0f\xff\xff" + b"\xa0" * 0x0FFFFF,
        b"\x81" * (1 << 20),
        b"\xc1" * (1 << 20),
        b"\xa1\x61a" * (1 << 18),
        b"\x5a\x7f\xff\xff\xff" + bytes(1000),
        b"\x9b\x00\x00\x00\x7f\xff\xff\xff\xff" + bytes(1000),
        (b"\x82" * 64 + bytes(65)) * 1000,
    ],
)
def test_a_bomb_ends_before_it_grows(bomb: bytes) -> None:
    """A megabyte of one-byte items would be 64 MiB of objects; the scan builds nothing."""
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            codec.decode(bomb)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 16


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1 << 64, "tags are not allowed at byte 0"),
        (-(1 << 64) - 1, "tags are not allowed at byte 0"),
        ({1: 2}, "map key is not text at byte 1"),
        ({"a", "b"}, "tags are not allowed at byte 0"),
        (cbor2.undefined, "simple value is not allowed at byte 0"),
        (cbor2.CBORSimpleValue(99), "simple value is not allowed at byte 0"),
        (1 + 2j, "tags are not allowed at byte 0"),
        (object, "cannot encode type <class 'type'>"),
    ],
)
def test_a_value_of_no_payload_type_is_refused(value: object, problem: str) -> None:
    """What the decoder would not take is not made."""
    with pytest.raises(TypeError) as caught:
        codec.encode(value)
    assert str(caught.value) == f"not a payload value: {problem}"


def test_text_that_utf_8_can_not_say_is_refused() -> None:
    """JSON may hold half a surrogate pair, and a tool's answer may be JSON."""
    with pytest.raises(TypeError, match=r"^not a payload value: 'utf-8' codec can't encode character"):
        codec.encode({"text": "\ud800"})


def test_a_value_that_contains_itself_is_refused() -> None:
    """Rather than followed for ever."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(TypeError, match=r"^not a payload value: cyclic data structure detected$"):
        codec.encode(value)


@given(st.floats(width=16) | st.floats(width=32) | st.floats(width=64))
def test_a_float_takes_the_shortest_form_that_keeps_it(value: float) -> None:
    """Two, four or eight bytes."""
    data = codec.encode(value)
    (form, code) = {3: (">e", 0xF9), 5: (">f", 0xFA), 9: (">d", 0xFB)}[len(data)]
    assert data[0] == code
    assert repr(struct.unpack(form, data[1:])[0]) == repr(value)


@given(st.binary(max_size=64) | VALUES.map(codec.encode))
def test_a_second_look_comes_to_the_same_as_the_first(data: bytes) -> None:
    """
    Whatever was remembered meanwhile, and values of two looks have nothing in common.
    """
    codec._sound.discard(data)
    first, second = decoded(data), decoded(data)
    if isinstance(first, CodecError):
        assert isinstance(second, CodecError)
        assert (first.problem, first.offset) == (second.problem, second.offset)
        with pytest.raises(CodecError):
            codec.check(data)
    else:
        assert repr(in_order(first)) == repr(in_order(second))
        assert not isinstance(first, list | dict) or first is not second
        codec.check(data)


def test_what_is_remembered_is_bounded() -> None:
    """
    In number and in length.
    """
    for number in range(codec._REMEMBERED + 5):
        codec.decode(codec.encode(["number", number]))
    assert 0 < len(codec._sound) <= codec._REMEMBERED
    long = codec.encode(bytes(codec._REMEMBERED_BYTES))
    codec.decode(long)
    assert long not in codec._sound


@given(VALUES)
def test_a_value_of_known_types_has_the_same_encoding(value: codec.Value) -> None:
    """
    Only the look at its types is left out.
    """
    assert codec.encode_typed(value) == codec.encode(value)


def test_a_value_of_known_types_is_bounded_all_the_same() -> None:
    """
    What could not be read again is not written.
    """
    with pytest.raises(TypeError, match=f"more than {MAX_ITEMS} items"):
        codec.encode_typed([0] * MAX_ITEMS)
    with pytest.raises(TypeError, match="not a payload value"):
        codec.encode_typed("\ud800")
