"""
`memory.*`: the instance's notes.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.capabilities.base import Emit, Handler
from runner.codec import Value
from runner.memory.notes import DEFAULT_FOUND, NoteStore
from runner.package.fields import Fields, count, text


@dataclass(frozen=True, slots=True)
class Memory:
    """
    The handlers of `memory.*` for one instance.

    Attributes:
        notes: Where its notes are kept.
    """

    notes: NoteStore

    def handlers(self) -> dict[str, Handler]:
        """
        Handler by operation.
        """
        return {
            "memory.save": self.save,
            "memory.read": self.read,
            "memory.list": self.listing,
            "memory.search": self.search,
            "memory.forget": self.forget,
        }

    async def save(self, request: Value, emit: Emit) -> Value:
        """
        Keep a note.
        """
        del emit
        with Fields(request) as fields:
            title, content = fields.required("title", text), fields.required("content", text)
        return {"id": await self.notes.save(title, content)}

    async def read(self, request: Value, emit: Emit) -> Value:
        """
        One note whole, or null.
        """
        del emit
        note = await self.notes.read(_id(request))
        return note and {"id": note.id, "title": note.title, "content": note.content}

    async def listing(self, request: Value, emit: Emit) -> Value:
        """
        All notes without their content.
        """
        del emit
        with Fields(request):
            pass
        return [{"id": note.id, "title": note.title} for note in await self.notes.list()]

    async def search(self, request: Value, emit: Emit) -> Value:
        """
        Notes that match a query, best first.
        """
        del emit
        with Fields(request) as fields:
            query, limit = fields.required("query", text), fields.optional("limit", count)
        found = await self.notes.search(query, DEFAULT_FOUND if limit is None else limit)
        return [
            {"id": note.id, "title": note.title, "content": note.content, "score": score}
            for note, score in found
        ]

    async def forget(self, request: Value, emit: Emit) -> Value:
        """
        Remove a note; false if there was none.
        """
        del emit
        return await self.notes.forget(_id(request))


def _id(request: Value) -> str:
    with Fields(request) as fields:
        return fields.required("id", text)
