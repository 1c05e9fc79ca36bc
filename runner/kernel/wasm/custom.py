"""
Custom sections: what an agent file carries beside its code.

Input: hostile; any bytes at all may be given to these functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.kernel.wasm.reader import Reader, name_bytes, unsigned
from runner.kernel.wasm.sections import HEADER, SectionId, split

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runner.kernel.wasm.sections import Section


@dataclass(frozen=True, slots=True)
class CustomSection:
    """
    One custom section of a module. Two may have the same name.
    """

    name: str
    content: bytes


def custom_sections(wasm: bytes) -> tuple[CustomSection, ...]:
    """
    The custom sections of `wasm`, in its order.

    Raises:
        WasmFormatError: If `wasm` doesn't consist of sections.
    """
    found = []
    for section in split(wasm):
        if section.id == SectionId.CUSTOM:
            name, content = custom_name(wasm, section)
            found.append(CustomSection(name, wasm[content : section.end]))
    return tuple(found)


def custom_name(wasm: bytes, section: Section) -> tuple[str, int]:
    """
    Name of a custom section, and where its content begins.

    Raises:
        WasmFormatError: If there is no name.
    """
    reader = Reader(wasm, section.payload, section.end)
    return reader.name(), reader.position


def with_custom_section(wasm: bytes, name: str, content: bytes) -> bytes:
    """
    `wasm` with one more custom section at its end.
    """
    payload = name_bytes(name) + content
    return wasm + bytes((SectionId.CUSTOM,)) + unsigned(len(payload)) + payload


def without_custom_sections(wasm: bytes, names: Collection[str]) -> bytes:
    """
    `wasm` without its custom sections of these names; every other byte stays as it is.

    Raises:
        WasmFormatError: If `wasm` doesn't consist of sections.
    """
    return filter_custom(wasm, lambda name: name not in names)


def filter_custom(wasm: bytes, keep: Callable[[str], bool]) -> bytes:
    """
    `wasm` with only those of its custom sections whose name `keep` agrees to.

    Raises:
        WasmFormatError: If `wasm` doesn't consist of sections.
    """
    return HEADER + b"".join(
        wasm[section.start : section.end]
        for section in split(wasm)
        if section.id != SectionId.CUSTOM or keep(custom_name(wasm, section)[0])
    )
