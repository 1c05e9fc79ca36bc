"""
An agent that waits in the middle of its code, moved between processes and machines, all of them real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

JAVASCRIPT = """
import { llm } from "agent";

const heard = new Map();

function* numbers() { let n = 0; while (true) yield n++; }
const numbering = numbers();

const ask = async (what) => {
  const number = numbering.next().value;
  const answer = await (async () => await llm.chat([{ role: "user", content: what }]))();
  heard.set(what, [number, answer, heard.size]);
  return answer.length;
};

export async function run(input) {
  numbering.next();
  const topics = ["one", "three", "five"].map((what) => `${input} ${what}`);
  const lengths = await Promise.all(topics.map(async (topic) => await ask(topic)));
  const rest = numbering.next().value;
  const told = [...heard].map(([what, [number, answer]]) => [what, [number, answer]]);
  return { lengths, rest, heard: Object.fromEntries(told) };
}
"""

PYTHON = """
from agent import gather, llm

heard = {}


def numbers():
    n = 0
    while True:
        yield n
        n += 1


numbering = numbers()


async def ask(what):
    number = next(numbering)

    async def deeper():
        return await llm.chat([{"role": "user", "content": what}])

    answer = await deeper()
    heard[what] = [number, answer]
    return len(answer)


async def run(question):
    next(numbering)
    lengths = await gather(*[ask(f"{question} {what}") for what in ("one", "three", "five")])
    return {"lengths": lengths, "rest": next(numbering), "heard": heard}
"""

AGENTS = [
    pytest.param("agent.js", JAVASCRIPT, marks=pytest.mark.js, id="JavaScript"),
    pytest.param("main.py", PYTHON, marks=pytest.mark.python, id="Python"),
]


class Machine:
    """
    One machine: its own state and its own cache.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def runner(self, *arguments: str | Path, code: int = 0) -> str:
        """
        One command in a process of its own; gives its stdout.
        """
        done = subprocess.run(
            [sys.executable, "-m", "runner.cli", *map(str, arguments)],
            env={
                **os.environ,
                "RUNNER_CACHE": str(self.root / "cache"),
                "RUNNER_STATE": str(self.root / "state"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    """Where the agent begins."""
    return Machine(tmp_path / "here")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Machine:
    """Another machine, which has never seen the agent."""
    return Machine(tmp_path / "elsewhere")


@pytest.mark.parametrize(("file", "source"), AGENTS)
@pytest.mark.timeout(180)
def test_three_calls_in_flight_are_answered_elsewhere_in_another_order(
    here: Machine, elsewhere: Machine, tmp_path: Path, file: str, source: str
) -> None:
    """
    Inside nested async functions, with a generator half-way and a closure over a map: the result is that of
    an agent that was never interrupted.
    """
    agent = tmp_path / file
    agent.write_text(source, encoding="utf-8")
    plain = json.loads(here.runner("run", agent, "say", "--json"))["result"]
    assert plain["lengths"] == [len(f"(scripted) You said: say {what}") for what in ("one", "three", "five")]

    here.runner("run", agent, "say", "--as", "waiting", "--ask", "llm", code=6)
    here.runner("snapshot", "waiting", "-o", tmp_path / "waiting.snap")
    elsewhere.runner("build", agent, "-o", tmp_path / "agent.wasm")
    restored = ("restore", tmp_path / "waiting.snap", "--as", "moved", "--agent", agent, "--ask", "llm")
    elsewhere.runner(*restored, code=6)
    for call in ("3", "1"):
        elsewhere.runner("approve", "moved", call)
        elsewhere.runner("resume", "moved", code=6)
    elsewhere.runner("approve", "moved", "2")
    assert json.loads(elsewhere.runner("resume", "moved", "--json"))["result"] == plain
    elsewhere.runner("verify", "moved")


@pytest.mark.parametrize(("file", "source"), AGENTS)
@pytest.mark.timeout(180)
def test_a_life_in_a_journal_is_done_again_to_the_same_memory(
    here: Machine, tmp_path: Path, file: str, source: str
) -> None:
    """
    Also on another machine, from the exported journal and the agent's file.
    """
    agent = tmp_path / file
    agent.write_text(source, encoding="utf-8")
    here.runner("run", agent, "first", "--as", "kept")
    here.runner("send", "kept", "second")
    facts = json.loads(here.runner("verify", "kept", "--json"))["result"]
    here.runner("journal", "kept", "-o", tmp_path / "kept.journal")
    again = json.loads(here.runner("verify", tmp_path / "kept.journal", "--json"))["result"]
    assert again["memory_digest"] == facts["memory_digest"]
