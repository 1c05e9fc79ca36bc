"""
The declarations of a module: read as the engine reads them, or refused.
"""

from __future__ import annotations

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.modules import hand_written
from runner.kernel.engine import assemble_wat
from runner.kernel.wasm.module import (
    MAX_IMPORTS,
    Bounds,
    Export,
    FunctionType,
    Global,
    Import,
    Kind,
    Module,
    Table,
    read_module,
)
from runner.kernel.wasm.reader import TooMany, WasmFormatError, unsigned
from runner.kernel.wasm.sections import HEADER, split


def _read(wasm: bytes) -> Module:
    return read_module(wasm, split(wasm))


def _section(number: int, payload: bytes) -> bytes:
    return HEADER + bytes((number,)) + unsigned(len(payload)) + payload


def test_all_declarations_are_read() -> None:
    """
    In the module's own order.
    """
    module = _read(
        assemble_wat("""(module
          (import "a" "f" (func (param i32 i64 f32 f64 v128) (result funcref externref)))
          (import "a" "t" (table 1 2 funcref))
          (import "a" "m" (memory 1 2))
          (import "a" "g" (global (mut exnref)))
          (import "a" "e" (tag (param i32)))
          (table 3 externref)
          (global (mut i32) (i32.const 11))
          (global nullexnref (ref.null noexn))
          (func $f (local i32 i32) (local v128))
          (start $f)
          (export "g" (global 1)) (export "f" (func $f)))""")
    )
    kind = FunctionType(("i32", "i64", "f32", "f64", "v128"), ("funcref", "externref"))
    assert module.imports == (
        Import("a", "f", Kind.FUNCTION, 0),
        Import("a", "t", Kind.TABLE, 0),
        Import("a", "m", Kind.MEMORY, 0),
        Import("a", "g", Kind.GLOBAL, 0),
        Import("a", "e", Kind.TAG, 0),
    )
    assert module.type_of(0) == kind
    assert str(kind) == "(i32, i64, f32, f64, v128) -> (funcref, externref)"
    assert module.type_of(1) == FunctionType((), ())
    assert module.tables == (Table("externref", Bounds(3, None)),)
    assert module.memories == ()
    assert module.globals == (Global("i32", mutable=True), Global("nullexnref", mutable=False))
    assert module.exports == (Export("g", Kind.GLOBAL, 1), Export("f", Kind.FUNCTION, 1))
    assert module.start == 1
    assert [(body.locals, body.end - body.start) for body in module.bodies] == [(3, 1)]


def test_a_reference_type_in_its_long_form_is_the_same_type() -> None:
    """
    `(ref null func)` is `funcref`, and some toolchains write it out.
    """
    assert _read(_section(1, b"\x01\x60\x02\x63\x70\x63\x6f\x00")).types == (
        FunctionType(("funcref", "externref"), ()),
    )


@pytest.mark.parametrize(
    ("wasm", "message"),
    [
        (_section(1, b"\x01\x4e"), "a type is not a function's at byte 11"),
        (_section(1, b"\x01\x60\x01\x71\x00"), "a type is unknown to this release at byte 13"),
        (_section(1, b"\x01\x60\x01\x63\x71\x00"), "a reference type is unknown to this release at byte 13"),
        (_section(1, b"\x00\x00"), "bytes are left over at the end of a section at byte 11"),
        (
            _section(2, b"\x01\x00\x00\x7f"),
            "a kind of import or export is unknown to this release at byte 13",
        ),
        (
            _section(5, b"\x01\x03\x01\x01"),
            "a memory or table is shared, of 64 bits, or of odd pages at byte 11",
        ),
        (_section(6, b"\x01\x7f\x00\xd3\x0b"), "an instruction is unknown to this release at byte 13"),
        (_section(10, b"\x01\x05\x00"), "a length reaches past its section at byte 12"),
        (_section(10, b"\x01\x02\x01\x80"), "the bytes end early at byte 14"),
    ],
)
def test_a_form_that_can_not_be_read_is_refused(wasm: bytes, message: str) -> None:
    """
    By its place, never by a guess.
    """
    with pytest.raises(WasmFormatError) as caught:
        _read(wasm)
    assert str(caught.value) == message


def test_more_items_than_admitted_are_refused_before_they_are_read() -> None:
    """
    By the section's name.
    """
    with pytest.raises(TooMany) as caught:
        _read(_section(2, unsigned(MAX_IMPORTS + 1)))
    assert (caught.value.what, caught.value.problem) == (
        "import section",
        "1001 items, and at most 1000 are admitted",
    )


def test_an_index_that_leads_nowhere_is_refused() -> None:
    """
    The engine would have found it before; the reader does not rely on that.
    """
    module = _read(_section(3, b"\x01\x07"))
    with pytest.raises(WasmFormatError, match="a type does not exist"):
        module.type_of(0)
    with pytest.raises(WasmFormatError, match="a function does not exist"):
        module.type_of(1)


def test_the_engine_sees_the_same_imports_and_exports() -> None:
    """
    In a module with one of everything.
    """
    wasm = hand_written()
    module, seen = _read(wasm), wasmtime.Module(wasmtime.Engine(), wasm)
    assert [(item.module, item.name) for item in module.imports] == [
        (item.module, item.name) for item in seen.imports
    ]
    assert [item.name for item in module.exports] == [item.name for item in seen.exports]


@given(st.data())
def test_a_damaged_module_is_read_or_refused(data: st.DataObject) -> None:
    """
    Without the engine's opinion; any byte may be any other.
    """
    wasm = bytearray(hand_written())
    for _ in range(data.draw(st.integers(1, 4))):
        wasm[data.draw(st.integers(8, len(wasm) - 1))] = data.draw(st.integers(0, 255))
    try:
        module = _read(bytes(wasm))
    except WasmFormatError:
        return
    assert all(body.start <= body.end <= len(wasm) for body in module.bodies)
