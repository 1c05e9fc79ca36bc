"""
The names of a module: which ones its author uses, and new ones that he does not.
"""

from __future__ import annotations

import ast
import itertools
from typing import Final

_PREFIX: Final = "_l"


class Names:
    """
    All names that a module mentions.

    Args:
        tree: The module.

    Attributes:
        bound: Names that something in the module binds, in whatever scope.
        modules: Names that are bound by imports of modules and by nothing else.
        classes: Names of classes that are defined in the module.
        enumerations: Classes of the module that were found to be enumerations.
        imported: What each name of a `from x import y` is: `("x", "y")`.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: set[str] = set()
        self.classes: set[str] = set()
        self.enumerations: set[str] = set()
        self.imported: dict[str, tuple[str, str]] = {}
        self._mentioned: set[str] = set()
        self._numbers = itertools.count()
        modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            else:
                self._note(node)
        self.modules = modules - self.bound
        self.bound |= modules

    def is_builtin(self, node: ast.expr, *names: str) -> bool:
        """
        Whether the node is one of these names, and the module gives it no meaning of its own.
        """
        return isinstance(node, ast.Name) and node.id in names and node.id not in self.bound

    def new(self) -> str:
        """
        A name that the author has not used.
        """
        while True:
            name = f"{_PREFIX}{next(self._numbers)}"
            if name not in self.bound and name not in self._mentioned:
                return name

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self._mentioned.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                self.bound.add(node.id)
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, ast.ClassDef):
            self.bound.add(node.name)
            self.classes.add(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.bound.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.bound.add(alias.asname or alias.name)
                self.imported[alias.asname or alias.name] = (node.module or "", alias.name)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self.bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self.bound.add(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.bound.update(node.names)
