"""
Comprehensions that become functions: those that await, since the engine has none, and those with conditions
that stand on several lines. The engine compiles what is made last though it is written first, and its lines
only go forward.

The first iterable is evaluated where the comprehension stands, as in CPython; the rest inside.
"""

from __future__ import annotations

import ast
from typing import TypeAlias

from runner.build.python.names import Names
from runner.build.python.nodes import (
    Function,
    assign,
    at,
    attribute,
    call,
    function,
    helper,
    load,
    within,
)

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def awaits(node: Comprehension) -> bool:
    """
    Whether the comprehension awaits anything apart from its first iterable.
    """
    inside: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for index, generator in enumerate(node.generators):
        if generator.is_async:
            return True
        inside += [*generator.ifs, *([generator.iter] if index else [])]
    return any(
        isinstance(part, ast.Await) or (isinstance(part, ast.comprehension) and part.is_async)
        for part in within(inside)
    )


def is_spread(node: Comprehension) -> bool:
    """
    Whether the comprehension's own order and the engine's differ over several lines.
    """
    several = len(node.generators) > 1 or any(generator.ifs for generator in node.generators)
    return several and node.end_lineno != node.lineno


def as_function(
    node: Comprehension, names: Names, *, is_async: bool, at_module: bool
) -> tuple[Function, ast.expr]:
    """
    The function to be defined before the statement, and the expression in the comprehension's place.

    Args:
        node: The comprehension; nothing in it is lowered yet.
        names: Of the module.
        is_async: Make a function that is awaited.
        at_module: The comprehension stands in no function.
    """
    name, source, made = names.new(), names.new(), names.new()
    is_generator = isinstance(node, ast.GeneratorExp)
    body: list[ast.stmt] = [at(_step(node, made), node)]
    for index, generator in reversed(list(enumerate(node.generators))):
        for condition in reversed(generator.ifs):
            body = [at(ast.If(test=condition, body=body, orelse=[]), condition)]
        iterable = load(source) if index == 0 else generator.iter
        kind = ast.AsyncFor if generator.is_async else ast.For
        body = [at(kind(target=generator.target, iter=iterable, body=body, orelse=[]), node)]
    if not is_generator:
        body = [assign(made, _empty(node)), *body, ast.Return(value=load(made))]
    named = _walrus_targets(node)
    if named:
        body.insert(0, (ast.Global if at_module else ast.Nonlocal)(names=named))
    made_function = at(function(name, [source], body, is_async=is_async), node)
    expression = at(call(name, node.generators[0].iter), node)
    return made_function, at(
        ast.Await(value=expression), node
    ) if is_async and not is_generator else expression


def walrus_targets(made: Function) -> list[str]:
    """
    Names that the function binds for the function around it.
    """
    first = made.body[0]
    return list(first.names) if isinstance(first, ast.Nonlocal) else []


def _walrus_targets(node: Comprehension) -> list[str]:
    found = {
        part.target.id
        for part in within([node])
        if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name)
    }
    return sorted(found)


def _empty(node: Comprehension) -> ast.expr:
    if isinstance(node, ast.DictComp):
        return ast.Dict(keys=[], values=[])
    if isinstance(node, ast.SetComp):
        return call(helper("set_of"))
    return ast.List(elts=[], ctx=ast.Load())


def _step(node: Comprehension, made: str) -> ast.stmt:
    if isinstance(node, ast.GeneratorExp):
        return ast.Expr(value=ast.Yield(value=node.elt))
    if isinstance(node, ast.DictComp):
        target = ast.Subscript(value=load(made), slice=node.key, ctx=ast.Store())
        return ast.Assign(targets=[target], value=node.value)
    adder = "add" if isinstance(node, ast.SetComp) else "append"
    return ast.Expr(value=call(attribute(load(made), adder), node.elt))
