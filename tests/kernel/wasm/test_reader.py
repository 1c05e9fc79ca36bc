"""
The primitive encodings: what is read, and what is refused before anything is built from it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.wasm.reader import Reader, TooMany, WasmFormatError, name_bytes, printable, unsigned


def _reader(data: bytes) -> Reader:
    return Reader(data, 0, len(data))


@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_an_integer_is_read_back_however_it_is_padded(value: int, padding: int) -> None:
    """
    Linkers leave room in integers to fill in later.
    """
    short = unsigned(value)
    padding = min(padding, 5 - len(short))
    padded = (
        bytes(byte | 0x80 for byte in short[-1:]) + b"\x80" * (padding - 1) + b"\0" if padding else short[-1:]
    )
    reader = _reader(short[:-1] + padded)
    assert reader.u32() == value
    reader.finish()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the bytes end early at byte 0"),
        (b"\x80\x80", "the bytes end early at byte 2"),
        (b"\x80\x80\x80\x80\x80\x00", "an integer is longer than five bytes at byte 0"),
        (b"\xff\xff\xff\xff\x1f", "an integer is larger than 32 bits at byte 0"),
    ],
)
def test_an_integer_that_is_none_is_refused(data: bytes, message: str) -> None:
    """
    By its place.
    """
    with pytest.raises(WasmFormatError) as caught:
        _reader(data).u32()
    assert str(caught.value) == message


@given(st.text())
def test_a_name_is_read_back(name: str) -> None:
    """
    All of Unicode.
    """
    reader = _reader(name_bytes(name))
    assert reader.name() == name
    reader.finish()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x05abc", "a length reaches past its section at byte 1"),
        (b"\x02\xc3\x28", "a name is not UTF-8 at byte 1"),
    ],
)
def test_a_name_that_is_none_is_refused(data: bytes, message: str) -> None:
    """
    By its place.
    """
    with pytest.raises(WasmFormatError) as caught:
        _reader(data).name()
    assert str(caught.value) == message


def test_a_count_above_its_bound_is_refused_before_its_items_are_looked_at() -> None:
    """
    Four billion items are claimed, none is there.
    """
    with pytest.raises(TooMany) as caught:
        _reader(unsigned(2**32 - 1)).count("import section", 10)
    assert caught.value.what == "import section"
    assert caught.value.problem == "4294967295 items, and at most 10 are admitted"


def test_bytes_left_over_are_refused() -> None:
    """
    A section says its size twice: by its header, and by what is in it.
    """
    with pytest.raises(WasmFormatError) as caught:
        _reader(b"\0").finish()
    assert str(caught.value) == "bytes are left over at the end of a section at byte 0"


def test_untrusted_text_is_escaped_and_cut() -> None:
    """
    No line breaks, terminal escapes or turned writing, and never more than the limit.
    """
    assert printable("a\n\x1b[31m\u202eé") == "a\\n\\x1b[31m\\u202eé"
    assert printable("x" * 80) == "x" * 80
    assert printable("x" * 1_000_000) == "x" * 80 + "…"
    assert printable("\n" * 80, 3) == "\\n\\…"
