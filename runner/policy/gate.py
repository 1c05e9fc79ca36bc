"""
What rules on each call of a named instance: allow, deny, or ask a person.

What an instance may import was settled when it was bound. The gate rules on single calls: by tool and by
model, and by what the operator wants to see before it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from runner import codec
from runner.kernel import abi
from runner.kernel.state import Call
from runner.policy.grants import Grants
from runner.policy.rules import Rule, parse_rule

EffectClass = Literal["pure", "idempotent", "effectful"]

ToolEffect = Callable[[str, codec.Value], EffectClass]

_EFFECTS: Final[dict[str, EffectClass]] = {
    # Asking a model again costs money and changes nothing; it may answer differently, but only one answer
    # is ever recorded.
    "llm.chat": "idempotent",
    "llm.complete": "idempotent",
    "llm.usage": "pure",
    "tool.list": "pure",
    # A tool may do anything; one that does not say what it is is taken at its worst.
    "tool.call": "effectful",
    # Notes are a function of the journal's receipts: a note without a receipt was never kept.
    "memory.save": "idempotent",
    "memory.forget": "idempotent",
    "memory.read": "pure",
    "memory.list": "pure",
    "memory.search": "pure",
    "agent.after": "pure",
    "agent.every": "pure",
}


class Ruling(NamedTuple):
    """
    What the gate says of a call.

    Attributes:
        verdict: `ask` parks it for a person.
        rule: The rule that decided, as the operator wrote it, or the name of a default.
    """

    verdict: Literal["allow", "deny", "ask"]
    rule: str


class Gate:
    """
    Rules on calls; the same call gets the same ruling.

    Args:
        grants: What the operator allowed.
        ask: What a person must approve at each call, as values of `--ask`.
        tool_effect: The effect class of a tool with some arguments; `None` where no tools are known, and then
            each is taken at its worst. Total: it gets the guest's own words.

    Raises:
        UsageError: If one of `ask` is malformed.
    """

    def __init__(
        self, grants: Grants, ask: Iterable[str] = (), tool_effect: ToolEffect | None = None
    ) -> None:
        self._grants = grants
        self._tool_effect = tool_effect
        self._ask: tuple[Rule, ...] = tuple(parse_rule(text, "--ask") for text in ask)

    def judge(self, call: Call) -> Ruling:
        """
        Rule on one call: deny before ask, ask before allow.
        """
        selected = _selected(call)
        if call.operation == "tool.call":
            decision = self._grants.decide_tool(selected)
            if not decision.allowed:
                return Ruling("deny", decision.rule)
        for rule in self._ask:
            if rule.selects(call.operation, selected) or (rule.covers(call.operation) and rule.is_whole):
                return Ruling("ask", f"--ask {rule.text}")
        return Ruling("allow", self._grants.decide(call.operation).rule)

    def effect(self, call: Call) -> EffectClass:
        """
        What may be done when the effect of a call was started and never reported.
        """
        if call.operation == "tool.call" and self._tool_effect is not None:
            return self._tool_effect(_selected(call), codec.decode(call.request).get("arguments", {}))
        return _EFFECTS[call.operation]


def _selected(call: Call) -> str:
    """
    The tool or model that a call names; empty when it names none.
    """
    request = codec.decode(call.request)
    name = request.get("name" if abi.OPERATIONS[call.operation].capability == "tool" else "model", "")
    return name if isinstance(name, str) else ""
