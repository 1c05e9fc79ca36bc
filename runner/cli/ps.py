"""
`runner ps`: the named instances there are.
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
    "runner ps",
    "runner ps --json",
)


@click.command("ps", cls=Verb, examples=EXAMPLES)
@flags.state_flag
@shows_output()
def ps(shell: Shell, console: Console, state: Path | None) -> int:
    """
    List named instances: who they are, where they stand, and which process has them.

    idle: nothing is open. open: a delivery has no answer yet. waiting: a call waits for approval. uncertain:
    nobody knows whether an effect happened. stopped: its operator stopped it.
    """
    rows = shell.wiring().list_instances(state)
    counts = Counter(row["status"] for row in rows)
    if console.display.as_json:
        console.document(result_document(listing(rows, dict(counts))))
    elif rows:
        console.text("\n".join(table(rows)))
    else:
        console.note("there are no named instances", hint="make one: runner run AGENT --as NAME")
    return 0
