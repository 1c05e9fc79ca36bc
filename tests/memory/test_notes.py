"""
Notes in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import LimitExceeded
from runner.memory.notes import InMemoryNotes, Note, NoteStore
from runner.package.fields import FieldProblem

T = TypeVar("T")


def do(action: Callable[[], Awaitable[T]]) -> T:
    """
    The result of one asynchronous action.
    """

    async def act() -> T:
        return await action()

    return anyio.run(act)


def store_of(*notes: tuple[str, str]) -> InMemoryNotes:
    """
    A store with these titles and contents, saved in order.
    """
    store = InMemoryNotes()

    async def fill() -> None:
        for title, content in notes:
            await store.save(title, content)

    anyio.run(fill)
    return store


def found(store: NoteStore, query: str, limit: int = 10) -> list[tuple[str, float]]:
    """
    Ids and scores of a search.
    """
    return [(note.id, score) for note, score in do(lambda: store.search(query, limit))]


def test_a_note_is_saved_read_listed_and_forgotten() -> None:
    """
    The life of a note.
    """
    store = store_of(("shopping", "milk"), ("work", "issue"))
    assert do(lambda: store.read("n1")) == Note("n1", "shopping", "milk")
    assert do(store.list) == (Note("n1", "shopping", "milk"), Note("n2", "work", "issue"))
    assert do(lambda: store.forget("n1")) is True
    assert do(lambda: store.forget("n1")) is False
    assert do(lambda: store.read("n1")) is None
    assert do(store.list) == (Note("n2", "work", "issue"),)


def test_an_id_is_never_used_again() -> None:
    """
    What an agent remembers of a forgotten note must not lead to another one.
    """
    store = store_of(("a", ""))
    do(lambda: store.forget("n1"))
    assert do(lambda: store.save("b", "")) == "n2"


def test_a_search_finds_by_words_best_first() -> None:
    """
    In title or content, whatever the case; the older note first among equals.
    """
    store = store_of(
        ("Milk", "buy it"), ("x", "y"), ("list", "MILK and bread"), ("milk bread", ""), ("milky", "")
    )
    assert found(store, "milk, bread!") == [("n3", 1.0), ("n4", 1.0), ("n1", 0.5)]
    assert found(store, "milk, bread!", 2) == [("n3", 1.0), ("n4", 1.0)]
    assert found(store, "milk", 0) == []


def test_equals_stay_in_order_beyond_nine() -> None:
    """
    By age, not by the spelling of their ids.
    """
    store = store_of(*[("same", "")] * 12)
    assert [note_id for note_id, _ in found(store, "same", 12)] == [f"n{number}" for number in range(1, 13)]


def test_a_search_without_words_finds_nothing() -> None:
    """
    Nor does one in an empty store.
    """
    assert found(store_of(("a", "b")), "?! ") == []
    assert found(InMemoryNotes(), "a") == []


@pytest.mark.parametrize(
    ("title", "content", "message"),
    [
        ("é" * 129, "", "limit title_bytes exceeded: 258 of 256"),
        ("", "x" * 65_537, "limit content_bytes exceeded: 65537 of 65536"),
    ],
)
def test_a_note_that_is_too_large_is_not_kept(title: str, content: str, message: str) -> None:
    """
    Sizes are in bytes.
    """
    store = InMemoryNotes()
    with pytest.raises(LimitExceeded) as caught:
        do(lambda: store.save(title, content))
    assert str(caught.value) == message
    assert do(store.list) == ()
    assert do(lambda: store.save("next", "")) == "n1"


def test_there_are_at_most_a_thousand_notes() -> None:
    """
    One is forgotten, and one more fits.
    """
    store = store_of(*[("", "")] * 1000)
    with pytest.raises(LimitExceeded) as caught:
        do(lambda: store.save("", ""))
    assert str(caught.value) == "limit notes exceeded: 1001 of 1000"
    do(lambda: store.forget("n5"))
    assert do(lambda: store.save("", "")) == "n1001"


def test_all_notes_together_have_at_most_one_mebibyte() -> None:
    """
    Forgetting gives the room back.
    """
    store = store_of(*[("", "x" * 65_536)] * 16)
    with pytest.raises(LimitExceeded) as caught:
        do(lambda: store.save("a", ""))
    assert str(caught.value) == "limit notes_bytes exceeded: 1048577 of 1048576"
    do(lambda: store.forget("n1"))
    assert do(lambda: store.save("a", "")) == "n17"


def test_a_query_is_at_most_a_kibibyte() -> None:
    """
    Its words are looked for in every note.
    """
    with pytest.raises(LimitExceeded) as caught:
        found(InMemoryNotes(), "x" * 1025)
    assert str(caught.value) == "limit query_bytes exceeded: 1025 of 1024"


def test_a_search_of_many_notes_lets_others_have_their_turn() -> None:
    """
    And is not confused when a note is saved meanwhile.
    """
    store = store_of(*[("x", "y " * 30_000)] * 16)
    order: list[str] = []

    async def search() -> None:
        order.append(f"found {len(await store.search('y', 100))}")

    async def save() -> None:
        order.append(await store.save("y", ""))

    async def both() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(search)
            group.start_soon(save)

    anyio.run(both)
    assert order == ["n17", "found 16"]


_TITLES = st.text(max_size=20)


@given(st.lists(st.tuples(_TITLES, _TITLES), max_size=8), st.sets(st.integers(1, 8)))
def test_notes_survive_their_wire_form(notes: list[tuple[str, str]], forgotten: set[int]) -> None:
    """
    Through CBOR and back they are the same, and so is the next id.
    """
    store = store_of(*notes)
    for number in forgotten:
        do(lambda number=number: store.forget(f"n{number}"))  # type: ignore[misc]
    again = InMemoryNotes.from_wire(codec.decode(codec.encode(store.to_wire())))
    assert do(again.list) == do(store.list)
    assert do(lambda: again.save("x", "y")) == do(lambda: store.save("x", "y"))
    assert again.to_wire() == store.to_wire()


NOTE = {"id": "n1", "title": "a", "content": "b"}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (None, "expected a map, found null"),
        ({"next": 2}, "notes: missing"),
        ({"next": 0, "notes": []}, "next: expected an integer of one or more"),
        ({"next": 10**15 + 1, "notes": []}, "next: expected at most 1000000000000000"),
        ({"next": 2, "notes": [NOTE], "x": 1}, "x: unknown key"),
        ({"next": 2, "notes": [{**NOTE, "id": "m1"}]}, "notes[0].id: expected an id such as n1"),
        ({"next": 2, "notes": [{**NOTE, "id": "n01"}]}, "notes[0].id: expected an id such as n1"),
        ({"next": 1, "notes": [NOTE]}, "notes[0].id: out of order"),
        ({"next": 3, "notes": [NOTE, NOTE]}, "notes[1].id: out of order"),
        ({"next": 2, "notes": [{**NOTE, "title": 1}]}, "notes[0].title: expected text, found an integer"),
        (
            {"next": 2, "notes": [{**NOTE, "title": "x" * 257}]},
            "notes[0]: limit title_bytes exceeded: 257 of 256",
        ),
        ({"next": 2000, "notes": [NOTE] * 1001}, "notes: expected at most 1000, found 1001"),
    ],
)
def test_a_wire_form_that_is_none_is_refused(wire: Any, message: str) -> None:
    """
    It comes with a snapshot, whoever wrote that.
    """
    with pytest.raises(FieldProblem) as caught:
        InMemoryNotes.from_wire(wire)
    assert str(caught.value) == message
