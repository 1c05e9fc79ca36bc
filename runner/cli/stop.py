"""
`runner stop`: the end of what runs a named instance.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.delivery import show_done
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner stop tally",
    "runner stop tally --json",
)


@click.command("stop", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@flags.state_flag
@shows_output()
def stop(shell: Shell, console: Console, instance: str, state: Path | None) -> int:
    """
    Stop a named instance; resume goes on with it.

    The process that runs it is told to end, and does so between two slices: nothing is given up.
    """
    facts = shell.wiring().stop_named(instance, state=state)
    by = f", process {facts['pid']} has ended" if facts["pid"] else ""
    return show_done(console, facts, f"{instance} is stopped{by}", f"go on with: runner resume {instance}")
