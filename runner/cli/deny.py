"""
`runner deny`: no to a call that waits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_done
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner deny asker 1",
    'runner deny asker 1 --because "not today"',
)


@click.command("deny", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@click.argument("call", type=int, metavar="CALL", help="Its call, by number.")
@flag("--because", metavar="TEXT", section="Grants", help="What the agent is told.")
@flags.state_flag
@shows_output()
def deny(
    shell: Shell, console: Console, instance: str, call: int, because: str | None, state: Path | None
) -> int:
    """
    Refuse a call that waits for approval; resume tells the agent.

    The verdict is written down, and is not asked for again.
    """
    facts = shell.wiring().rule_on(instance, call, "deny", because=because, state=state)
    return show_done(
        console, facts, f"call {call} of {instance} is denied", f"tell it: runner resume {instance}"
    )
