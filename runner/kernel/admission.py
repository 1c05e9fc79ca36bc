"""
Admission: whether a module may run at all, decided before any of it does.

Input: hostile. Every path ends in `Admitted` or `ModuleRejected`.

What is admitted can do nothing but ask, and its whole state is its memory and its mutable globals. Tables
and passive segments stay as instantiation leaves them, so they are part of the code. The rewritten module
does nothing on its own: its start function is an export that the host calls once limits are set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import wasmtime

from runner.digest import digest
from runner.errors import ModuleRejected
from runner.kernel.abi import (
    EXPORTS,
    IMPORTS,
    MARKER_EXPORT,
    MEMORY_EXPORT,
    OPERATIONS,
    UPGRADE_EXPORT,
    WASM_PAGE_BYTES,
    Entry,
)
from runner.kernel.wasm.custom import filter_custom
from runner.kernel.wasm.module import Export, FunctionType, Kind, read_module
from runner.kernel.wasm.names import show_function
from runner.kernel.wasm.reader import TooMany, WasmFormatError, printable
from runner.kernel.wasm.rewrite import rewrite
from runner.kernel.wasm.sections import split
from runner.kernel.wasm.survey import survey
from runner.units import KIB, MIB, show_bytes

if TYPE_CHECKING:
    from runner.kernel.wasm.module import Import, Module

MAX_CODE_BYTES: Final = 16 * MIB
"""
Of a module without the sections that an agent file adds.
"""

MAX_FUNCTION_BYTES: Final = 512 * KIB
"""
The largest that we know, an interpreter's main loop, has 41 KB.
"""

MAX_FUNCTION_CALLS: Final = 8_192
"""
Between two calls in a straight row the engine looks neither at fuel nor at the clock. A call into the host
takes some microseconds, so this many delay an end by less than a tenth of a second.
"""

MAX_FUNCTION_EFFORT: Final = 8_000_000
"""
See `runner.kernel.wasm.survey`. The most that we know is 0.8 million; this much takes the compiler up to two
seconds and 300 MB.
"""

MAX_MODULE_EFFORT: Final = 100_000_000
"""
The most that we know is 12 million, in six megabytes of code.
"""

MAX_TABLE_ELEMENTS: Final = 10_000_000
MAX_MUTABLE_GLOBALS: Final = 1_024

TABLE_ELEMENT_BYTES: Final = 8
"""
What wasmtime keeps for one: a pointer.
"""

RESERVED_PREFIX: Final = "runner."
START_EXPORT: Final = "runner.start"
GLOBAL_EXPORT: Final = "runner.global."

GlobalType = Literal["i32", "i64", "f64"]

_MAGIC: Final = b"\0asm"
_COMPONENT: Final = b"\0asm\x0d\0\x01\0"
_MARKER: Final = re.compile(r"runner_abi_v[0-9]{1,9}")
_FEATURE: Final = re.compile(r"enabled|disabled|feature|proposal|references required|multiple memories")
_ENGINE_MESSAGE_CHARS: Final = 240
_CAPTURABLE: Final[dict[str, GlobalType]] = {"i32": "i32", "i64": "i64", "f64": "f64"}
_GLOBAL_FIX: Final = {
    "f32": "make it f64 or keep it in memory: an f32 that is no number can't be carried exactly",
    "v128": "keep it in memory",
}
_REBUILD: Final = "build the module again with a toolchain for core WebAssembly"


@dataclass(frozen=True, slots=True)
class GlobalSlot:
    """
    A mutable global.

    Attributes:
        export: Its export's name in the rewritten module.
        type: Its type.
    """

    export: str
    type: GlobalType


@dataclass(frozen=True, slots=True)
class Admitted:
    """
    What admission found, and the module as it will run. Depends on nothing but the module's code.

    Attributes:
        code: The rewritten module.
        code_digest: SHA-256 of the module without custom sections: of what it does. Names are left out,
            because assemblers of different releases write them differently.
        imports: Operations that it imports, sorted.
        globals: Its mutable globals, in its own order.
        memory_min_bytes: Size of its memory at first.
        memory_max_bytes: Size that its memory may grow to by its own declaration, or `None`.
        table_bytes: Size of its tables, which is constant.
        start: Export of its former start function, or `None`.
        upgrades: Whether it exports `agent_upgrade`.
    """

    code: bytes
    code_digest: bytes
    imports: tuple[str, ...]
    globals: tuple[GlobalSlot, ...]
    memory_min_bytes: int
    memory_max_bytes: int | None
    table_bytes: int
    start: str | None
    upgrades: bool

    def to_wire(self) -> dict[str, Any]:
        """
        All of it as a payload value.
        """
        return {
            "code": self.code,
            "code_digest": self.code_digest,
            "imports": list(self.imports),
            "globals": [[slot.export, slot.type] for slot in self.globals],
            "memory_min_bytes": self.memory_min_bytes,
            "memory_max_bytes": self.memory_max_bytes,
            "table_bytes": self.table_bytes,
            "start": self.start,
            "upgrades": self.upgrades,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Admitted:
        """
        What `to_wire` gave. Believed: only the host's own cache may hold it.
        """
        imports = tuple(wire["imports"])
        slots = tuple(GlobalSlot(export, kind) for export, kind in wire["globals"])
        return cls(**{**wire, "imports": imports, "globals": slots})


def admit(wasm: bytes, engine: wasmtime.Engine) -> Admitted:
    """
    Check a module against every rule, and rewrite it for the host.

    Args:
        wasm: Any bytes. Custom sections named `runner.*` are left aside.
        engine: Which decides what is valid, with the features of the ABI.

    Raises:
        ModuleRejected: If a rule is broken; it names the rule, the item and what would help.
    """
    try:
        return _admit(wasm, engine)
    except TooMany as error:
        raise ModuleRejected(
            "too-many", error.what, error.problem, "let the toolchain drop what the agent doesn't use"
        ) from error
    except WasmFormatError as error:
        raise ModuleRejected("malformed", f"byte {error.offset}", error.problem, _REBUILD) from error


def _admit(wasm: bytes, engine: wasmtime.Engine) -> Admitted:
    _check_header(wasm)
    wasm = filter_custom(wasm, lambda name: not name.startswith(RESERVED_PREFIX))
    if len(wasm) > MAX_CODE_BYTES:
        raise ModuleRejected(
            "module-size",
            "module",
            f"its code has {show_bytes(len(wasm))}, and at most {show_bytes(MAX_CODE_BYTES)} are admitted",
            "strip debug sections, optimize for size, or load data as notes",
        )
    _validate(wasm, engine)
    module = read_module(wasm, split(wasm))
    for item in module.imports:
        _check_import(module, item)
    exports = _entry_points(module)
    _check_tables(module)
    _check_code(module)
    slots: list[GlobalSlot] = []
    for index, kind in _mutable_globals(module):
        slots.append(GlobalSlot(f"{GLOBAL_EXPORT}{index}", kind))
        exports.append(Export(slots[-1].export, Kind.GLOBAL, index))
    if module.start is not None:
        exports.append(Export(START_EXPORT, Kind.FUNCTION, module.start))
    memory = module.memories[0]
    return Admitted(
        code=rewrite(module, exports),
        code_digest=digest(filter_custom(wasm, lambda _name: False)),
        imports=tuple(sorted({f"{item.module}.{item.name}" for item in module.imports})),
        globals=tuple(slots),
        memory_min_bytes=memory.minimum * WASM_PAGE_BYTES,
        memory_max_bytes=None if memory.maximum is None else memory.maximum * WASM_PAGE_BYTES,
        table_bytes=sum(table.bounds.minimum for table in module.tables) * TABLE_ELEMENT_BYTES,
        start=None if module.start is None else START_EXPORT,
        upgrades=any(export.name == UPGRADE_EXPORT for export in exports),
    )


def _check_header(wasm: bytes) -> None:
    if not wasm.startswith(_MAGIC):
        raise ModuleRejected("not-wasm", "module", "it is not WebAssembly", _REBUILD)
    if wasm.startswith(_COMPONENT):
        raise ModuleRejected(
            "component",
            "module",
            "it is a component, whose memory can't be captured",
            "build a core module, without a component adapter or wit bindings",
        )


def _validate(wasm: bytes, engine: wasmtime.Engine) -> None:
    try:
        wasmtime.Module.validate(engine, wasm)
    except wasmtime.WasmtimeError as error:
        problem = printable(" ".join(str(error).split()), _ENGINE_MESSAGE_CHARS)
        if _FEATURE.search(problem):
            raise ModuleRejected(
                "feature",
                "module",
                f"it uses what is switched off: {problem}",
                "build for WebAssembly 1.0 with sign extension, saturating conversion, bulk memory, "
                "multi-value, reference types, SIMD and exceptions at most",
            ) from error
        raise ModuleRejected("invalid", "module", f"it is not valid: {problem}", _REBUILD) from error


def _signature(entry: Entry) -> FunctionType:
    results = () if entry.result is None else (entry.result,)
    return FunctionType(tuple(param.wasm for param in entry.params), results)


def _check_import(module: Module, item: Import) -> None:
    operation = f"{item.module}.{item.name}"
    shown = f"import {printable(operation)}"
    if item.module.startswith("wasi"):
        raise ModuleRejected(
            "import-wasi",
            shown,
            "WASI does not exist here",
            "build without WASI, or define inside the module what the language's runtime wants of it",
        )
    if item.kind != Kind.FUNCTION:
        raise ModuleRejected(
            "import-kind",
            shown,
            f"it is a {item.kind.name.lower()}, and only functions can be imported",
            "define it in the module",
        )
    entry = OPERATIONS.get(operation)
    # A dot inside a name could make the same text of another pair.
    if entry is None or entry.capability != item.module:
        raise ModuleRejected("import-unknown", shown, "the ABI has no such operation", _offer(item.module))
    found, expected = module.type_at(item.index), _signature(entry)
    if found != expected:
        raise ModuleRejected(
            "import-signature",
            shown,
            f"it is declared as {printable(str(found))}, and is {expected}",
            "declare it as the ABI does",
        )


def _offer(capability: str) -> str:
    names = [entry.name for entry in IMPORTS if entry.capability == capability]
    if names:
        return f"{capability} offers {', '.join(names)}"
    if capability == "env":
        return "it may be a symbol that the linker did not find: define it in the module"
    return f"import only from {', '.join(dict.fromkeys(entry.capability for entry in IMPORTS))}"


def _entry_points(module: Module) -> list[Export]:
    exports = {export.name: export for export in module.exports}
    _check_marker(exports)
    for name in exports:
        if name.startswith(RESERVED_PREFIX):
            raise ModuleRejected(
                "export-reserved",
                f"export {printable(name)}",
                f"names that begin with {RESERVED_PREFIX} are the host's",
                "give it another name",
            )
    if not module.memories:
        raise ModuleRejected("memory-missing", "memory", "the module has none", "define one and export it")
    found = [_exported(exports, MEMORY_EXPORT, Kind.MEMORY)]
    for entry in EXPORTS:
        if entry.optional and entry.name not in exports:
            continue
        export = _exported(exports, entry.name, Kind.FUNCTION)
        kind, expected = module.type_of(export.index), _signature(entry)
        if kind != expected:
            raise ModuleRejected(
                "export-signature",
                f"export {entry.name}",
                f"its type is {printable(str(kind))}, and must be {expected}",
                "declare it as the ABI does",
            )
        found.append(export)
    return found


def _check_marker(exports: dict[str, Export]) -> None:
    if MARKER_EXPORT in exports:
        return
    other = min((name for name in exports if _MARKER.fullmatch(name)), default=None)
    if other is not None:
        raise ModuleRejected(
            "abi-version",
            f"export {other}",
            f"the module speaks another version of the ABI, and this host speaks {MARKER_EXPORT}",
            "use a release of the host that speaks it, or build the agent with this release's SDK",
        )


def _exported(exports: dict[str, Export], name: str, kind: Kind) -> Export:
    export = exports.get(name)
    if export is None:
        raise ModuleRejected(
            "export-missing",
            f"export {name}",
            "it is missing",
            f"export a {kind.name.lower()} of that name",
        )
    if export.kind != kind:
        raise ModuleRejected(
            "export-kind",
            f"export {name}",
            f"it is a {export.kind.name.lower()}",
            f"export a {kind.name.lower()} of that name",
        )
    return export


def _check_tables(module: Module) -> None:
    for index, table in enumerate(module.tables):
        if table.type != "funcref":
            raise ModuleRejected(
                "table-type",
                f"table {index}",
                f"its elements are {table.type}, and only functions are admitted",
                "keep such values in locals",
            )
    elements = sum(table.bounds.minimum for table in module.tables)
    if elements > MAX_TABLE_ELEMENTS:
        raise ModuleRejected(
            "table-size",
            "tables",
            f"they have {elements} elements, and at most {MAX_TABLE_ELEMENTS} are admitted",
            "declare as many elements as there are functions to call",
        )


def _mutable_globals(module: Module) -> list[tuple[int, GlobalType]]:
    found: list[tuple[int, GlobalType]] = []
    for index, item in enumerate(module.globals):
        if item.mutable:
            kind = _CAPTURABLE.get(item.type)
            if kind is None:
                raise ModuleRejected(
                    "global-type",
                    f"global {index}",
                    f"it is mutable and {item.type}, which can't be captured",
                    _GLOBAL_FIX.get(item.type, "keep an index in its place"),
                )
            found.append((index, kind))
    if len(found) > MAX_MUTABLE_GLOBALS:
        raise ModuleRejected(
            "global-count",
            "globals",
            f"{len(found)} are mutable, and at most {MAX_MUTABLE_GLOBALS} are admitted",
            "keep them in memory",
        )
    return found


def _check_code(module: Module) -> None:
    imported = len(module.functions) - len(module.bodies)
    effort = 0
    for index, body in enumerate(module.bodies, imported):
        if body.size_bytes > MAX_FUNCTION_BYTES:
            size, bound = show_bytes(body.size_bytes), show_bytes(MAX_FUNCTION_BYTES)
            raise ModuleRejected(
                "function-size",
                show_function(module, index),
                f"it has {size}, and at most {bound} are admitted",
                "split it",
            )
        found = survey(module, body, module.type_of(index))
        if found.state_change is not None:
            raise ModuleRejected(
                "state-change",
                show_function(module, index),
                f"{found.state_change} changes what a snapshot doesn't hold",
                "keep tables and segments as the module declares them",
            )
        if found.calls > MAX_FUNCTION_CALLS:
            raise ModuleRejected(
                "function-calls",
                show_function(module, index),
                f"it makes {found.calls} calls, and at most {MAX_FUNCTION_CALLS} are admitted",
                "split it, or call in a loop",
            )
        if found.effort > MAX_FUNCTION_EFFORT:
            raise ModuleRejected(
                "function-effort",
                show_function(module, index),
                f"its compiling effort is {found.effort}, and at most {MAX_FUNCTION_EFFORT} is admitted",
                "split it, or give it fewer locals, blocks and branches",
            )
        effort += found.effort
    if effort > MAX_MODULE_EFFORT:
        raise ModuleRejected(
            "module-effort",
            "module",
            f"its compiling effort is {effort}, and at most {MAX_MODULE_EFFORT} is admitted",
            "split the agent",
        )
