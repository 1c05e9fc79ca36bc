"""
One rule of `--allow` and `--deny`: `CAPABILITY[:SELECTOR]`, with globs.

Input: the operator, who is trusted but mistypes: a rule that could never match anything is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from runner.errors import UsageError
from runner.kernel import abi
from runner.package.names import did_you_mean, known_names

MEMORY_READS: Final = frozenset({"memory.read", "memory.list", "memory.search"})
MEMORY_WRITES: Final = frozenset({"memory.save", "memory.forget"})

_MEMORY_SELECTORS: Final[dict[str, frozenset[str]]] = {
    "r": MEMORY_READS,
    "w": MEMORY_WRITES,
    "rw": MEMORY_READS | MEMORY_WRITES,
}
_GLOB: Final = frozenset("*?[")
_ACCEPTED: Final = (
    "accepted: llm, llm.chat, llm:PROVIDER/MODEL, tool, tool:NAME, memory, memory:r, memory:rw, "
    "memory.read, '*'; a star stands for anything, as in llm:scripted/*"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """
    A parsed rule.

    Attributes:
        text: As the operator wrote it.
        operations: What it speaks of; never an operation of the instance's own affairs.
        selector: Glob over the model (`llm`) or the tool's name (`tool`); `*` when it names none.
    """

    text: str
    operations: frozenset[str]
    selector: str = "*"

    def covers(self, operation: str) -> bool:
        """
        Whether it speaks of an operation, for some selection at least.
        """
        return operation in self.operations

    def selects(self, operation: str, selected: str) -> bool:
        """
        Whether it speaks of an operation on this model or tool.
        """
        return self.covers(operation) and fnmatchcase(selected, self.selector)

    @property
    def is_whole(self) -> bool:
        """
        Whether it speaks of its operations on every model and tool.
        """
        return self.selector in ("*", "*/*")


def parse_rule(text: str, flag: str) -> Rule:
    """
    The rule that `text` states.

    Args:
        text: The value of the flag.
        flag: `--allow` or `--deny`, to name it in a refusal.

    Raises:
        UsageError: If the text is no rule, or speaks of nothing that exists.
    """
    name, colon, selector = text.partition(":")
    operations = _named(name)
    if not operations:
        raise _refused(text, flag, f"no capability or operation {name!r}" + did_you_mean(name, known_names()))
    if not colon:
        return Rule(text, operations - _own())
    if not selector:
        raise _refused(text, flag, "nothing after the colon")
    return _selecting(text, flag, name, operations, selector)


def _selecting(text: str, flag: str, name: str, operations: frozenset[str], selector: str) -> Rule:
    capability = name.partition(".")[0]
    if name == "memory":
        if selector not in _MEMORY_SELECTORS:
            raise _refused(text, flag, f"memory has no selector {selector!r}; it has r, w and rw")
        return Rule(text, _MEMORY_SELECTORS[selector])
    if capability == "llm":
        if "/" not in selector and selector != "*":
            fix = f"for all of a provider write {name}:{selector}/*"
            raise _refused(text, flag, f"a model is PROVIDER/MODEL; {fix}")
        return Rule(text, operations, selector)
    if capability == "tool":
        return Rule(text, operations, selector)
    raise _refused(text, flag, f"{name} takes no selector")


def _named(name: str) -> frozenset[str]:
    """
    Operations that a name or glob stands for; a glob may match a capability or a whole operation.
    """
    if _GLOB.isdisjoint(name):
        return frozenset(
            entry.operation for entry in abi.IMPORTS if name in (entry.operation, entry.capability)
        )
    return frozenset(
        entry.operation
        for entry in abi.IMPORTS
        if fnmatchcase(entry.operation, name) or fnmatchcase(entry.capability, name)
    )


def _own() -> frozenset[str]:
    return frozenset(entry.operation for entry in abi.IMPORTS if entry.capability == abi.OWN_CAPABILITY)


def _refused(text: str, flag: str, problem: str) -> UsageError:
    return UsageError(f"{flag} {text}: {problem}", hint=_ACCEPTED)
