"""
Functions: parameters that are positional only, type parameters, decorators, and generators that await.
"""

from __future__ import annotations

import ast
from typing import Any

from runner.build.python.names import Names
from runner.build.python.nodes import (
    Function,
    assign,
    at,
    call,
    call_helper,
    constant,
    function,
    helper,
    is_name,
    load,
    within,
)


def first_parameter(node: Function) -> str | None:
    """
    What the function calls its receiver, if it is a method.
    """
    parameters = [*node.args.posonlyargs, *node.args.args]
    return parameters[0].arg if parameters else None


def is_async_generator(node: ast.AST) -> bool:
    """
    Whether the function is one that awaits and yields.
    """
    return isinstance(node, ast.AsyncFunctionDef) and any(
        isinstance(part, ast.Yield) for part in within(node.body)
    )


def lower_parameters(node: Function, names: Names) -> None:
    """
    Hide the names of positional-only parameters, so that nobody can pass them by name.
    """
    hidden = _hide(node.args, names)
    prologue: list[ast.stmt] = [at(assign(name, load(new)), node) for name, new in hidden]
    node.body = [*prologue, *node.body]


def lower_lambda(node: ast.Lambda, names: Names) -> ast.Lambda:
    """
    The same for a lambda, whose body can't begin with assignments.
    """
    hidden = _hide(node.args, names)
    if hidden:
        inner = function("", [name for name, _ in hidden], [], is_async=False).args
        wrapped = at(ast.Lambda(args=inner, body=node.body), node)
        node.body = at(call(wrapped, *(load(new) for _, new in hidden)), node)
    return node


def type_parameters(node: Any) -> list[ast.stmt]:
    """
    The names in `def f[T]`, as far as something other than an annotation may read them.
    """
    parameters = getattr(node, "type_params", [])
    node.type_params = []
    return [at(assign(p.name, call_helper("type_variable", constant(p.name))), p) for p in parameters]


def lower_decorators(decorators: list[ast.expr], names: Names) -> tuple[list[ast.stmt], list[ast.expr]]:
    """
    Assignments to be made first, and decorators that the engine can read: names, dotted, called or not.
    """
    if all(_is_simple(decorator) for decorator in decorators):
        return [], decorators
    before: list[ast.stmt] = []
    plain: list[ast.expr] = []
    for decorator in decorators:
        name = names.new()
        before.append(at(assign(name, decorator), decorator))
        plain.append(at(load(name), decorator))
    return before, plain


def registering(decorator: ast.expr, node: ast.AST) -> ast.expr:
    """
    `@f.register` by itself: a function of `singledispatch` takes the type from an annotation that is gone
    here.
    """
    if not (isinstance(decorator, ast.Attribute) and decorator.attr == "register"):
        return decorator
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return decorator
    parameters = [*node.args.posonlyargs, *node.args.args]
    if not parameters or parameters[0].annotation is None:
        return decorator
    annotation = ast.Lambda(args=function("", [], [], is_async=False).args, body=parameters[0].annotation)
    return at(call_helper("registering", decorator.value, annotation), decorator)


def yields_marked(value: ast.expr | None) -> ast.Yield:
    """
    A `yield` of an asynchronous generator: marked, since what it awaits comes the same way.
    """
    return ast.Yield(value=call_helper("Yielded", value or constant(None)))


def async_generator() -> ast.expr:
    """
    The decorator that makes an asynchronous generator of the function.
    """
    return helper("async_generator")


def drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """
    A body without the text that it begins with: the engine keeps no docstrings.
    """
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:] or [at(ast.Pass(), first)]
    return body


def drops_annotations(args: ast.arguments) -> None:
    """
    Forget what the parameters are annotated with.
    """
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    for parameter in [*every, *filter(None, (args.vararg, args.kwarg))]:
        parameter.annotation = None


def _hide(args: ast.arguments, names: Names) -> list[tuple[str, str]]:
    hidden = []
    for parameter in args.posonlyargs:
        new = names.new()
        hidden.append((parameter.arg, new))
        parameter.arg = new
    args.args = [*args.posonlyargs, *args.args]
    args.posonlyargs = []
    return hidden


def _is_simple(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and not is_name(node, "super")
