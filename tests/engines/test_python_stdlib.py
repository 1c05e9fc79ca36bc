"""
Python agents: the language and its standard library say what CPython says, line numbers included.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.build.python import available_modules
from runner.kernel.limits import Limits
from tests.engines.driver import Failed, Interpreter, Living
from tests.engines.programs import (
    Case,
    failing_at,
    lines_by,
    lines_here,
    printed_by,
    printed_here,
    programs,
    records,
    spots,
)

pytestmark = pytest.mark.python


@pytest.fixture(scope="module")
def engine(engine_python: bytes) -> Interpreter:
    """The engine of Python."""
    return Interpreter(engine_python)


@pytest.mark.parametrize("case", programs("language"), ids=lambda case: case.title)
def test_modern_python_means_what_it_means_in_cpython(engine: Interpreter, case: Case):
    """Syntax that the engine has not is lowered; what it prints is the same."""
    assert printed_by(engine, case.text) == printed_here(case.text)


@pytest.mark.parametrize("case", programs("stdlib"), ids=lambda case: case.title)
def test_the_standard_library_answers_as_cpythons(engine: Interpreter, case: Case):
    """Modules of our own, for the same programs."""
    assert printed_by(engine, case.text) == printed_here(case.text)


@pytest.mark.parametrize("spot", spots())
def test_a_traceback_has_the_authors_lines(engine: Interpreter, spot: int):
    """Wherever a program full of lowered syntax fails, every frame has CPython's line."""
    text = failing_at(spot)
    assert lines_by(engine, text) == lines_here(text)


@pytest.mark.parametrize("module", sorted(available_modules() - {"asyncio", "builtins"}))
def test_every_module_that_is_promised_can_be_imported(engine: Interpreter, module: str):
    """What the host lets pass, the engine has."""
    assert printed_by(engine, f"import {module}\nprint('here')") == "here"


@pytest.mark.parametrize("module", ["os", "socket", "subprocess", "ctypes", "threading", "pathlib"])
def test_what_reaches_outside_is_not_there(engine: Interpreter, module: str):
    """The engine says so, too, to whoever asks by another way than an import statement."""
    with pytest.raises(Failed, match=f"module '{module}' is not available to an agent"):
        printed_by(engine, f"__import__({module!r})")


def test_a_pattern_that_backtracks_for_ever_ends(engine: Interpreter):
    """Regular expressions have a bound on their steps, and the agent lives on."""
    text = """
import re
def run(given):
    try:
        re.match(r"(a|aa)+$", "a" * 40 + "b")
    except RuntimeError as error:
        return [str(error), re.match("a+", "aa").group()]
"""
    limits = replace(Limits(), fuel=20_000_000_000)
    answer = engine.load(records(text)).instance(limits=limits).message(None)
    assert answer == ["regular expression takes too many steps", "aa"]


def test_the_clock_and_randomness_are_the_hosts(engine: Interpreter):
    """While it loads an agent has neither; afterwards both are those of the slice."""
    text = """
import time, datetime, random, uuid
at_load = time.time()
def run(given):
    now = datetime.datetime.now(datetime.timezone.utc)
    return [at_load, time.time_ns(), str(now), random.random(), str(uuid.uuid4())]
"""
    agent = engine.load(records(text))

    def said(instance: Living) -> list[object]:
        instance.now_ms = 86_400_000
        answer: list[object] = instance.message(None)
        return answer

    first, again, other = (said(agent.instance(entropy=bytes([seed]) * 32)) for seed in (1, 1, 2))
    assert first[:3] == [0, 86_400_000_000_000, "1970-01-02 00:00:00+00:00"]
    assert first == again
    assert first[3] != other[3]
    assert first[4] != other[4]


def test_nobody_can_block(engine: Interpreter):
    """Sleeping would hold the host: it says what to do instead."""
    with pytest.raises(Failed, match="an agent can't block"):
        printed_by(engine, "import time\ntime.sleep(1)")
