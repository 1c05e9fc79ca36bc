# ruff: noqa: N815 - visitors are named for the nodes
"""
`except*`: one handler for everything, which asks the runtime for the part that each clause takes.
"""

from __future__ import annotations

import ast

from runner.build.python.names import Names
from runner.build.python.nodes import assign, at, attribute, call, call_helper, load


def lower_groups(node: ast.Try, names: Names) -> ast.Try:
    """
    A `try` without stars.

    Args:
        node: The statement (a `TryStar`, which has the same fields); its parts are not lowered yet.
        names: Of the module.
    """
    caught, groups = names.new(), names.new()
    body: list[ast.stmt] = [assign(groups, call_helper("Groups", load(caught)))]
    for handler in node.handlers:
        wanted = handler.type or load("BaseException")
        body.append(at(_clause(handler, wanted, groups, names), handler))
    body.append(ast.Expr(value=call(attribute(load(groups), "finish"))))
    everything = at(ast.ExceptHandler(type=load("BaseException"), name=caught, body=body), node.handlers[0])
    return at(
        ast.Try(body=node.body, handlers=[everything], orelse=node.orelse, finalbody=node.finalbody), node
    )


def _clause(handler: ast.ExceptHandler, wanted: ast.expr, groups: str, names: Names) -> ast.If:
    raised = names.new()
    matched = attribute(load(groups), "matched")
    body = [_Reraise(groups).visit(statement) for statement in handler.body]
    if handler.name:
        body.insert(0, at(assign(handler.name, matched), handler))
    keep = ast.Expr(value=call(attribute(load(groups), "raised"), load(raised)))
    inner = ast.ExceptHandler(type=load("BaseException"), name=raised, body=[keep])
    guarded = ast.Try(body=body, handlers=[inner], orelse=[], finalbody=[])
    return ast.If(test=at(call(attribute(load(groups), "take"), wanted), wanted), body=[guarded], orelse=[])


class _Reraise(ast.NodeTransformer):
    """
    A bare `raise` in a clause is of what the clause took.
    """

    def __init__(self, groups: str) -> None:
        self._groups = groups

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if node.exc is None:
            node.exc = at(attribute(load(self._groups), "matched"), node)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]
