"""
What admission needs to know of a module: its declarations.

Input: hostile. Meant for bytes that the engine has validated, and as safe with any others. What is not
needed is not read: instructions, data and element segments stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeVar

from runner.kernel.wasm.code import Body, skip_expression, skip_type
from runner.kernel.wasm.reader import Reader, WasmFormatError
from runner.kernel.wasm.sections import SectionId

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.kernel.wasm.sections import Section

_Item = TypeVar("_Item")

MAX_TYPES: Final = 10_000
MAX_IMPORTS: Final = 1_000
MAX_FUNCTIONS: Final = 50_000
"""
The largest interpreter that we know has 10,000. Each costs 6 KB while it is compiled, however short it is.
"""

MAX_TABLES: Final = 100
MAX_MEMORIES: Final = 1
MAX_GLOBALS: Final = 10_000
MAX_EXPORTS: Final = 10_000
MAX_PARAMS: Final = 1_000
MAX_RESULTS: Final = 1_000


class Kind(IntEnum):
    """
    Kinds of import and export.
    """

    FUNCTION = 0
    TABLE = 1
    MEMORY = 2
    GLOBAL = 3
    TAG = 4


@dataclass(frozen=True, slots=True)
class FunctionType:
    """
    Value types that a function takes and gives.
    """

    params: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        """
        As in `(i32, i32) -> (i32)`.
        """
        return f"({', '.join(self.params)}) -> ({', '.join(self.results)})"


@dataclass(frozen=True, slots=True)
class Import:
    """
    One import; `index` is its type's for a function, and 0 for anything else.
    """

    module: str
    name: str
    kind: Kind
    index: int


@dataclass(frozen=True, slots=True)
class Export:
    """
    One export; `index` counts the imports of its kind first.
    """

    name: str
    kind: Kind
    index: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    Declared size of a memory in pages, or of a table in elements.
    """

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Table:
    """
    One table of the module's own.
    """

    type: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Global:
    """
    One global of the module's own.
    """

    type: str
    mutable: bool


@dataclass(frozen=True, slots=True)
class Module:
    """
    The declarations of a module, in its own order.

    Attributes:
        wasm: Its bytes.
        sections: All of them, custom ones too.
        functions: Type index of each function, imported ones first.
        start: Index of the start function, or `None`.
        bodies: Of each function of the module's own.
    """

    wasm: bytes
    sections: tuple[Section, ...]
    types: tuple[FunctionType, ...]
    imports: tuple[Import, ...]
    functions: tuple[int, ...]
    tables: tuple[Table, ...]
    memories: tuple[Bounds, ...]
    globals: tuple[Global, ...]
    exports: tuple[Export, ...]
    start: int | None
    bodies: tuple[Body, ...]

    def type_of(self, function: int) -> FunctionType:
        """
        Type of a function by its index.
        """
        if function >= len(self.functions):
            raise WasmFormatError("a function does not exist", 0)
        return self.type_at(self.functions[function])

    def type_at(self, index: int) -> FunctionType:
        """
        Type by its index.
        """
        if index >= len(self.types):
            raise WasmFormatError("a type does not exist", 0)
        return self.types[index]


_VALUE_TYPES: Final = {
    0x7F: "i32",
    0x7E: "i64",
    0x7D: "f32",
    0x7C: "f64",
    0x7B: "v128",
    0x70: "funcref",
    0x6F: "externref",
    0x69: "exnref",
    0x74: "nullexnref",
}
_REFERENCES: Final = frozenset({0x70, 0x6F, 0x69, 0x74})
_LONG_NULLABLE: Final = 0x63
_FUNCTION_TYPE: Final = 0x60


