"""
Custom sections: put in, found, taken out, and nothing else changes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.modules import hand_written
from runner.kernel.wasm.custom import (
    CustomSection,
    custom_sections,
    with_custom_section,
    without_custom_sections,
)
from runner.kernel.wasm.reader import WasmFormatError
from runner.kernel.wasm.sections import HEADER, MAX_SECTIONS, split

_names = st.text(max_size=8)


@given(st.lists(st.tuples(_names, st.binary(max_size=300)), max_size=5))
def test_sections_are_found_as_they_were_put_in(sections: list[tuple[str, bytes]]) -> None:
    """
    In order, and twice when put in twice.
    """
    module = HEADER
    for name, content in sections:
        module = with_custom_section(module, name, content)
    assert custom_sections(module) == tuple(CustomSection(*section) for section in sections)


@given(st.lists(_names, max_size=5), st.sets(_names, max_size=3))
def test_taking_sections_out_leaves_the_others(names: list[str], gone: set[str]) -> None:
    """
    By name.
    """
    module = HEADER
    for name in names:
        module = with_custom_section(module, name, b"content")
    left = custom_sections(without_custom_sections(module, gone))
    assert [section.name for section in left] == [name for name in names if name not in gone]


def test_what_was_put_in_and_taken_out_leaves_every_byte_as_it_was() -> None:
    """
    So that a digest of the code does not depend on what was packed with it.
    """
    module = hand_written()
    packed = with_custom_section(module, "runner.manifest", b"\xf6")
    assert without_custom_sections(packed, {"runner.manifest"}) == module
    assert without_custom_sections(module, {"runner.manifest"}) == module


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (b"\0asm", "no header of a core module of version 1 at byte 0"),
        (HEADER + b"\x00", "the bytes end early at byte 9"),
        (HEADER + b"\x00\x05\x01", "a length reaches past its section at byte 10"),
        (HEADER + b"\x0e\x00", "a section is unknown to this release at byte 8"),
        (HEADER + b"\x00\x00", "the bytes end early at byte 10"),
        (HEADER + b"\x00\x02\x05a", "a length reaches past its section at byte 11"),
        (HEADER + b"\x00\x01\x00" * (MAX_SECTIONS + 1), "more than 1000 sections at byte 3008"),
    ],
)
def test_what_is_no_module_is_refused(module: bytes, message: str) -> None:
    """
    By its place.
    """
    with pytest.raises(WasmFormatError) as caught:
        custom_sections(module)
    assert str(caught.value) == message


@given(st.binary(max_size=200))
def test_any_bytes_after_a_header_are_sections_or_refused(data: bytes) -> None:
    """
    And what is accepted is covered by its sections without a gap.
    """
    try:
        sections = split(HEADER + data)
    except WasmFormatError:
        return
    ends = [len(HEADER), *(section.end for section in sections)]
    assert [section.start for section in sections] == ends[:-1]
    assert ends[-1] == len(HEADER) + len(data)
