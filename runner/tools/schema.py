"""
Arguments against their JSON Schema.

Built-in tools state theirs as `pydantic` models, which the base install has. Schemas of strangers are
anything that JSON Schema can say, and are held by `jsonschema-rs`: its patterns run in linear time, and it
fetches nothing.

Input: guest-controlled values; schemas of strangers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runner.package.fields import FieldProblem, kind_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from runner.codec import Value
    from runner.tools.base import Check

_MAX_SCHEMA_CHARACTERS: Final = 64 * 1024
_MAX_SCHEMA_DEPTH: Final = 32
_MAX_PROBLEM_CHARACTERS: Final = 200
_PATTERN_BYTES: Final = 1024 * 1024


class ValidatorMissing(Exception):
    """
    Raised when a stranger's schema is to be held and `jsonschema-rs` is not installed.
    """


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """
    The JSON Schema of a model, without the titles that say its names again.
    """
    return dict(_without_titles(model.model_json_schema()))


def check_of(model: type[BaseModel]) -> Check:
    """
    A check that reads arguments as a model; nothing is converted that JSON tells apart.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - heavy, and needed only where a tool is called

    def check(value: Value) -> Value:
        try:
            return model.model_validate(value, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise FieldProblem(_place(first["loc"]), _cut(first["msg"])) from None

    return check


def check_against(schema: Mapping[str, Any]) -> Check:
    """
    A check against any JSON Schema.

    Raises:
        FieldProblem: If it is no schema, is too large, or refers to something outside itself.
        ValidatorMissing: If the extra `tools` is not installed.
    """
    try:
        import jsonschema_rs  # noqa: PLC0415 - an extra
    except ImportError:
        raise ValidatorMissing from None
    _bound(schema)
    try:
        validator = jsonschema_rs.validator_for(
            dict(schema),
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES),
        )
    except Exception as error:  # noqa: BLE001 - whatever it makes of a stranger's schema, it is none then
        raise FieldProblem("", f"not a JSON Schema: {_cut(str(error))}") from None

    def check(value: Value) -> Value:
        plain_json(value)
        error = next(iter(validator.iter_errors(value)), None)
        if error is not None:
            raise FieldProblem(_place(error.instance_path), _cut(error.message))
        return value

    return check


def plain_json(value: Value) -> None:
    """
    Raises:
        FieldProblem: If JSON can't say a value: bytes, and numbers that are none.
    """
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise FieldProblem("", f"{item} is no number of JSON")
        elif not isinstance(item, str | int | float | None):
            raise FieldProblem("", f"{kind_of(item)} is nothing that JSON can say")


def _bound(schema: Mapping[str, Any]) -> None:
    """
    Refuse what would take long or deep to read.
    """
    size = len(repr(schema)) if _depth(schema) <= _MAX_SCHEMA_DEPTH else _MAX_SCHEMA_CHARACTERS + 1
    if size > _MAX_SCHEMA_CHARACTERS:
        raise FieldProblem("", "the JSON Schema is too large or too deep")


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level and depth <= _MAX_SCHEMA_DEPTH:
        depth += 1
        level = [
            child
            for item in level
            for child in (
                item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ()
            )
        ]
    return depth


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_titles(value) for name, value in schema.items() if name != "title"}
    if isinstance(schema.get("properties"), dict):
        # Below this key, names are the tool's own: one of them may be `title`.
        kept["properties"] = {name: _without_titles(value) for name, value in schema["properties"].items()}
    return kept


def _place(path: Any) -> str:
    place = ""
    for step in path:
        place += f"[{step}]" if isinstance(step, int) else f".{_cut(str(step))}" if place else _cut(str(step))
    return place


def _cut(text: str) -> str:
    return text[:_MAX_PROBLEM_CHARACTERS]
