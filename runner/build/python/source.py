"""
From an author's text to a syntax tree, or to a refusal that names its place.

Input: hostile. Text, nesting and number of nodes are bounded; the text is parsed and never run.
"""

from __future__ import annotations

import ast
import warnings
from typing import Final

from runner.errors import SourceRejected
from runner.units import MIB

MAX_TEXT_BYTES: Final = 1 * MIB
MAX_NODES: Final = 400_000
MAX_DEPTH: Final = 270
"""
Of a syntax tree. CPython's parser nests some 90 blocks or 200 parentheses at most, and a level of either is
up to three of the tree.
"""

MAX_LINES: Final = 65_535
"""
A line's number has 16 bits on its way to the engine.
"""


def parse(text: str, *, name: str) -> ast.Module:
    """
    The syntax tree of a module.

    Raises:
        SourceRejected: If the text is not Python, or beyond a bound.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise SourceRejected(name, f"larger than {MAX_TEXT_BYTES} bytes")
    if text.count("\n") >= MAX_LINES:
        raise SourceRejected(name, f"more than {MAX_LINES} lines")
    tree = _parse(text, name)
    _check_bounds(tree, name)
    return tree


def reject(name: str, node: ast.AST, problem: str, *, hint: str | None = None) -> SourceRejected:
    """
    The refusal of what stands at a node.
    """
    line = getattr(node, "lineno", None)
    column = getattr(node, "col_offset", None)
    return SourceRejected(name, problem, line=line, column=None if column is None else column + 1, hint=hint)


def _parse(text: str, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # A doubtful escape in an agent's text is no warning of this program's.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        problem = f"SyntaxError: {error.msg}"
        raise SourceRejected(name, problem, line=error.lineno, column=error.offset or None) from None
    except (RecursionError, MemoryError):
        raise SourceRejected(name, "nested too deeply") from None
    except ValueError as error:
        # A null character, or a lone surrogate.
        raise SourceRejected(name, f"SyntaxError: {error}") from None


def _check_bounds(tree: ast.Module, name: str) -> None:
    ahead: list[tuple[ast.AST, int]] = [(tree, 0)]
    nodes = 0
    while ahead:
        node, depth = ahead.pop()
        nodes += 1
        if nodes > MAX_NODES:
            raise SourceRejected(name, f"more than {MAX_NODES} nodes of syntax")
        if depth > MAX_DEPTH:
            raise reject(name, node, "nested too deeply")
        # What follows in a chain of conditions is not inside of what went before.
        following = node.orelse if isinstance(node, ast.If) else []
        for child in ast.iter_child_nodes(node):
            is_chained = isinstance(child, ast.If) and following == [child]
            ahead.append((child, depth if is_chained else depth + 1))
