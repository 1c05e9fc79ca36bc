"""
The shape of every verb: help in sections, examples at its end, `RUNNER_*` beside each flag.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli.console import Console, Display
from runner.cli.envelope import RESULT_KEYS, failure_document
from runner.cli.failures import classify, lines_of
from runner.cli.shell import Shell
from runner.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.cli.failures import Failure

ENVIRONMENT_PREFIX: Final = "RUNNER"
HELP_WIDTH: Final = 100

_OUTPUT: Final = "Output"


class Flag(click.Option):
    """
    An option with the heading that it stands under in `--help`.
    """

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Verb(click.Command):
    """
    One command of `runner`.

    Args:
        examples: Lines that a shell can run as they stand, shown at the end of the help.
    """

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Not `RUNNER_RUN_MAX_MEMORY`: a flag means the same on every verb, and so does its variable.
        self.context_settings["auto_envvar_prefix"] = ENVIRONMENT_PREFIX
        self.context_settings["max_content_width"] = HELP_WIDTH
        self.examples = examples

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """
        `--help`, which no environment variable turns on.
        """
        option = super().get_help_option(ctx)
        if option is not None:
            option.allow_from_autoenv = False
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """
        Write the options, each under its heading.
        """
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                # `--help` is click's own; it stands where a verb's last heading is.
                sections.setdefault(getattr(parameter, "section", _OUTPUT), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """
        Write the examples.
        """
        del ctx
        if self.examples:
            with formatter.section("Examples"):
                # Unwrapped: a line must be good to copy.
                indent = " " * formatter.current_indent
                formatter.write("".join(f"{indent}{line}\n" for line in self.examples))


def flag(*names: str, section: str = "Options", **settings: Any) -> Callable[[Any], Any]:
    """
    Decorator that adds an option under a heading.
    """
    return click.option(*names, cls=Flag, section=section, **settings)


def shows_output(keys: tuple[str, ...] = RESULT_KEYS, *, takes_output: bool = True) -> Callable[[Any], Any]:
    """
    Decorator of a verb: gives it the output flags, a `Console`, and an end for every error.

    The verb is called with the `Shell`, the `Console` and its own parameters, and returns its exit code.

    Args:
        keys: Outer keys of its JSON document.
        takes_output: Whether `-o` takes its result; a verb whose result is a file has its own.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def invoke(**parameters: Any) -> int:
            shell = click.get_current_context().find_object(Shell) or Shell()
            console = Console(_take_display(parameters, takes_output=takes_output))
            try:
                console.prepare()
                return function(shell, console, **parameters)
            except (click.ClickException, click.exceptions.Exit):
                raise
            except (Exception, KeyboardInterrupt) as cause:  # noqa: BLE001 - the last place to catch it
                return report(classify(cause, shell.termination), console, keys)

        for add in reversed(_output_flags(takes_output=takes_output)):
            invoke = add(invoke)
        return invoke

    return decorate


def report(failure: Failure, console: Console, keys: tuple[str, ...]) -> int:
    """
    Say what failed where it is looked for, and return the exit code.

    A program that asked for JSON finds the failure where the result would be; people find it on stderr,
    unless their stdout shows it already.
    """
    display = console.display
    shown = False
    if failure.error.report is not None:
        from runner.cli.delivery import show_what_was_reached  # noqa: PLC0415 - only deliveries have one

        show_what_was_reached(failure.error.report, console)
    if display.as_json:
        try:
            console.document(failure_document(failure, keys))
            shown = display.output is None
        except RunnerError:
            # The place for documents is what failed, so only stderr is left.
            shown = False
    if not shown or display.verbosity > 1:
        console.error(lines_of(failure, display.verbosity), failure.to_wire())
    return failure.exit_code


def _take_display(parameters: dict[str, Any], *, takes_output: bool) -> Display:
    return Display(
        as_json=parameters.pop("json"),
        output=parameters.pop("output") if takes_output else None,
        verbosity=min(parameters.pop("verbose"), 2) - parameters.pop("quiet"),
        log_format=parameters.pop("log_format"),
        color=parameters.pop("color"),
    )


def _output_flags(*, takes_output: bool) -> list[Callable[[Any], Any]]:
    from runner.cli.parameters import PATH  # noqa: PLC0415

    output = flag(
        "-o",
        "--output",
        type=PATH,
        metavar="FILE",
        section=_OUTPUT,
        help="Write the result to FILE instead of stdout.",
    )
    return [
        flag("--json", is_flag=True, section=_OUTPUT, help="Print one JSON document, failures included."),
        *([output] if takes_output else []),
        flag("-q", "--quiet", is_flag=True, section=_OUTPUT, help="Show only errors on stderr."),
        flag(
            "-v",
            "--verbose",
            count=True,
            section=_OUTPUT,
            help="Show debug logs and a summary; twice: tracebacks too.",
        ),
        flag(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            section=_OUTPUT,
            help="Lines for people, or one JSON object per line.  [default: text]",
        ),
        flag(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            section=_OUTPUT,
            help="Colour stderr; auto heeds the terminal and NO_COLOR.  [default: auto]",
        ),
    ]
