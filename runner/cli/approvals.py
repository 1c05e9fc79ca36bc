"""
`runner approvals`: what waits for a person.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.describe import table
from runner.cli.envelope import listing, result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner approvals",
    "runner approvals --json",
)


@click.command("approvals", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="[NAME]", required=False, help="A named instance.  [default: all]")
@flags.state_flag
@shows_output()
def approvals(shell: Shell, console: Console, instance: str | None, state: Path | None) -> int:
    """
    List the calls that a person has to rule on: those to approve, and those that may have happened or not.
    """
    rows = shell.wiring().approvals(instance, state=state)
    if console.display.as_json:
        counts = Counter(row["question"] for row in rows)
        console.document(result_document(listing(rows, dict(counts))))
    elif rows:
        console.text("\n".join(table(rows)))
    else:
        console.note("nothing waits for a person")
    return 0
