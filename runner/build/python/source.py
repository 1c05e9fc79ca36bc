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
MAX_DEPTH: Final = 90
"""
Of a syntax tree. CPython nests blocks 100 deep at most, and the engine's own stack is smaller than CPython's.
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
    level: list[ast.AST] = [tree]
    nodes = depth = 0
    while level:
        nodes += len(level)
        if nodes > MAX_NODES:
            raise SourceRejected(name, f"more than {MAX_NODES} nodes of syntax")
        if depth > 3 * MAX_DEPTH:
            raise reject(name, level[0], "nested too deeply")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
