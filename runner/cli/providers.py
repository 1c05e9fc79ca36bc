"""
`runner providers`: whoever answers for models.
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
    "runner providers",
    "runner providers --json",
)


@click.command("providers", cls=Verb, examples=EXAMPLES)
@shows_output()
def providers(shell: Shell, console: Console) -> int:
    """
    List whoever answers for models: where each is, its model, and whether it has a key.

    The key is stored, or in the variable that is named, or not needed, or missing; or it is bound to another
    origin, and then it is not sent.
    """
    rows = shell.wiring().list_providers()
    if console.display.as_json:
        console.document(result_document(listing(rows, {"providers": len(rows)})))
    else:
        console.text("\n".join(table(rows)))
    return 0
