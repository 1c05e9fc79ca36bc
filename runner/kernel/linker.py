"""
The policy is the linker: it holds host functions for exactly the operations granted, and no other way out.

Linkers are shared by all instances with the same grants. The functions find their instance through the
slice that runs on their thread: a guest can't name another, and an instance that does not run is not
reachable at all.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import wasmtime

from runner.kernel.abi import OPERATIONS, Entry, Status
from runner.kernel.slice import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner.kernel.engine import Engine
    from runner.kernel.slice import Slice

_running = threading.local()

_VALUE_TYPES: Final = {"i32": wasmtime.ValType.i32, "i64": wasmtime.ValType.i64}
_TYPED: Final = {"i32": wasmtime.Val.i32, "i64": wasmtime.Val.i64}


@contextmanager
def running(current: Slice) -> Iterator[None]:
    """
    Make `current` the slice that host functions on this thread act for.
    """
    _running.slice = current
    try:
        yield
    finally:
        _running.slice = None


def build_linker(engine: Engine, granted: frozenset[str], denied: frozenset[str]) -> wasmtime.Linker:
    """
    A linker with a host function for each granted operation.

    Args:
        engine: Of the modules that will be linked.
        granted: Operations that act.
        denied: Operations that are present but answer `Status.DENIED`: for a guest whose engine imports
            more than the agent uses. Must not overlap with `granted`.

    Raises:
        KeyError: If the ABI has no such operation.
    """
    linker = wasmtime.Linker(engine.wasmtime)
    for operation in sorted(granted | denied):
        entry = OPERATIONS[operation]
        function = _granted(entry) if operation in granted else _denied
        params = [_VALUE_TYPES[param.wasm]() for param in entry.params]
        results = [_VALUE_TYPES[entry.result]()] if entry.result else []
        linker.define_func(entry.capability, entry.name, wasmtime.FuncType(params, results), function)
    return linker


def _granted(entry: Entry) -> Callable[..., wasmtime.Val | None]:
    # Typed: for a bare integer the binding would make and compare several types.
    typed = _TYPED[entry.result] if entry.result else None

    def function(*args: int) -> wasmtime.Val | None:
        result = perform(_running.slice, entry, args)
        return typed(result) if typed else None

    return function


def _denied(*_args: int) -> int:
    # Also a refusal is host work, which fuel must bound. In a boot it is told from no other, since the image
    # may not depend on what somebody granted.
    _running.slice.charge(0)
    return Status.UNSUPPORTED if _running.slice.booting else Status.DENIED
