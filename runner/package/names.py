"""
Names of operations and capabilities as people write them, and what they may have meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runner.kernel import abi

_LONGEST_WORD: Final = 64


def nearest(word: str, known: Iterable[str]) -> str | None:
    """
    The known word that `word` most likely was meant to be, or `None` when none is close.
    """
    # Imported here: it costs milliseconds and only a refusal needs it.
    import difflib  # noqa: PLC0415

    # Cut first: the comparison is quadratic, and a guest may have chosen the word.
    close = difflib.get_close_matches(word[:_LONGEST_WORD].lower(), sorted(known), n=1)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """
    The end of a refusal, ``; did you mean "llm"?``, or nothing when no known word is close.
    """
    found = nearest(word, known)
    return f'; did you mean "{found}"?' if found else ""


def operations_of(name: str) -> frozenset[str]:
    """
    The operations that a name stands for: all of a capability's, or the one; empty when it is neither.
    """
    if name in abi.OPERATIONS:
        return frozenset({name})
    return frozenset(entry.operation for entry in abi.IMPORTS if entry.capability == name)


def known_names() -> frozenset[str]:
    """
    Every capability and every operation of the ABI.
    """
    return frozenset(abi.CAPABILITIES) | abi.OPERATIONS.keys()
