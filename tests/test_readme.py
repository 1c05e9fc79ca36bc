"""
Every command in the README does what the README says.

The two commands of the set-up are run by `.ci/run`; here are the picture and all others.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.wiring.host import Host

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent

_INLINE = re.compile(r"`(runner [^`]+)`")
_PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
_NEEDS_COMPILER = re.compile("notes|sequential")
_NEEDS_ENGINE = re.compile(r"agent\.js|assistant|weather|researcher|interviewer|first-agent|my-agent")
_EXPECTED_EXIT = {"runner run guests/hostile_spinner": 4}


def _picture() -> list[tuple[str, str]]:
    """
    The commands of the console blocks, each with what follows it.
    """
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    parts = re.split(r"^\$ (.*)\n", "".join(blocks), flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _inline() -> list[str]:
    found = dict.fromkeys(_INLINE.findall(README))
    return [
        command for command in found if not _PLACEHOLDER.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
    ]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory that looks like a checkout, to be written into."""
    shutil.copytree(ROOT / "guests", tmp_path / "guests", ignore=shutil.ignore_patterns("build"))
    (source,) = re.findall(r"```js\n(.*?)```", README, re.DOTALL)
    (tmp_path / "agent.js").write_text(source, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where these commands keep compiled code."""
    return Host(tmp_path_factory.mktemp("readme") / "cache").cache.root


def _run(command: str, desk: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    return subprocess.run(
        [BIN / words[0], *words[1:]],
        cwd=desk,
        env={
            **os.environ,
            "RUNNER_CACHE": str(cache),
            "XDG_STATE_HOME": str(desk / "home"),
            "NO_COLOR": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_picture_is_what_a_terminal_shows(desk: Path, cache: Path):
    """In order, in one directory: stdout, and the errors; notes on stderr are left out of the picture."""
    for command, shown in _picture():
        done = _run(command, desk, cache)
        errors = done.stderr if done.stderr.startswith("Error:") else ""
        assert done.stdout + errors == shown, command


def test_commands_in_the_text_work_as_they_stand_and_in_their_order(desk: Path, cache: Path):
    """Copied and pasted, once the picture has been painted: they speak of what is in it."""
    for command, _ in _picture():
        _run(command, desk, cache)
    for command in _inline():
        if not _NEEDS_COMPILER.search(command) and not _NEEDS_ENGINE.search(command):
            done = _run(command, desk, cache)
            assert done.returncode == _EXPECTED_EXIT.get(command, 0), (command, done.stderr)


@pytest.mark.c
def test_commands_that_need_a_compiler_work_as_they_stand(desk: Path, cache: Path):
    """With the extra installed."""
    for command in filter(_NEEDS_COMPILER.search, _inline()):
        done = _run(command, desk, cache)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.js
@pytest.mark.python
@pytest.mark.timeout(240)
def test_commands_that_need_an_engine_work_as_they_stand(desk: Path, cache: Path):
    """In order: an agent is begun before it is run."""
    for command in filter(_NEEDS_ENGINE.search, _inline()):
        done = _run(command, desk, cache)
        assert done.returncode == 0, (command, done.stderr)


def test_the_text_has_commands_to_run():
    """An expression that finds nothing would make the tests above pass."""
    assert len(_picture()) == 17
    assert len(_inline()) >= 7
