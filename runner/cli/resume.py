"""
`runner resume`: what a named instance was doing, to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.asking import see_through
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_restored
from runner.cli.envelope import REPORT_KEYS
from runner.cli.shell import Shell
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner resume tally",
    "runner resume --last",
)


@click.command("resume", cls=Verb, examples=EXAMPLES)
@click.argument(
    "instance", metavar="[NAME]", required=False, help="A named instance; the only one with something open."
)
@flag(
    "--last",
    is_flag=True,
    section="State",
    help="Take the one that was written to last.",
)
@flags.deadline_flag
@flags.tool_flags
@flags.model_flags
@flags.life_flags
@shows_output(REPORT_KEYS)
def resume(
    shell: Shell, console: Console, instance: str | None, last: bool, no_input: bool, **parameters: Any
) -> int:
    """
    Go on with what a named instance was doing, and print what it answers.

    Whatever ended the process that ran it, it goes on as if nothing had happened: no effect is made
    twice, and what nobody can know is asked. With nothing open, its last answer is printed again.
    """
    if instance is not None and last:
        msg = "both NAME and --last"
        raise UsageError(msg, hint="give one of them")
    wiring = shell.wiring()
    options = flags.take_life_options(wiring, console, parameters, shell)
    report = see_through(
        wiring, console, options, lambda: wiring.resume(instance, options, last=last), may_ask=not no_input
    )
    return show_restored(report, console)
