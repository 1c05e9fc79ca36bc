"""
The registry, and the operations that need no model.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runner import codec
from runner.capabilities.asking import Purse
from runner.capabilities.base import CallResult, Handlers, refused
from runner.capabilities.standard import standard_handlers
from runner.capabilities.usage import UsageMeter
from runner.codec import Value
from runner.errors import LimitExceeded, ProviderError
from runner.kernel import abi
from runner.kernel.abi import Status
from runner.memory.notes import InMemoryNotes
from runner.policy.grants import Grants
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider


def standard() -> Handlers:
    """
    The handlers of a fresh instance.
    """
    return standard_handlers(
        providers={"scripted": ScriptedProvider()},
        default_model=SCRIPTED_MODEL,
        grants=Grants(),
        notes=InMemoryNotes(),
        purse=Purse(usage=UsageMeter()),
    )


def call(handlers: Handlers, operation: str, request: Value) -> CallResult:
    """
    The result of a call that streams nothing.
    """

    async def emit(part: Value) -> None:
        raise AssertionError(part)

    return anyio.run(handlers.handle, operation, request, emit)


def invalid(message: str) -> CallResult:
    """
    What a request of a wrong shape is answered with.
    """
    return CallResult(Status.INVALID, {"kind": "invalid", "message": message})


def test_every_operation_that_makes_a_call_has_a_handler() -> None:
    """
    No less, and no more.
    """
    assert standard().operations == {entry.operation for entry in abi.IMPORTS if entry.makes_call}


@pytest.mark.parametrize("operation", [entry.operation for entry in abi.IMPORTS if entry.makes_call])
@pytest.mark.parametrize(
    "request_value", [None, 1, "x", [], {}, {"x": 1}, {"messages": [], "id": "", "name": ""}]
)
def test_an_answer_has_a_status_of_the_abi_and_can_be_encoded(operation: str, request_value: Any) -> None:
    """
    Whatever is asked.
    """
    result = call(standard(), operation, request_value)
    assert result.status in abi.OPERATIONS[operation].wakes
    codec.encode(result.payload)
    if result.status < 0:
        assert set(result.payload) == {"kind", "message"}


@pytest.mark.parametrize("operation", [entry.operation for entry in abi.IMPORTS if entry.makes_call])
def test_a_request_that_is_no_map_is_invalid(operation: str) -> None:
    """
    Of every operation alike.
    """
    assert call(standard(), operation, "x") == invalid("request: expected a map, found text")


def test_an_operation_without_a_handler_is_unsupported() -> None:
    """
    The guest is told, the host does not fail.
    """
    assert call(Handlers({}), "llm.chat", {}) == CallResult(
        Status.UNSUPPORTED, {"kind": "unsupported", "message": "this host does not offer llm.chat"}
    )


def test_errors_of_the_outside_and_of_bounds_are_answers() -> None:
    """
    Each with its status and kind.
    """

    async def limit(_request: Value, _emit: Any) -> Value:
        raise LimitExceeded("notes", 2, 1)

    async def upstream(_request: Value, _emit: Any) -> Value:
        raise ProviderError("p", "x" * 1000)

    handlers = Handlers({"a.limit": limit, "a.upstream": upstream})
    assert call(handlers, "a.limit", {}) == refused(Status.LIMIT, "limit notes exceeded: 2 of 1")
    result = call(handlers, "a.upstream", {})
    assert (result.status, result.payload["kind"]) == (Status.FAILED, "upstream")
    assert result.payload["message"] == "provider p: " + "x" * 488


def test_a_bug_is_not_an_answer() -> None:
    """
    It must be seen, not told to a guest.
    """

    async def bug(_request: Value, _emit: Any) -> Value:
        raise KeyError("secret")

    with pytest.raises(KeyError):
        call(Handlers({"a.b": bug}), "a.b", {})


def test_there_are_no_tools() -> None:
    """
    And the host says so truthfully.
    """
    assert call(standard(), "tool.list", {}) == CallResult(Status.OK, [])
    for request in ({"name": "shell"}, {"name": "shell", "arguments": {"x": 1}}):
        assert call(standard(), "tool.call", request) == CallResult(
            Status.DENIED,
            {"kind": "denied", "message": "tool 'shell' is not granted; add --allow tool:shell"},
        )


@pytest.mark.parametrize(
    ("operation", "request_value", "message"),
    [
        ("tool.list", {"x": 1}, "x: unknown key"),
        ("tool.call", {}, "name: missing"),
        ("tool.call", {"name": "x", "arguments": []}, "arguments: expected a map, found a list"),
        ("agent.after", {}, "delay_ms: missing"),
        ("agent.every", {"interval_ms": -1}, "interval_ms: expected an integer of zero or more"),
        ("memory.save", {"title": "x"}, "content: missing"),
        ("memory.save", {"title": 1, "content": "x"}, "title: expected text, found an integer"),
        ("memory.read", {"id": 1}, "id: expected text, found an integer"),
        ("memory.list", {"limit": 1}, "limit: unknown key"),
        ("memory.search", {"query": "x", "limit": -1}, "limit: expected an integer of zero or more"),
        ("memory.search", {"query": "x", "limit": 1.0}, "limit: expected an integer, found a float"),
        ("memory.forget", {}, "id: missing"),
        ("llm.usage", {"x": 1}, "x: unknown key"),
    ],
)
def test_a_request_of_a_wrong_shape_is_invalid_and_says_where(
    operation: str, request_value: Any, message: str
) -> None:
    """
    The guest's author reads it.
    """
    assert call(standard(), operation, request_value) == invalid(message)


@pytest.mark.parametrize(
    ("operation", "request_value"),
    [("agent.after", {"delay_ms": 5}), ("agent.every", {"interval_ms": 5, "payload": None})],
)
def test_timers_need_a_resident_host(operation: str, request_value: Any) -> None:
    """
    A host that ends with its answer can't ring later.
    """
    assert call(standard(), operation, request_value) == CallResult(
        Status.UNSUPPORTED, {"kind": "unsupported", "message": "timers need a resident host"}
    )


def test_notes_are_saved_read_listed_searched_and_forgotten() -> None:
    """
    In the shapes of the ABI.
    """
    handlers = standard()
    note = {"id": "n1", "title": "milk", "content": "buy"}

    def ok(operation: str, request: Value) -> Value:
        result = call(handlers, operation, request)
        assert result.status is Status.OK
        return result.payload

    assert ok("memory.save", {"title": "milk", "content": "buy"}) == {"id": "n1"}
    assert ok("memory.read", {"id": "n1"}) == note
    assert ok("memory.list", {}) == [{"id": "n1", "title": "milk"}]
    assert ok("memory.search", {"query": "milk bread"}) == [{**note, "score": 0.5}]
    assert ok("memory.search", {"query": "milk", "limit": 0}) == []
    assert ok("memory.forget", {"id": "n1"}) is True
    assert ok("memory.forget", {"id": "n1"}) is False
    assert ok("memory.read", {"id": "n1"}) is None
    assert ok("memory.list", {}) == []


def test_a_note_beyond_a_bound_is_answered_with_limit() -> None:
    """
    With both numbers.
    """
    assert call(standard(), "memory.save", {"title": "x" * 300, "content": ""}) == CallResult(
        Status.LIMIT, {"kind": "limit", "message": "limit title_bytes exceeded: 300 of 256"}
    )
