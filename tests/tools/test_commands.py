"""
`run_command`: what reaches a program, and how it ends.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner.errors import UsageError
from runner.tools.base import ToolFailure
from runner.tools.commands import Commands
from runner.tools.registry import ToolRegistry
from runner.tools.rooted import Roots

SHELL = shutil.which("sh") or "/bin/sh"


def run(arguments: dict[str, Any], programs: list[str], *roots: Path) -> Any:
    """One call in a run of its own."""
    granted = Roots(roots)
    commands = Commands(programs, granted)

    async def main() -> Any:
        async with ToolRegistry([commands.tool()], [granted.source, commands.source]) as registry:
            return (await registry.call("run_command", arguments)).value

    return anyio.run(main)


def failure(*arguments: Any) -> tuple[str, str]:
    """How a call failed."""
    with pytest.raises(ToolFailure) as caught:
        run(*arguments)
    return caught.value.kind, caught.value.message


def has_ended(pid: int) -> bool:
    """Whether a process that was killed is gone; a signal takes its time."""
    give_up_s = time.monotonic() + 20
    while time.monotonic() < give_up_s:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if status.rpartition(")")[2].split()[0] == "Z":
            return True
    return False


def test_a_program_gets_its_words_as_they_are():
    """No shell reads them."""
    words = ["$HOME", "`id`", "a b", "*", ";", "'", '"', "$(id)"]
    answer = run({"command": ["printf", r"%s\n", *words]}, ["printf"])
    assert answer == {
        "exit": 0,
        "stdout": "\n".join(words) + "\n",
        "stderr": "",
        "truncated": False,
        "timed_out": False,
        "may_still_run": False,
    }


def test_a_program_that_is_not_granted_is_denied():
    """By the name that was granted, and by no other way to it."""
    for name in ("sh", SHELL, "/bin/echo", "../bin/echo", "", "echo;sh", "ECHO"):
        assert failure({"command": [name, "-c", "id"]}, ["echo"])[0] == "denied"
    assert run({"command": [SHELL, "-c", "exit 3"]}, [SHELL])["exit"] == 3


def test_nothing_of_the_environment_reaches_a_program(monkeypatch: pytest.MonkeyPatch):
    """No key, no proxy, no home."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD_X", "x")
    lines = run({"command": ["env"]}, ["env"])["stdout"].splitlines()
    assert sorted(line.partition("=")[0] for line in lines) == ["HOME", "LANG", "PATH", "TERM", "TMPDIR"]
    assert not any(os.environ.get("HOME", "/root") == line.partition("=")[2] for line in lines)


def test_a_program_begins_in_a_granted_directory(tmp_path: Path):
    """The first one, or the one that was asked for; nowhere else."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    assert run({"command": ["pwd"]}, ["pwd"], tmp_path)["stdout"] == f"{tmp_path}\n"
    answer = run({"command": ["pwd"], "directory": "sub"}, ["pwd"], tmp_path)
    assert answer["stdout"] == f"{tmp_path}/sub\n"
    for place in ("..", "/etc", "link", "sub/../../x"):
        assert failure({"command": ["pwd"], "directory": place}, ["pwd"], tmp_path)[0] == "denied"
    assert failure({"command": ["pwd"], "directory": "/etc"}, ["pwd"])[0] == "denied"


def test_without_a_granted_directory_it_begins_in_an_empty_one():
    """Which is gone afterwards."""
    answer = run({"command": [SHELL, "-c", "pwd; ls -A"]}, [SHELL])
    [place] = answer["stdout"].splitlines()
    assert not Path(place).exists()


def test_a_program_reads_what_it_was_given():
    """And then the end."""
    assert run({"command": ["cat"], "stdin": "größe"}, ["cat"])["stdout"] == "größe"
    assert run({"command": ["cat"]}, ["cat"])["stdout"] == ""
    # One that does not read is no failure.
    assert run({"command": ["true"], "stdin": "x" * 1_000_000}, ["true"])["exit"] == 0


def test_long_output_is_cut_with_a_mark_and_the_program_goes_on():
    """It ends by itself, and its end is told."""
    program = "import sys; sys.stdout.write('x' * 3_000_000); sys.exit(7)"
    answer = run({"command": [sys.executable, "-c", program]}, [sys.executable])
    assert (answer["exit"], answer["truncated"]) == (7, True)
    assert answer["stdout"] == "x" * 100_000 + "\n[truncated]"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes")
def test_a_program_that_takes_too_long_is_killed_with_all_that_it_started():
    """And the answer says so."""
    answer = run({"command": [SHELL, "-c", "sleep 60 & echo $! $$; wait"], "timeout_ms": 300}, [SHELL])
    assert (answer["exit"], answer["timed_out"]) == (None, True)
    assert all(has_ended(int(pid)) for pid in answer["stdout"].split())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes")
def test_what_a_program_leaves_behind_ends_with_it():
    """A child that goes on in the background is of its group."""
    answer = run({"command": [SHELL, "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]}, [SHELL])
    assert (answer["exit"], answer["may_still_run"]) == (0, False)
    assert has_ended(int(answer["stdout"]))


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("setsid"), reason="leaves its group")
def test_what_left_its_group_is_told_of_and_not_waited_for():
    """The answer does not claim that all has ended."""
    line = "setsid sh -c 'touch gone; exec sleep 5' & until test -e gone; do :; done"
    answer = run({"command": [SHELL, "-c", line]}, [SHELL])
    assert (answer["exit"], answer["may_still_run"]) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "invalid"), ({"command": []}, "invalid"), ({"command": "ls -l"}, "invalid"),
        ({"command": ["cat", "a\0b"]}, "invalid"), ({"command": ["cat"], "shell": True}, "invalid"),
        ({"command": ["cat"], "timeout_ms": 0}, "invalid"), ({"command": ["cat"], "env": {}}, "invalid"),
    ],
)  # fmt: skip
def test_what_is_no_command_is_refused(arguments: Any, kind: str):
    """A line of text is none."""
    assert failure(arguments, ["cat"])[0] == kind


@pytest.mark.parametrize("name", ["no-such-program", "./cat", "bin/cat", ""])
def test_a_program_that_is_not_there_is_no_grant(name: str):
    """Said before anything runs."""
    with pytest.raises(UsageError, match=r": there is no such program$"):
        Commands([name])
