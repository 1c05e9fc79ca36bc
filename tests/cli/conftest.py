"""
What the tests of the command line share: a stand-in for the wiring, and the command in this process.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.cli.app import run_command_line
from runner.cli.shell import Shell
from runner.wiring import options as choices

LIVES = frozenset({
    "run_named", "send", "resume", "restore_named", "list_instances", "inspect_named", "snapshot_named",
    "fork_named", "stop_named", "remove_named", "journal_rows", "export_journal", "replay", "verify",
    "approvals", "rule_on", "resolve_call", "collect_garbage", "upgrade_named", "list_providers",
    "list_models", "list_keys", "set_key", "remove_key", "list_tools",
})  # fmt: skip
"""
What the verbs of named instances ask of the wiring.
"""


class Outcome(NamedTuple):
    """
    How a command ended.
    """

    code: int
    stdout: str
    stderr: str


def make_report(**changes: Any) -> choices.Report:
    """
    A report like that of a real run.
    """
    facts: dict[str, Any] = {
        "result": "hi",
        "instance": "i-1",
        "agent": "hello",
        "snapshot": None,
        "usage": {"calls": 1, "input_tokens": None, "output_tokens": None},
        "limits": {"fuel": 2_000_000_000},
        "fuel": 1234,
        "timing_ms": {"total": 12.5},
        "memory_digest": "sha256:" + "0" * 64,
    }
    return choices.Report(**facts | changes)


@dataclass
class FakeWiring:
    """
    Answers like `runner.wiring`, and remembers what it was asked.

    Attributes:
        answer: Makes what every function returns; may raise.
        asked: The functions called, with their arguments.
    """

    answer: Callable[[], Any] = make_report
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def Options(self) -> type[choices.Options]:  # noqa: N802 - a class, as in the real one
        """
        As the real one.
        """
        return choices.Options

    def reports(self, **changes: Any) -> None:
        """
        Answer with a report that has these changes.
        """
        self.answer = lambda: make_report(**changes)

    def raises(self, error: BaseException) -> None:
        """
        Answer with an error.
        """

        def fail() -> Any:
            raise error

        self.answer = fail

    def run_agent(self, path: Path, value: Any, options: choices.Options) -> Any:
        """
        As the real one.
        """
        self.asked.append(("run_agent", path, value, options))
        return self.answer()

    def restore_snapshot(self, path: Path, value: Any, options: choices.Options, agent: Path | None) -> Any:
        """
        As the real one.
        """
        self.asked.append(("restore_snapshot", path, value, options, agent))
        return self.answer()

    def inspect_path(self, path: Path) -> Any:
        """
        As the real one.
        """
        self.asked.append(("inspect_path", path))
        return self.answer()

    def check_agent(self, path: Path, allow: Iterable[str], deny: Iterable[str]) -> Any:
        """
        As the real one.
        """
        self.asked.append(("check_agent", path, tuple(allow), tuple(deny)))
        return self.answer()

    def build_agent(self, folder: Path, out: Path | None, progress: Callable[[str], None]) -> Any:
        """
        As the real one; says one line of progress.
        """
        self.asked.append(("build_agent", folder, out))
        progress("compiling")
        return self.answer()

    def new_agent(self, folder: Path, lang: str) -> Any:
        """
        As the real one.
        """
        self.asked.append(("new_agent", folder, lang))
        return self.answer()

    def __getattr__(self, name: str) -> Any:
        """
        As the real one, for named instances: remembers positional arguments, then those by keyword.
        """
        if name not in LIVES:
            raise AttributeError(name)

        def ask(*arguments: Any, **named: Any) -> Any:
            self.asked.append((name, *arguments, named))
            return self.answer()

        return ask

    def is_instance(self, name: str, *, state: Path | None = None) -> bool:
        """
        As the real one: `tally` is.
        """
        del state
        return name == "tally"

    def doctor(self) -> Any:
        """
        As the real one.
        """
        self.asked.append(("doctor",))
        return self.answer()


Command = Callable[..., Outcome]


@pytest.fixture
def wiring() -> FakeWiring:
    """
    The stand-in that `command` uses.
    """
    return FakeWiring()


@pytest.fixture
def command(wiring: FakeWiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Command:
    """
    Runs the command in this process and in an empty folder, with the stand-in for the wiring.

    Any argument that is called `agent` names a folder that exists.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "agent").mkdir()
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, stdin: bytes | None = None) -> Outcome:
        source = io.TextIOWrapper(io.BytesIO(stdin)) if stdin is not None else None
        monkeypatch.setattr("sys.stdin", source)
        code = run_command_line(list(arguments), Shell(wiring=lambda: wiring))
        out, err = capfdbinary.readouterr()
        return Outcome(code, out.decode("utf-8"), err.decode("utf-8"))

    return run
