"""
Reading maps strictly: a key is read by name and checked, and no other key may be there.

Input: anybody's. One reader serves manifests, scripts, the notes in a snapshot and the requests of
guests, so that a fault reads the same everywhere: where it is, such as `messages[0].role`, then what was
expected there. Nothing here recurses into the value by itself; a shape goes as deep as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

from runner.codec import Value
from runner.package.names import did_you_mean

T = TypeVar("T")

Kind: TypeAlias = Callable[[Value, str], T]
"""
A check of one value at a place: returns what it was read as, or raises `FieldProblem`.
"""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_SHOWN_CHARACTERS: Final = 40
_INTEGER_END: Final = 1 << 64

MAX_TALLY: Final = 10**15
"""
Where a running total that comes from a snapshot may stand: so far from the end of 64 bits that it can go on
growing.
"""


class FieldProblem(ValueError):
    """
    Raised when a value is not of the shape asked for.

    Attributes:
        key: Where, such as `messages[0].role`; empty for the whole value.
        problem: What is wrong there.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


class Fields:
    """
    One map while it is read.

    As a context manager it refuses, at the end of the block, the keys that the block did not read.

    Args:
        value: What should be a map with text keys.
        at: Where it is; empty for the whole value.

    Raises:
        FieldProblem: If it is no map.
    """

    def __init__(self, value: Value, at: str = "") -> None:
        if not isinstance(value, dict):
            raise FieldProblem(at, f"expected a map, found {kind_of(value)}")
        self._values = value
        self._at = at
        self._asked: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end()

    def required(self, key: str, kind: Kind[T]) -> T:
        """
        The value of a key that must be there.

        Raises:
            FieldProblem: If it is not there, or not of that kind.
        """
        self._asked.add(key)
        if key not in self._values:
            raise FieldProblem(self.place(key), "missing")
        return kind(self._values[key], self.place(key))

    def optional(self, key: str, kind: Kind[T]) -> T | None:
        """
        The value of a key that may be left out, or `None`.

        Raises:
            FieldProblem: If it is there and not of that kind; `null` is a value too.
        """
        self._asked.add(key)
        return kind(self._values[key], self.place(key)) if key in self._values else None

    def has(self, key: str) -> bool:
        """
        Whether the key is there; does not count as reading it.
        """
        return key in self._values

    def place(self, key: str) -> str:
        """
        Where the value of `key` is.
        """
        return f"{self._at}.{_shown(key)}" if self._at else _shown(key)

    def _end(self) -> None:
        for key in self._values:
            if key not in self._asked:
                raise FieldProblem(self.place(key), "unknown key" + did_you_mean(str(key), self._asked))


def text(value: Value, at: str) -> str:
    """
    A text of any length.
    """
    if not isinstance(value, str):
        raise FieldProblem(at, f"expected text, found {kind_of(value)}")
    return value


def count(value: Value, at: str) -> int:
    """
    An integer, zero or more, that fits 64 bits.
    """
    if type(value) is not int:
        raise FieldProblem(at, f"expected an integer, found {kind_of(value)}")
    if not 0 <= value < _INTEGER_END:
        raise FieldProblem(at, "expected an integer of zero or more")
    return value


def positive(value: Value, at: str) -> int:
    """
    An integer, one or more, that fits 64 bits.
    """
    if count(value, at) == 0:
        raise FieldProblem(at, "expected an integer of one or more")
    return int(value)


def tally(value: Value, at: str) -> int:
    """
    A running total: an integer, zero or more, with room above it.
    """
    if count(value, at) > MAX_TALLY:
        raise FieldProblem(at, f"expected at most {MAX_TALLY}")
    return int(value)


def flag(value: Value, at: str) -> bool:
    """
    True or false.
    """
    if not isinstance(value, bool):
        raise FieldProblem(at, f"expected true or false, found {kind_of(value)}")
    return value


def anything(value: Value, at: str) -> Value:
    """
    Any value at all.
    """
    del at
    return value


def any_map(value: Value, at: str) -> dict[str, Value]:
    """
    A map, whatever is in it.
    """
    if not isinstance(value, dict):
        raise FieldProblem(at, f"expected a map, found {kind_of(value)}")
    return value


def or_null(kind: Kind[T]) -> Kind[T | None]:
    """
    The kind, or null.
    """

    def check(value: Value, at: str) -> T | None:
        return None if value is None else kind(value, at)

    return check


def list_of(kind: Kind[T], *, at_least: int = 0, at_most: int | None = None) -> Kind[tuple[T, ...]]:
    """
    A list whose items are all of one kind.
    """

    def check(value: Value, at: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise FieldProblem(at, f"expected a list, found {kind_of(value)}")
        if len(value) < at_least:
            raise FieldProblem(at, f"expected at least {at_least}, found {len(value)}")
        if at_most is not None and len(value) > at_most:
            raise FieldProblem(at, f"expected at most {at_most}, found {len(value)}")
        return tuple(kind(item, f"{at}[{index}]") for index, item in enumerate(value))

    return check


def matching(pattern: re.Pattern[str], expected: str) -> Kind[str]:
    """
    A text that a pattern matches whole; `expected` says in words what it must be.
    """

    def check(value: Value, at: str) -> str:
        if not pattern.fullmatch(text(value, at)):
            raise FieldProblem(at, f"expected {expected}")
        return str(value)

    return check


def one_of(words: tuple[T, ...]) -> Kind[T]:
    """
    One of a closed set of texts.
    """

    def check(value: Value, at: str) -> T:
        for word in words:
            if isinstance(value, str) and word == value:
                return word
        raise FieldProblem(at, f"expected {alternatives(words)}")

    return check


def kind_of(value: Value) -> str:
    """
    What a value is, in the words of a refusal.
    """
    if value is None:
        return "null"
    names = {
        bool: "a boolean", int: "an integer", float: "a float", str: "text", bytes: "bytes", list: "a list",
        dict: "a map",
    }  # fmt: skip
    return names.get(type(value), "a date or time")


def alternatives(words: tuple[object, ...]) -> str:
    """
    Words as a choice: `"a", "b" or "c"`.
    """
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _shown(key: Value) -> str:
    """
    A key as part of a place: one that its author could use to confuse a reader is quoted and cut.
    """
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return key
    return ascii(str(key)[:_SHOWN_CHARACTERS])
