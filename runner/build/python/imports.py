"""
What a module imports, and what there is to import besides the agent's own modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from runner.build.sdk import sdk_root

ENGINE_MODULES: Final = frozenset(
    {
        "array", "binascii", "builtins", "cmath", "collections", "hashlib", "heapq", "io",
        "json", "math", "random", "re", "struct", "sys", "time",
    }
)  # fmt: skip
"""
Modules that the engine has in C.
"""

_PRUNED: Final = frozenset({"typing", "collections.abc", "typing_extensions"})
_CATCH_MISSING: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Import:
    """
    One import of a module.

    Attributes:
        module: Its name as written, without the dots in front.
        level: How many dots there are.
        names: What is taken from it, `*` for all; nothing for `import x`.
        line: Where it is written.
        guarded: Whether the author provides for its absence, with `except ImportError`.
    """

    module: str
    level: int
    names: tuple[str, ...]
    line: int
    guarded: bool


@cache
def available_modules() -> frozenset[str]:
    """
    Modules that any agent can import: the engine's, and those of the standard library that come with it.
    """
    root = sdk_root() / "python" / "lib"
    found = {_dotted(path.relative_to(root)) for path in root.rglob("*.py")} if root.is_dir() else set()
    return ENGINE_MODULES | {name for name in found if not name.rpartition(".")[2].startswith("_")}


def collect_imports(tree: ast.Module) -> tuple[Import, ...]:
    """
    Every import of a module, in the order of the text.
    """
    return tuple(sorted(_imports(tree.body, guarded=False), key=lambda found: found.line))


def prune_imports(tree: ast.Module) -> None:
    """
    Drop imports that only annotations needed: what the engine loads is part of each agent's image.
    """
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= _exported(tree)
    kept: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module in _PRUNED and not statement.level:
            statement.names = [a for a in statement.names if a.name == "*" or (a.asname or a.name) in used]
            if not statement.names:
                continue
        kept.append(statement)
    tree.body = kept


def _exported(tree: ast.Module) -> set[str]:
    """
    Names that the module says it exports.
    """
    named = [s for s in tree.body if isinstance(s, ast.Assign) and "__all__" in map(ast.unparse, s.targets)]
    constants = (node for statement in named for node in ast.walk(statement.value))
    return {n.value for n in constants if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(body: list[ast.stmt], *, guarded: bool) -> Iterator[Import]:
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield Import(alias.name, 0, (), statement.lineno, guarded)
        elif isinstance(statement, ast.ImportFrom):
            names = tuple(alias.name for alias in statement.names)
            yield Import(statement.module or "", statement.level, names, statement.lineno, guarded)
        elif isinstance(statement, ast.Try):
            caught = any(_catches_missing(handler) for handler in statement.handlers)
            yield from _imports(statement.body, guarded=guarded or caught)
            for handler in statement.handlers:
                yield from _imports(handler.body, guarded=guarded)
            yield from _imports([*statement.orelse, *statement.finalbody], guarded=guarded)
        else:
            for field in ("body", "orelse"):
                yield from _imports(getattr(statement, field, []), guarded=guarded)


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _CATCH_MISSING for node in ast.walk(handler.type))
