"""
C agents: the agent's sources and the SDK's, compiled to one import-free module of a few KiB.

The same sources give the same bytes: nothing of the machine, the folder's place or the time goes in.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runner.build.sdk import sdk_root
from runner.build.tool import run_tool
from runner.errors import BuildFailed, UsageError
from runner.package.files import read_file
from runner.package.manifest import Manifest
from runner.package.sources import MAX_SOURCE_BYTES
from runner.units import MIB

MAX_BUILT_BYTES: Final = 64 * MIB

_C_FLAGS: Final = (
    "-target", "wasm32-freestanding",
    "-std=c11", "-Oz", "-Wall", "-Wextra",
    "-nostdlib", "-fno-sanitize=undefined", "-ffunction-sections", "-fdata-sections",
    "-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all",
)  # fmt: skip
# The stack lies below all data, so an overflow traps instead of writing over it.
_STACK_ALIGNMENT_BYTES: Final = 16


def compile_c(folder: Path, manifest: Manifest) -> tuple[bytes, str]:
    """
    The module of a C agent, and the compiler's warnings.

    Raises:
        UsageError: If a tool that it needs is not installed.
        AgentInvalid: If a source is missing, too large, or leads outside the folder.
        BuildFailed: If the compiler refused the sources.
    """
    folder = folder.resolve()
    for name in manifest.sources:
        read_file(folder / name, max_bytes=MAX_SOURCE_BYTES, inside=folder)
    zig = _zig()
    binaryen = _binaryen() if manifest.build.unwind else None
    with TemporaryDirectory(prefix="runner-build-") as name:
        scratch = Path(name)
        built = scratch / "agent.wasm"
        command = [str(zig), "cc", *_C_FLAGS, *_flags(folder, manifest), "-o", str(built)]
        result = run_tool([*command, *_inputs(manifest)], folder=folder, scratch=scratch)
        words = result.output.replace(f"{scratch}/", "").replace(f"{sdk_root()}/", "")
        if not result.ok:
            raise BuildFailed(str(folder), words)
        if binaryen is not None:
            built = _unwindable(folder, built, binaryen, scratch)
        return read_file(built, max_bytes=MAX_BUILT_BYTES), words


def _flags(folder: Path, manifest: Manifest) -> list[str]:
    stack_bytes = -(-manifest.build.stack_bytes // _STACK_ALIGNMENT_BYTES) * _STACK_ALIGNMENT_BYTES
    flags = [
        f"-I{sdk_root() / 'c' / 'include'}",
        f"-ffile-prefix-map={folder}=.",
        f"-Wl,-z,stack-size={stack_bytes}",
        f"-DRUNNER_STACK_BYTES={stack_bytes}",
    ]
    return [*flags, "-DRUNNER_UNWIND"] if manifest.build.unwind else flags


def _inputs(manifest: Manifest) -> list[str]:
    """
    Sources as the compiler shall name them in its messages: relative, and none taken for a flag.
    """
    own = [f"./{name}" if name.startswith("-") else name for name in manifest.sources]
    sdk = sorted((sdk_root() / "c" / "src").glob("*.c"))
    return [*(name for name in own if not name.endswith(".h")), *map(str, sdk)]


def _zig() -> Path:
    """
    The compiler itself: run as `python -m ziglang` in the agent's folder, a `ziglang.py` there would win.
    """
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise UsageError(
            "compiling a C agent needs zig, which is not installed",
            hint="pip install 'wasm-agent-runner[c]'",
        )
    return Path(spec.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")


def _binaryen() -> Path:
    """
    The library with the unwinding pass.
    """
    spec = find_spec("icpp_binaryen")
    if spec is None or spec.origin is None:
        raise UsageError(
            "`unwind = true` needs binaryen, which is not installed",
            hint="pip install 'wasm-agent-runner[c-unwind]' (Linux on x86-64, macOS), or use callbacks",
        )
    name = "libbinaryen.dylib" if sys.platform == "darwin" else "libbinaryen.so"
    return Path(spec.origin).parent / "lib" / name


def _unwindable(folder: Path, module: Path, binaryen: Path, scratch: Path) -> Path:
    unwindable = scratch / "unwindable.wasm"
    script = Path(__file__).with_name("unwind_pass.py")
    # -P: the folder of this package must not be searched for the script's imports.
    command = [sys.executable, "-P", str(script), str(binaryen), str(module), str(unwindable)]
    result = run_tool(command, folder=scratch, scratch=scratch)
    if not result.ok:
        raise BuildFailed(str(folder), f"binaryen: {result.output}")
    return unwindable
