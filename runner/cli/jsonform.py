"""
Payload values as JSON and back, without losing what JSON can't say.

| value | JSON |
|---|---|
| bytes | `{"$bytes": "<base64>"}` |
| not a number, infinities | `{"$float": "NaN"}`, `{"$float": "Infinity"}`, `{"$float": "-Infinity"}` |
| a map whose only key is one of these words | `{"$map": {...}}`, its keys taken as they stand |

So an output feeds the next input, and an agent can't pass a map off as bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import TYPE_CHECKING, Any, Final, NoReturn

from runner.cli.scrub import scrub_json

if TYPE_CHECKING:
    from runner.codec import Value

_BYTES, _FLOAT, _MAP = "$bytes", "$float", "$map"
_WORDS: Final = frozenset({_BYTES, _FLOAT, _MAP})
_BEYOND_64_BITS: Final = 1 << 64
_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class FormError(ValueError):
    """
    Raised by `loads` when a text is JSON but does not say one payload value.
    """


class NotJsonError(ValueError):
    """
    Raised by `loads` when a text is not JSON; `offset` is the character where it stops being so.
    """

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(f"{problem} at character {offset}")
        self.offset = offset


def dumps(value: Value, *, indent: int | None = None) -> str:
    """
    The JSON of a payload value, safe on any terminal; one line unless `indent` is given.
    """
    form = to_form(value)
    return scrub_json(json.dumps(form, ensure_ascii=False, allow_nan=False, indent=indent))


def loads(text: str) -> Value:
    """
    The payload value that a JSON text says.

    Total: takes any text; depth is bounded by the interpreter's own limit.

    Raises:
        NotJsonError: If the text is not JSON.
        FormError: If it is, but with a key twice, `NaN`, a number too long or a `$` form that means
            nothing.
    """
    try:
        return _from_form(json.loads(text, object_pairs_hook=_object, parse_constant=_constant))
    except json.JSONDecodeError as error:
        raise NotJsonError(error.msg, error.pos) from error
    except RecursionError as error:
        msg = "nested too deep"
        raise FormError(msg) from error
    except FormError:
        raise
    except ValueError as error:
        # The interpreter's own bound on the digits of one integer.
        msg = "a number has too many digits"
        raise FormError(msg) from error


def to_form(value: Value) -> Any:
    """
    A payload value made of what JSON can say.
    """
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, list | tuple):
        return [to_form(item) for item in value]
    if isinstance(value, dict):
        form = {key: to_form(item) for key, item in value.items()}
        return {_MAP: form} if _is_word(form) else form
    return value


def _from_form(form: Any) -> Value:
    if isinstance(form, list):
        return [_from_form(item) for item in form]
    if type(form) is int and not -_BEYOND_64_BITS <= form < _BEYOND_64_BITS:
        msg = f"integer {form} does not fit 64 bits"
        raise FormError(msg)
    if not isinstance(form, dict):
        return form
    if not _is_word(form):
        return {key: _from_form(item) for key, item in form.items()}
    word, content = next(iter(form.items()))
    if word == _MAP and isinstance(content, dict):
        return {key: _from_form(item) for key, item in content.items()}
    if word == _FLOAT and isinstance(content, str) and content in _FLOATS:
        return _FLOATS[content]
    if word == _BYTES and isinstance(content, str):
        try:
            return base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            msg = f"{_BYTES} is not base64"
            raise FormError(msg) from error
    msg = f"{word} does not stand before a value it can mean"
    raise FormError(msg)


def _is_word(form: dict[str, Any]) -> bool:
    return len(form) == 1 and not _WORDS.isdisjoint(form)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        msg = f"key {twice!r} comes twice"
        raise FormError(msg)
    return form


def _constant(name: str) -> NoReturn:
    msg = f'{name} is not JSON; write {{"{_FLOAT}": "{name}"}}'
    raise FormError(msg)
