# ruff: noqa: N802 - methods are named for the nodes
"""
The text of a module, and the author's line of each of its lines.
"""

from __future__ import annotations

import ast

from runner.build.python.nodes import Function
from runner.build.python.print_expressions import ExpressionPrinter, operator_text


class ModulePrinter:
    """
    Prints a module that was rewritten.

    Attributes:
        text: The lines so far.
        lines: The author's line of each.
    """

    def __init__(self) -> None:
        self.text: list[str] = []
        self.lines: list[int] = []
        self._indent = 0

    def block(self, body: list[ast.stmt]) -> None:
        """
        Print statements, one below the other.
        """
        for statement in body:
            getattr(self, f"_{type(statement).__name__}")(statement)

    def _inner(self, body: list[ast.stmt]) -> None:
        self._indent += 1
        self.block(body)
        self._indent -= 1

    def _put(self, printer: ExpressionPrinter, line: int) -> None:
        """
        Add what was printed, which begins in the author's `line`.
        """
        current = " " * self._indent
        for piece in printer.pieces:
            if isinstance(piece, int):
                self.text.append(current)
                self.lines.append(line)
                current, line = " ", piece
            else:
                current += piece
        self.text.append(current)
        self.lines.append(line)

    def _plain(self, text: str, node: ast.AST) -> None:
        self._parts(node, text)

    def _parts(self, node: ast.AST, *parts: str | ast.expr | None, line: int = 0) -> None:
        """
        Add one logical line of text and expressions.
        """
        line = line or getattr(node, "lineno", 1)
        printer = ExpressionPrinter(line)
        for part in parts:
            if isinstance(part, str):
                printer.text(part)
            elif part is not None and isinstance(getattr(part, "ctx", None), ast.Store | ast.Del):
                printer.target(part)
            elif part is not None:
                printer.top(part)
        self._put(printer, line)

    # Simple statements.

    def _Expr(self, node: ast.Expr) -> None:
        self._parts(node, node.value)

    def _Assign(self, node: ast.Assign) -> None:
        targets: list[str | ast.expr] = []
        for target in node.targets:
            targets += [target, " = "]
        self._parts(node, *targets, node.value)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        self._parts(node, node.target, f" {operator_text(node.op)}= ", node.value)

    def _Return(self, node: ast.Return) -> None:
        self._parts(node, "return " if node.value else "return", node.value)

    def _Raise(self, node: ast.Raise) -> None:
        self._parts(node, "raise " if node.exc else "raise", node.exc)

    def _Assert(self, node: ast.Assert) -> None:
        self._parts(node, "assert ", node.test, ", ", node.msg)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._parts(node, "del ", target)

    def _Pass(self, node: ast.Pass) -> None:
        self._plain("pass", node)

    def _Break(self, node: ast.Break) -> None:
        self._plain("break", node)

    def _Continue(self, node: ast.Continue) -> None:
        self._plain("continue", node)

    def _Global(self, node: ast.Global) -> None:
        self._plain(f"global {', '.join(node.names)}", node)

    def _Nonlocal(self, node: ast.Nonlocal) -> None:
        self._plain(f"nonlocal {', '.join(node.names)}", node)

    def _Import(self, node: ast.Import) -> None:
        self._plain(f"import {_aliases(node.names)}", node)

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        self._plain(f"from {'.' * node.level}{node.module or ''} import {_aliases(node.names)}", node)

    # Compound statements.

    def _If(self, node: ast.If, word: str = "if") -> None:
        while True:
            self._parts(
                node.test, f"{word} ", node.test, ":", line=node.lineno if word == "if" else node.test.lineno
            )
            self._inner(node.body)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node, word = node.orelse[0], "elif"
        self._else(node.orelse)

    def _else(self, body: list[ast.stmt], word: str = "else") -> None:
        if body:
            self._plain(f"{word}:", body[0])
            self._inner(body)

    def _While(self, node: ast.While) -> None:
        self._parts(node, "while ", node.test, ":")
        self._inner(node.body)
        self._else(node.orelse)

    def _For(self, node: ast.For | ast.AsyncFor) -> None:
        word = "async for " if isinstance(node, ast.AsyncFor) else "for "
        self._parts(node, word, node.target, " in ", node.iter, ":")
        self._inner(node.body)
        self._else(node.orelse)

    _AsyncFor = _For

    def _With(self, node: ast.With | ast.AsyncWith) -> None:
        word = "async with " if isinstance(node, ast.AsyncWith) else "with "
        item = node.items[0]
        named: list[str | ast.expr] = [" as ", item.optional_vars] if item.optional_vars else []
        self._parts(node, word, item.context_expr, *named, ":")
        self._inner(node.body)

    _AsyncWith = _With

    def _Try(self, node: ast.Try) -> None:
        self._plain("try:", node)
        self._inner(node.body)
        for handler in node.handlers:
            named = f" as {handler.name}:" if handler.name else ":"
            self._parts(handler, "except " if handler.type else "except", handler.type, named)
            self._inner(handler.body)
        self._else(node.orelse)
        self._else(node.finalbody, "finally")

    def _decorators(self, node: Function | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            printer = ExpressionPrinter(decorator.lineno)
            printer.text("@")
            printer.decorator(decorator)
            self._put(printer, decorator.lineno)

    def _FunctionDef(self, node: Function) -> None:
        self._decorators(node)
        printer = ExpressionPrinter(node.lineno)
        printer.text(f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}def {node.name}(")
        printer.arguments(node.args)
        printer.text("):")
        self._put(printer, node.lineno)
        self._inner(node.body)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        printer = ExpressionPrinter(node.lineno)
        printer.text(f"class {node.name}(")
        for index, base in enumerate(node.bases):
            printer.text(", " if index else "")
            printer.target(base)
        printer.text("):")
        self._put(printer, node.lineno)
        self._inner(node.body)


def _aliases(names: list[ast.alias]) -> str:
    return ", ".join(alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in names)
