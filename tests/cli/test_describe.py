"""
Facts as aligned text.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.cli.describe import describe, table

FACTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_facts_are_aligned_and_show_their_units() -> None:
    """
    Plain facts first, then tables and sections, each in the order given.
    """
    facts = {
        "kind": "agent",
        "imports": [
            {"operation": "llm.chat", "granted": True},
            {"operation": "memory.save", "granted": False, "flag": "--allow memory"},
        ],
        "module_size_bytes": 2048,
        "description": None,
        "limits": {"memory_bytes": 67_108_864, "timeout_ms": 30_000, "fuel": 2_000_000_000},
        "tags": ["a", "b"],
        "empty": {},
        "none": [],
        "mixed": [1, {"a": b"\x00"}],
    }
    assert describe(facts) == (
        "kind         agent\n"
        "module size  2.0 KiB (2048)\n"
        "description  -\n"
        "tags         a, b\n"
        "empty        -\n"
        "none         -\n"
        'mixed        [1, {"a": {"$bytes": "AA=="}}]\n'
        "imports\n"
        "  operation    granted  flag\n"
        "  llm.chat     yes      -\n"
        "  memory.save  no       --allow memory\n"
        "limits\n"
        "  memory   64.0 MiB (67108864)\n"
        "  timeout  30000 ms\n"
        "  fuel     2000000000"
    )


def test_an_agent_can_not_write_lines_of_its_own() -> None:
    """
    Names and values are scrubbed and cut.
    """
    assert describe({"name": "a\nok  yes\x1b[2J", "k\n": 512}) == "name  a\\nok  yes\\x1b[2J\nk\\n   512"
    assert describe({"name": "x" * 300}) == f"name  {'x' * 200}… (100 more characters)"
    assert table([{"size_bytes": 10}]) == ["size", "10 B"]


@given(st.dictionaries(st.text(), FACTS, max_size=4))
def test_any_facts_can_be_described(facts: dict[str, object]) -> None:
    """
    Whatever later facts there are, text comes out.
    """
    assert isinstance(describe(facts), str)
