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

from runner.build.included import check_included
from runner.build.sdk import sdk_root
from runner.build.tool import run_tool
from runner.errors import BuildFailed, UsageError
from runner.package.files import read_file
from runner.package.manifest import Manifest
from runner.package.sources import MAX_SOURCE_BYTES
from runner.units import MIB

MAX_BUILT_BYTES: Final = 64 * MIB

_FLAGS: Final = (
    "-target", "wasm32-freestanding",
    "-std=c11", "-Oz", "-Wall", "-Wextra",
    "-nostdlib", "-fno-sanitize=undefined", "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
# Of the agent's own sources: `.incbin` in assembly would read any file, and is in no list of what was read.
_OWN_FLAGS: Final = ("-fno-gnu-inline-asm", "-c", "-x", "c")
_LINK_FLAGS: Final = ("-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all")
# The stack lies below all data, so an overflow traps instead of writing over it.
_STACK_ALIGNMENT_BYTES: Final = 16


def compile_c(folder: Path, manifest: Manifest) -> tuple[bytes, str]:
    """
    The module of a C agent, and the compiler's warnings.

    Raises:
        UsageError: If a tool that it needs is not installed.
        AgentInvalid: If a source is missing, too large, or leads outside the folder, itself or by what it
            includes.
        BuildFailed: If the compiler refused the sources.
    """
    folder = folder.resolve()
    for name in manifest.sources:
        read_file(folder / name, max_bytes=MAX_SOURCE_BYTES, inside=folder)
    zig = zig_path()
    binaryen = _binaryen() if manifest.build.unwind else None
    with TemporaryDirectory(prefix="runner-build-") as name:
        compiler = _Compiler(zig, folder, Path(name), manifest)
        built = compiler.link(
            [compiler.compile(source) for source in manifest.sources if not _is_header(source)]
        )
        if binaryen is not None:
            built = _unwindable(folder, built, binaryen, Path(name))
        return read_file(built, max_bytes=MAX_BUILT_BYTES), "\n".join(compiler.warnings)


def _is_header(source: str) -> bool:
    return source.endswith(".h")


class _Compiler:
    """
    One agent's build: each of its sources by itself, then all of it with the SDK.
    """

    def __init__(self, zig: Path, folder: Path, scratch: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._scratch = scratch
        self._zig = zig
        self._sdk = sdk_root() / "c"
        stack_bytes = -(-manifest.build.stack_bytes // _STACK_ALIGNMENT_BYTES) * _STACK_ALIGNMENT_BYTES
        self._link_flags = [*_LINK_FLAGS, f"-Wl,-z,stack-size={stack_bytes}"]
        self._flags = [
            *_FLAGS,
            f"-I{self._sdk / 'include'}",
            f"-ffile-prefix-map={folder}=.",
            f"-DRUNNER_STACK_BYTES={stack_bytes}",
            *(["-DRUNNER_UNWIND"] if manifest.build.unwind else []),
        ]
        self._objects = 0
        self.warnings: list[str] = []

    def compile(self, source: str) -> Path:
        """
        One source of the agent's, and a check of all that it includes.

        Its name is one that the manifest let through, so it is no flag.
        """
        self._objects += 1
        made = self._scratch / f"{self._objects}.o"
        rule = made.with_suffix(".d")
        self._run([*_OWN_FLAGS, source, "-MD", "-MF", str(rule), "-MT", "object", "-o", str(made)])
        roots = (self._sdk / "include", self._zig.parent)
        check_included(rule.read_text(encoding="utf-8", errors="surrogateescape"), self._folder, roots)
        return made

    def link(self, objects: list[Path]) -> Path:
        """
        The agent's objects and the SDK to one module.
        """
        built = self._scratch / "agent.wasm"
        sources = sorted((self._sdk / "src").glob("*.c"))
        self._run([*self._link_flags, *map(str, objects), *map(str, sources), "-o", str(built)])
        return built

    def _run(self, arguments: list[str]) -> None:
        command = [str(self._zig), "cc", *self._flags, *arguments]
        result = run_tool(command, folder=self._folder, scratch=self._scratch)
        words = result.output.replace(f"{self._scratch}/", "").replace(f"{self._sdk.parent}/", "")
        if not result.ok:
            raise BuildFailed(str(self._folder), words)
        if words:
            self.warnings.append(words)


def zig_path() -> Path:
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
