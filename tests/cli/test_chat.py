"""
`runner chat` and `runner usage`.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = [sys.executable, "-m", "runner.cli"]


class Terminal:
    """
    A person at a terminal with one command in it.
    """

    def __init__(self, words: tuple[str, ...], environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = ""
        self.child = subprocess.Popen(
            [*COMMAND, *words],
            cwd=ROOT,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> str:
        """All that was shown until something is there; what comes after it is left."""
        while text not in self.shown:
            try:
                data = os.read(self._ours, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(self.shown)
            self.shown += data.decode().replace("\r\n", "\n")
        before, found, self.shown = self.shown.partition(text)
        return before + found

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.kill(self.child.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the command."""
        try:
            while data := os.read(self._ours, 4096):
                self.shown += data.decode()
        except OSError:
            pass
        return self.child.wait(30)

    def close(self) -> None:
        """Leave nothing behind."""
        self.child.kill()
        self.child.wait()
        os.close(self._ours)


Sit = Callable[..., Terminal]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Directories of the test's own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "RUNNER_STATE": str(tmp_path / "state"),
        "RUNNER_CACHE": str(tmp_path / "cache"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def sit(environment: dict[str, str]) -> Iterator[Sit]:
    """Someone who sits down before a command."""
    terminals: list[Terminal] = []

    def start(*words: str) -> Terminal:
        terminals.append(Terminal(words, environment))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def script(tmp_path: Path, **answer: object) -> str:
    """A script of one answer."""
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": [answer]}))
    return str(path)


def test_a_conversation_goes_on_where_it_was_left(sit: Sit):
    """An answer is shown once, with what has been used; the end of input leaves."""
    first = sit("chat", "guests/hello", "--as", "clerk")
    first.wait_for("> ")
    first.type("hi there\n")
    shown = first.wait_for("> ")
    assert shown.count("(scripted) You said: hi there\n") == 1
    assert "1 requests so far; tokens: 2 read, 5 written" in shown
    first.type("\x04")
    first.wait_for("go on with: runner chat clerk")
    assert first.end() == 0
    second = sit("chat", "clerk")
    second.wait_for("> ")
    second.type("again\n")
    assert "2 requests so far" in second.wait_for("> ")


def test_words_are_shown_at_once_and_ctrl_c_stops_the_model_and_then_leaves(sit: Sit, tmp_path: Path):
    """The first word is there though the second takes an hour."""
    events = [{"text": "good "}, {"text": "morning", "delay_ms": 3_600_000}]
    terminal = sit("chat", "guests/hello", "--as", "clerk", "--script", script(tmp_path, events=events))
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("good ")
    terminal.interrupt()
    terminal.wait_for("stopped; Ctrl-C again leaves")
    terminal.wait_for("> ")
    terminal.interrupt()
    terminal.wait_for("left clerk")
    assert terminal.end() == 0


def test_what_an_instance_was_made_with_is_no_matter_of_a_later_conversation(
    environment: dict[str, str],
):
    """Nor is an agent that is not there."""
    run = [*COMMAND, "run", "guests/hello", "hi", "--as", "clerk"]
    subprocess.run(run, cwd=ROOT, env=environment, check=True, capture_output=True)
    again = subprocess.run(
        [*COMMAND, "chat", "clerk", "--budget", "calls=3"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert again.returncode == 2
    assert b"clerk keeps what it was made with: --budget is for a new instance" in again.stderr


def test_usage_is_told_by_model_with_the_budget_that_it_counts_against(environment: dict[str, str]):
    """To a program as a document, to a person as a table."""
    run = [*COMMAND, "run", "guests/hello", "hi there", "--as", "clerk", "--budget", "tokens=9000,calls=5"]
    subprocess.run(run, cwd=ROOT, env=environment, check=True, capture_output=True)
    told = subprocess.run(
        [*COMMAND, "usage", "clerk", "--json"], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    result = json.loads(told.stdout)["result"]
    [row] = result["models"]
    assert (row["model"], row["calls"]) == ("scripted/default", 1)
    assert (row["input_tokens"], row["output_tokens"]) == (2, 5)
    assert result["budget"] == {"tokens": 9000, "calls": 5}
    assert result["prices"].split()[0] in ("runner", "genai-prices")
    assert (result["charged"]["tokens"], result["charged"]["calls"]) == (7, 1)
    shown = subprocess.run(
        [*COMMAND, "usage", "clerk"], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    assert b"scripted/default  1 " in shown.stdout
