"""
The JavaScript engine: QuickJS-ng from its published sources, our port of it, and the prelude.

The same sources give the same bytes: nothing of the machine, a folder's place or the time goes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runner.build.c import zig_path
from runner.build.engines.recipe import PyPISource, Recipe, Run
from runner.build.sdk import sdk_root
from runner.errors import BuildFailed

PIN: Final = PyPISource(
    package="quickjs-ng",
    version="0.17.0.2",
    sha256="43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef",
)

STACK_BYTES: Final = 256 * 1024
"""
Of the C stack, which lies below all data; `guest_sdk/js/engine.c` says how much of it is used.
"""

TOLLS: Final = {
    "js_parse_assign_expr2": 600,
    "js_parse_unary": 64,
    "js_parse_postfix_expr": 128,
    "js_parse_function_decl2": 400,
    "js_parse_class": 400,
    "json_parse_value": 80,
    "js_json_to_str": 96,
    "internalize_json_property": 96,
    "JS_FlattenIntoArray": 80,
    "js_iterator_helper_next": 192,
    "js_iterator_concat_next": 192,
    "js_proxy_get_own_property_names": 192,
    "js_proxy_get_own_property": 192,
    "js_proxy_define_own_property": 192,
    "js_proxy_delete_property": 128,
    "js_proxy_getPrototypeOf": 96,
    "js_proxy_setPrototypeOf": 96,
    "js_proxy_isExtensible": 96,
    "js_proxy_preventExtensions": 96,
}
"""
Functions of the interpreter that call themselves, and bytes of the C stack that each uses beside its own.

The interpreter measures the C stack, and answers with a range error when it is used up. The frames that
WebAssembly itself keeps have another stack, of fixed size, which nobody can measure, and whose end is a trap.
Most functions use both alike; these use little of the first, so that the second would end first. The tests of
deep nesting hold the two together.
"""

_LIBRARIES: Final = ("libregexp", "libunicode", "dtoa")
# The heap is there too: `guest_sdk/js/page_heap.c` includes it.
_SHARED: Final = ("head", "reader", "writer")
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


# How large its arenas are, so that one and the heap's header are a page; the place where it says how it
# counts references, and all places where it does.
_REPLACED: Final = (
    (r"(#define JS_ARENA_SIZE +)4096$", r"\g<1>4088", 1),
    (r"(#define JS_REF_COUNT\(p\) .*\n)", r'\1#include "upstream_head.h"\n', 1),
    (r"JS_REF_COUNT\((\w+(?:->\w+)*)\)\+\+", r"engine_hold(\1)", 19),
    (r"--JS_REF_COUNT\((\w+)\)", r"engine_release(\1)", 7),
    (r"JS_REF_COUNT\((\w+)\)--", r"engine_release(\1)", 2),
)

# Of small blocks; `guest_sdk/js/memory.c` clears large ones. What is left of dead objects would make pages of
# two snapshots differ that hold the same, and lie in a snapshot that nobody expects it in.
_CLEAR: Final = (
    "JSMallocBlockHeader *engine_freed = ptr ? container_of(ptr, JSMallocBlockHeader, user_data) : NULL;"
    " if (ptr && engine_freed->u.block_idx != JS_ARENA_FREE_NIL)"
    " memset(ptr, 0, arena_block_sizes[engine_freed->block_size_idx] - sizeof(JSMallocBlockHeader));"
)


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
    compiler = [
        str(zig_path()),
        "cc",
        *_FLAGS,
        *(f"-ffile-prefix-map={path}=." for path in (scratch, sources, sdk)),
    ]
    includes = [f"-I{path}" for path in (upstream, *(sdk / folder for folder in _FOLDERS))]
    objects: list[str] = []

    def compile_one(source: Path, *flags: str) -> None:
        objects.append(str(scratch / f"{len(objects)}-{source.stem}.o"))
        run([*compiler, *flags, "-c", str(source), "-o", objects[-1]])

    interpreter = scratch / "quickjs.c"
    interpreter.write_text(
        patched((upstream / interpreter.name).read_text(encoding="utf-8")), encoding="utf-8"
    )
    compile_one(interpreter, *_UPSTREAM_FLAGS, f"-I{upstream}", f"-I{sdk / 'js'}")
    for name in _LIBRARIES:
        compile_one(upstream / f"{name}.c", *_UPSTREAM_FLAGS)
    ours = [*sorted((sdk / "js").glob("*.c")), *sorted((sdk / "engine").glob("*.c"))]
    for source in (*ours, *(sdk / "c" / "src" / f"{name}.c" for name in _SHARED)):
        compile_one(source, *_OWN_FLAGS, *includes)
    module = scratch / "js.wasm"
    run([*compiler, *_LINK_FLAGS, *objects, "-o", str(module)])
    return module


def patched(source: str) -> str:
    """
    The interpreter's source with what it does besides.

    Each function in `TOLLS` pays at its entry; what is freed is cleared; lists of free blocks can be put in
    order; an arena fits into a page; and references to what is in an image are not counted.

    Raises:
        BuildFailed: If something is not there as often as expected: the sources are others than the pinned.
    """
    for name, toll_bytes in TOLLS.items():
        # Its address goes to assembly of no instructions, or the compiler would leave out what nobody reads.
        toll = f'char engine_toll[{toll_bytes}]; __asm__ volatile("" : : "r"(engine_toll) : "memory");'
        source = _at_entry(source, name, toll)
    for pattern, replacement, times in _REPLACED:
        source = _replaced(source, pattern, replacement, times)
    return f'{_at_entry(source, "js_arena_free", _CLEAR)}\n#include "upstream_tail.h"\n'


def _at_entry(source: str, name: str, code: str) -> str:
    shape = rf"^((?:static|int|JSValue)\b[^;{{}}]*\b{name}\([^;{{}}]*\)\n\{{\n)"
    return _replaced(source, shape, lambda found: f"{found[0]}    {code}\n", 1)


def _replaced(source: str, pattern: str, by: str | Callable[[re.Match[str]], str], times: int) -> str:
    source, found = re.subn(pattern, by, source, flags=re.MULTILINE)
    if found != times:
        raise BuildFailed(PIN.package, f"{pattern}: found {found} times, not {times}")
    return source


RECIPE: Final = Recipe(
    language="js",
    title="JavaScript",
    name="QuickJS-ng 0.17.0",
    source=PIN,
    folders=_FOLDERS,
    compile_engine=compile_engine,
)