def read_module(wasm: bytes, sections: tuple[Section, ...]) -> Module:
    """
    The declarations in `sections`, which `split` found in `wasm`.

    Raises:
        WasmFormatError: If they have a form that this release can't read.
    """
    readers = {section.id: Reader(wasm, section.payload, section.end) for section in sections}

    def items(section: SectionId, bound: int, read: Callable[[Reader], _Item]) -> tuple[_Item, ...]:
        reader = readers.get(section)
        if reader is None:
            return ()
        found = tuple(read(reader) for _ in range(reader.count(f"{section.name.lower()} section", bound)))
        reader.finish()
        return found

    imports = items(SectionId.IMPORT, MAX_IMPORTS, _import)
    start = readers.get(SectionId.START)
    return Module(
        wasm=wasm,
        sections=sections,
        types=items(SectionId.TYPE, MAX_TYPES, _function_type),
        imports=imports,
        functions=(
            *(item.index for item in imports if item.kind == Kind.FUNCTION),
            *items(SectionId.FUNCTION, MAX_FUNCTIONS, Reader.u32),
        ),
        tables=items(SectionId.TABLE, MAX_TABLES, _table),
        memories=items(SectionId.MEMORY, MAX_MEMORIES, _bounds),
        globals=items(SectionId.GLOBAL, MAX_GLOBALS, _global),
        exports=items(SectionId.EXPORT, MAX_EXPORTS, _export),
        start=None if start is None else start.u32(),
        bodies=items(SectionId.CODE, MAX_FUNCTIONS, _body),
    )


def _value_type(reader: Reader) -> str:
    offset = reader.position
    code = reader.byte()
    if code == _LONG_NULLABLE:
        code = reader.byte()
        if code not in _REFERENCES:
            raise WasmFormatError("a reference type is unknown to this release", offset)
    if code not in _VALUE_TYPES:
        raise WasmFormatError("a type is unknown to this release", offset)
    return _VALUE_TYPES[code]


def _function_type(reader: Reader) -> FunctionType:
    offset = reader.position
    if reader.byte() != _FUNCTION_TYPE:
        raise WasmFormatError("a type is not a function's", offset)
    params = tuple(_value_type(reader) for _ in range(reader.count("parameters of a type", MAX_PARAMS)))
    results = tuple(_value_type(reader) for _ in range(reader.count("results of a type", MAX_RESULTS)))
    return FunctionType(params, results)


def _bounds(reader: Reader) -> Bounds:
    offset = reader.position
    flags = reader.byte()
    if flags > 1:
        raise WasmFormatError("a memory or table is shared, of 64 bits, or of odd pages", offset)
    minimum = reader.u32()
    return Bounds(minimum, reader.u32() if flags else None)


def _kind(reader: Reader) -> Kind:
    offset = reader.position
    number = reader.byte()
    if number > max(Kind):
        raise WasmFormatError("a kind of import or export is unknown to this release", offset)
    return Kind(number)


def _import(reader: Reader) -> Import:
    module, name, kind = reader.name(), reader.name(), _kind(reader)
    index = 0
    if kind == Kind.FUNCTION:
        index = reader.u32()
    elif kind == Kind.TABLE:
        _table(reader)
    elif kind == Kind.MEMORY:
        _bounds(reader)
    elif kind == Kind.GLOBAL:
        _global_type(reader)
    else:
        # A tag: a zero byte, then its type.
        reader.byte()
        reader.u32()
    return Import(module, name, kind, index)


def _table(reader: Reader) -> Table:
    return Table(_value_type(reader), _bounds(reader))


def _global_type(reader: Reader) -> Global:
    return Global(_value_type(reader), mutable=reader.byte() == 1)


def _global(reader: Reader) -> Global:
    found = _global_type(reader)
    skip_expression(reader)
    return found


def _export(reader: Reader) -> Export:
    return Export(reader.name(), _kind(reader), reader.u32())


def _body(reader: Reader) -> Body:
    size_bytes = reader.u32()
    end = reader.skip(size_bytes) + size_bytes
    inside = Reader(reader.data, end - size_bytes, end)
    count = 0
    for _ in range(inside.u32()):
        count += inside.u32()
        skip_type(inside)
    return Body(size_bytes, count, inside.position, end)
