"""
Agents in Python, from their files to an answer, and what can be wrong with the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.errors import AgentInvalid, LimitExceeded, RunnerError, SourceRejected
from runner.wiring import run_agent

pytestmark = pytest.mark.python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An agent's folder, empty but for its manifest."""
    path = tmp_path / "agent"
    path.mkdir()
    (path / "agent.toml").write_text('name = "tried"\nlanguage = "python"\nentry = "main.py"\n')
    return path


def write(folder: Path, files: dict[str, str]) -> Path:
    """
    Modules of an agent by their file.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, options: Any, value: Any = None, **changes: Any) -> Any:
    """
    What the agent answers.
    """
    return run_agent(folder, value, options(**changes)).result


def test_modules_packages_and_circles_are_found(folder: Path, options: Any) -> None:
    """
    By absolute and relative names, from packages with and without a file of their own.
    """
    write(
        folder,
        {
            "main.py": "from lib import words\nfrom lib.deep.more import twice\nimport plain.thing\n"
            "def run(n):\n    return [words.greet(n), twice(n), plain.thing.NAME]\n",
            "lib/__init__.py": "KIND = 'lib'\n",
            "lib/words.py": "from . import KIND\nfrom .deep import more\n"
            "def greet(n):\n    return KIND * n\n",
            "lib/deep/__init__.py": "",
            "lib/deep/more.py": "from .. import words\ndef twice(n):\n    return 2 * n\n",
            "plain/thing.py": "NAME = 'thing'\n",
        },
    )
    assert run(folder, options, 2) == ["liblib", 4, "thing"]


def test_an_entry_may_have_the_hosts_name(tmp_path: Path, options: Any) -> None:
    """
    `agent.py` imports `agent`, and means the host.
    """
    (tmp_path / "agent.py").write_text(
        "from agent import llm\n\nasync def run(x):\n    return [x, bool(llm)]\n"
    )
    assert run(tmp_path / "agent.py", options, "x") == ["x", True]


def test_a_failure_says_where_in_the_authors_file(folder: Path, options: Any) -> None:
    """
    The author's lines, also after syntax that the engine has not.
    """
    text = (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Point:\n    x: int = 0\n\n\n"
        "def run(value):\n    match value:\n        case {'x': x}:\n            return Point(x).y\n"
    )
    write(folder, {"main.py": text})
    with pytest.raises(RunnerError, match="AttributeError") as caught:
        run(folder, options, {"x": 1})
    data = caught.value.details["data"]
    assert (data["name"], data["file"], data["line"]) == ("AttributeError", "main.py", 12)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("def run(x):\n    return (\n", 2, "was never closed"),
        ("x = 1\n", None, "it has no function 'run'"),
        ("import json\nimport os\n", 2, "module 'os' is not available to an agent"),
        ("from .. import outside\n", 1, "leads outside the agent's folder"),
        ("import lib.nowhere\n", 1, "module 'lib.nowhere' is not there"),
        ("def run(x): pass\n\nraise ValueError('at load')\n", 3, "ValueError: at load"),
        ("from agent import snapshot, log\nimport random\n1 / 0\n", 3, "ZeroDivisionError"),
    ],
)
def test_a_module_that_is_wrong_is_refused_with_its_place(
    folder: Path, options: Any, text: str, line: int | None, problem: str
) -> None:
    """
    A file that is not acceptable: exit code 7, and nothing is left where the agent lies.
    """
    write(folder, {"main.py": text, "lib/__init__.py": ""})
    with pytest.raises(SourceRejected) as caught:
        run(folder, options)
    error = caught.value
    assert problem in error.message
    assert (error.details["file"], error.details.get("line"), error.exit_code) == ("main.py", line, 7)
    assert sorted(path.name for path in folder.iterdir()) == ["agent.toml", "lib", "main.py"]


def test_an_agent_that_never_finishes_loading_is_ended(folder: Path, options: Any) -> None:
    """
    With its file, and the line where it was or the limit that it met.
    """
    write(folder, {"main.py": "def run(x): pass\n\nwhile True:\n    pass\n"})
    with pytest.raises((SourceRejected, LimitExceeded), match=r"main\.py.*does not finish loading"):
        run(folder, options)


def test_a_link_that_leads_out_of_the_folder_is_refused(folder: Path, options: Any, tmp_path: Path) -> None:
    """
    Whatever it is called.
    """
    (tmp_path / "secret.py").write_text("KEY = 1\n")
    write(folder, {"main.py": "import secret\n\ndef run(x):\n    return secret.KEY\n"})
    (folder / "secret.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(AgentInvalid, match="leads outside the agent's folder"):
        run(folder, options)
