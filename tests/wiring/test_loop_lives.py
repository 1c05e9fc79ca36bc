"""
The tool loop of named instances: killed, asked about, forked and frozen in the middle.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import ApprovalPending
from runner.tools.base import Tool
from runner.wiring import (
    Options,
    approvals,
    fork_named,
    restore_named,
    resume,
    rule_on,
    run_named,
    snapshot_named,
    usage_named,
    verify,
)
from tests.wiring.test_budgets import PROXY

ROOT = Path(__file__).parents[2]

OptionsFor = Callable[..., Options]

SCRIPT: dict[str, Any] = {
    "turns": [
        {
            "events": [
                {"tool_call": {"name": "look", "arguments": {"n": 0}}},
                {"tool_call": {"name": "send", "arguments": {"n": 1}}},
                {"tool_call": {"name": "look", "arguments": {"n": 2}}},
            ]
        },
        {"reply": "all done"},
    ]
}
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}], "tools": ["look", "send"]}


@pytest.fixture
def proxy(tmp_path: Path) -> Path:
    """An agent that asks what it is told to."""
    path = tmp_path / "proxy.wat"
    path.write_text(PROXY)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Two turns, three tools."""
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))
    return path


def tools(marks: list[str]) -> tuple[Tool, ...]:
    """Tools that leave marks."""

    def tool(name: str, effect: Any) -> Tool:
        async def work(arguments: Any, context: object) -> Any:
            del context
            marks.append(f"{name} {arguments['n']}")
            return f"{name} done"

        return Tool(
            name=name,
            description=name,
            input_schema={"type": "object"},
            check=lambda value: value,
            work=work,
            effect=effect,
        )

    return tool("look", "idempotent"), tool("send", "effectful")


@pytest.mark.parametrize(
    ("verdict", "sent"), [("allow", ["look 0", "send 1", "look 2"]), ("deny", ["look 0", "look 2"])]
)
def test_a_tool_inside_a_chat_waits_for_a_person_as_one_of_the_agents_own_does(
    proxy: Path, script: Path, options: OptionsFor, verdict: Any, sent: list[str]
):
    """The question is about the tool; the turn that asked for it is not paid for again."""
    marks: list[str] = []
    choices = options(allow=("llm", "tool"), script=script, own_tools=tools(marks))
    with pytest.raises(ApprovalPending):
        run_named(proxy, "rex", ASK, choices, ask=("tool:send",))
    [row] = approvals("rex", state=choices.state, cache=choices.cache)
    assert (row["call"], row["operation"], row["request"]) == (
        1,
        "tool.call inside llm.chat",
        {"name": "send", "arguments": {"n": 1}},
    )
    rule_on("rex", 1, verdict, state=choices.state, cache=choices.cache)
    report = resume("rex", options(script=script, own_tools=tools(marks)))
    assert (report.result["text"], report.usage["calls"], marks) == ("all done", 2, sent)
    verify("rex", state=choices.state, cache=choices.cache)
    assert usage_named("rex", state=choices.state)["total"]["calls"] == 2


def test_a_fork_in_the_middle_of_a_chat_asks_about_the_tool_itself(
    proxy: Path, script: Path, options: OptionsFor
):
    """What a person allowed is for the instance that asked; what was done before is done for both."""
    marks: list[str] = []
    choices = options(allow=("llm", "tool"), script=script, own_tools=tools(marks))
    with pytest.raises(ApprovalPending):
        run_named(proxy, "rex", ASK, choices, ask=("tool:send",))
    rule_on("rex", 1, "allow", state=choices.state, cache=choices.cache)
    fork_named("rex", "max", state=choices.state)
    with pytest.raises(ApprovalPending):
        resume("max", choices)
    assert resume("rex", choices).result["text"] == "all done"
    assert marks == ["look 0", "send 1", "look 2"]


@pytest.mark.slow
def test_killed_at_any_point_of_a_loop_a_process_pays_for_no_turn_twice_and_uses_no_tool_twice(
    proxy: Path, script: Path, options: OptionsFor, tmp_path: Path
):
    """By SIGKILL, before and after everything that is written and everything that happens."""
    choices = options()

    def live(number: int, dies_at: int) -> subprocess.CompletedProcess[bytes]:
        words = (
            proxy,
            tmp_path / f"state-{number}",
            choices.cache,
            tmp_path / f"ledger-{number}",
            script,
            dies_at,
        )
        return subprocess.run(
            [sys.executable, "-m", "tests.wiring.loop_child", *map(str, words)],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )

    number = 0
    while True:
        number += 1
        first = live(number, number)
        if first.returncode == 0:
            break
        assert first.returncode == -signal.SIGKILL, first.stderr.decode()
        second = live(number, 0)
        assert second.returncode == 0, (number, second.stderr.decode())
        told = json.loads(second.stdout)
        assert (told["result"]["text"], told["usage"]["calls"]) == ("all done", 2), number
        marks = (tmp_path / f"ledger-{number}").read_text().split("\n")
        assert marks.count("send 1") <= 1, number
        assert max(marks.count("look 0"), marks.count("look 2")) <= 2, number
    assert number > 20


@pytest.mark.parametrize("still_asks", [True, False])
def test_a_snapshot_in_the_middle_of_a_chat_takes_along_what_was_paid_and_done(
    proxy: Path, script: Path, options: OptionsFor, tmp_path: Path, still_asks: bool
):
    """Whoever goes on with it rules on the tool that was in question, and pays for the rest alone."""
    marks: list[str] = []
    choices = options(allow=("llm", "tool"), script=script, own_tools=tools(marks))
    with pytest.raises(ApprovalPending):
        run_named(proxy, "rex", ASK, choices, ask=("tool:send",))
    snapshot_named("rex", tmp_path / "rex.snap", state=choices.state, cache=choices.cache)
    ask = ("tool:send",) if still_asks else ()
    with pytest.raises(ApprovalPending):
        restore_named(tmp_path / "rex.snap", "max", None, choices, agent=proxy, ask=ask)
    [row] = approvals("max", state=choices.state, cache=choices.cache)
    assert row["request"] == {"name": "send", "arguments": {"n": 1}}
    rule_on("max", 1, "allow", state=choices.state, cache=choices.cache)
    report = resume("max", choices)
    assert (report.result["text"], report.usage["calls"]) == ("all done", 2)
    assert marks == ["look 0", "send 1", "look 2"]
    verify("max", state=choices.state, cache=choices.cache)
