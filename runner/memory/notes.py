"""
The port of a store of notes, and the store that lives and dies with its instance.

Input: guests, for every text; and whoever wrote a snapshot, for `InMemoryNotes.from_wire`.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import anyio.lowlevel

from runner.codec import Value
from runner.errors import LimitExceeded
from runner.package.fields import FieldProblem, Fields, list_of, matching, positive, text
from runner.units import KIB, MIB

MAX_NOTES: Final = 1000
MAX_TITLE_BYTES: Final = 256
MAX_CONTENT_BYTES: Final = 64 * KIB
MAX_QUERY_BYTES: Final = 1 * KIB

MAX_NOTES_BYTES: Final = 1 * MIB
"""
Titles and contents of one instance together; also what one search may have to read.
"""

DEFAULT_FOUND: Final = 10

_LAST_NUMBER: Final = 10**15
# Some milliseconds of reading; then the other instances of the process have their turn.
_BYTES_AT_ONCE: Final = 64 * KIB

_WORD: Final = re.compile(r"\w+")
_ID: Final = matching(re.compile(r"n[1-9][0-9]{0,17}", re.ASCII), "an id such as n1")


@dataclass(frozen=True, slots=True)
class Note:
    """
    A note as it was saved.

    Attributes:
        id: Unique among the instance's notes, and never used again.
        title: Short, for lists.
        content: The note itself.
    """

    id: str
    title: str
    content: str


class Found(NamedTuple):
    """
    A note that a search found.

    Attributes:
        note: The note.
        score: How well it matches; above zero, and one at most.
    """

    note: Note
    score: float


class NoteStore(Protocol):
    """
    The notes of one instance.

    Guarantees: `list` and equal scores of `search` come in the order of saving.

    Does not guarantee: how a search scores; stores may understand words differently.
    """

    async def save(self, title: str, content: str) -> str:
        """
        Keep a note and return its id.

        Raises:
            LimitExceeded: If it is too large, or there are too many; nothing was kept.
        """
        ...

    async def read(self, note_id: str) -> Note | None:
        """
        One note, or `None` when there is none of that id.
        """
        ...

    async def list(self) -> tuple[Note, ...]:
        """
        All notes.
        """
        ...

    async def search(self, query: str, limit: int = DEFAULT_FOUND) -> tuple[Found, ...]:
        """
        At most `limit` notes that match, best first.

        Raises:
            LimitExceeded: If the query is too long.
        """
        ...

    async def forget(self, note_id: str) -> bool:
        """
        Remove a note; false when there is none of that id.
        """
        ...


class InMemoryNotes:
    """
    Notes in the memory of this process; `to_wire` is how they outlive it.

    A search scores by how many of the query's words a note has, whatever their case.
    """

    def __init__(self) -> None:
        # In the order of saving, which is the order of their numbers.
        self._notes: dict[str, Note] = {}
        self._next = 1
        self._bytes = 0

    async def save(self, title: str, content: str) -> str:
        """
        Keep a note and return its id: `n1` for the first, and never one that was used before.

        Raises:
            LimitExceeded: If it is too large, or there are too many; nothing was kept.
        """
        note = Note(f"n{self._next}", title, content)
        self._keep(note)
        self._next += 1
        return note.id

    async def read(self, note_id: str) -> Note | None:
        """
        One note, or `None` when there is none of that id.
        """
        return self._notes.get(note_id)

    async def list(self) -> tuple[Note, ...]:
        """
        All notes, the oldest first.
        """
        return tuple(self._notes.values())

    async def search(self, query: str, limit: int = DEFAULT_FOUND) -> tuple[Found, ...]:
        """
        At most `limit` notes that have a word of the query, best first, the older one first among equals.

        Raises:
            LimitExceeded: If the query is longer than `MAX_QUERY_BYTES`.
        """
        _bounded("query_bytes", _size(query), MAX_QUERY_BYTES)
        words = frozenset(_each_word(query))
        found: builtins.list[Found] = []
        unread = _BYTES_AT_ONCE
        for note in tuple(self._notes.values()):
            score = _score(words, note)
            if score:
                found.append(Found(note, score))
            unread -= _weight(note)
            if unread < 0:
                unread = _BYTES_AT_ONCE
                await anyio.lowlevel.checkpoint()
        # Stable: equals stay in the order of saving.
        found.sort(key=lambda match: -match.score)
        return tuple(found[:limit])

    async def forget(self, note_id: str) -> bool:
        """
        Remove a note; false when there is none of that id.
        """
        note = self._notes.pop(note_id, None)
        if note is not None:
            self._bytes -= _weight(note)
        return note is not None

    def to_wire(self) -> Value:
        """
        All notes as CBOR-compatible data.
        """
        notes = [
            {"id": note.id, "title": note.title, "content": note.content} for note in self._notes.values()
        ]
        return {"next": self._next, "notes": notes}

    @classmethod
    def from_wire(cls, wire: Value) -> InMemoryNotes:
        """
        The notes that `to_wire` wrote.

        Raises:
            FieldProblem: If they are none; a `ValueError` that says where and why.
        """
        store = cls()
        with Fields(wire) as fields:
            store._next = fields.required("next", _next_number)
            notes = fields.required("notes", list_of(_note, at_most=MAX_NOTES))
        for index, note in enumerate(notes):
            store._take_back(note, f"notes[{index}]")
        return store

    def _take_back(self, note: Note, at: str) -> None:
        before = next(reversed(self._notes), "n0")
        if not _number(before) < _number(note.id) < self._next:
            raise FieldProblem(f"{at}.id", "out of order")
        try:
            self._keep(note)
        except LimitExceeded as error:
            raise FieldProblem(at, error.message) from error

    def _keep(self, note: Note) -> None:
        _bounded("title_bytes", _size(note.title), MAX_TITLE_BYTES)
        _bounded("content_bytes", _size(note.content), MAX_CONTENT_BYTES)
        _bounded("notes", len(self._notes) + 1, MAX_NOTES)
        _bounded("notes_bytes", self._bytes + _weight(note), MAX_NOTES_BYTES)
        self._notes[note.id] = note
        self._bytes += _weight(note)


def _note(value: Value, at: str) -> Note:
    with Fields(value, at) as fields:
        return Note(
            fields.required("id", _ID), fields.required("title", text), fields.required("content", text)
        )


def _next_number(value: Value, at: str) -> int:
    if positive(value, at) > _LAST_NUMBER:
        raise FieldProblem(at, f"expected at most {_LAST_NUMBER}")
    return int(value)


def _number(note_id: str) -> int:
    return int(note_id[1:])


def _size(written: str) -> int:
    return len(written.encode())


def _weight(note: Note) -> int:
    return _size(note.title) + _size(note.content)


def _bounded(limit: str, value: int, bound: int) -> None:
    if value > bound:
        raise LimitExceeded(limit, value, bound)


def _each_word(written: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(written.casefold()))


def _score(words: frozenset[str], note: Note) -> float:
    """
    The share of the words that a note has.
    """
    missing = set(words)
    for part in (note.title, note.content):
        for word in _each_word(part):
            missing.discard(word)
            if not missing:
                return 1.0 if words else 0.0
    return (len(words) - len(missing)) / len(words) if words else 0.0
