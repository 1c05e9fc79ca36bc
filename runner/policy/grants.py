"""
Grants: the operator's rules together, deny before allow, and nothing else granted.

Without a rule an agent has its own affairs (`agent.*`) and the scripted provider, which is no power.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from runner.errors import Denied, UsageError
from runner.kernel import abi
from runner.package.names import operations_of
from runner.policy.rules import MEMORY_READS, MEMORY_WRITES, Rule, parse_rule

SCRIPTED_RULE: Final = Rule("llm:scripted/*", operations_of("llm"), "scripted/*")
"""
The one rule that holds without being written; a deny rule beats it like any other.
"""

# What may stand in a flag that a person is told to type: no glob, and nothing that a shell would read. The
# names come from guests, which could otherwise have more granted than they asked for.
_PLAIN_SELECTOR: Final = re.compile(r"[A-Za-z0-9._:/@+-]{1,200}", re.ASCII)

_DEFAULT_DENY: Final = "default deny"
_OWN_RULE: Final = f"{abi.OWN_CAPABILITY}.* is always granted"


class Decision(NamedTuple):
    """
    Whether something is granted, and why.

    Attributes:
        allowed: The answer.
        rule: The rule that decided, as the operator wrote it, or the name of a default.
        flag: The flag that would grant it and nothing else of its kind, or `None` when it is granted, when
            a deny rule forbids it, or when its name is none that could safely be typed.
    """

    allowed: bool
    rule: str
    flag: str | None = None


class Binding(NamedTuple):
    """
    How a module's imports are bound.

    Attributes:
        granted: Operations bound to the host.
        denied: Operations bound to a constant refusal: imported, but not used by the manifest's word.
    """

    granted: frozenset[str]
    denied: frozenset[str]


@dataclass(frozen=True, slots=True)
class Grants:
    """
    What an operator allowed an agent.

    Attributes:
        allow: Rules that grant, the default one last.
        deny: Rules that forbid, whatever grants.
    """

    allow: tuple[Rule, ...] = (SCRIPTED_RULE,)
    deny: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> Grants:
        """
        The grants that the values of `--allow` and `--deny` state.

        Raises:
            UsageError: If one is malformed, or denies what every instance has.
        """
        denied = tuple(parse_rule(text, "--deny") for text in deny)
        for rule in denied:
            if not rule.operations:
                raise UsageError(f"--deny {rule.text}: {_OWN_RULE}", hint="remove the flag")
        return cls((*(parse_rule(text, "--allow") for text in allow), SCRIPTED_RULE), denied)

    def decide(self, operation: str) -> Decision:
        """
        Whether an operation may be bound at all; on which model or tool is decided at each call.

        Raises:
            ValueError: If the ABI has no such operation.
        """
        if operation not in abi.OPERATIONS:
            msg = f"no operation {operation!r}"
            raise ValueError(msg)
        if abi.OPERATIONS[operation].capability == abi.OWN_CAPABILITY:
            return Decision(True, _OWN_RULE)
        for rule in self.deny:
            if rule.covers(operation) and rule.is_whole:
                return Decision(False, f"--deny {rule.text}")
        for rule in self.allow:
            if rule.covers(operation):
                return Decision(True, _named(rule))
        return Decision(False, _DEFAULT_DENY, _flag_for(operation))

    def decide_model(self, model: str, operation: str = "llm.chat") -> Decision:
        """
        Whether an operation may ask a model, named as `PROVIDER/MODEL`.
        """
        return self._select(operation, "llm", model)

    def decide_tool(self, name: str) -> Decision:
        """
        Whether a tool may be called.
        """
        return self._select("tool.call", "tool", name)

    def allows_model(self, model: str, operation: str = "llm.chat") -> bool:
        """
        Whether an operation may ask a model, named as `PROVIDER/MODEL`.
        """
        return self.decide_model(model, operation).allowed

    def granted_operations(self) -> frozenset[str]:
        """
        Every operation that may be bound.
        """
        return frozenset(operation for operation in abi.OPERATIONS if self.decide(operation).allowed)

    def resolve(self, agent: str, imports: Iterable[str], uses: Iterable[str] | None = None) -> Binding:
        """
        How a module's imports are to be bound.

        Args:
            agent: The agent's name.
            imports: Operations that the module imports, all of the ABI.
            uses: Capabilities and operations that the manifest declares, or `None` when it does not say.
                What is imported and not among them is bound to a refusal, granted or not.

        Raises:
            Denied: If the agent needs an operation that is not granted; the hint grants all of them.
        """
        wanted = sorted(set(imports))
        used = None if uses is None else {operation for name in uses for operation in operations_of(name)}
        denied = frozenset(
            operation
            for operation in wanted
            if used is not None and operation not in used and not _is_own(operation)
        )
        needed = [operation for operation in wanted if operation not in denied]
        refused = {name: decision for name in needed if not (decision := self.decide(name)).allowed}
        if refused:
            raise _denial(agent, refused)
        return Binding(frozenset(needed), denied)

    def _select(self, operation: str, capability: str, selected: str) -> Decision:
        for rule in self.deny:
            if rule.selects(operation, selected):
                return Decision(False, f"--deny {rule.text}")
        for rule in self.allow:
            if rule.selects(operation, selected):
                return Decision(True, _named(rule))
        flag = f"--allow {capability}:{selected}" if _PLAIN_SELECTOR.fullmatch(selected) else None
        return Decision(False, _DEFAULT_DENY, flag)


def _is_own(operation: str) -> bool:
    return abi.OPERATIONS[operation].capability == abi.OWN_CAPABILITY


def _named(rule: Rule) -> str:
    return f"default {rule.text}" if rule is SCRIPTED_RULE else f"--allow {rule.text}"


def _flag_for(operation: str) -> str:
    """
    The least that grants an operation and is worth typing.
    """
    if operation in MEMORY_READS:
        return "--allow memory:r"
    if operation in MEMORY_WRITES:
        return "--allow memory:rw"
    return f"--allow {abi.OPERATIONS[operation].capability}"


def _denial(agent: str, refused: dict[str, Decision]) -> Denied:
    """
    One refusal for all: it names the first operation, and every flag that is missing.
    """
    forbidden = next((name for name, decision in refused.items() if decision.flag is None), None)
    if forbidden is not None:
        return Denied(agent, forbidden, refused[forbidden].rule)
    flags = {decision.flag: None for decision in refused.values() if decision.flag}
    if "--allow memory:rw" in flags:
        flags.pop("--allow memory:r", None)
    first = next(iter(refused))
    return Denied(agent, first, refused[first].rule, flag=" ".join(flags))
