"""
The policy is the linker: what is granted acts, what is refused says so, and nothing else is there.
"""

from __future__ import annotations

import pytest

from runner.errors import Denied
from runner.kernel.abi import IMPORTS, Status
from runner.kernel.limits import Limits
from runner.kernel.linker import build_linker
from runner.kernel.machine import Machine
from tests.kernel.guests import GRANTED, deliver, engine, guest_text, image_of, machine, memory_of, program

CHAT = '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))'
ASKING = guest_text(
    "(i32.store (i32.const 8) (call $chat (i32.const 0) (i32.const 1)))"
    "(drop (call $reply (i32.const 1) (i32.const 4) (i32.const 1)))",
    imports=CHAT + '(import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))',
    extra='(data (i32.const 0) "\\a0\\00\\00\\00\\f6")',
)


def asked(granted: frozenset[str], denied: frozenset[str]) -> tuple[int, int]:
    """
    What the guest was told, and how many calls came out.
    """
    made = program(ASKING, granted=granted, denied=denied)
    instance = Machine(made, image_of(made), Limits(), entropy=bytes(32))
    calls = deliver(instance).calls
    return int.from_bytes(memory_of(instance, 8, 4), "little", signed=True), len(calls)


def test_a_granted_operation_acts() -> None:
    """And gives out a call."""
    assert asked(frozenset({"llm.chat", "agent.reply"}), frozenset()) == (1, 1)


def test_a_refused_operation_answers_denied_and_nothing_comes_out() -> None:
    """For a guest whose engine imports more than the agent uses."""
    assert asked(frozenset({"agent.reply"}), frozenset({"llm.chat"})) == (Status.DENIED, 0)


def test_a_grant_outweighs_a_refusal() -> None:
    """The sets may overlap; what is granted is granted."""
    both = frozenset({"llm.chat", "agent.reply"})
    assert asked(both, both) == (1, 1)


def test_a_module_that_needs_what_is_in_neither_set_is_not_linked() -> None:
    """Before anything of it runs, with the flag that grants it."""
    with pytest.raises(Denied) as caught:
        program(ASKING, granted=frozenset({"agent.reply"}))
    assert caught.value.message == "agent this agent needs llm.chat, which is not granted"
    assert caught.value.hint == "add --allow llm.chat"


def test_a_grant_that_is_not_used_changes_nothing() -> None:
    """The linker may hold more than a module imports."""
    assert deliver(machine(ASKING)).calls == deliver(machine(ASKING)).calls


def test_every_operation_of_the_abi_can_be_granted_or_refused() -> None:
    """The host functions are made from the table."""
    assert len(GRANTED) == len(IMPORTS)
    build_linker(engine(), GRANTED, frozenset())
    build_linker(engine(), frozenset(), GRANTED)


def test_an_operation_that_the_abi_does_not_name_can_not_be_granted() -> None:
    """A mistake of the host's."""
    with pytest.raises(KeyError):
        build_linker(engine(), frozenset({"llm.sing"}), frozenset())
