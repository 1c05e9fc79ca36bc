"""
What the kernel knows of an instance, as the header of a stored snapshot has it.

Pages are not in it: a mind's map has the indices of its pages and, for each, the number of its content.
Number 0 is the page of zeros, the others count the contents that the snapshot stores, from 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.codec import Value
from runner.digest import SIZE_BYTES
from runner.journal import shapes
from runner.journal.pages import pack_numbers, unpack_numbers
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS, Shape, ShapeError
from runner.kernel.abi import Status
from runner.kernel.state import (
    MAX_ERROR_CHARS,
    MAX_MEMORY_BYTES,
    MAX_NUMBER,
    PAGE_BYTES,
    Answer,
    Call,
    LastSnapshot,
    MachineState,
    Mind,
    OpenDelivery,
    Restored,
)

MAX_PAGES: Final = MAX_MEMORY_BYTES // PAGE_BYTES
"""
Pages of the largest memory.
"""

_ZERO_PAGE: Final = bytes(PAGE_BYTES)
_DOUBLE: Final = struct.Struct(">d")
_MIN_GLOBAL: Final = -(1 << 63)

_COUNT: Final = shapes.integer(0, MAX_COUNT, "count")
_NUMBER: Final = shapes.integer(1, MAX_NUMBER, "number")
_MAYBE_NUMBER: Final = shapes.integer(0, MAX_NUMBER, "0..MAX_NUMBER")
_NAME: Final = shapes.text("name", low=1, high=MAX_NAME_CHARS)
_PAYLOAD: Final = shapes.payload()


@dataclass(frozen=True, slots=True)
class PackedMind:
    """
    A mind whose pages are elsewhere.

    Attributes:
        memory_bytes: Size of its memory.
        indices: Its pages, ascending.
        contents: For each, the number of its content.
        globals: Values of its mutable globals.
    """

    memory_bytes: int
    indices: tuple[int, ...]
    contents: tuple[int, ...]
    globals: tuple[int | float, ...]


class Pool:
    """
    Contents of pages in order of first appearance, each once.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {_ZERO_PAGE: 0}

    def take(self, mind: Mind) -> PackedMind:
        """
        A mind without its pages, which go into the pool.
        """
        indices = tuple(sorted(mind.pages))
        numbers = self._numbers
        contents = tuple(numbers.setdefault(mind.pages[index], len(numbers)) for index in indices)
        return PackedMind(mind.memory_bytes, indices, contents, mind.globals)

    def contents(self) -> list[bytes]:
        """
        The contents to store, from number 1 on.
        """
        return list(self._numbers)[1:]


def give(mind: PackedMind, contents: Sequence[bytes]) -> Mind:
    """
    The mind that `Pool.take` took apart.

    Raises:
        ShapeError: If its numbers do not fit the contents, or its pages its memory.
    """
    known = [_ZERO_PAGE, *contents]
    if len(mind.indices) != len(mind.contents) or any(number >= len(known) for number in mind.contents):
        raise ShapeError("pages and contents do not fit")
    pages = dict(zip(mind.indices, map(known.__getitem__, mind.contents), strict=True))
    made = Mind(mind.memory_bytes, pages, mind.globals)
    try:
        made.check()
    except ValueError as error:
        raise ShapeError(str(error)) from error
    return made


def _pack_global(value: float) -> Value:
    # CBOR has one NaN, WebAssembly has many: an f64 is stored as its bits.
    return _DOUBLE.pack(value) if type(value) is float else value


def _unpack_global(value: Value) -> int | float:
    if type(value) is bytes and len(value) == _DOUBLE.size:
        number: float = _DOUBLE.unpack(value)[0]
        return number
    if type(value) is int and _MIN_GLOBAL <= value <= MAX_COUNT:
        return value
    raise ShapeError("neither an integer nor 8 bytes")


_NUMBERS: Final = Shape("numbers", lambda value: unpack_numbers(value, MAX_PAGES), pack_numbers)

_CALL_FIELDS: Final = {
    "number": _NUMBER,
    "operation": _NAME,
    "request": _PAYLOAD,
    "delivery": _MAYBE_NUMBER,
}
_CALL: Final = shapes.structure(Call, _CALL_FIELDS, "call")

_ANSWER_FIELDS: Final = {"call": _NUMBER, "status": shapes.member(Status, "status"), "payload": _PAYLOAD}
_ANSWER: Final = shapes.structure(Answer, _ANSWER_FIELDS, "answer")

_RESTORED_FIELDS: Final = {"count": _COUNT, "generation": _COUNT, "at_ms": _COUNT}
_RESTORED: Final = shapes.structure(Restored, _RESTORED_FIELDS, "restored")

_LAST_SNAPSHOT_FIELDS: Final = {
    "ok": shapes.truth(),
    "size_bytes": _COUNT,
    "at_ms": _COUNT,
    "error": shapes.nullable(shapes.text("reason", high=MAX_ERROR_CHARS)),
}
_LAST_SNAPSHOT: Final = shapes.structure(LastSnapshot, _LAST_SNAPSHOT_FIELDS, "last_snapshot")

_MIND_FIELDS: Final = {
    "memory_bytes": shapes.integer(0, MAX_MEMORY_BYTES, "0..MAX_MEMORY_BYTES"),
    "indices": _NUMBERS,
    "contents": _NUMBERS,
    "globals": shapes.several(Shape("(int / bstr .size 8)", _unpack_global, _pack_global)),
}
_MIND: Final = shapes.structure(PackedMind, _MIND_FIELDS, "mind")

_DELIVERY_FIELDS: Final = {
    "number": _NUMBER,
    "fuel": _COUNT,
    "before": _MIND,
    "calls_before": shapes.several(_CALL),
    "answers": shapes.several(_ANSWER),
}
_DELIVERY: Final = shapes.structure(OpenDelivery, _DELIVERY_FIELDS, "open_delivery")

_STATE_FIELDS: Final = {
    "mind": _MIND,
    "calls": shapes.several(_CALL),
    "next_call": shapes.integer(1, MAX_NUMBER + 1, "1..MAX_NUMBER+1"),
    "last_delivery": _MAYBE_NUMBER,
    "entropy": shapes.octets((SIZE_BYTES,), "seed"),
    "entropy_used": _COUNT,
    "delivery": shapes.nullable(_DELIVERY),
    "restored": shapes.nullable(_RESTORED),
    "last_snapshot": shapes.since_version_2(shapes.nullable(_LAST_SNAPSHOT), before=None),
}
STATE: Final = shapes.structure(MachineState, _STATE_FIELDS, "state")
"""
The whole of it, with packed minds in place of minds.
"""

MAPS: Final = {
    "state": _STATE_FIELDS,
    "mind": _MIND_FIELDS,
    "open_delivery": _DELIVERY_FIELDS,
    "call": _CALL_FIELDS,
    "answer": _ANSWER_FIELDS,
    "restored": _RESTORED_FIELDS,
    "last_snapshot": _LAST_SNAPSHOT_FIELDS,
}
"""
The fields of every map in it, by the map's name in `docs/journal-format.md`.
"""
