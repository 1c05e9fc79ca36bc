"""
`runner doctor`: is everything here that `runner` needs?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner.cli.command import Verb, shows_output
from runner.cli.describe import table
from runner.cli.envelope import listing, result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner doctor",
    "runner doctor --json",
)


@click.command("doctor", cls=Verb, examples=EXAMPLES)
@shows_output()
def doctor(shell: Shell, console: Console) -> int:
    """
    Check what runner needs on this machine, and say how to mend what is missing.

    Reports and never fails: what is missing may be of no use to you.
    """
    rows = shell.wiring().doctor()
    failed = sum(not row["ok"] for row in rows)
    if console.display.as_json:
        counts = {"ok": len(rows) - failed, "failed": failed}
        console.document(result_document(listing(rows, counts)))
        return 0
    console.text("\n".join(table(rows)))
    return 0
