"""
Shapes of the values in a record: how each is written, and what is refused.

Input: untrusted. A shape takes any codec value and either gives the value that a record has, or raises
`ShapeError`; it allocates no more than the value itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from runner import codec
from runner.codec import Value

MAX_COUNT: Final = (1 << 63) - 1
"""
Largest count, position, time or fuel.
"""

MAX_NAME_CHARS: Final = 256
"""
Longest name of an agent, an operation, an attempt or a person, in characters.
"""

_SHOWN_CHARS: Final = 64
_REQUIRED: Final = object()


class ShapeError(ValueError):
    """
    Raised when a value is not of its shape.
    """


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Shape:
    """
    One kind of value.

    Attributes:
        notation: How `docs/journal-format.md` writes it, in CDDL.
        unpack: From a codec value to a record's; raises `ShapeError`.
        pack: From a record's value to a codec value.
        absent: The value of a key that is not there; by default it must be there.
    """

    notation: str
    unpack: Callable[[Value], Any]
    pack: Callable[[Any], Value] = _same
    absent: Any = _REQUIRED


def integer(low: int, high: int, notation: str) -> Shape:
    """
    An integer from `low` to `high`.
    """

    def unpack(value: Value) -> int:
        if type(value) is not int:
            _fail(f"{_type_of(value)}, not an integer")
        if not low <= value <= high:
            _fail(f"{value} is not between {low} and {high}")
        return value

    return Shape(notation, unpack, _plain_integer)


def truth() -> Shape:
    """
    True or false.
    """

    def unpack(value: Value) -> bool:
        if type(value) is not bool:
            _fail(f"{_type_of(value)}, not a truth value")
        return value

    return Shape("bool", unpack)


def member(values: Iterable[int], notation: str) -> Shape:
    """
    One of the integers of a closed set.
    """
    known = frozenset(int(value) for value in values)

    def unpack(value: Value) -> int:
        if type(value) is not int or value not in known:
            _fail(f"{_shown(value)} is none of {sorted(known)}")
        return value

    return Shape(notation, unpack, _plain_integer)


def word(words: Collection[str]) -> Shape:
    """
    One of the texts of a closed set.
    """
    known = tuple(words)

    def unpack(value: Value) -> str:
        if type(value) is not str or value not in known:
            _fail(f"{_shown(value)} is none of {', '.join(known)}")
        return value

    return Shape(" / ".join(f'"{each}"' for each in known), unpack)


def text(notation: str = "tstr", *, low: int = 0, high: int | None = None) -> Shape:
    """
    Text of `low` to `high` characters.
    """

    def unpack(value: Value) -> str:
        if type(value) is not str:
            _fail(f"{_type_of(value)}, not text")
        if len(value) < low or (high is not None and len(value) > high):
            _fail(f"text of {len(value)} characters")
        return value

    return Shape(notation, unpack)


def octets(sizes: Collection[int], notation: str) -> Shape:
    """
    A byte string of one of some lengths.
    """

    def unpack(value: Value) -> bytes:
        if type(value) is not bytes:
            _fail(f"{_type_of(value)}, not bytes")
        if len(value) not in sizes:
            _fail(f"{len(value)} bytes")
        return value

    return Shape(notation, unpack)


def payload(notation: str = "payload", *, may_be_empty: bool = False) -> Shape:
    """
    A byte string that holds one value of the codec.

    It is checked in both directions: what was written can be read for ever, and whoever folds a journal may
    decode it.
    """

    def unpack(value: Value) -> bytes:
        if type(value) is not bytes:
            _fail(f"{_type_of(value)}, not bytes")
        if value or not may_be_empty:
            try:
                codec.check(value)
            except codec.CodecError as error:
                raise ShapeError(str(error)) from None
        return bytes(value)

    return Shape(notation, unpack)


def packed_map(notation: str = "packed_map") -> Shape:
    """
    A map in a byte string of its own: however much it holds, the record's own items stay few.
    """

    def unpack(value: Value) -> dict[str, Value]:
        if type(value) is not bytes:
            _fail(f"{_type_of(value)}, not bytes")
        decoded = _decoded(value)
        if type(decoded) is not dict:
            _fail(f"{_type_of(decoded)} inside, not a map")
        return decoded

    return Shape(notation, unpack, codec.encode)


def nullable(shape: Shape) -> Shape:
    """
    Null, or a value of `shape`.
    """
    return Shape(
        f"null / {shape.notation}",
        lambda value: None if value is None else shape.unpack(value),
        lambda value: None if value is None else shape.pack(value),
    )


def since_version_2(shape: Shape, before: Any) -> Shape:
    """
    A value of `shape` under a key that version 1 did not have.

    Args:
        shape: What it is.
        before: What it was then.
    """
    return Shape(f"{shape.notation} / absent", shape.unpack, shape.pack, before)


def several(shape: Shape) -> Shape:
    """
    Any number of values of `shape`, as a tuple.
    """

    def unpack(value: Value) -> tuple[Any, ...]:
        if type(value) is not list:
            _fail(f"{_type_of(value)}, not an array")
        return tuple(shape.unpack(item) for item in value)

    return Shape(f"[* {shape.notation}]", unpack, lambda value: [shape.pack(item) for item in value])


def pair(first: Shape, second: Shape, notation: str) -> Shape:
    """
    Two values, as a tuple.
    """

    def unpack(value: Value) -> tuple[Any, Any]:
        if type(value) is not list or len(value) != len((first, second)):
            _fail(f"{_type_of(value)}, not an array of two")
        return first.unpack(value[0]), second.unpack(value[1])

    return Shape(notation, unpack, lambda value: [first.pack(value[0]), second.pack(value[1])])


def table(shape: Shape, notation: str) -> Shape:
    """
    A map from any text to values of `shape`.
    """

    def unpack(value: Value) -> dict[str, Any]:
        if type(value) is not dict:
            _fail(f"{_type_of(value)}, not a map")
        return {key: shape.unpack(item) for key, item in value.items()}

    return Shape(notation, unpack, lambda value: {key: shape.pack(item) for key, item in value.items()})


def structure(kind: type, shapes: dict[str, Shape], notation: str) -> Shape:
    """
    A dataclass as a closed map: a key that is missing or unknown is refused.
    """
    required = frozenset(key for key, shape in shapes.items() if shape.absent is _REQUIRED)

    def unpack(value: Value) -> Any:
        if type(value) is not dict:
            _fail(f"{_type_of(value)}, not a map")
        wrong = (value.keys() - shapes.keys()) | (required - value.keys())
        if wrong:
            key = min(wrong)
            _fail(f"key {_shown(key)} is {'unknown' if key in value else 'missing'}")
        return kind(
            **{
                key: _inside(key, shape, value[key]) if key in value else shape.absent
                for key, shape in shapes.items()
            }
        )

    return Shape(
        notation,
        unpack,
        lambda value: {key: shape.pack(getattr(value, key)) for key, shape in shapes.items()},
    )


def _inside(key: str, shape: Shape, value: Value) -> Any:
    try:
        return shape.unpack(value)
    except ShapeError as error:
        raise ShapeError(f"{key}: {error}") from None


def _decoded(value: bytes) -> Value:
    try:
        return codec.decode(value)
    except codec.CodecError as error:
        raise ShapeError(str(error)) from None


def _plain_integer(value: Any) -> Any:
    # An enum's member is written as the number that it is.
    return int(value) if isinstance(value, int) and type(value) is not bool else value


def _type_of(value: Value) -> str:
    return type(value).__name__


def _shown(value: Value) -> str:
    """
    Untrusted data for a message: short, and without control characters.
    """
    return repr(value[:_SHOWN_CHARS] if isinstance(value, str | bytes) else value)[: 2 * _SHOWN_CHARS]


def _fail(problem: str) -> NoReturn:
    raise ShapeError(problem)
