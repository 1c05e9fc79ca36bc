"""
The modules of a Python agent, from its entry on: found, lowered to what the engine reads, and named as Python
names them.

Input: the agent's author. The text is parsed, never run, on the host.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from runner.build.modules import AgentModule, SourceTree
from runner.build.python import Import, available_modules, lower_module
from runner.errors import SourceRejected

HOST_MODULE: Final = "agent"
"""
What an agent calls the host by; a file of that name can only be the entry.
"""

ENTRY_NAMED_AGENT: Final = "__agent__"

_SUFFIX: Final = ".py"
_PACKAGE_FILE: Final = "__init__.py"


class _Place(NamedTuple):
    """
    A module that is to be collected.

    Attributes:
        module: Its dotted name.
        file: Its file, as a path inside the agent's folder; of a folder without an `__init__.py`, that which
            it has not.
        is_package: Whether other modules lie below it.
        is_there: Whether the file exists.
    """

    module: str
    file: str
    is_package: bool
    is_there: bool = True


def collect_python(tree: SourceTree, entries: Sequence[str]) -> list[AgentModule]:
    """
    Every module that the entries lead to, each once.

    Args:
        tree: The agent's folder.
        entries: Files to begin with.

    Raises:
        SourceRejected: If a module does not compile, or imports what is not there.
        AgentInvalid: If a file can't be read or leads outside the folder.
    """
    known = available_modules() | {HOST_MODULE}
    found: dict[str, AgentModule] = {}
    ahead = deque(_entry_place(file) for file in entries)
    while ahead:
        place = ahead.popleft()
        if place.module in found:
            continue
        found[place.module], imports = _lowered(tree, place)
        for imported in imports:
            ahead.extend(_resolve(tree, place, imported, known))
    return list(found.values())


def _entry_place(file: str) -> _Place:
    path = PurePosixPath(file)
    parts = [*path.parent.parts, path.name.removesuffix(_SUFFIX)]
    is_package = path.name == _PACKAGE_FILE
    module = ".".join(parts[:-1] if is_package else parts)
    return _Place(ENTRY_NAMED_AGENT if module == HOST_MODULE else module, file, is_package)


def _lowered(tree: SourceTree, place: _Place) -> tuple[AgentModule, tuple[Import, ...]]:
    more: dict[str, object] = {"module": place.module, "package": place.is_package}
    if not place.is_there:
        return AgentModule(place.file, "", more), ()
    lowered = lower_module(tree.text(place.file), name=place.file)
    if list(lowered.lines) != list(range(1, len(lowered.lines) + 1)):
        more["lines"] = _packed(lowered.lines)
    return AgentModule(place.file, lowered.text, more), tuple(lowered.imports)


def _packed(lines: Sequence[int]) -> bytes:
    """
    Line numbers as 16 bits each, little-endian: as a list they would be too many items for one payload.
    """
    packed = array("H", lines)
    if packed.itemsize != 2 or array("H", [1]).tobytes() != b"\1\0":  # noqa: PLR2004 - bytes of 16 bits
        return b"".join(line.to_bytes(2, "little") for line in lines)
    return packed.tobytes()


def _resolve(tree: SourceTree, importer: _Place, imported: Import, known: frozenset[str]) -> Iterator[_Place]:
    """
    The agent's own modules that one import leads to: the packages on the way, the module, and what is named
    from it that is a module, too.
    """
    module = _absolute(importer, imported)
    if module == HOST_MODULE or (not imported.level and module.startswith(f"{HOST_MODULE}.")):
        return
    on_the_way = _packages_of(module)
    places = [_find(tree, name) for name in on_the_way]
    if places and all(places):
        yield from (place for place in places if place)
        for name in imported.names:
            named = _find(tree, f"{module}.{name}")
            if named:
                yield named
    elif module and module not in known and not imported.guarded:
        raise _missing(importer, imported, module, own=bool(places and places[0]))
    elif not module:
        # `from . import x`, in a module at the top of the folder.
        yield from (place for place in (_find(tree, name) for name in imported.names) if place)


def _absolute(importer: _Place, imported: Import) -> str:
    if not imported.level:
        return imported.module
    parts = importer.module.split(".")
    # From inside a package one dot is the package itself; in a plain module, the one that it lies in.
    above = imported.level - (1 if importer.is_package else 0)
    if above > len(parts):
        raise SourceRejected(
            importer.file, "a relative import leads outside the agent's folder", line=imported.line
        )
    base = parts[: len(parts) - above]
    return ".".join([*base, *([imported.module] if imported.module else [])])


def _packages_of(module: str) -> list[str]:
    parts = module.split(".") if module else []
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _find(tree: SourceTree, module: str) -> _Place | None:
    if module == HOST_MODULE:
        return None
    path = module.replace(".", "/")
    file = tree.find((f"{path}{_SUFFIX}", f"{path}/{_PACKAGE_FILE}"))
    if file is not None:
        return _Place(module, file, file.endswith(f"/{_PACKAGE_FILE}"))
    if tree.has_folder(path):
        return _Place(module, f"{path}/{_PACKAGE_FILE}", is_package=True, is_there=False)
    return None


def _missing(importer: _Place, imported: Import, module: str, *, own: bool) -> SourceRejected:
    problem = f"module {module!r} is not there" if own else f"module {module!r} is not available to an agent"
    hint = None if own else "docs/python.md lists what is"
    return SourceRejected(importer.file, problem, line=imported.line, hint=hint)
