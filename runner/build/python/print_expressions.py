# ruff: noqa: N802 - methods are named for the nodes
"""
The text of an expression, with marks where another line of the author's begins.

The engine notes a line when it compiles a node, and only ever moves on to later ones. So the text breaks
where the author's line changes, even when it goes back: the map of lines says what each line of the text is.
After arguments over several lines, an empty `*()` brings a call back to the line where it began, which is
where CPython says that it fails.
"""

from __future__ import annotations

import ast
from typing import Final

Piece = str | int
"""
Text, or the author's line that what follows belongs to.
"""

_TEST, _LAMBDA, _OR, _AND, _NOT, _COMPARE = range(6)
_BITOR, _BITXOR, _BITAND, _SHIFT, _SUM, _TERM, _FACTOR, _POWER, _AWAIT, _ATOM = range(6, 16)

_OPERATORS: Final[dict[type[ast.AST], tuple[str, int]]] = {
    ast.BitOr: ("|", _BITOR), ast.BitXor: ("^", _BITXOR), ast.BitAnd: ("&", _BITAND),
    ast.LShift: ("<<", _SHIFT), ast.RShift: (">>", _SHIFT), ast.Add: ("+", _SUM), ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _TERM), ast.Div: ("/", _TERM), ast.FloorDiv: ("//", _TERM), ast.Mod: ("%", _TERM),
    ast.MatMult: ("@", _TERM), ast.Pow: ("**", _POWER),
}  # fmt: skip
_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNARY: Final[dict[type[ast.unaryop], tuple[str, int]]] = {
    ast.Not: ("not ", _NOT), ast.UAdd: ("+", _FACTOR), ast.USub: ("-", _FACTOR), ast.Invert: ("~", _FACTOR),
}  # fmt: skip

_MAX_DECIMAL_BITS: Final = 1_000


def operator_text(operator: ast.operator) -> str:
    """
    A binary operator.
    """
    return _OPERATORS[type(operator)][0]


