"""
What went wrong, as an exit code, as three lines for people, and as data for programs.

An error that nobody foresaw is a bug of ours and says so; it never looks like the agent's failure.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from runner.cli.scrub import scrub, scrub_line
from runner.errors import GuestReturnedError, InternalError, Interrupted, RunnerError, UsageError

if TYPE_CHECKING:
    from runner.cli.signals import Termination

TERMINATED: Final = 143

EXIT_CODES: Final[dict[int, str]] = {
    0: "done",
    1: "the agent returned an error",
    2: "wrong arguments or configuration; nothing was started",
    3: "the agent needs what was not granted",
    4: "a limit was met",
    5: "the agent trapped or broke the ABI",
    6: "not failed: a person has to rule on a call first",
    7: "an agent, a snapshot or a source is not acceptable",
    8: "a provider, or a file to write, failed",
    9: "a replay differs from its record",
    70: "a bug of runner",
    130: "interrupted (SIGINT)",
    TERMINATED: "terminated (SIGTERM)",
}

_MAX_MESSAGE_CHARS: Final = 1000
_REPORT_HINT: Final = "this is a bug of runner, please report it"
_TRACEBACK_HINT: Final = "this is a bug of runner, please report it with the traceback that -vv shows"
_DETAILS, _TRACEBACK = 1, 2


class Failure(NamedTuple):
    """
    Why a command failed.

    Attributes:
        error: What to report.
        exit_code: How the process ends.
        cause: What was raised.
    """

    error: RunnerError
    exit_code: int
    cause: BaseException

    def to_wire(self) -> dict[str, Any]:
        """
        The `error` of a JSON document.
        """
        return self.error.to_wire()


def classify(cause: BaseException, termination: Termination) -> Failure:
    """
    The failure that an exception means.
    """
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
    error = _as_error(cause)
    if isinstance(error, Interrupted) and termination.requested:
        error.details["signal"] = "SIGTERM"
        return Failure(error, TERMINATED, cause)
    return Failure(error, error.exit_code, cause)


def lines_of(failure: Failure, verbosity: int) -> list[str]:
    """
    The failure for people, safe to show: `Error:`, `rule:`, `hint:`; more only when asked for.

    What a compiler said comes before it, so that the last lines still name the error.
    """
    error = failure.error
    message, hint, rule = error.message, error.hint, error.details.get("rule")
    lines: list[str] = []
    if error.kind == "artifact" and "\n" in message:
        message, output = message.split("\n", 1)
        lines += scrub(output).split("\n")
    if isinstance(error, GuestReturnedError):
        message = f"the agent failed: {message}"
    if isinstance(error, InternalError) and verbosity >= _TRACEBACK:
        hint = _REPORT_HINT
    lines.append(f"Error: {scrub_line(message, _MAX_MESSAGE_CHARS)}")
    if rule:
        lines.append(f"  rule: {scrub_line(str(rule), _MAX_MESSAGE_CHARS)}")
    if hint:
        lines.append(f"  hint: {scrub_line(hint, _MAX_MESSAGE_CHARS)}")
    if verbosity >= _DETAILS and error.details:
        lines += [f"  {name}: {scrub_line(str(value))}" for name, value in sorted(error.details.items())]
    if verbosity >= _TRACEBACK:
        lines += scrub("".join(traceback.format_exception(failure.cause))).rstrip("\n").split("\n")
    return lines


def usage_lines(error: click.ClickException) -> list[str]:
    """
    What the parser of the command line refused, for people.
    """
    nearest: list[str] = getattr(error, "possibilities", None) or []
    message = error.message if nearest else error.format_message()
    lines = [f"Error: {scrub_line(message, _MAX_MESSAGE_CHARS).removesuffix('.')}"]
    if nearest:
        lines.append(f"  hint: did you mean {' or '.join(nearest)}?")
    elif isinstance(error, click.UsageError) and error.ctx is not None:
        lines.append(f"  hint: see {error.ctx.command_path} --help")
    return lines


def _as_error(cause: BaseException) -> RunnerError:
    if isinstance(cause, InternalError):
        return InternalError(cause.message, hint=_TRACEBACK_HINT, **cause.details)
    if isinstance(cause, RunnerError):
        return cause
    if isinstance(cause, KeyboardInterrupt):
        return Interrupted()
    if isinstance(cause, OSError) and isinstance(cause.filename, str | bytes):
        # A file that the command line or a manifest names; the operator can mend it.
        return UsageError(f"{_text(cause.filename)}: {cause.strerror}")
    return InternalError(f"internal error: {type(cause).__name__}: {cause}", hint=_TRACEBACK_HINT)


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")
