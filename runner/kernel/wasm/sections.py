"""
The outermost structure of a module: a header, then sections.

Input: hostile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from runner.kernel.wasm.reader import Reader, WasmFormatError

HEADER: Final = b"\0asm\x01\0\0\0"

MAX_SECTIONS: Final = 1_000
"""
Custom ones included; a debug build has some twenty.
"""


class SectionId(IntEnum):
    """
    Kinds of section.
    """

    CUSTOM = 0
    TYPE = 1
    IMPORT = 2
    FUNCTION = 3
    TABLE = 4
    MEMORY = 5
    GLOBAL = 6
    EXPORT = 7
    START = 8
    ELEMENT = 9
    CODE = 10
    DATA = 11
    DATA_COUNT = 12
    TAG = 13


@dataclass(frozen=True, slots=True)
class Section:
    """
    Where a section lies: its header from `start`, its payload from `payload` to `end`.
    """

    id: SectionId
    start: int
    payload: int
    end: int


def split(wasm: bytes) -> tuple[Section, ...]:
    """
    Where the sections of `wasm` lie; total for any bytes.

    Raises:
        WasmFormatError: If it is no core module of version 1, or doesn't consist of known sections.
    """
    if not wasm.startswith(HEADER):
        raise WasmFormatError("no header of a core module of version 1", 0)
    reader = Reader(wasm, len(HEADER), len(wasm))
    sections: list[Section] = []
    while reader.position < reader.end:
        start = reader.position
        if len(sections) == MAX_SECTIONS:
            raise WasmFormatError(f"more than {MAX_SECTIONS} sections", start)
        number = reader.byte()
        if number > max(SectionId):
            raise WasmFormatError("a section is unknown to this release", start)
        payload = reader.skip(reader.u32())
        sections.append(Section(SectionId(number), start, payload, reader.position))
    return tuple(sections)
