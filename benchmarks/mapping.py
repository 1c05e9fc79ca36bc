"""
Two ways to start an instance from an image without copying it, and the copy, side by side.

(a) the image in a memory file, mapped copy-on-write over the instance's memory; (b) a code-less module
that holds the image as a data segment and exports the memory, imported by the code module; (c) a copy.
"""

from __future__ import annotations

import ctypes
import gc
import os
from typing import TYPE_CHECKING, Any

import wasmtime

from benchmarks.report import Figure, figure, memory_kib, run, time_us
from runner.kernel.engine import Engine
from runner.kernel.mapping import CopiedBacking, MappedBacking
from runner.kernel.state import PAGE_BYTES
from runner.units import MIB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

SIZES_MIB = (2, 16, 64)
_HELD = 500
_BODY = '(func (export "touch") (i32.store (i32.const 4096) (i32.const 1)))'


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Start times and memory for each way and size.
    """
    del options
    engine = Engine().wasmtime
    figures = []
    for size_mib in SIZES_MIB:
        image = os.urandom(size_mib * MIB)
        ways = {
            "mapped": _by_backing(engine, image, MappedBacking),
            "image module": _by_module(engine, image),
            "copied": _by_backing(engine, image, CopiedBacking),
        }
        for name, start in ways.items():
            copies = name == "copied"
            took = time_us(start, rounds=7, calls=5 if copies else 100)
            figures.append(figure(f"start, {name}, {size_mib} MiB", "us", took))
            if not copies:
                figures.append(_held(f"held, {name}, {size_mib} MiB", start))
    return figures


def _held(name: str, start: Callable[[], object]) -> Figure:
    gc.collect()
    before = memory_kib()["pss"]
    held = [start() for _ in range(_HELD)]
    each = (memory_kib()["pss"] - before) / len(held)
    return figure(name, "KiB", [each])


def _store(engine: wasmtime.Engine) -> wasmtime.Store:
    store = wasmtime.Store(engine)
    store.set_fuel(10**9)
    store.set_epoch_deadline(1000)
    return store


def _by_backing(
    engine: wasmtime.Engine, image: bytes, way: type[MappedBacking | CopiedBacking]
) -> Callable[[], object]:
    pages = len(image) // 65536
    module = wasmtime.Module(engine, f'(module (memory (export "memory") {pages}) {_BODY})')
    prepared = wasmtime.Linker(engine).instantiate_pre(module)
    content = {i: image[i * PAGE_BYTES : (i + 1) * PAGE_BYTES] for i in range(len(image) // PAGE_BYTES)}
    backing = way(len(image), content)

    def start() -> object:
        store = _store(engine)
        exports: Any = prepared.instantiate(store).exports(store)
        backing.lay(ctypes.addressof(exports["memory"].data_ptr(store).contents))
        exports["touch"](store)
        return store, backing

    return start


def _by_module(engine: wasmtime.Engine, image: bytes) -> Callable[[], object]:
    pages = len(image) // 65536
    holder = wasmtime.Module(engine, _image_module(image, pages))
    code = wasmtime.Module(engine, f'(module (import "image" "memory" (memory {pages})) {_BODY})')

    def start() -> object:
        store = _store(engine)
        memory = wasmtime.Instance(store, holder, []).exports(store)["memory"]
        exports: Any = wasmtime.Instance(store, code, [memory]).exports(store)
        exports["touch"](store)
        return store

    return start


def _image_module(image: bytes, pages: int) -> bytes:
    def sized(content: bytes) -> bytes:
        return _leb(len(content)) + content

    memory = b"\x05" + sized(b"\x01\x00" + _leb(pages))
    export = b"\x07" + sized(b"\x01" + sized(b"memory") + b"\x02\x00")
    data = b"\x0b" + sized(b"\x01\x00\x41\x00\x0b" + sized(image))
    return b"\0asm\x01\0\0\0" + memory + export + data


def _leb(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


if __name__ == "__main__":
    run("mapping", __doc__.splitlines()[1], measure)
