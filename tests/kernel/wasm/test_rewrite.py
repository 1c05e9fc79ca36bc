"""
The module as it will run: what goes, what stays, and that it still is a module.
"""

from __future__ import annotations

import pytest
import wasmtime

from benchmarks.modules import hand_written
from runner.kernel.engine import assemble_wat
from runner.kernel.wasm.custom import custom_sections, with_custom_section
from runner.kernel.wasm.module import Export, Kind, Module, read_module
from runner.kernel.wasm.reader import TooMany
from runner.kernel.wasm.rewrite import MAX_ELEMENT_SEGMENTS, rewrite
from runner.kernel.wasm.sections import SectionId, split
from tests.kernel.guests import engine


def _read(wasm: bytes) -> Module:
    return read_module(wasm, split(wasm))


def _section(wasm: bytes, number: SectionId) -> bytes | None:
    found = [wasm[section.start : section.end] for section in split(wasm) if section.id == number]
    return found[0] if found else None


def test_only_exports_start_and_custom_sections_change() -> None:
    """
    Byte for byte, when no export has to be declared elsewhere.
    """
    wasm = with_custom_section(hand_written(), "producers", b"\0")
    module = _read(wasm)
    made = rewrite(module, module.exports)
    assert _section(made, SectionId.START) is None
    assert [section.name for section in custom_sections(made)] == ["name"]
    unchanged = set(SectionId) - {SectionId.START, SectionId.CUSTOM}
    assert {number: _section(made, number) for number in unchanged} == {
        number: _section(wasm, number) for number in unchanged
    }


@pytest.mark.parametrize("elements", ["", "(table 1 funcref) (elem (i32.const 0) $a)"])
def test_a_function_that_was_exported_may_still_be_referred_to(elements: str) -> None:
    """
    Only declared functions may, and an export was a declaration.
    """
    wasm = assemble_wat(f"""(module
      {elements}
      (func $a (export "a")) (func $b (export "b")) (func $c (export "c"))
      (func (drop (ref.func $a)) (drop (ref.func $b)) (drop (ref.func $c)))
      (data "x"))""")
    made = rewrite(_read(wasm), [Export("kept", Kind.FUNCTION, 1)])
    wasmtime.Module.validate(engine().wasmtime, made)
    assert [item.name for item in wasmtime.Module(engine().wasmtime, made).exports] == ["kept"]


def test_too_many_element_segments_are_refused() -> None:
    """
    One is added, and the engine has a bound of its own.
    """
    segments = "(elem func)" * (MAX_ELEMENT_SEGMENTS + 1)
    module = _read(assemble_wat(f'(module (func (export "a")) {segments})'))
    with pytest.raises(TooMany) as caught:
        rewrite(module, [])
    assert caught.value.what == "element section"
