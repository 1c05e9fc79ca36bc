"""
Runs binaryen's asyncify pass over one module: `unwind_pass.py LIBRARY IN OUT`.

A script of its own process, and without imports of ours: binaryen ends the process on a module it
doesn't like.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_FEATURES = (
    "MutableGlobals", "NontrappingFPToInt", "SignExt", "BulkMemory", "ReferenceTypes", "Multivalue",
)  # fmt: skip
_CONTROLS = ("start_unwind", "stop_unwind", "start_rewind", "stop_rewind", "get_state")


class _Written(ctypes.Structure):
    _fields_ = (
        ("binary", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("source_map", ctypes.c_void_p),
    )


def transform(library: str, wasm: bytes) -> bytes:
    """
    `wasm` with its `asyncify` imports resolved and every function that can reach them unwindable.

    Raises:
        OSError: If the library can't be loaded.
        ValueError: If binaryen's result is not valid.
    """
    binaryen = ctypes.CDLL(library)
    binaryen.BinaryenModuleRead.restype = ctypes.c_void_p
    binaryen.BinaryenModuleValidate.restype = ctypes.c_bool
    binaryen.BinaryenModuleAllocateAndWrite.restype = _Written
    # Binaryen reads names out of this buffer for as long as the module lives.
    buffer = ctypes.create_string_buffer(wasm, len(wasm))
    module = ctypes.c_void_p(binaryen.BinaryenModuleRead(buffer, ctypes.c_size_t(len(wasm))))
    features = 0
    for feature in _FEATURES:
        features |= getattr(binaryen, f"BinaryenFeature{feature}")()
    binaryen.BinaryenModuleSetFeatures(module, ctypes.c_uint32(features))
    binaryen.BinaryenSetOptimizeLevel(2)
    binaryen.BinaryenSetShrinkLevel(2)
    # No import of the ABI unwinds by itself; the SDK does, after it returned.
    binaryen.BinaryenSetPassArgument(b"asyncify-ignore-imports", b"1")
    passes = (ctypes.c_char_p * 1)(b"asyncify")
    binaryen.BinaryenModuleRunPasses(module, passes, ctypes.c_uint32(1))
    for control in _CONTROLS:
        binaryen.BinaryenRemoveExport(module, f"asyncify_{control}".encode())
    binaryen.BinaryenModuleOptimize(module)
    if not binaryen.BinaryenModuleValidate(module):
        msg = "binaryen made a module that is not valid"
        raise ValueError(msg)
    written = binaryen.BinaryenModuleAllocateAndWrite(module, None)
    return ctypes.string_at(written.binary, written.size_bytes)


if __name__ == "__main__":
    try:
        Path(sys.argv[3]).write_bytes(transform(sys.argv[1], Path(sys.argv[2]).read_bytes()))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
