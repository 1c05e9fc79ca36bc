"""
Classes: what CPython does once a class's body is done, and the engine does not.

A class that may need any of it is handed to the runtime, innermost of its decorators: with the names of its
body in order, its annotations as text, and the keywords of its header.
"""

from __future__ import annotations

import ast
from typing import Final

from runner.build.python.names import Names
from runner.build.python.nodes import at, call_helper, constant, function, helper, items, load
from runner.build.python.source import reject

_IMPLICIT_CLASSMETHODS: Final = frozenset({"__init_subclass__", "__class_getitem__"})
_ENUMERATIONS: Final = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_PLAIN_METACLASSES: Final = frozenset({"ABCMeta", "EnumMeta", "EnumType", "type"})


def lower_class(node: ast.ClassDef, names: Names, *, file: str) -> None:
    """
    Prepare a class whose parts are not lowered yet.

    Raises:
        SourceRejected: If it has a metaclass of the author's.
    """
    is_enumeration = _is_enumeration(node, names)
    annotations = _annotations(node)
    keywords = _keywords(node, file)
    _methods(node, is_enumeration=is_enumeration)
    if annotations or keywords or node.bases or _may_have_descriptors(node):
        needs = not all(names.is_builtin(base, "Exception", "object") for base in node.bases)
        if annotations or keywords or needs or _may_have_descriptors(node):
            made = call_helper("finish", items(map(constant, _order(node))), annotations_of(annotations))
            made.keywords = keywords
            node.decorator_list = [*node.decorator_list, at(made, node)]
    node.keywords = []
    node.bases = [_base(base) for base in node.bases]
    if is_enumeration:
        # `class A(str, Enum)`: the engine's members could not be both.
        node.bases = [
            at(call_helper("mixin", base), base) if names.is_builtin(base, "str", "int") else base
            for base in node.bases
        ]


def annotations_of(annotations: list[tuple[str, str]]) -> ast.Tuple:
    """
    Names and their annotations, as a tuple.
    """
    return items(items((constant(name), constant(text))) for name, text in annotations)


def mangled(name: str, classes: list[str]) -> str:
    """
    A name as it is in a class: two underscores in front make it the class's own.
    """
    if not classes or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    owner = classes[-1].lstrip("_")
    return f"_{owner}{name}" if owner else name


def _annotations(node: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for statement in node.body:
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.simple
        ):
            annotation = statement.annotation
            is_text = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
            text = annotation.value if is_text else ast.unparse(annotation)  # type: ignore[attr-defined]
            found.append((mangled(statement.target.id, [node.name]), str(text)))
    return found


def _keywords(node: ast.ClassDef, file: str) -> list[ast.keyword]:
    kept = []
    for keyword in node.keywords:
        if keyword.arg != "metaclass":
            kept.append(keyword)
            continue
        value = keyword.value
        name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
        if name not in _PLAIN_METACLASSES:
            raise reject(
                file,
                value,
                "metaclasses are not available to an agent",
                hint="use __init_subclass__ or a class decorator",
            )
        if name == "ABCMeta":
            kept.append(ast.keyword(arg="abstract", value=constant(True)))
    return kept


def _is_enumeration(node: ast.ClassDef, names: Names) -> bool:
    """
    Whether the class derives from one of `enum`, as far as this module shows.
    """
    for base in node.bases:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if name in names.enumerations or name in _ENUMERATIONS:
            names.enumerations.add(node.name)
            return True
    return False


def _methods(node: ast.ClassDef, *, is_enumeration: bool) -> None:
    own = {s.name for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)}
    for statement in node.body if is_enumeration else []:
        for decorator in getattr(statement, "decorator_list", []):
            if isinstance(decorator, ast.Name) and decorator.id == "classmethod":
                statement.decorator_list = [  # type: ignore[attr-defined]
                    at(helper("classmethod_"), decorator) if other is decorator else other
                    for other in statement.decorator_list  # type: ignore[attr-defined]
                ]
    for statement in node.body:
        if (
            isinstance(statement, ast.FunctionDef)
            and statement.name in _IMPLICIT_CLASSMETHODS
            and not statement.decorator_list
        ):
            statement.decorator_list = [at(helper("classmethod"), statement)]
    if "__await__" in own and "__iter__" not in own:
        # The engine awaits by iterating.
        target = ast.Name(id="__iter__", ctx=ast.Store())
        node.body.append(at(ast.Assign(targets=[target], value=load("__await__")), node.body[-1]))


def _order(node: ast.ClassDef) -> list[str]:
    """
    Names that the body assigns, in order: members of an enumeration, and what has `__set_name__`.
    """
    found: dict[str, None] = {}
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value:
            targets = [statement.target]
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    found[mangled(name.id, [node.name])] = None
    for statement in node.body:
        decorated = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.decorator_list
        if decorated:
            found[mangled(statement.name, [node.name])] = None  # type: ignore[attr-defined]
    return list(found)


def _may_have_descriptors(node: ast.ClassDef) -> bool:
    """
    Whether something in the body may want to be told its name: a value that was made by a call, or a
    decorator.
    """
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
            statement.value, ast.Call | ast.Name
        ):
            return True
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            known = {
                "property",
                "staticmethod",
                "classmethod",
                "setter",
                "getter",
                "deleter",
                "abstractmethod",
            }
            for decorator in statement.decorator_list:
                name = (
                    decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
                )
                if name not in known:
                    return True
    return False


def _base(base: ast.expr) -> ast.expr:
    if not isinstance(base, ast.Subscript):
        return base
    # The parameters of a generic base are read by nobody, unless the base asks for them.
    key = ast.Lambda(args=function("", [], [], is_async=False).args, body=base.slice)
    return at(call_helper("base", base.value, key), base)
