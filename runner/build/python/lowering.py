"""
One module of an agent, from the Python that its author writes to the Python that the engine compiles.

Input: hostile text. It is parsed and rewritten, and nothing of it is run on the host.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from runner.build.python.imports import Import, collect_imports, prune_imports
from runner.build.python.names import Names
from runner.build.python.nodes import HELPER, fill_places
from runner.build.python.print_statements import ModulePrinter
from runner.build.python.rewrite import Rewriter
from runner.build.python.source import MAX_LINES, MAX_TEXT_BYTES, parse
from runner.errors import SourceRejected

_GROWTH = 8


@dataclass(frozen=True, slots=True)
class Lowered:
    """
    A module as the engine gets it.

    Attributes:
        text: The text.
        lines: The author's line of each of its lines.
        imports: What it imports.
    """

    text: str
    lines: tuple[int, ...]
    imports: tuple[Import, ...]


def lower_module(text: str, *, name: str) -> Lowered:
    """
    Lower a module. The same text gives the same result, on any host that can parse it.

    Args:
        text: What the author wrote.
        name: The module's file, for refusals.

    Raises:
        SourceRejected: If it is not Python, has what an agent can't have, or is beyond a bound.
    """
    tree = parse(text, name=name)
    try:
        return _lower(tree, name)
    except RecursionError:
        raise SourceRejected(name, "nested too deeply") from None


def _lower(tree: ast.Module, name: str) -> Lowered:
    tree.body = Rewriter(name, Names(tree)).block(_without_docstring(tree.body))
    fill_places(tree)
    prune_imports(tree)
    imports = collect_imports(tree)
    printer = ModulePrinter()
    printer.block(tree.body)
    lines = printer.text
    numbers = printer.lines
    if any(isinstance(node, ast.Name) and node.id == HELPER for node in ast.walk(tree)):
        lines, numbers = [f"import _rt as {HELPER}", *lines], [1, *numbers]
    lowered = "\n".join(lines) + "\n"
    if len(numbers) > MAX_LINES or len(lowered) > _GROWTH * MAX_TEXT_BYTES:
        raise SourceRejected(name, f"more than {MAX_LINES} lines once it is lowered")
    return Lowered(lowered, tuple(numbers), imports)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:]
    return body
