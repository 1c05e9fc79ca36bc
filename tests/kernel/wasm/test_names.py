"""
Names of functions in messages: from whoever wrote the module, and believed no further than that.
"""

from __future__ import annotations

import pytest

from runner.kernel.wasm.custom import with_custom_section
from runner.kernel.wasm.module import read_module
from runner.kernel.wasm.names import show_function
from runner.kernel.wasm.sections import HEADER, split

_MODULE_NAME = b"\x00\x02\x01m"
_FUNCTION_NAMES = b"\x01\x08\x02\x00\x01a\x07\x02\x0ab"


def _show(index: int, *contents: bytes, name: str = "name") -> str:
    wasm = with_custom_section(HEADER + b"\x01\x01\x00", "other", b"")
    for content in contents:
        wasm = with_custom_section(wasm, name, content)
    return show_function(read_module(wasm, split(wasm)), index)


def test_a_function_is_shown_with_its_name() -> None:
    """
    Escaped, since anything may be written there.
    """
    assert _show(0, _MODULE_NAME + _FUNCTION_NAMES) == "function 0 (a)"
    assert _show(7, _MODULE_NAME + _FUNCTION_NAMES) == "function 7 (\\nb)"


@pytest.mark.parametrize(
    "contents",
    [
        (),
        (_MODULE_NAME,),
        (_FUNCTION_NAMES,),
        (b"\x01",),
        (b"\x01\x05\x01",),
        (b"\x01\x04\x01\x05\x01\xff",),
        (b"\x01\x05\xff\xff\xff\xff\x0f",),
    ],
)
def test_a_function_without_a_readable_name_is_shown_by_its_index(contents: tuple[bytes, ...]) -> None:
    """
    The engine does not validate names, so they may be anything.
    """
    assert _show(5, *contents) == "function 5"
