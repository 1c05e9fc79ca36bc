# ruff: noqa: N802 - methods are named for the nodes
"""
From the author's syntax tree to one that has only what the engine compiles.

Statements may be preceded by others that were made for what is inside of them: every block is rewritten
statement by statement, with the list of those at hand.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Final

from runner.build.python import classes, comprehensions, expressions, functions, groups, matching
from runner.build.python.names import Names
from runner.build.python.nodes import (
    Function,
    assign,
    at,
    call_helper,
    compare,
    constant,
    helper,
    load,
    store,
)
from runner.build.python.source import reject
from runner.build.python.strings import lower_fstring

_MAX_SHOWN: Final = 200
_REFUSED: Final = {"TemplateStr": "template strings are not available to an agent"}


@dataclass(slots=True)
class _Scope:
    kind: str
    receiver: str | None = None
    yields_marked: bool = False
    owners: list[str] = field(default_factory=list)


class Rewriter:
    """
    Rewrites one module.

    Args:
        file: The module's, for refusals.
        names: Of the module.
    """

    def __init__(self, file: str, names: Names) -> None:
        self._file = file
        self._names = names
        self._scopes = [_Scope("module")]
        self._before: list[list[ast.stmt]] = [[]]
        # Inside what binds names of its own and is no statement, nothing can be defined beforehand.
        self._inline = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """
        A block, rewritten.

        Raises:
            SourceRejected: If it has what an agent can't.
        """
        done: list[ast.stmt] = []
        for statement in body:
            self._before.append([])
            made = self.visit(statement)
            done += self._before.pop()
            done += made if isinstance(made, list) else [made] if made is not None else []
        return done

    def visit(self, node: ast.AST) -> Any:
        """
        A node, rewritten: a node, a list of statements, or `None` for nothing.
        """
        refusal = _REFUSED.get(type(node).__name__)
        if refusal:
            raise reject(self._file, node, refusal)
        method = getattr(self, f"_{type(node).__name__}", self.generic_visit)
        return method(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """
        A node with what is inside of it rewritten.
        """
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value) or [at(ast.Pass(), value[0])])
            elif isinstance(value, list):
                setattr(node, name, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    # Names.

    def _Name(self, node: ast.Name) -> ast.expr:
        node.id = self._own(node.id)
        return node

    def _Global(self, node: ast.Global) -> ast.stmt | None:
        node.names = [self._own(name) for name in node.names]
        return None if self._scope.kind == "module" else node

    def _Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        node.names = [self._own(name) for name in node.names]
        return node

    def _arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._own(node.arg)
        return node

    def _keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg:
            node.arg = self._own(node.arg)
        node.value = self.visit(node.value)
        return node

    def _ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        return None if node.module == "__future__" else node

    # Functions and classes.

    def _FunctionDef(self, node: Function) -> list[ast.stmt]:
        is_generator = functions.is_async_generator(node)
        before = functions.type_parameters(node)
        node.decorator_list = [functions.registering(decorator, node) for decorator in node.decorator_list]
        functions.drops_annotations(node.args)
        node.returns = None
        node.name = self._own(node.name)
        # Decorators and defaults belong to the scope around.
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        receiver = functions.first_parameter(node)
        node.args = self.visit(node.args)
        self._enter(_Scope("function", receiver, yields_marked=is_generator))
        inline, self._inline = self._inline, 0
        node.body = self.block(functions.drop_docstring(node.body)) or [at(ast.Pass(), node)]
        self._scopes.pop()
        self._inline = inline
        functions.lower_parameters(node, self._names)
        more, node.decorator_list = functions.lower_decorators(node.decorator_list, self._names)
        if is_generator:
            node.decorator_list = [*node.decorator_list, at(functions.async_generator(), node)]
        return [*before, *more, node]

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.visit(node.args)
        receiver = self._scope.receiver
        self._enter(_Scope("lambda", receiver))
        self._inline += 1
        node.body = self.visit(node.body)
        self._inline -= 1
        self._scopes.pop()
        return functions.lower_lambda(node, self._names)

    def _ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        before = functions.type_parameters(node)
        node.body = functions.drop_docstring(node.body)
        classes.lower_class(node, self._names, file=self._file)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        self._scopes.append(_Scope("class", owners=[*self._scope.owners, node.name]))
        node.body = self.block(node.body) or [at(ast.Pass(), node)]
        self._scopes.pop()
        node.name = self._own(node.name)
        more, node.decorator_list = functions.lower_decorators(node.decorator_list, self._names)
        return [*before, *more, node]

    def _Yield(self, node: ast.Yield) -> ast.expr:
        value = self.visit(node.value) if node.value else None
        if self._scope.yields_marked:
            return at(functions.yields_marked(value), node)
        node.value = value
        return node

    # Statements.

    def _Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        changed = expressions.lower_slice_assignment(node)
        return node if changed is None else at(changed, node)

    def _Delete(self, node: ast.Delete) -> list[ast.stmt]:
        self.generic_visit(node)
        return [at(expressions.lower_deletion(target), target) for target in node.targets]

    def _TypeAlias(self, node: Any) -> ast.stmt:
        return at(assign(node.name.id, call_helper("type_variable", constant(node.name.id))), node)

    def _AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            return None
        return at(ast.Assign(targets=[self.visit(node.target)], value=self.visit(node.value)), node)

    def _Match(self, node: ast.Match) -> list[ast.stmt]:
        return self.block(matching.lower_match(node, self._names.new))

    def _TryStar(self, node: Any) -> list[ast.stmt]:
        return self.block([groups.lower_groups(node, self._names)])

    def _ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name:
            node.name = self._own(node.name)
        return self.generic_visit(node)

    def _Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        if node.exc is not None and node.cause is not None:
            node.exc = at(call_helper("caused", node.exc, node.cause), node)
            node.cause = None
        return node

    def _If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if _is_for_type_checkers(node.test):
            return self.block(node.orelse)
        last = node
        while True:
            last.test = self.visit(last.test)
            last.body = self.block(last.body) or [at(ast.Pass(), last.body[0])]
            following = last.orelse[0] if len(last.orelse) == 1 else None
            if not isinstance(following, ast.If) or _is_for_type_checkers(following.test):
                break
            # A chain may be long, and is no nesting.
            last = following
        last.orelse = self.block(last.orelse)
        return node

    def _While(self, node: ast.While) -> ast.AST:
        """
        The engine tests at the loop's end, and would show a failure of the test as one of the last line.
        """
        self.generic_visit(node)
        if not any(isinstance(part, ast.Call | ast.Await | ast.Subscript) for part in ast.walk(node.test)):
            return node
        if any(isinstance(part, ast.Break | ast.Continue) for part in _walk(node.orelse)):
            return node
        refuse = at(ast.UnaryOp(op=ast.Not(), operand=node.test), node.test)
        leave = at(ast.If(test=refuse, body=[*node.orelse, ast.Break()], orelse=[]), node)
        return at(ast.While(test=constant(True), body=[leave, *node.body], orelse=[]), node)

    def _With(self, node: ast.With | ast.AsyncWith) -> list[ast.stmt]:
        """
        One manager each: over several lines the engine can't read more.
        """
        self.generic_visit(node)
        # Leaving may fail, too, and then it fails where the statement stands.
        body: list[ast.stmt] = [*node.body, at(ast.Expr(value=helper("END")), node)]
        for item in reversed(node.items):
            entered = at(type(node)(items=[item], body=body), node)
            body = [entered]
            if item.context_expr.lineno != node.lineno:
                # What is entered is made in its own line, and entered in that of the statement.
                name = self._names.new()
                body.insert(0, at(assign(name, item.context_expr), item.context_expr))
                item.context_expr = at(load(name), node)
        return body

    _AsyncWith = _With

    def _Assert(self, node: ast.Assert) -> ast.AST:
        """
        A bare assertion says what it asserted, with the two sides of a comparison.
        """
        if node.msg is not None:
            return self.generic_visit(node)
        text = constant(ast.unparse(node.test)[:_MAX_SHOWN])
        self.generic_visit(node)
        test = node.test
        is_plain = isinstance(test, ast.Compare) and len(test.ops) == 1 and self._scope.kind == "function"
        if is_plain and isinstance(test, ast.Compare):
            left, right = self._names.new(), self._names.new()
            named = [
                at(ast.NamedExpr(target=store(name), value=value), value)
                for name, value in ((left, test.left), (right, test.comparators[0]))
            ]
            node.test = at(compare(named[0], test.ops[0], named[1]), test)
            node.msg = at(call_helper("asserted", text, load(left), load(right)), test)
        else:
            node.msg = at(text, test)
        return node

    # Expressions.

    def _Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = self._own(node.attr)
        if isinstance(node.ctx, ast.Load):
            return expressions.lower_attribute(node, self._scope.receiver)
        return node

    def _Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if expressions.is_base_init(node, self._names, self._scope.receiver):
            return at(expressions.lower_base_init(node), node)
        return expressions.lower_call(node, self._names)

    def _Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return expressions.lower_subscript(node, self._names) if isinstance(node.ctx, ast.Load) else node

    def _BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return expressions.lower_union(expressions.lower_views(node), self._names)

    def _JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        return at(lower_fstring(node, asks="__format__" in self._names.bound), node)

    def _List(self, node: ast.List | ast.Tuple | ast.Set) -> ast.expr:
        self.generic_visit(node)
        return expressions.lower_display(node)

    _Tuple = _Set = _List

    def _Dict(self, node: ast.Dict) -> ast.expr:
        node.keys = [self.visit(key) if key is not None else None for key in node.keys]
        node.values = [self.visit(value) for value in node.values]
        return expressions.lower_dict(node)

    def _ListComp(self, node: comprehensions.Comprehension) -> ast.AST:
        awaits = comprehensions.awaits(node)
        if not awaits and (self._inline or not comprehensions.is_spread(node)):
            self._inline += 1
            self.generic_visit(node)
            self._inline -= 1
            return node
        made, expression = comprehensions.as_function(
            node, self._names, is_async=awaits, at_module=self._scope.kind == "module"
        )
        for name in comprehensions.walrus_targets(made):
            # What the comprehension binds is this function's, so something here must bind it.
            choice = at(ast.If(test=helper("NEVER"), body=[assign(name, constant(None))], orelse=[]), node)
            self._before[-1].append(choice)
        call = expression.value if isinstance(expression, ast.Await) else expression
        if isinstance(call, ast.Call):
            call.args = [self.visit(argument) for argument in call.args]
        self._before[-1] += self._FunctionDef(made)
        return expression

    _SetComp = _DictComp = _GeneratorExp = _ListComp

    @property
    def _scope(self) -> _Scope:
        return self._scopes[-1]

    def _enter(self, scope: _Scope) -> None:
        scope.owners = self._scope.owners
        self._scopes.append(scope)

    def _own(self, name: str) -> str:
        return classes.mangled(name, self._scope.owners)


def _is_for_type_checkers(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in {getattr(test, "id", None), getattr(test, "attr", None)}


def _walk(statements: list[ast.stmt]) -> list[ast.AST]:
    return [node for statement in statements for node in ast.walk(statement)]
