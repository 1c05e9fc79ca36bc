"""Python agents that do their worst: an error in the language or a limit, and the next delivery is served."""

# ruff: noqa: E501 - an agent of some lines is one text

from __future__ import annotations

import pytest

from runner.errors import LimitExceeded, RunnerError
from tests.engines.driver import Failed, Interpreter, Living

pytestmark = pytest.mark.python

AGENT = """
def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)

class Node:
    def __init__(self, n):
        self.child = Node(n - 1) if n else None

class Liar:
    def __lt__(self, other):
        return True

def nested(n, kind=list):
    value = kind()
    for _ in range(n):
        value = kind([value])
    return value

def generators(n):
    if n:
        yield from generators(n - 1)

async def coroutines(n):
    return await coroutines(n + 1)

def doubling():
    text = "x"
    while True:
        text += text

def buffers():
    return [bytearray(512 * 1024) for _ in range(3000)]

def spin():
    while True:
        pass

async def run(source):
    try:
        value = eval(source)
        if type(value).__name__ == "generator" and "coroutines" in source:
            value = await value
        return "ok"
    except BaseException as error:
        return type(error).__name__
"""


@pytest.fixture(scope="module")
def living(engine_python: bytes) -> Living:
    """One instance that has to bear it all."""
    record = {"name": "main.py", "module": "main", "package": False, "text": AGENT}
    return Interpreter(engine_python).load([record]).instance()


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("deep(500)", "ok"),
        ("deep(10 ** 6)", "RuntimeError"),
        ("Node(10 ** 6)", "RuntimeError"),
        ("list(generators(10 ** 6))", "RuntimeError"),
        ("coroutines(0)", "RuntimeError"),
        ("repr(nested(10 ** 5))", "RuntimeError"),
        ("nested(10 ** 5) == nested(10 ** 5)", "RuntimeError"),
        ("hash(nested(10 ** 5, tuple))", "RuntimeError"),
        ("sorted([Liar() for _ in range(2000)])", "ok"),
        ("doubling()", "MemoryError"),
        ("buffers()", "MemoryError"),
        ("[0] * (1 << 30)", "MemoryError"),
        ("[1, 2, 3, 4] * (1 << 30)", "MemoryError"),
        ("(1, 2, 3, 4) * (1 << 30)", "MemoryError"),
        ("'abcd' * (1 << 30)", "MemoryError"),
        ("open('/etc/passwd')", "OSError"),
        ("__import__('socket')", "ImportError"),
    ],
)
def test_it_is_an_error_in_the_language(living: Living, source: str, outcome: str) -> None:
    """Which the agent may catch."""
    assert living.message(source) == outcome
    assert living.message("1 + 1") == "ok"


@pytest.mark.parametrize(
    "source",
    [
        "spin()",
        "eval('(' * 100000)",
        "10 ** 1000000",
    ],
)
def test_it_ends_at_a_limit(living: Living, source: str) -> None:
    """Of fuel or of memory, and the instance lives on."""
    with pytest.raises((RunnerError, Failed)):
        living.message(source)
    assert living.message("1 + 1") == "ok"


@pytest.mark.parametrize(
    "source",
    ["__import__('re').match('(a*)*b', 'a' * 60)", "__import__('re').match('(a|aa)+$', 'a' * 60 + 'b')"],
)
def test_a_pattern_without_end_is_given_up(living: Living, source: str) -> None:
    """By its own count of steps, or where that is more than the delivery may use, at the limit."""
    try:
        outcome = living.message(source)
    except LimitExceeded:
        outcome = "RuntimeError"
    assert outcome == "RuntimeError"
    assert living.message("1 + 1") == "ok"


def test_an_agent_that_ran_out_of_memory_works_on(engine_python: bytes) -> None:
    """What it held is free again, and all that it had before is sound."""
    text = "kept = {str(i): [i] for i in range(1000)}\ndef run(n):\n    if n:\n        held = []\n        while True:\n            held.append(bytearray(1 << 20))\n    return sum(v[0] for v in kept.values())\n"
    record = {"name": "main.py", "module": "main", "package": False, "text": text}
    living = Interpreter(engine_python).load([record]).instance()
    for _ in range(3):
        with pytest.raises(Exception, match=r"^MemoryError: memory allocation failed"):
            living.message(1)
        assert living.message(0) == 499500
