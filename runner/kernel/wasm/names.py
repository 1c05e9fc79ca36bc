"""
Names of functions from the `name` section, for messages.

Input: hostile, and not validated by anyone: the engine ignores a `name` section that it can't read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.kernel.wasm.custom import custom_name
from runner.kernel.wasm.module import MAX_FUNCTIONS, MAX_IMPORTS
from runner.kernel.wasm.reader import Reader, WasmFormatError, printable
from runner.kernel.wasm.sections import SectionId

if TYPE_CHECKING:
    from runner.kernel.wasm.module import Module

NAME_SECTION: Final = "name"
_FUNCTION_NAMES: Final = 1


def show_function(module: Module, index: int) -> str:
    """
    A function for people: `function 12`, with its name where the module tells it.
    """
    try:
        name = _function_name(module, index)
    except WasmFormatError:
        name = None
    return f"function {index}" if name is None else f"function {index} ({printable(name)})"


def _function_name(module: Module, index: int) -> str | None:
    for section in module.sections:
        if section.id == SectionId.CUSTOM:
            name, content = custom_name(module.wasm, section)
            if name == NAME_SECTION:
                return _look_up(Reader(module.wasm, content, section.end), index)
    return None


def _look_up(reader: Reader, index: int) -> str | None:
    while reader.position < reader.end:
        kind = reader.byte()
        size_bytes = reader.u32()
        end = reader.skip(size_bytes) + size_bytes
        if kind == _FUNCTION_NAMES:
            inside = Reader(reader.data, end - size_bytes, end)
            for _ in range(inside.count("function names", MAX_IMPORTS + MAX_FUNCTIONS)):
                function, name = inside.u32(), inside.name()
                if function == index:
                    return name
    return None
