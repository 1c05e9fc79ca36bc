"""
Expressions that the engine reads differently, or not at all.
"""

from __future__ import annotations

import ast
from typing import Final

from runner.build.python import gaps
from runner.build.python.names import Names
from runner.build.python.nodes import HELPER, at, call, call_helper, constant, helper, is_name, is_super, load

_VALUE_AND_TYPE: Final = 2
_GENERIC_TYPES: Final = ("list", "dict", "tuple", "set", "frozenset", "type")
# Neither `int`, since in the engine a truth value is none, nor `type`, since an enumeration is none.
_PLAIN_TYPES: Final = (
    "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "list", "object", "set", "str",
    "tuple", "BaseException", "Exception",
)  # fmt: skip


def lower_attribute(node: ast.Attribute, receiver: str | None) -> ast.expr:
    """
    An attribute that is read.

    Args:
        node: The attribute; its value is lowered already.
        receiver: First parameter of the function around, if there is one.
    """
    if receiver and is_super(node.value) and node.attr in gaps.SUPER_ATTRIBUTES:
        return _method_place(call_helper("super_attr", node.value, load(receiver), constant(node.attr)), node)
    if node.attr == "__class__":
        return _method_place(call_helper("type_of", node.value), node)
    return node


def lower_call(node: ast.Call, names: Names) -> ast.expr:
    """
    A call of a built-in function or method in a shape that the engine's has not; parts are lowered already.
    """
    function = node.func
    if isinstance(function, ast.Attribute) and not is_super(function.value):
        is_module = isinstance(function.value, ast.Name) and function.value.id in names.modules
        if not is_module and gaps.is_shaped_method(node, function.attr):
            node.func = _method_place(call_helper("attr", function.value, constant(function.attr)), function)
    elif isinstance(function, ast.Name) and function.id not in names.bound:
        is_test = function.id in {"isinstance", "issubclass"} and len(node.args) == _VALUE_AND_TYPE
        if is_test:
            node.args[1] = _union_of(node.args[1])
            if not _is_plain(node.args[1], names):
                node.func = at(helper(f"{function.id}_"), function)
        elif name := gaps.shaped_builtin(node, function.id):
            node.func = at(helper(name), function)
    return node


def is_base_init(node: ast.Call, names: Names, receiver: str | None) -> bool:
    """
    Whether the call is `Exception.__init__(self, …)`, of a built-in class.
    """
    function = node.func
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__" and receiver and node.args):
        return False
    cls = function.value
    is_builtin = isinstance(cls, ast.Name) and cls.id not in names.bound
    return is_builtin and is_name(node.args[0], receiver)


def lower_base_init(node: ast.Call) -> ast.expr:
    """
    What `is_base_init` found, by way of `super()`.
    """
    if isinstance(node.func, ast.Attribute):
        node.args = [call("super"), node.func.value, *node.args]
        node.func = helper("base_init")
    return node


def lower_views(node: ast.BinOp) -> ast.BinOp:
    """
    `d.keys() & other`: the engine's views are no sets.
    """
    if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub):
        node.left, node.right = (
            call_helper("of_view", side) if _is_view(side) else side for side in (node.left, node.right)
        )
    return node


def lower_slice_assignment(node: ast.Assign) -> ast.stmt | None:
    """
    `x[a:b:c] = y`, if the engine may not be able to do it.
    """
    target = node.targets[0]
    if (
        len(node.targets) > 1
        or not isinstance(target, ast.Subscript)
        or not isinstance(target.slice, ast.Slice)
    ):
        return None
    if target.slice.step is None and isinstance(node.value, ast.List | ast.Tuple):
        return None
    parts = [part or constant(None) for part in (target.slice.lower, target.slice.upper, target.slice.step)]
    return ast.Expr(value=at(call_helper("set_cut", target.value, *parts, node.value), node))


