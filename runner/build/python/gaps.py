"""
Calls that the engine's built-in types and functions answer differently, by their name and shape.

No type is guessed on the host. A method that stands here may be met on a built-in type, so the runtime looks
at the receiver and decides; on an object of the author's the same name is what he made it. Attributes that a
built-in type lacks altogether are no matter of lowering: the engine has them from `_rt`.
"""

from __future__ import annotations

import ast
from typing import Final

SUPER_ATTRIBUTES: Final = frozenset(
    {
        "__init_subclass__", "__set_name__", "__class_getitem__", "__format__", "__contains__", "__delitem__",
        "__eq__", "__ge__", "__getattribute__", "__getitem__", "__gt__", "__hash__", "__iter__",
        "__le__", "__len__", "__lt__", "__ne__", "__repr__", "__setitem__", "__str__", "__add__", "__dir__",
        "__reversed__",
    }
)  # fmt: skip
"""
What `super()` has in CPython whatever the bases are, and in the engine only if a class of the author's
defines it.
"""

_UTF8: Final = frozenset({"utf-8", "utf8", "UTF-8"})


def is_shaped_method(node: ast.Call, name: str) -> bool:
    """
    Whether a method that the engine has is called in a way that it has not.
    """
    plain, named = node.args, bool(node.keywords)
    if name in {"split", "splitlines", "replace", "index", "pop"}:
        return named and not any(keyword.arg is None for keyword in node.keywords)
    if name == "rsplit":
        return named or bool(plain)
    if name in {"encode", "decode"}:
        return named or len(plain) > 1 or not all(_is_utf8(arg) for arg in plain)
    if name in {"union", "intersection", "difference", "intersection_update", "difference_update"}:
        return len(plain) != 1 or isinstance(plain[0], ast.Starred)
    if name == "update":
        # Of a mapping that is no dict, the engine's `update` makes nothing.
        return len(plain) > 1 or any(not isinstance(arg, ast.Dict) for arg in plain)
    if name in {"to_bytes", "from_bytes"}:
        return named or len(plain) < 2  # noqa: PLR2004 - both have defaults
    return name == "format" or (name in {"hex", "center"} and len(plain) > 1)


def shaped_builtin(node: ast.Call, name: str) -> str | None:
    """
    The helper that stands in for a built-in function when it is called like this, or `None`.
    """
    count = len(node.args)
    named = {keyword.arg for keyword in node.keywords}
    wanted = {
        "zip": bool(named),
        "sum": bool(named),
        "iter": count > 1,
        "pow": count + len(named) > 2,  # noqa: PLR2004 - base and exponent
        "round": count + len(named) > 1,
        "print": bool(named - {"sep", "end"}),
        "int": bool(named),
        "str": count + len(named) > 1,
        "bytes": count + len(named) > 1,
        "dict": count == 1 and not isinstance(node.args[0], ast.Dict | ast.ListComp | ast.GeneratorExp),
        "enumerate": bool(named - {"start"}),
        "reversed": True,
        "slice": True,
        "type": count > 1,
    }
    if name == "type" and count == 1:
        return "type_of"
    return f"{name}_" if wanted.get(name) else None


def _is_utf8(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _UTF8
