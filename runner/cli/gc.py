"""
`runner gc`: room on the disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner gc",
    "runner gc --keep 3",
)


@click.command("gc", cls=Verb, examples=EXAMPLES)
@flag(
    "--keep",
    type=click.IntRange(min=0),
    default=1,
    metavar="N",
    section="State",
    help="Snapshots to keep of each named instance.  [default: 1]",
)
@flags.state_flag
@shows_output()
def gc(shell: Shell, console: Console, keep: int, state: Path | None) -> int:
    """
    Remove old snapshots of named instances, and what nothing refers to any more.

    Nothing is lost by it: a snapshot only saves time, what an instance is stands in its journal.
    """
    facts = shell.wiring().collect_garbage(keep, state=state)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