def lower_deletion(target: ast.expr) -> ast.stmt:
    """
    The deletion of one target.
    """
    if isinstance(target, ast.Tuple | ast.List):
        return ast.Delete(targets=[target])
    if (
        not isinstance(target, ast.Subscript)
        or not isinstance(target.slice, ast.Slice)
        or not target.slice.step
    ):
        return ast.Delete(targets=[target])
    parts = [part or constant(None) for part in (target.slice.lower, target.slice.upper, target.slice.step)]
    return ast.Expr(value=at(call_helper("del_cut", target.value, *parts), target))


def lower_subscript(node: ast.Subscript, names: Names) -> ast.expr:
    """
    A subscript that is read, of what may be a class.
    """
    if _may_be_class(node.value, names):
        return at(call_helper("item", node.value, node.slice), node)
    return node


def lower_union(node: ast.BinOp, names: Names) -> ast.expr:
    """
    `A | B`, if it may be of types.
    """
    if isinstance(node.op, ast.BitOr) and (_is_type(node.left, names) or _is_type(node.right, names)):
        return at(call_helper("union", node.left, node.right), node)
    return node


def lower_display(node: ast.List | ast.Tuple | ast.Set) -> ast.expr:
    """
    `[*a, b]` and its like: a call can do what the engine's literals can't.
    """
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return node
    if not any(isinstance(element, ast.Starred) for element in node.elts):
        return node
    name = {ast.List: "list_of", ast.Tuple: "tuple_of", ast.Set: "set_of"}[type(node)]
    return at(call(helper(name), *node.elts), node)


def lower_dict(node: ast.Dict) -> ast.expr:
    """
    `{**a, "b": c}`: dicts that are merged in order.
    """
    if all(key is not None for key in node.keys):
        return node
    parts: list[ast.expr] = []
    run = ast.Dict(keys=[], values=[])
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            parts += [*([run] if run.keys else []), value]
            run = ast.Dict(keys=[], values=[])
        else:
            run.keys.append(key)
            run.values.append(value)
    return at(call_helper("dict_of", *parts, *([run] if run.keys else [])), node)


def _is_view(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and not node.args and not node.keywords
    function = node.func if isinstance(node, ast.Call) else node
    return is_call and isinstance(function, ast.Attribute) and function.attr in {"keys", "items"}


def _method_place(made: ast.expr, node: ast.Attribute) -> ast.expr:
    # In a chain over several lines, CPython says that a method stands where its name does.
    at(made, node)
    made.lineno = node.end_lineno or node.lineno
    return made


def _union_of(node: ast.expr) -> ast.expr:
    """
    The second argument of `isinstance`: there, `|` is of types whatever the operands are called.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return at(call_helper("union", _union_of(node.left), _union_of(node.right)), node)
    return node


def _is_plain(node: ast.expr, names: Names) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_plain(element, names) for element in node.elts)
    if not isinstance(node, ast.Name):
        return False
    return names.is_builtin(node, *_PLAIN_TYPES) or (node.id.endswith("Error") and node.id not in names.bound)


def _is_type(node: ast.expr, names: Names) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Call):
        # What was made of a union or a generic type further in.
        function = node.func
        is_helper = isinstance(function, ast.Attribute) and is_name(function.value, HELPER)
        return is_helper and getattr(function, "attr", "") in {"union", "item"}
    if names.is_builtin(node, *_PLAIN_TYPES, "int", "type"):
        return True
    if not isinstance(node, ast.Name):
        return False
    return node.id in names.classes or names.imported.get(node.id, ("",))[0] in {"typing", "collections.abc"}


def _may_be_class(node: ast.expr, names: Names) -> bool:
    if names.is_builtin(node, *_GENERIC_TYPES):
        return True
    if isinstance(node, ast.Attribute):
        return is_name(node.value, "typing") or (node.attr[:1].isupper() and isinstance(node.value, ast.Name)
            and node.value.id in names.modules)  # fmt: skip
    if not isinstance(node, ast.Name):
        return False
    # An imported name may be a class; the runtime looks at what it is.
    return node.id in names.classes or (node.id in names.imported and node.id[:1].isupper())
