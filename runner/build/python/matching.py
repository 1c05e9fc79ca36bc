"""
`match`: a chain of conditions.

A case's names are bound once its whole pattern has matched and before its guard is asked, as in CPython:
until then the parts are kept under names of our own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from runner.build.python.nodes import (
    assign,
    at,
    attribute,
    bind,
    both,
    call,
    call_helper,
    compare,
    constant,
    helper,
    items,
    load,
)


def lower_match(node: ast.Match, new_name: Callable[[], str]) -> list[ast.stmt]:
    """
    Statements that do what the `match` does.

    Args:
        node: The statement; what is inside of it is not lowered yet.
        new_name: Makes names.
    """
    subject = new_name()
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        condition = _Case(new_name).condition(case, load(subject))
        if isinstance(condition, ast.Constant) and condition.value is True:
            chain = case.body
        else:
            chain = [at(ast.If(test=at(condition, case.pattern), body=case.body, orelse=chain), case.pattern)]
    return [at(assign(subject, node.subject), node), *chain]


class _Case:
    def __init__(self, new_name: Callable[[], str]) -> None:
        self._new_name = new_name
        self._captured: dict[str, str] = {}

    def condition(self, case: ast.match_case, subject: ast.expr) -> ast.expr:
        matched = self._pattern(case.pattern, subject)
        bound = [bind(name, load(kept)) for name, kept in self._captured.items()]
        return both([matched, *bound, *([case.guard] if case.guard else [])])

    def _keep(self, name: str, value: ast.expr) -> ast.expr:
        # The alternatives of an or-pattern bind the same names.
        kept = self._captured.setdefault(name, "") or self._new_name()
        self._captured[name] = kept
        return bind(kept, value)

    def _pattern(self, pattern: ast.pattern, subject: ast.expr) -> ast.expr:
        if isinstance(pattern, ast.MatchValue):
            return compare(subject, ast.Eq(), pattern.value)
        if isinstance(pattern, ast.MatchSingleton):
            return compare(subject, ast.Is(), constant(pattern.value))
        if isinstance(pattern, ast.MatchAs):
            inner = self._pattern(pattern.pattern, subject) if pattern.pattern else constant(True)
            return both([inner, self._keep(pattern.name, subject)]) if pattern.name else inner
        if isinstance(pattern, ast.MatchOr):
            return ast.BoolOp(op=ast.Or(), values=[self._pattern(p, subject) for p in pattern.patterns])
        first: list[ast.expr] = []
        if not isinstance(subject, ast.Name):
            kept = self._new_name()
            first, subject = [bind(kept, subject)], load(kept)
        if isinstance(pattern, ast.MatchSequence):
            return both([*first, *self._sequence(pattern, subject)])
        if isinstance(pattern, ast.MatchMapping):
            return both([*first, *self._mapping(pattern, subject)])
        if isinstance(pattern, ast.MatchClass):
            return both([*first, *self._class(pattern, subject)])
        raise TypeError(type(pattern).__name__)

    def _sequence(self, pattern: ast.MatchSequence, subject: ast.expr) -> list[ast.expr]:
        parts = pattern.patterns
        star = next((i for i, part in enumerate(parts) if isinstance(part, ast.MatchStar)), None)
        least = len(parts) - (star is not None)
        size = call_helper("size", subject)
        # A size of -1 is no sequence at all.
        conditions: list[ast.expr] = [compare(size, ast.Eq() if star is None else ast.GtE(), constant(least))]
        for index, part in enumerate(parts):
            if isinstance(part, ast.MatchStar):
                if part.name:
                    rest = call_helper("middle", subject, constant(index), constant(least - index))
                    conditions.append(self._keep(part.name, rest))
                continue
            position = index if star is None or index < star else index - len(parts)
            element = ast.Subscript(value=subject, slice=constant(position), ctx=ast.Load())
            conditions.append(self._pattern(part, element))
        return conditions

    def _mapping(self, pattern: ast.MatchMapping, subject: ast.expr) -> list[ast.expr]:
        conditions: list[ast.expr] = [call_helper("is_mapping", subject)]
        for key, part in zip(pattern.keys, pattern.patterns, strict=True):
            value = call(attribute(subject, "get"), key, helper("MISSING"))
            conditions += self._found(value, part)
        if pattern.rest:
            conditions.append(self._keep(pattern.rest, call_helper("rest", subject, items(pattern.keys))))
        return conditions

    def _class(self, pattern: ast.MatchClass, subject: ast.expr) -> list[ast.expr]:
        conditions: list[ast.expr] = [call_helper("isinstance_", subject, pattern.cls)]
        count = constant(len(pattern.patterns))
        for index, part in enumerate(pattern.patterns):
            value = call_helper("positional", subject, pattern.cls, constant(index), count)
            conditions += self._found(value, part)
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            conditions += self._found(call_helper("attr", subject, constant(name), helper("MISSING")), part)
        return conditions

    def _found(self, value: ast.expr, part: ast.pattern) -> list[ast.expr]:
        kept = self._new_name()
        found = ast.NamedExpr(target=ast.Name(id=kept, ctx=ast.Store()), value=value)
        return [compare(found, ast.IsNot(), helper("MISSING")), self._pattern(part, load(kept))]
