"""
What a mistyped name may have meant.
"""

from __future__ import annotations

from runner.kernel import abi
from runner.package.names import did_you_mean, known_names, nearest, operations_of


def test_a_capability_stands_for_its_operations_and_an_operation_for_itself() -> None:
    """
    Anything else stands for nothing.
    """
    assert operations_of("tool") == {"tool.call", "tool.list"}
    assert operations_of("memory.read") == {"memory.read"}
    assert operations_of("wasi") == frozenset()
    assert frozenset().union(*map(operations_of, abi.CAPABILITIES)) == set(abi.OPERATIONS)


def test_the_nearest_name_is_found() -> None:
    """
    Whatever its case; and none when none is near.
    """
    assert nearest("Memroy", known_names()) == "memory"
    assert nearest("llm.chta", known_names()) == "llm.chat"
    assert nearest("filesystem", known_names()) is None
    assert did_you_mean("tol", known_names()) == '; did you mean "tool"?'
    assert did_you_mean("filesystem", known_names()) == ""


def test_a_long_word_is_compared_by_its_beginning() -> None:
    """
    A guest may have chosen it, and the comparison is quadratic.
    """
    assert nearest("memory" + " " * 10_000_000, known_names()) is None
    assert nearest("x" * 10_000_000, known_names()) is None
