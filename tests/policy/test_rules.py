"""
What `--allow` and `--deny` accept.
"""

from __future__ import annotations

import pytest

from runner.errors import UsageError
from runner.kernel import abi
from runner.policy.rules import parse_rule

HINT = (
    "accepted: llm, llm.chat, llm:PROVIDER/MODEL, tool, tool:NAME, memory, memory:r, memory:rw, "
    "memory.read, '*'; a star stands for anything, as in llm:scripted/*"
)
LLM = {"llm.chat", "llm.complete", "llm.providers", "llm.usage"}
MEMORY = {"memory.save", "memory.read", "memory.list", "memory.search", "memory.forget"}
TOOL = {"tool.call", "tool.list"}


@pytest.mark.parametrize(
    ("text", "operations", "selector"),
    [
        ("llm", LLM, "*"),
        ("llm.chat", {"llm.chat"}, "*"),
        ("llm.*", LLM, "*"),
        ("l?m", LLM, "*"),
        ("llm:*", LLM, "*"),
        ("llm:scripted/*", LLM, "scripted/*"),
        ("llm:anthropic/claude-[56]", LLM, "anthropic/claude-[56]"),
        ("llm.complete:openai/x", {"llm.complete"}, "openai/x"),
        ("memory", MEMORY, "*"),
        ("memory:r", {"memory.read", "memory.list", "memory.search"}, "*"),
        ("memory:w", {"memory.save", "memory.forget"}, "*"),
        ("memory:rw", MEMORY, "*"),
        ("memory.read", {"memory.read"}, "*"),
        ("*.list", {"memory.list", "tool.list"}, "*"),
        ("tool", TOOL, "*"),
        ("tool:web_*", TOOL, "web_*"),
        ("tool.call:web_search", {"tool.call"}, "web_search"),
        ("*", LLM | MEMORY | TOOL, "*"),
        ("agent", set(), "*"),
        ("agent.now", set(), "*"),
    ],
)
def test_a_rule_speaks_of_operations_and_of_a_selection(
    text: str, operations: set[str], selector: str
) -> None:
    """
    All forms that are accepted.
    """
    rule = parse_rule(text, "--allow")
    assert (rule.text, rule.operations, rule.selector) == (text, frozenset(operations), selector)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no capability or operation ''"),
        ("memroy", "no capability or operation 'memroy'; did you mean \"memory\"?"),
        ("llm.caht", "no capability or operation 'llm.caht'; did you mean \"llm.chat\"?"),
        ("LLM", "no capability or operation 'LLM'; did you mean \"llm\"?"),
        ("network", "no capability or operation 'network'"),
        ("net*", "no capability or operation 'net*'"),
        ("memory:x", "memory has no selector 'x'; it has r, w and rw"),
        ("memory:", "nothing after the colon"),
        ("memory.read:r", "memory.read takes no selector"),
        ("llm:anthropic", "a model is PROVIDER/MODEL; for all of a provider write llm:anthropic/*"),
        ("llm.chat:x", "a model is PROVIDER/MODEL; for all of a provider write llm.chat:x/*"),
        ("agent:now", "agent takes no selector"),
        ("*:x", "* takes no selector"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_is_accepted(text: str, problem: str) -> None:
    """
    A rule that could never match is a mistake, and a mistake must not pass for a wall.
    """
    with pytest.raises(UsageError) as caught:
        parse_rule(text, "--deny")
    assert str(caught.value) == f"--deny {text}: {problem}"
    assert caught.value.hint == HINT


def test_every_capability_and_operation_is_a_rule() -> None:
    """
    What the ABI names can be spoken of.
    """
    for name in (*abi.CAPABILITIES, *abi.OPERATIONS):
        assert parse_rule(name, "--allow").text == name
