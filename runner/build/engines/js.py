"""
The JavaScript engine: QuickJS-ng from its published sources, our port of it, and the prelude.

The same sources give the same bytes: nothing of the machine, a folder's place or the time goes in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.build.c import _zig as zig_path
from runner.build.engines.recipe import PyPISource, Recipe, Run
from runner.build.sdk import sdk_root

PIN: Final = PyPISource(
    package="quickjs-ng",
    version="0.17.0.2",
    sha256="43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef",
)

STACK_BYTES: Final = 256 * 1024
"""
Of the C stack, which lies below all data. See `STACK_BYTES` in `guest_sdk/js/engine.c`.
"""

_UPSTREAM: Final = ("quickjs", "libregexp", "libunicode", "dtoa")
_SHARED: Final = ("heap", "head", "reader", "writer")
_FOLDERS: Final = ("js", "engine", "c/include", "c/src")

_FLAGS: Final = (
    "-target", "wasm32-wasi", "-mexec-model=reactor",
    "-Os", "-g0", "-DNDEBUG", "-D_GNU_SOURCE",
    "-fno-sanitize=undefined", "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
# What its authors compile with is theirs to choose; warnings in it are not ours to mend.
_UPSTREAM_FLAGS: Final = ("-std=c11", "-w")
_OWN_FLAGS: Final = (
    "-std=gnu23", "-Wall", "-Wextra", "-Wno-unused-parameter", f"-DENGINE_STACK_BYTES={STACK_BYTES}",
)  # fmt: skip
_LINK_FLAGS: Final = ("-Wl,--gc-sections", "-Wl,--strip-all", f"-Wl,-z,stack-size={STACK_BYTES}")


def compile_engine(sources: Path, scratch: Path, run: Run) -> Path:
    """
    Compile and link the engine.

    Args:
        sources: The unpacked archive.
        scratch: Where all that is made goes.
        run: Runs a program.

    Returns:
        The module.
    """
    sdk, upstream = sdk_root(), sources / "upstream-quickjs"
    compiler = [str(zig_path()), "cc", *_FLAGS, *(f"-ffile-prefix-map={path}=." for path in (sources, sdk))]
    includes = [f"-I{path}" for path in (upstream, *(sdk / folder for folder in _FOLDERS))]
    objects: list[str] = []

    def compile_one(source: Path, *flags: str) -> None:
        objects.append(str(scratch / f"{len(objects)}-{source.stem}.o"))
        run([*compiler, *flags, "-c", str(source), "-o", objects[-1]])

    for name in _UPSTREAM:
        compile_one(upstream / f"{name}.c", *_UPSTREAM_FLAGS)
    ours = [*sorted((sdk / "js").glob("*.c")), *sorted((sdk / "engine").glob("*.c"))]
    for source in (*ours, *(sdk / "c" / "src" / f"{name}.c" for name in _SHARED)):
        compile_one(source, *_OWN_FLAGS, *includes)
    module = scratch / "js.wasm"
    run([*compiler, *_LINK_FLAGS, *objects, "-o", str(module)])
    return module


RECIPE: Final = Recipe(
    language="js",
    title="JavaScript",
    name="QuickJS-ng 0.17.0",
    source=PIN,
    folders=_FOLDERS,
    compile_engine=compile_engine,
)
