"""
Walking instructions: what follows each opcode, and which opcodes change state that can't be captured.

Input: hostile, though the engine has validated it by then. The table has every instruction of the
features that the engine keeps on: the first version of WebAssembly, sign extension, saturating
conversion, bulk memory, reference types, SIMD, exceptions with `try_table`. An opcode outside it is
refused and never guessed at, since its immediates could hide what comes after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from runner.kernel.wasm.reader import Reader, WasmFormatError

TABLE_SET: Final = 0x26
END: Final = 0x0B

STATE_OPCODES: Final[dict[int, str]] = {
    TABLE_SET: "table.set",
    0xFC0009: "data.drop",
    0xFC000C: "table.init",
    0xFC000D: "elem.drop",
    0xFC000E: "table.copy",
    0xFC000F: "table.grow",
    0xFC0011: "table.fill",
}
"""
Instructions that change a table or drop a segment; prefixed opcodes are `prefix << 16 | number`.
"""

# What follows an opcode: so many LEB128 integers, then so many plain bytes; below zero it takes code.
_Shape = tuple[int, int]
_PLAIN: Final[_Shape] = (0, 0)
_INDEX: Final[_Shape] = (1, 0)
_TWO: Final[_Shape] = (2, 0)
_MEMARG: Final[_Shape] = (-1, 0)
_MEMARG_LANE: Final[_Shape] = (-1, 1)
_BLOCK: Final[_Shape] = (-2, 0)
_BR_TABLE: Final[_Shape] = (-3, 0)
_TYPES: Final[_Shape] = (-4, 0)
_TRY_TABLE: Final[_Shape] = (-5, 0)

_PREFIXES: Final = (0xFC, 0xFD)
_HIGH_BIT: Final = 0x80
_CATCH_ALL: Final = 2
_LONG_REFERENCES: Final = (0x63, 0x64)


@dataclass(frozen=True, slots=True)
class Body:
    """
    A function's body.

    Attributes:
        size_bytes: All of it, declarations of locals too.
        locals: How many locals it declares.
        start: Offset of its first instruction.
        end: Offset after its last one.
    """

    size_bytes: int
    locals: int
    start: int
    end: int


def _spread(*rows: tuple[range | tuple[int, ...], _Shape]) -> dict[int, _Shape]:
    return {opcode: shape for opcodes, shape in rows for opcode in opcodes}


_SHAPES: Final[dict[int, _Shape]] = _spread(
    ((0x00, 0x01, 0x05, 0x0A, 0x0B, 0x0F, 0x1A, 0x1B, 0xD1), _PLAIN),
    ((0x02, 0x03, 0x04), _BLOCK),
    ((0x08, 0x0C, 0x0D, 0x10, *range(0x20, 0x27), 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2), _INDEX),
    ((0x0E,), _BR_TABLE),
    ((0x11,), _TWO),
    ((0x1C,), _TYPES),
    ((0x1F,), _TRY_TABLE),
    (range(0x28, 0x3F), _MEMARG),
    ((0x43,), (0, 4)),
    ((0x44,), (0, 8)),
    (range(0x45, 0xC5), _PLAIN),
    (range(0xFC0000, 0xFC0008), _PLAIN),
    ((0xFC0008, 0xFC000A, 0xFC000C, 0xFC000E), _TWO),
    ((0xFC0009, 0xFC000B, 0xFC000D, 0xFC000F, 0xFC0010, 0xFC0011), _INDEX),
    (range(0xFD0000, 0xFD000C), _MEMARG),
    ((0xFD000C, 0xFD000D), (0, 16)),
    (range(0xFD000E, 0xFD0015), _PLAIN),
    (range(0xFD0015, 0xFD0023), (0, 1)),
    (range(0xFD0023, 0xFD0054), _PLAIN),
    (range(0xFD0054, 0xFD005C), _MEMARG_LANE),
    (range(0xFD005C, 0xFD005E), _MEMARG),
    (range(0xFD005E, 0xFD0100), _PLAIN),
)


def instructions(code: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    Offset and opcode of each instruction between `start` and `end`, in order.

    Raises:
        WasmFormatError: When it comes to an unknown opcode, or an instruction reaches past `end`.
    """
    position = start
    while position < end:
        offset = position
        opcode = code[position]
        position += 1
        try:
            if opcode in _PREFIXES:
                number, position = _leb(code, position)
                opcode = opcode << 16 | number
            lebs, size_bytes = _SHAPES[opcode]
            if lebs < 0:
                lebs, position = _irregular(code, position, lebs)
            while lebs:
                lebs -= 1
                while code[position] >= _HIGH_BIT:
                    position += 1
                position += 1
        except KeyError:
            raise WasmFormatError("an instruction is unknown to this release", offset) from None
        except IndexError:
            position = end
            size_bytes = 1
        position += size_bytes
        if position > end:
            raise WasmFormatError("an instruction reaches past its end", offset)
        yield offset, opcode


def skip_type(reader: Reader) -> None:
    """
    Pass over a value type or a block's type: one integer, or two for a reference in its long form.
    """
    first = reader.byte()
    if first >= _HIGH_BIT or first in _LONG_REFERENCES:
        reader.u32()


def skip_expression(reader: Reader) -> None:
    """
    Pass over a constant expression, its `end` included. It has no blocks, so the first `end` is its own.
    """
    for offset, opcode in instructions(reader.data, reader.position, reader.end):
        if opcode == END:
            reader.position = offset + 1
            return
    raise WasmFormatError("a constant expression has no end", reader.position)


def _leb(code: bytes, position: int) -> tuple[int, int]:
    """
    The unsigned integer at `position`, and the position after it.
    """
    reader = Reader(code, position, len(code))
    return reader.u32(), reader.position


def _irregular(code: bytes, position: int, shape: int) -> tuple[int, int]:
    """
    Pass over what no number of integers can describe; returns how many integers still follow, and where.
    """
    if shape == _MEMARG[0]:
        # Bit 6 would put a memory's index between alignment and offset; with one memory it's never set.
        if code[position] & 0x40:
            raise WasmFormatError("a memory access names its memory", position)
        return 2, position
    reader = Reader(code, position, len(code))
    if shape == _BR_TABLE[0]:
        return reader.u32() + 1, reader.position
    if shape == _TYPES[0]:
        for _ in range(reader.u32()):
            skip_type(reader)
        return 0, reader.position
    skip_type(reader)
    if shape == _TRY_TABLE[0]:
        for _ in range(reader.u32()):
            # Two of the four kinds of catch name a tag before their label.
            if reader.byte() < _CATCH_ALL:
                reader.u32()
            reader.u32()
    return 0, reader.position
