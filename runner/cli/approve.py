"""
`runner approve`: yes to a call that waits.
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
    "runner approve asker 1",
    "runner approve asker 1 --json",
)


@click.command("approve", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@click.argument("call", type=int, metavar="CALL", help="Its call, by number.")
@flags.state_flag
@shows_output()
def approve(shell: Shell, console: Console, instance: str, call: int, state: Path | None) -> int:
    """
    Allow a call that waits for approval; resume makes it.

    The verdict is written down, and is not asked for again.
    """
    facts = shell.wiring().rule_on(instance, call, "allow", state=state)
    return show_done(
        console, facts, f"call {call} of {instance} is allowed", f"make it: runner resume {instance}"
    )
