"""
The two streams of a command.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pytest

from runner.cli.console import Console, Display
from runner.errors import EffectError, UsageError

NOON = datetime(2026, 1, 2, 12, 0, 0, 1000, tzinfo=UTC)


class Terminal(io.BytesIO):
    """
    A stream of bytes that says it is a terminal.
    """

    def isatty(self) -> bool:
        """
        Yes.
        """
        return True


def terminal_text() -> TextIO:
    """
    A stream of text that says it is a terminal.
    """
    return io.TextIOWrapper(Terminal(), encoding="utf-8", write_through=True)


def console_on(stdout: Any, stderr: Any, **display: Any) -> Console:
    """
    A console on these streams, at noon.
    """
    return Console(Display(**display), stdout=stdout, stderr=stderr, now=lambda: NOON)


def logged(*lines: tuple[Any, ...], **display: Any) -> str:
    """
    What stderr gets of the log lines.
    """
    stderr = io.StringIO()
    console = console_on(io.BytesIO(), stderr, **display)
    for line in lines:
        console.log(*line)
    return stderr.getvalue()


@pytest.mark.parametrize(
    ("value", "piped", "shown"),
    [
        ("hi", b"hi\n", b"hi\n"),
        ("hi\n", b"hi\n\n", b"hi\n\n"),
        ("\x1b[2Jé", b"\x1b[2J\xc3\xa9\n", b"\\x1b[2J\xc3\xa9\n"),
        (None, b"null\n", b"null\n"),
        (b"\x00", b'{"$bytes": "AA=="}\n', b'{\n  "$bytes": "AA=="\n}\n'),
        (["\x1b"], b'["\\u001b"]\n', b'[\n  "\\u001b"\n]\n'),
    ],
)
def test_a_pipe_gets_the_result_exactly_and_a_terminal_gets_it_safely(
    value: object, piped: bytes, shown: bytes
) -> None:
    """
    Text raw and a newline, anything else as JSON; on a terminal scrubbed and indented.
    """
    pipe, terminal = io.BytesIO(), Terminal()
    console_on(pipe, io.StringIO()).result(value)
    console_on(terminal, io.StringIO()).result(value)
    assert pipe.getvalue() == piped
    assert terminal.getvalue() == shown


def test_a_file_gets_the_result_exactly(tmp_path: Path) -> None:
    """
    Also when stdout is a terminal.
    """
    terminal = Terminal()
    console = console_on(terminal, io.StringIO(), output=tmp_path / "out")
    console.prepare()
    console.result("\x1b[2J")
    assert (tmp_path / "out").read_bytes() == b"\x1b[2J\n"
    assert terminal.getvalue() == b""


@pytest.mark.parametrize("name", ["", "missing/out"])
def test_a_place_that_takes_no_file_is_refused_beforehand(tmp_path: Path, name: str) -> None:
    """
    An agent is not run for a result that can't be kept.
    """
    with pytest.raises(UsageError) as refusal:
        console_on(io.BytesIO(), io.StringIO(), output=tmp_path / name).prepare()
    assert refusal.value.message == f"can't write {str(tmp_path / name)!r}"


class Full(io.BytesIO):
    """
    A stream on a full disk.
    """

    def flush(self) -> None:
        """
        Fails.
        """
        raise OSError(28, "No space left on device")


class Broken(io.BytesIO):
    """
    A stream that nobody reads any more.
    """

    def flush(self) -> None:
        """
        Fails.
        """
        raise BrokenPipeError(32, "Broken pipe")


def test_a_full_disk_is_an_error_and_a_reader_that_left_is_not(capfd: Any) -> None:
    """
    The first loses a result that somebody wants.
    """
    del capfd  # keeps the real stdout away from the redirection
    console_on(Broken(), io.StringIO()).text("hi")
    with pytest.raises(EffectError, match=r"^can't write the result: No space left on device$"):
        console_on(Full(), io.StringIO()).text("hi")


def test_log_lines_are_one_line_each() -> None:
    """
    Nobody forges a second one, nor moves the cursor.
    """
    assert logged(
        (1, "one\nrunner: forged\x1b[2J", None),
        (2, "careful", {"key\n": "\x9b"}),
        (3, "bad", {}),
        (99, "worse", None),
        (-5, "hidden", None),
    ) == (
        "agent: one\\nrunner: forged\\x1b[2J\n"
        'agent warning: careful {"key\\n": "\\u009b"}\n'
        "agent error: bad\n"
        "agent error: worse\n"
    )


@pytest.mark.parametrize(
    ("verbosity", "seen"),
    [(-1, "d"), (0, "bcd"), (1, "abcd"), (2, "abcd")],
)
def test_verbosity_decides_which_levels_are_seen(verbosity: int, seen: str) -> None:
    """
    `-q` errors only, `-v` debug too.
    """
    text = logged(*((level, name, None) for level, name in enumerate("abcd")), verbosity=verbosity)
    assert "".join(line[-1] for line in text.splitlines()) == seen


def test_json_logs_are_one_object_each() -> None:
    """
    With a time, a level, and who speaks; the agent's fields can't pass for ours.
    """
    stderr = io.StringIO()
    console = console_on(io.BytesIO(), stderr, log_format="json")
    console.log(1, "hi\n", {"source": "runner"})
    console.note("done", hint="go on")
    console.warn("careful")
    console.error(["Error: no"], {"kind": "usage", "message": "no"})
    at = "2026-01-02T12:00:00.001Z"
    assert [json.loads(line) for line in stderr.getvalue().splitlines()] == [
        {"time": at, "level": "info", "source": "agent", "message": "hi\n", "fields": {"source": "runner"}},
        {"time": at, "level": "info", "source": "runner", "message": "done", "hint": "go on"},
        {"time": at, "level": "warning", "source": "runner", "message": "careful"},
        {
            "time": at,
            "level": "error",
            "source": "runner",
            "message": "no",
            "error": {"kind": "usage", "message": "no"},
        },
    ]


def test_quiet_hides_notes_and_no_warning() -> None:
    """
    A warning changes what the result means.
    """
    stderr = io.StringIO()
    console = console_on(io.BytesIO(), stderr, verbosity=-1)
    console.note("nice to know")
    console.warn("careful", hint="look\nhere")
    assert stderr.getvalue() == "runner warning: careful\n  hint: look\\nhere\n"


@pytest.mark.parametrize(
    ("color", "environment", "colored"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {}, False),
    ],
)
def test_colour_on_a_terminal_heeds_flag_then_environment(
    color: str, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An explicit word wins over NO_COLOR.
    """
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stderr = terminal_text()
    console_on(io.BytesIO(), stderr, color=color).error(["Error: no", "  hint: yes"], {})
    shown = stderr.buffer.getvalue()  # type: ignore[attr-defined]
    plain = b"Error: no\n  hint: yes\n"
    assert shown == (b"\x1b[31mError:\x1b[0m no\n\x1b[36m  hint:\x1b[0m yes\n" if colored else plain)


def test_a_pipe_is_not_coloured_unless_told_to() -> None:
    """
    `auto` asks the stream.
    """
    assert logged((2, "x", None), color="auto") == "agent warning: x\n"
    assert logged((2, "x", None), color="always") == "\x1b[33magent warning:\x1b[0m x\n"


def test_a_log_that_nobody_takes_does_not_stop_the_work() -> None:
    """
    Nor do two missing streams.
    """

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(len(text))

    console = console_on(io.BytesIO(), Gone())
    console.note("one")
    console.note("two")