class ExpressionPrinter:
    """
    Prints the expressions of one statement.

    Args:
        line: The author's line that the statement begins in.
    """

    def __init__(self, line: int) -> None:
        self.pieces: list[Piece] = []
        self._line = line
        self._frozen = 0

    def text(self, text: str) -> None:
        """
        Add text.
        """
        self.pieces.append(text)

    def expression(self, node: ast.expr, level: int = _TEST) -> None:
        """
        Add an expression, in parentheses if it binds less than `level`.
        """
        getattr(self, f"_{type(node).__name__}")(node, level)

    def top(self, node: ast.expr) -> None:
        """
        Add an expression where a tuple needs no parentheses, but a line break does.
        """
        start = len(self.pieces)
        self.expression(node)
        if any(isinstance(piece, int) for piece in self.pieces[start:]):
            self.pieces.insert(start, "(")
            self.text(")")

    def target(self, node: ast.expr) -> None:
        """
        Add what is assigned to, where no line can break.
        """
        self._frozen += 1
        self.expression(node)
        self._frozen -= 1

    def decorator(self, node: ast.expr) -> None:
        """
        Add a decorator: in the engine's grammar, a dotted name that may be called.
        """
        self.target(node.func if isinstance(node, ast.Call) else node)
        if isinstance(node, ast.Call):
            self.call_arguments(node.args, node.keywords, node.lineno)

    def arguments(self, node: ast.arguments) -> None:
        """
        Add a function's parameters.
        """
        first = len(node.args) - len(node.defaults)
        parts = [
            (arg.arg, node.defaults[i - first] if i >= first else None) for i, arg in enumerate(node.args)
        ]
        stars: list[tuple[str, ast.expr | None]] = []
        if node.vararg or node.kwonlyargs:
            stars.append((f"*{node.vararg.arg if node.vararg else ''}", None))
        stars += [(a.arg, default) for a, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
        if node.kwarg:
            stars.append((f"**{node.kwarg.arg}", None))
        for index, (name, default) in enumerate([*parts, *stars]):
            self.text(f"{', ' if index else ''}{name}")
            if default is not None:
                self.text("=")
                self.expression(default)

    def call_arguments(self, args: list[ast.expr], keywords: list[ast.keyword], line: int) -> None:
        """
        Add the arguments of a call that stands at `line`, in parentheses.
        """
        self.text("(")
        count = 0
        for arg in args:
            self.text(", " if count else "")
            self.expression(arg)
            count += 1
        for keyword in keywords:
            self.text((", " if count else "") + (f"{keyword.arg}=" if keyword.arg else "**"))
            self.expression(keyword.value)
            count += 1
        if self._line != line and not self._frozen:
            self.text(", " if count else "")
            self._mark(line)
            self.text("**{}" if keywords else "*()")
        self.text(")")

    def _mark(self, line: int) -> None:
        if line != self._line and not self._frozen:
            self._line = line
            self.pieces.append(line)

    def _open(self, own: int, level: int) -> None:
        if own < level:
            self.text("(")

    def _close(self, own: int, level: int) -> None:
        if own < level:
            self.text(")")

    def _series(self, nodes: list[ast.expr]) -> None:
        for index, node in enumerate(nodes):
            self.text(", " if index else "")
            self.expression(node)

    # Each kind of expression, by the name of its node.

    def _Name(self, node: ast.Name, _level: int) -> None:
        self.text(node.id)

    def _Constant(self, node: ast.Constant, level: int) -> None:
        value = node.value
        if value is ...:
            self.text("...")
        elif (
            isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MAX_DECIMAL_BITS
        ):
            self.text(hex(value))
        elif isinstance(value, float | complex):
            # An infinity is written as a literal that is too large.
            shown = repr(value).replace("inf", "1e309")
            self.text(f"({shown})" if level >= _ATOM else shown)
        elif isinstance(value, int) and level >= _ATOM:
            self.text(f"({value!r})")
        else:
            self.text(repr(value))

    def _Attribute(self, node: ast.Attribute, _level: int) -> None:
        self.expression(node.value, _ATOM)
        # CPython says that an attribute stands where its name does.
        self._mark(node.end_lineno or node.lineno)
        self.text(f".{node.attr}")

    def _Call(self, node: ast.Call, _level: int) -> None:
        line = node.lineno
        self._mark(node.func.lineno)
        if isinstance(node.func, ast.Attribute):
            # CPython says that a method is called where its name stands; the engine notes no line for the
            # name.
            line = node.func.end_lineno or line
            self.expression(node.func.value, _ATOM)
            self.text(f".{node.func.attr}")
        else:
            self.expression(node.func, _ATOM)
        is_only = len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp)
        self.call_arguments(node.args, node.keywords, self._line if is_only else line)

    def _Subscript(self, node: ast.Subscript, _level: int) -> None:
        self._mark(node.lineno)
        self.expression(node.value, _ATOM)
        self.text("[")
        if isinstance(node.slice, ast.Tuple) and node.slice.elts:
            self._series(node.slice.elts)
            self.text("," if len(node.slice.elts) == 1 else "")
        else:
            self.expression(node.slice)
        self.text("]")

    def _Slice(self, node: ast.Slice, _level: int) -> None:
        if node.lower:
            self.expression(node.lower)
        self.text(":")
        if node.upper:
            self.expression(node.upper)
        if node.step:
            self.text(":")
            self.expression(node.step)

    def _Starred(self, node: ast.Starred, _level: int) -> None:
        self.text("*")
        self.expression(node.value, _BITOR)

    def _NamedExpr(self, node: ast.NamedExpr, _level: int) -> None:
        self.text(f"({node.target.id} := ")
        self.expression(node.value)
        self.text(")")

    def _BoolOp(self, node: ast.BoolOp, level: int) -> None:
        word, own = (" and ", _AND) if isinstance(node.op, ast.And) else (" or ", _OR)
        self._open(own, level)
        for index, value in enumerate(node.values):
            self.text(word if index else "")
            self.expression(value, own + 1)
        self._close(own, level)

    def _BinOp(self, node: ast.BinOp, level: int) -> None:
        text, own = _OPERATORS[type(node.op)]
        is_power = isinstance(node.op, ast.Pow)
        self._open(own, level)
        self._mark(node.lineno)
        self.expression(node.left, own + 1 if is_power else own)
        self.text(f" {text} ")
        self.expression(node.right, _FACTOR if is_power else own + 1)
        self._close(own, level)

    def _UnaryOp(self, node: ast.UnaryOp, level: int) -> None:
        text, own = _UNARY[type(node.op)]
        self._open(own, level)
        self.text(text)
        self.expression(node.operand, own)
        self._close(own, level)

    def _Compare(self, node: ast.Compare, level: int) -> None:
        self._open(_COMPARE, level)
        self._mark(node.lineno)
        self.expression(node.left, _BITOR)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.text(f" {_COMPARISONS[type(operator)]} ")
            self.expression(right, _BITOR)
        self._close(_COMPARE, level)

    def _IfExp(self, node: ast.IfExp, level: int) -> None:
        lines = {node.body.lineno, node.test.lineno, node.orelse.lineno}
        if len(lines) > 1 and not self._frozen:
            self._spread_choice(node)
            return
        self._open(_TEST, max(level, _LAMBDA) if level else level)
        self.expression(node.body, _OR)
        self.text(" if ")
        self.expression(node.test, _OR)
        self.text(" else ")
        self.expression(node.orelse, _TEST)
        self._close(_TEST, max(level, _LAMBDA) if level else level)

    def _spread_choice(self, node: ast.IfExp) -> None:
        # The test is compiled first, so it must come first for its lines to count.
        self.text("(")
        self.expression(node.test, _AND)
        self.text(" and (")
        self.expression(node.body)
        self.text(",) or (")
        self.expression(node.orelse)
        self.text(",))[0]")

    def _Lambda(self, node: ast.Lambda, level: int) -> None:
        self._open(_TEST, level)
        self.text("lambda ")
        self.arguments(node.args)
        self.text(": ")
        self.expression(node.body)
        self._close(_TEST, level)

    def _Await(self, node: ast.Await, level: int) -> None:
        self._open(_AWAIT, level)
        self.text("await ")
        self.expression(node.value, _ATOM)
        self._close(_AWAIT, level)

    def _Yield(self, node: ast.Yield, _level: int) -> None:
        self.text("(yield")
        if node.value:
            self.text(" ")
            self.expression(node.value)
        self.text(")")

    def _YieldFrom(self, node: ast.YieldFrom, _level: int) -> None:
        self.text("(yield from ")
        self.expression(node.value)
        self.text(")")

    def _List(self, node: ast.List, _level: int) -> None:
        self.text("[")
        self._series(node.elts)
        self.text("]")

    def _Tuple(self, node: ast.Tuple, _level: int) -> None:
        self.text("(")
        self._series(node.elts)
        self.text(",)" if len(node.elts) == 1 else ")")

    def _Set(self, node: ast.Set, _level: int) -> None:
        self.text("{")
        self._series(node.elts)
        self.text("}")

    def _Dict(self, node: ast.Dict, _level: int) -> None:
        self.text("{")
        for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            self.text(", " if index else "")
            if key is not None:
                self.expression(key)
            self.text(": ")
            self.expression(value)
        self.text("}")

    def _ListComp(self, node: ast.ListComp, _level: int) -> None:
        self._comprehension("[", [node.elt], node.generators, "]")

    def _SetComp(self, node: ast.SetComp, _level: int) -> None:
        self._comprehension("{", [node.elt], node.generators, "}")

    def _GeneratorExp(self, node: ast.GeneratorExp, _level: int) -> None:
        self._comprehension("(", [node.elt], node.generators, ")")

    def _DictComp(self, node: ast.DictComp, _level: int) -> None:
        self._comprehension("{", [node.key, node.value], node.generators, "}")

    def _comprehension(
        self, left: str, made: list[ast.expr], generators: list[ast.comprehension], right: str
    ) -> None:
        """
        The engine compiles what is made last though it is written first: with conditions in between, all of
        it counts as one line, and what is made matters most.
        """
        self.text(left)
        self._mark(made[0].lineno)
        several = len(generators) > 1 or any(generator.ifs for generator in generators)
        self._frozen += several
        for index, part in enumerate(made):
            self.text(": " if index else "")
            self.expression(part)
        for generator in generators:
            self.text(" for ")
            self.expression(generator.target)
            self.text(" in ")
            self.expression(generator.iter, _OR)
            for condition in generator.ifs:
                self.text(" if ")
                self.expression(condition, _OR)
        self._frozen -= several
        self.text(right)
