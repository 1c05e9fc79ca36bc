"""
The module as it will run: nothing happens by itself, and every changing thing has a name for the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.kernel.wasm.custom import filter_custom
from runner.kernel.wasm.module import Kind
from runner.kernel.wasm.names import NAME_SECTION
from runner.kernel.wasm.reader import Reader, name_bytes, unsigned
from runner.kernel.wasm.sections import HEADER, SectionId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner.kernel.wasm.module import Export, Module
    from runner.kernel.wasm.sections import Section

MAX_ELEMENT_SEGMENTS: Final = 10_000
_DECLARED_FUNCTIONS: Final = b"\x03\x00"


def rewrite(module: Module, exports: Sequence[Export]) -> bytes:
    """
    `module` with these exports in place of its own, without its start section, and without custom sections
    other than names. All else stays as it is, byte for byte.

    A function may be named by `ref.func` because it was exported. Such functions are declared in an element
    segment instead, which has no other effect.

    Args:
        module: A valid module with an export section.
        exports: What the result exports.

    Raises:
        WasmFormatError: If there are more element segments than admitted.
    """
    named = {export.index for export in module.exports if export.kind == Kind.FUNCTION}
    named -= {export.index for export in exports if export.kind == Kind.FUNCTION}
    pieces = [HEADER]
    has_elements = any(section.id == SectionId.ELEMENT for section in module.sections)
    for section in module.sections:
        if section.id == SectionId.EXPORT:
            pieces.append(_section(SectionId.EXPORT, [_export(export) for export in exports]))
            if named and not has_elements:
                # Between exports and code is where the format wants it.
                pieces.append(_section(SectionId.ELEMENT, [_declaration(named)]))
        elif section.id == SectionId.ELEMENT and named:
            pieces.append(_with_declaration(module, section, named))
        elif section.id != SectionId.START:
            pieces.append(module.wasm[section.start : section.end])
    return filter_custom(b"".join(pieces), lambda name: name == NAME_SECTION)


def _section(number: SectionId, items: Iterable[bytes], count: int | None = None) -> bytes:
    items = list(items)
    payload = unsigned(len(items) if count is None else count) + b"".join(items)
    return bytes((number,)) + unsigned(len(payload)) + payload


def _export(export: Export) -> bytes:
    return name_bytes(export.name) + bytes((export.kind,)) + unsigned(export.index)


def _declaration(functions: set[int]) -> bytes:
    return _DECLARED_FUNCTIONS + unsigned(len(functions)) + b"".join(map(unsigned, sorted(functions)))


def _with_declaration(module: Module, section: Section, functions: set[int]) -> bytes:
    reader = Reader(module.wasm, section.payload, section.end)
    count = reader.count("element section", MAX_ELEMENT_SEGMENTS)
    segments = module.wasm[reader.position : section.end]
    return _section(SectionId.ELEMENT, [segments, _declaration(functions)], count + 1)
