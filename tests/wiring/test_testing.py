"""
Authors' tests of their agents.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.build.scaffold import TEMPLATE_LANGUAGES
from runner.errors import AgentInvalid, ProtocolViolation
from runner.wiring import new_agent
from runner.wiring.interpreter import Loaded
from runner.wiring.testing import _tests_of, run_tests

JS_SUITE = """
import { deepEqual, equal, rejects, throws } from "agent/test";
import { run } from "./agent.js";

let count = 0;
export function countsOne() { equal(++count, 1); }
export function countsOneAgain() { equal(++count, 1); }
export async function asksTheModel() { equal(await run("hi"), "(scripted) You said: hi"); }
export function isWrong() { deepEqual({ a: [1] }, { a: [2] }); }
export function spins() { while (true) {} }
export async function throwsAsExpected() {
  throws(() => { throw new Error("x"); });
  await rejects(async () => null.x);
}
export function _helper() { throw new Error("no test"); }
export const notAFunction = 1;
"""
PYTHON_SUITE = """
from main import run

count = 0


def test_counts_one():
    global count
    count += 1
    assert count == 1


def test_counts_one_again():
    test_counts_one()


async def test_asks_the_model():
    assert await run("hi") == "(scripted) You said: hi"


def test_is_wrong():
    assert {"a": [1]} == {"a": [2]}


def test_spins():
    while True:
        pass


def helper():
    raise ValueError("no test")
"""
SUITES = [
    pytest.param("js", "agent.test.js", JS_SUITE, marks=pytest.mark.js, id="JavaScript"),
    pytest.param("python", "test_main.py", PYTHON_SUITE, marks=pytest.mark.python, id="Python"),
]


@pytest.mark.parametrize(("language", "file", "suite"), SUITES)
def test_each_test_has_an_instance_and_limits_of_its_own(
    tmp_path: Path, options: Any, language: str, file: str, suite: str
) -> None:
    """
    One that fails or never ends says so, and the next is none the worse.
    """
    new_agent(tmp_path / "agent", language)
    (tmp_path / "agent" / file).write_text(suite, encoding="utf-8")
    facts = run_tests(tmp_path / "agent", options(limits={"fuel": 200_000_000}))
    wrong = {outcome["test"]: outcome for outcome in facts["tests"] if not outcome["passed"]}
    assert facts["failed"] == 2
    assert facts["passed"] == len(facts["tests"]) - 2 >= 3
    spinning, failing = sorted(wrong, key=lambda name: "spins" not in name)
    assert "fuel" in wrong[spinning]["message"]
    assert file in wrong[failing]["stack"]
    json.dumps(facts)


@pytest.mark.parametrize(("language", "file", "suite"), SUITES)
def test_a_suite_that_can_not_be_loaded_is_a_failure(
    tmp_path: Path, options: Any, language: str, file: str, suite: str
) -> None:
    """
    And the others are run all the same; tests can be chosen by a part of their name.
    """
    new_agent(tmp_path / "agent", language)
    broken = file.replace("main", "broken").replace("agent", "broken")
    (tmp_path / "agent" / broken).write_text("this is no (program", encoding="utf-8")
    facts = run_tests(tmp_path / "agent", options())
    (outcome,) = [outcome for outcome in facts["tests"] if not outcome["passed"]]
    assert (outcome["suite"], outcome["test"]) == (broken, "")
    assert f"{broken}:1" in outcome["message"]
    assert facts["passed"] == 2
    del suite
    assert run_tests(tmp_path / "agent", options(), only="nswers")["passed"] == 1


@pytest.mark.parametrize(
    "language", [pytest.param("js", marks=pytest.mark.js), pytest.param("python", marks=pytest.mark.python)]
)
def test_a_new_agents_own_tests_pass(tmp_path: Path, options: Any, language: str) -> None:
    """
    As it stands in the template; without any file of tests there is nothing to pass.
    """
    new_agent(tmp_path / "agent", language)
    facts = run_tests(tmp_path / "agent", options())
    assert (facts["passed"], facts["failed"]) == (2, 0), facts
    for path in (tmp_path / "agent").glob("*test*"):
        path.unlink()
    assert run_tests(tmp_path / "agent", options())["tests"] == []


def test_agents_that_are_modules_have_no_tests_here(tmp_path: Path, options: Any) -> None:
    """
    And what is no agent has none.
    """
    assert {"c", "wat"} < set(TEMPLATE_LANGUAGES)
    new_agent(tmp_path / "agent", "wat")
    with pytest.raises(AgentInvalid, match="only tests of agents in js and python"):
        run_tests(tmp_path / "agent", options())
    with pytest.raises(AgentInvalid, match="not a folder"):
        run_tests(tmp_path / "agent" / "agent.wat", options())


@pytest.mark.parametrize("told", [None, "x", [["a.js"]], [["a.js", 1]], [["a.js", "t"], "t"]])
def test_names_of_tests_that_are_none_are_a_broken_engine(told: Any) -> None:
    """
    A suite runs in its engine's memory, and could make it say anything.
    """
    loaded: Any = SimpleNamespace(reply={} if told is None else {"tests": told})
    with pytest.raises(ProtocolViolation, match="names tests that are none"):
        _tests_of(loaded)
    assert _tests_of(Loaded(loaded, {"tests": [["a.js", "t"]]})) == [("a.js", "t")]
