"""
`runner rm`: the end of named instances.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_done
from runner.cli.scrub import scrub_line
from runner.cli.shell import Shell
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner rm tally --yes",
    "runner rm --yes tally --json",
)


@click.command("rm", cls=Verb, examples=EXAMPLES)
@click.argument("instances", metavar="NAME...", nargs=-1, required=True, help="Named instances.")
@flag("-y", "--yes", is_flag=True, section="State", help="Don't ask whether it is meant.")
@flags.state_flag
@shows_output()
def rm(shell: Shell, console: Console, instances: tuple[str, ...], yes: bool, state: Path | None) -> int:
    """
    Remove named instances, with their journals and snapshots, for good.

    What several shared stays on the disk until gc.
    """
    if not yes:
        _confirm(console, instances)
    removed = shell.wiring().remove_named(instances, state=state)
    return show_done(console, {"removed": removed}, f"removed {', '.join(removed)}", None)


def _confirm(console: Console, instances: tuple[str, ...]) -> None:
    """
    Raises:
        UsageError: If nobody can be asked, or it is not meant.
    """
    if not console.can_ask:
        msg = "nothing was removed"
        raise UsageError(msg, hint="say --yes: what is removed is gone for good")
    shown = scrub_line(", ".join(instances))
    if not console.ask(f"{shown}: journal and snapshots will be gone for good.", "Remove?"):
        msg = "nothing was removed"
        raise UsageError(msg)
