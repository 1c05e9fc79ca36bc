"""
Small pieces of syntax trees.

What is made here has no place in the author's text yet: `fill_places` gives each new node the line of the
node above it, once the whole module is lowered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

HELPER: Final = "_rt_"
"""
What lowered modules call the runtime's helpers by; the module is `_rt`.
"""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_PLACED: Final = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias, ast.excepthandler, ast.pattern)

Node = TypeVar("Node", bound=ast.AST)


def at(node: Node, place: ast.AST) -> Node:
    """
    `node`, said to stand where `place` stands.
    """
    return ast.copy_location(node, place)


def fill_places(tree: ast.Module) -> None:
    """
    Give every node that has no place the line where the node above it begins.
    """
    ahead: list[tuple[ast.AST, int]] = [(tree, 1)]
    while ahead:
        node, line = ahead.pop()
        if isinstance(node, _PLACED):
            line = getattr(node, "lineno", line)
            if getattr(node, "lineno", None) is None or getattr(node, "end_lineno", None) is None:
                node.lineno = node.end_lineno = line
        ahead.extend((child, line) for child in ast.iter_child_nodes(node))


def load(name: str) -> ast.Name:
    """
    The value of a name.
    """
    return ast.Name(id=name, ctx=ast.Load())


def store(name: str) -> ast.Name:
    """
    A name as a target.
    """
    return ast.Name(id=name, ctx=ast.Store())


def constant(value: str | bytes | complex | None) -> ast.Constant:
    """
    A literal.
    """
    return ast.Constant(value=value)


def attribute(value: ast.expr, name: str) -> ast.Attribute:
    """
    `value.name`.
    """
    return ast.Attribute(value=value, attr=name, ctx=ast.Load())


def helper(name: str) -> ast.Attribute:
    """
    One of the runtime's helpers.
    """
    return attribute(load(HELPER), name)


def call(function: ast.expr | str, *args: ast.expr) -> ast.Call:
    """
    A call with positional arguments.
    """
    callee = load(function) if isinstance(function, str) else function
    return ast.Call(func=callee, args=list(args), keywords=[])


def call_helper(name: str, *args: ast.expr) -> ast.Call:
    """
    A call of one of the runtime's helpers.
    """
    return call(helper(name), *args)


def assign(name: str, value: ast.expr) -> ast.Assign:
    """
    `name = value`.
    """
    return ast.Assign(targets=[store(name)], value=value)


def items(elements: Iterable[ast.expr]) -> ast.Tuple:
    """
    A tuple.
    """
    return ast.Tuple(elts=list(elements), ctx=ast.Load())


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.Compare:
    """
    A comparison of two.
    """
    return ast.Compare(left=left, ops=[operator], comparators=[right])


def bind(name: str, value: ast.expr) -> ast.expr:
    """
    A condition that is always true, and binds a name: nothing is allocated for it.
    """
    return compare(ast.NamedExpr(target=store(name), value=value), ast.Is(), load(name))


def both(conditions: Sequence[ast.expr]) -> ast.expr:
    """
    All of these; what is literally true is left out.
    """
    real = [c for c in conditions if not (isinstance(c, ast.Constant) and c.value is True)]
    if not real:
        return constant(True)
    return real[0] if len(real) == 1 else ast.BoolOp(op=ast.And(), values=real)


def no_arguments() -> ast.arguments:
    """
    The parameters of a function without any.
    """
    return ast.arguments(
        posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )


def function(
    name: str,
    parameters: Sequence[str],
    body: list[ast.stmt],
    *,
    is_async: bool,
    decorators: Sequence[ast.expr] = (),
) -> Function:
    """
    A function with positional parameters.
    """
    args = no_arguments()
    args.args = [ast.arg(arg=parameter) for parameter in parameters]
    kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
    made = kind(name=name, args=args, body=body, decorator_list=list(decorators), returns=None)
    # A field since 3.12, and required there; older trees have no place for it.
    setattr(made, "type_params", [])  # noqa: B010 - see above
    return made


def is_name(node: ast.AST, name: str) -> bool:
    """
    Whether the node is this name.
    """
    return isinstance(node, ast.Name) and node.id == name


def is_super(node: ast.AST) -> bool:
    """
    Whether the node is `super()`, in any form.
    """
    return isinstance(node, ast.Call) and is_name(node.func, "super")


def within(roots: Iterable[ast.AST], *, into_functions: bool = False) -> Iterable[ast.AST]:
    """
    Every node below the roots, themselves included, that belongs to their own scope.

    Args:
        roots: Where to begin.
        into_functions: Look inside functions, classes, lambdas and comprehensions, too.
    """
    ahead = list(roots)
    while ahead:
        node = ahead.pop()
        yield node
        if into_functions or not isinstance(node, _SCOPES):
            ahead.extend(ast.iter_child_nodes(node))


_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
