"""
From an agent's source to its module: C through `zig cc`, WebAssembly text through the engine's assembler.

A compiler runs as a process of its own, with a clean environment and bounded time and output. It reads what
the agent's folder holds and nothing else of the user's, because the agent could tell what was in it. It is
no sandbox: whoever builds a stranger's C source trusts the compiler not to be broken by it. What comes out
is as untrusted as any other module.

Rejected: `zig` as a build system (its package format changes with every release), and a cache of object
files (a whole agent compiles in a quarter of a second).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from runner.build.agent import build_agent
    from runner.build.scaffold import new_agent
    from runner.build.sdk import sdk_root

__all__ = ["build_agent", "new_agent", "sdk_root"]

_HOMES: Final = {"build_agent": "agent", "new_agent": "scaffold", "sdk_root": "sdk"}


def __getattr__(name: str) -> Any:
    """
    Imports what is asked for when it is: the generator of the C header needs no more than the table.
    """
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
