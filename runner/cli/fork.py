"""
`runner fork`: a second life from the same past.
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
    "runner fork tally other",
    "runner fork tally twin --at 2 --deterministic",
)


@click.command("fork", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@click.argument("new_instance", metavar="NEW", help="What the other is called.")
@flag("--at", type=int, metavar="SEQ", section="State", help="A record, by number.  [default: the last]")
@flags.deterministic_flag
@flags.state_flag
@shows_output()
def fork(
    shell: Shell,
    console: Console,
    *,
    instance: str,
    new_instance: str,
    at: int | None,
    deterministic: bool,
    state: Path | None,
) -> int:
    """
    Make a second instance that has the past of NAME up to a record, and a future of its own.

    It is told that it is another, and gets fresh randomness. Calls in flight are its own too: what is
    uncertain in the one is uncertain in the other, and what waits for approval waits in both.
    """
    facts = shell.wiring().fork_named(instance, new_instance, at=at, deterministic=deterministic, state=state)
    shared = facts["records"]
    text = f"{new_instance} has {shared} record{'' if shared == 1 else 's'} of {instance}"
    return show_done(console, facts, text, f"go on with: runner send {new_instance}")
