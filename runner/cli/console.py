"""
The two streams of a command: stdout carries the result and nothing else, stderr all the rest.

What an agent returned goes to a file or a pipe exactly as it is, and to a terminal scrubbed. Log lines
are always one line each, scrubbed: nobody may forge a second one.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO

from runner.cli import jsonform
from runner.cli.parameters import writable
from runner.cli.scrub import scrub, scrub_line
from runner.errors import EffectError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.codec import Value

Color = Literal["auto", "always", "never"]
LogFormat = Literal["text", "json"]

LEVELS: Final = ("debug", "info", "warning", "error")
"""
Names of the levels of `agent.log`, by number.
"""

_INFO, _WARNING, _ERROR = 1, 2, 3
_LEAST_LEVEL: Final = {-1: _ERROR, 0: _INFO}
_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "yellow": 33, "cyan": 36}
_LEVEL_COLORS: Final = {"warning": "yellow", "error": "red", "debug": "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """
    How a command shows what it has to say.

    Attributes:
        as_json: One JSON document in place of the bare result.
        output: File that takes the result in place of stdout.
        verbosity: 0 shows agents' logs from level info, 1 all of them and a summary, 2 tracebacks too;
            -1 only errors.
        log_format: Lines for people, or JSON objects.
        color: Whether to colour stderr; `auto` asks the terminal and `NO_COLOR`.
    """

    as_json: bool = False
    output: Path | None = None
    verbosity: int = 0
    log_format: LogFormat = "text"
    color: Color = "auto"


class Console:
    """
    Writes the result and everything beside it.

    Args:
        display: How to show things.
        stdout: Takes the result; the process's own when absent.
        stderr: Takes the rest; the process's own when absent.
        now: The time to stamp on JSON log lines.
    """

    def __init__(
        self,
        display: Display,
        *,
        stdout: BinaryIO | None = None,
        stderr: TextIO | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.display = display
        self._stdout = stdout or (sys.stdout.buffer if sys.stdout else None)
        self._stderr = stderr or sys.stderr
        self._now = now
        # Why a result could not be written: a document about that can't be written either.
        self._lost: str | None = None
        self._colored = _is_colored(display.color, self._stderr)

    @property
    def writes_terminal(self) -> bool:
        """
        Whether the result goes to a terminal, and so to a person.
        """
        return self.display.output is None and self._stdout is not None and self._stdout.isatty()

    def prepare(self) -> None:
        """
        Find out whether the result can be written, while nothing has been started.

        Raises:
            UsageError: If `--output` names a place that takes no file.
        """
        if self.display.output is not None:
            writable(self.display.output, "--output")

    def result(self, value: Value) -> None:
        """
        Write an agent's result: text as it is and a newline, anything else as JSON.
        """
        if isinstance(value, str):
            self.text(scrub(value) if self.writes_terminal else value)
        else:
            self.document(value)

    def document(self, value: Any) -> None:
        """
        Write one JSON document: indented for a person, one line for a program.
        """
        self.text(jsonform.dumps(value, indent=2 if self.writes_terminal else None))

    def text(self, text: str) -> None:
        """
        Write text and a newline where the result goes.

        A reader that went away is no failure: what was to be done is done.

        Raises:
            EffectError: If the text can't be written.
        """
        if self._lost is not None:
            raise EffectError(self._lost)
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        try:
            if self.display.output is not None:
                self.display.output.write_bytes(data)
            elif self._stdout is not None:
                self._stdout.write(data)
                self._stdout.flush()
        except BrokenPipeError:
            discard_stdout()
        except OSError as error:
            discard_stdout()
            self._lost = f"can't write the result: {error.strerror}"
            raise EffectError(self._lost) from error

    def log(self, level: int, text: str, fields: dict[str, Any] | None = None) -> None:
        """
        Show one log line of the agent, if its level is asked for.
        """
        level = min(max(level, 0), _ERROR)
        if level < _LEAST_LEVEL.get(self.display.verbosity, 0):
            return
        tail = f" {jsonform.dumps(fields)}" if fields else ""
        self._line("agent", level, text, {"fields": fields} if fields else {}, tail)

    def note(self, text: str, *, hint: str | None = None) -> None:
        """
        Say something useful that nobody needs; `-q` hides it.
        """
        if self.display.verbosity >= 0:
            self._say(_INFO, text, hint)

    def warn(self, text: str, *, hint: str | None = None) -> None:
        """
        Say something that changes what the result means; nothing hides it.
        """
        self._say(_WARNING, text, hint)

    def piece(self, text: str) -> None:
        """
        Write a part of a line where the result goes, already safe to show, at once.
        """
        if self._stdout is None:
            return
        try:
            self._stdout.write(text.encode("utf-8", "backslashreplace"))
            self._stdout.flush()
        except BrokenPipeError:
            discard_stdout()
        except OSError as error:
            msg = f"can't write the result: {error.strerror}"
            raise EffectError(msg) from error

    def read_line(self, prompt: str) -> str | None:
        """
        What a person types next, without its end; `None` at the end of input. The prompt is for terminals.
        """
        if self.can_ask:
            self._write(prompt)
        line = sys.stdin.readline() if sys.stdin else ""
        return line.rstrip("\n") if line else None

    @property
    def can_ask(self) -> bool:
        """
        Whether a person sits at both ends: they see stderr and can type.
        """
        ends = (sys.stdin, self._stderr)
        return all(end is not None and end.isatty() for end in ends)

    def ask(self, text: str, question: str) -> bool | None:
        """
        Show `text`, already safe to show, and ask; `None` when nobody answers.
        """
        self._write(f"{text}\n{question} [y/N] ")
        answer = sys.stdin.readline()
        if not answer:
            self._write("\n")
            return None
        return answer.strip().lower() in ("y", "yes")

    def error(self, lines: list[str], record: dict[str, Any]) -> None:
        """
        Say what failed: `lines` for people, already safe to show, or `record` when logs are JSON.
        """
        if self.display.log_format == "json":
            self._line("runner", _ERROR, record["message"], {"error": record})
        else:
            self._write("".join(f"{self._paint_label(line)}\n" for line in lines))

    def _say(self, level: int, text: str, hint: str | None) -> None:
        tail = f"\n{self._paint_label(f'  hint: {scrub_line(hint)}')}" if hint else ""
        self._line("runner", level, text, {"hint": hint} if hint else {}, tail)

    def _line(self, source: str, level: int, text: str, extra: dict[str, Any], tail: str = "") -> None:
        name = LEVELS[level]
        if self.display.log_format == "json":
            at = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            record = {"time": at, "level": name, "source": source, "message": text, **extra}
            self._write(f"{jsonform.dumps(record)}\n")
            return
        label = f"{source}:" if level == _INFO else f"{source} {name}:"
        self._write(f"{self._paint(label, _LEVEL_COLORS.get(name, 'bold'))} {scrub_line(text)}{tail}\n")

    def _paint_label(self, line: str) -> str:
        """
        Colour `Error:`, `rule:` and `hint:` at the start of a line.
        """
        for label, color in (("Error:", "red"), ("  rule:", "bold"), ("  hint:", "cyan")):
            if line.startswith(label):
                return self._paint(label, color) + line.removeprefix(label)
        return line

    def _paint(self, text: str, color: str) -> str:
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self._colored else text

    def _write(self, text: str) -> None:
        """
        One write for one line, so that lines of several threads don't mix.
        """
        if self._stderr is None:
            return
        try:
            self._stderr.write(text)
            self._stderr.flush()
        except OSError:
            # Nobody reads the log, or its disk is full; the result is what counts.
            self._stderr = None


def discard_stdout() -> None:
    """
    Send what is still buffered for stdout nowhere, so that leaving the interpreter can't fail on it.
    """
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _is_colored(color: Color, stream: TextIO | None) -> bool:
    if color != "auto" or stream is None:
        return color == "always"
    # https://no-color.org: set and not empty, whatever it says.
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
