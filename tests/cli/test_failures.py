"""
What went wrong, for people and for programs.
"""

from __future__ import annotations

import click
import pytest

from runner import errors
from runner.cli.failures import EXIT_CODES, Failure, classify, lines_of, usage_lines
from runner.cli.signals import Termination


def failure_of(cause: BaseException, *, terminated: bool = False) -> Failure:
    """
    The failure that an exception means.
    """
    termination = Termination()
    termination.requested = terminated
    return classify(cause, termination)


def shown(cause: BaseException, verbosity: int = 0) -> list[str]:
    """
    The lines that people see.
    """
    return lines_of(failure_of(cause), verbosity)


@pytest.mark.parametrize(
    ("cause", "lines"),
    [
        (
            errors.Denied("weather", "tool.call", "default deny", flag="--allow tool:web_search"),
            [
                "Error: agent weather needs tool.call, which is not granted",
                "  rule: default deny",
                "  hint: add --allow tool:web_search",
            ],
        ),
        (
            errors.FuelExhausted(1000),
            ["Error: limit fuel exceeded: 1000 of 1000", "  hint: raise it with --max-fuel"],
        ),
        (
            errors.ModuleRejected("import-unknown", "wasi.exit", "is not known", "remove it"),
            [
                "Error: module refused: wasi.exit: is not known",
                "  rule: import-unknown",
                "  hint: remove it",
            ],
        ),
        (errors.GuestReturnedError("no\nError: \x1b[2J"), ["Error: the agent failed: no\\nError: \\x1b[2J"]),
        (
            errors.BuildFailed("agents/a", "a.c:1: \x1b[31merror\n  here", hint="mend it"),
            ["a.c:1: \\x1b[31merror", "  here", "Error: agents/a: build failed", "  hint: mend it"],
        ),
        (
            KeyError("x"),
            [
                "Error: internal error: KeyError: 'x'",
                "  hint: this is a bug of runner, please report it with the traceback that -vv shows",
            ],
        ),
        (
            errors.InternalError("two truths"),
            [
                "Error: two truths",
                "  hint: this is a bug of runner, please report it with the traceback that -vv shows",
            ],
        ),
        (FileNotFoundError(2, "No such file or directory", "x\n.toml"), [
            "Error: x\\n.toml: No such file or directory",
        ]),
        (PermissionError(13, "Permission denied", b"\xff"), ["Error: \\xff: Permission denied"]),
        (KeyboardInterrupt(), ["Error: interrupted"]),
    ],
)  # fmt: skip
def test_people_get_what_which_rule_and_what_next(cause: BaseException, lines: list[str]) -> None:
    """
    Three lines at most beside a compiler's own words, safe to show.
    """
    assert shown(cause) == lines


@pytest.mark.parametrize(
    ("cause", "kind", "code"),
    [
        (errors.GuestReturnedError("no"), "guest", 1),
        (errors.UsageError("no"), "usage", 2),
        (errors.Denied("a", "llm.chat", "default deny"), "denied", 3),
        (errors.MemoryExceeded(2, 1), "limit", 4),
        (errors.GuestTrapped("unreachable"), "trap", 5),
        (errors.ProtocolViolation("stalled", "no reply"), "protocol", 5),
        (errors.SnapshotCorrupt("root"), "artifact", 7),
        (errors.ProviderError("p", "down"), "upstream", 8),
        (ValueError("no"), "internal", 70),
        (OSError(28, "No space left on device"), "internal", 70),
        (MemoryError(), "internal", 70),
        (OSError(2, "No such file", "x"), "usage", 2),
        (KeyboardInterrupt(), "interrupted", 130),
        (errors.Interrupted(), "interrupted", 130),
        (ExceptionGroup("", [ExceptionGroup("", [errors.Denied("a", "b", "c")])]), "denied", 3),
        (ExceptionGroup("", [KeyError(), KeyError()]), "internal", 70),
    ],
)
def test_every_failure_has_a_kind_and_an_exit_code(cause: BaseException, kind: str, code: int) -> None:
    """
    What nobody foresaw is our bug, and never looks like the agent's.
    """
    failure = failure_of(cause)
    assert (failure.error.kind, failure.exit_code) == (kind, code)


def test_a_termination_is_an_interruption_with_its_own_exit_code() -> None:
    """
    SIGTERM and Ctrl-C differ in nothing else.
    """
    failure = failure_of(errors.Interrupted(), terminated=True)
    assert failure.exit_code == 143
    assert failure.to_wire()["details"] == {"signal": "SIGTERM"}
    assert failure_of(errors.UsageError("no"), terminated=True).exit_code == 2


def test_details_and_traceback_are_there_for_who_asks() -> None:
    """
    `-v` gives the typed facts, `-vv` the traceback too, scrubbed.
    """

    def fail() -> None:
        raise errors.GuestTrapped("unreachable\x1b", ("f", "g"))

    with pytest.raises(errors.GuestTrapped) as caught:
        fail()
    details = ["  frames: ['f', 'g']", "  trap: unreachable\\x1b"]
    assert shown(caught.value, 1)[1:] == details
    lines = shown(caught.value, 2)
    assert lines[1:4] == [*details, "Traceback (most recent call last):"]
    assert lines[-1] == "runner.errors.GuestTrapped: guest trapped: unreachable\\x1b in f"


def test_a_bug_asks_for_a_report_without_a_hint_to_what_is_shown() -> None:
    """
    Who already sees the traceback is not told how to see it.
    """
    assert shown(KeyError("x"), 2)[1] == "  hint: this is a bug of runner, please report it"


def test_every_error_of_ours_has_a_documented_exit_code() -> None:
    """
    A new branch of the tree needs a line in the table.
    """

    def walk(root: type[errors.RunnerError]) -> set[int]:
        return {root.exit_code}.union(*(walk(child) for child in root.__subclasses__()))

    assert walk(errors.RunnerError) - EXIT_CODES.keys() == set()


def test_a_megabyte_of_complaint_is_cut() -> None:
    """
    The whole is in the JSON.
    """
    (line,) = shown(errors.GuestReturnedError("x" * 5000))
    assert line.endswith("xx… (4018 more characters)")


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (
            click.NoSuchOption("--max-fule", possibilities=["--max-fuel"]),
            ["Error: No such option '--max-fule'", "  hint: did you mean --max-fuel?"],
        ),
        (
            click.NoSuchCommand("x", ctx=click.Context(click.Command("x"), info_name="x")),
            ["Error: No such command 'x'", "  hint: see x --help"],
        ),
        (click.ClickException("bare\nwords"), ["Error: bare\\nwords"]),
    ],
)  # fmt: skip
def test_the_parser_complains_in_the_same_style(error: click.ClickException, lines: list[str]) -> None:
    """
    One line, and what to do.
    """
    assert usage_lines(error) == lines
