"""
`runner send`: one more delivery to a named instance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.asking import see_through
from runner.cli.command import Verb, shows_output
from runner.cli.delivery import show_report
from runner.cli.envelope import REPORT_KEYS
from runner.cli.input import read_input
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner send tally go",
    "runner send tally go --json",
)


@click.command("send", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@flags.input_flags
@flags.deadline_flag
@flags.tool_flags
@flags.model_flags
@flags.life_flags
@shows_output(REPORT_KEYS)
def send(shell: Shell, console: Console, instance: str, no_input: bool, **parameters: Any) -> int:
    """
    Deliver INPUT to a named instance, and print what it answers.

    What was open is finished first. Grants and limits are those that it was made with.
    """
    value = read_input(flags.take_source(parameters), console)
    wiring = shell.wiring()
    options = flags.take_life_options(wiring, console, parameters, shell)
    report = see_through(
        wiring,
        console,
        options,
        lambda: wiring.send(instance, value, options),
        value=value,
        may_ask=not no_input,
    )
    return show_report(report, console)
