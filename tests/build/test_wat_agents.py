"""
Agents in WebAssembly text that people learn from: what they do at the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.build import build_agent, new_agent, sdk_root
from runner.kernel.abi import UPGRADE_KINDS, DeliveryKind, Status
from runner.kernel.engine import assemble_wat
from runner.kernel.machine import Machine

GUESTS = Path(__file__).parents[2] / "guests"
PAGE_BYTES = 1 << 16

MakeInstance = Callable[..., Any]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 64), (1 << 64) - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=30),
    max_leaves=10,
)


def _text(path: Path) -> bytes:
    return assemble_wat(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", sorted(set(DeliveryKind) - UPGRADE_KINDS))
def test_the_smallest_agent_answers_everything_with_null(
    instance_of: MakeInstance, kind: DeliveryKind
) -> None:
    """
    And keeps doing so.
    """
    agent = instance_of(_text(sdk_root() / "wat" / "minimal.wat"))
    for _ in range(2):
        result = agent.deliver({"any": ["thing"]}, kind)
        assert (result.failure, result.reply.ok, result.reply.payload) == (None, True, b"\xf6")


@pytest.mark.parametrize("size_bytes", [0, 1, PAGE_BYTES - 70, PAGE_BYTES - 64, PAGE_BYTES, 500_000])
def test_a_new_wat_agent_replies_with_what_it_was_given(
    instance_of: MakeInstance, tmp_path: Path, size_bytes: int
) -> None:
    """
    Of any size that its memory can grow to.
    """
    new_agent(tmp_path, "wat")
    agent = instance_of(build_agent(tmp_path).read_bytes(), memory_bytes=1 << 20)
    assert agent.ask(bytes(size_bytes)) == bytes(size_bytes)


def test_a_new_wat_agent_fails_in_words_when_a_message_does_not_fit(
    instance_of: MakeInstance, tmp_path: Path
) -> None:
    """
    And serves the next one.
    """
    new_agent(tmp_path, "wat")
    agent = instance_of(build_agent(tmp_path).read_bytes(), memory_bytes=PAGE_BYTES)
    assert agent.ask(bytes(PAGE_BYTES)) == {"failed": {"message": "out of memory"}}
    assert agent.ask("next") == "next"


@given(
    content=st.text(),
    text=st.text(),
    more=st.dictionaries(st.text(max_size=8), VALUES, max_size=5),
)
def test_hello_finds_the_text_whatever_stands_around_it(
    instance_of: MakeInstance, content: str, text: str, more: dict[str, codec.Value]
) -> None:
    """
    Later hosts may answer with more than there is now.
    """
    agent = instance_of(_text(GUESTS / "hello" / "agent.wat"))
    (call,) = agent.deliver(content).calls
    assert codec.decode(call.request) == {"messages": [{"role": "user", "content": content}]}
    result = agent.wake(call.number, Status.OK, {**more, "text": text})
    assert codec.decode(result.reply.payload) == text


@given(kind=st.text(), message=st.text(), more=st.dictionaries(st.text(max_size=8), VALUES, max_size=3))
def test_hello_hands_on_the_message_of_an_error(
    instance_of: MakeInstance, kind: str, message: str, more: dict[str, codec.Value]
) -> None:
    """
    And nothing else of it.
    """
    agent = instance_of(_text(GUESTS / "hello" / "agent.wat"))
    (call,) = agent.deliver("hi").calls
    result = agent.wake(call.number, Status.FAILED, {**more, "kind": kind, "message": message})
    assert not result.reply.ok
    assert codec.decode(result.reply.payload) == {"message": message}


def test_hello_takes_messages_and_answers_of_any_size(instance_of: MakeInstance) -> None:
    """
    Its memory grows with them.
    """
    agent = instance_of(_text(GUESTS / "hello" / "agent.wat"))
    (call,) = agent.deliver("q" * 300_000).calls
    result = agent.wake(call.number, Status.OK, {"text": "a" * 700_000})
    assert codec.decode(result.reply.payload) == "a" * 700_000


def test_hello_fails_in_words_when_it_has_no_room(instance_of: MakeInstance) -> None:
    """
    For the message, and for the answer.
    """
    failed = {"message": "out of memory"}
    agent = instance_of(_text(GUESTS / "hello" / "agent.wat"), memory_bytes=PAGE_BYTES)
    assert codec.decode(agent.deliver("q" * PAGE_BYTES).reply.payload) == failed
    (call,) = agent.deliver("q").calls
    result = agent.wake(call.number, Status.OK, {"text": "a" * PAGE_BYTES})
    assert codec.decode(result.reply.payload) == failed


def test_hello_fails_in_words_when_it_may_not_ask(instance_of: MakeInstance) -> None:
    """
    A request may be refused on the spot.
    """
    agent = instance_of(_text(GUESTS / "hello" / "agent.wat"), request_bytes=8)
    result = agent.deliver("q")
    assert codec.decode(result.reply.payload) == {"message": "the model can't be asked"}


@pytest.mark.parametrize("count", [0, 1, 22, 23, 254, 255, 65_534, 65_535, (1 << 32) - 2])
def test_the_counter_goes_on_from_the_count_in_its_memory(instance_of: MakeInstance, count: int) -> None:
    """
    In each of the sizes that a number may have; a restore is not counted.
    """
    agent = instance_of(_text(GUESTS / "counter" / "agent.wat"))
    old = agent.machine
    state = old.freeze()
    page = count.to_bytes(4, "little") + old.image.mind.pages[0][4:]
    mind = replace(state.mind, pages={0: page})
    agent.machine = Machine.thaw(old.program, old.image, old.limits, replace(state, mind=mind))
    assert agent.deliver(None, DeliveryKind.RESTORE).reply.payload == b"\xf6"
    assert agent.ask(None) == count + 1
