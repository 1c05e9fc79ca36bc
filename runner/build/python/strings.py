"""
f-strings: a literal's `format`, with what a conversion or a format specification asks for done before.
"""

from __future__ import annotations

import ast

from runner.build.python.nodes import attribute, call, call_helper, constant

_CONVERSIONS = {ord("r"): "{!r}", ord("s"): "{!s}"}


def lower_fstring(node: ast.JoinedStr, *, asks: bool) -> ast.expr:
    """
    An expression with the f-string's value.

    Args:
        node: The f-string; its parts are lowered already.
        asks: Ask each value how it is shown, even where there is no specification.
    """
    template, values = "", list[ast.expr]()
    for part in node.values:
        if isinstance(part, ast.Constant):
            template += str(part.value).replace("{", "{{").replace("}", "}}")
        elif isinstance(part, ast.FormattedValue):
            placeholder, value = _field(part, asks=asks)
            template += placeholder
            values.append(value)
        else:
            # An f-string in an f-string's specification is an expression already.
            template += "{}"
            values.append(part)
    if not values:
        return constant("".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
    return call(attribute(constant(template), "format"), *values)


def _field(part: ast.FormattedValue, *, asks: bool) -> tuple[str, ast.expr]:
    value = part.value
    if part.conversion == ord("a"):
        value, placeholder = call_helper("ascii_", value), "{}"
    else:
        placeholder = _CONVERSIONS.get(part.conversion, "{}")
    if part.format_spec is None:
        return placeholder, call_helper("format_", value) if asks and placeholder == "{}" else value
    if placeholder != "{}":
        value = call(attribute(constant(placeholder), "format"), value)
    # What a specification means is the value's to say, so the runtime asks it.
    return "{}", call_helper("format_", value, part.format_spec)
