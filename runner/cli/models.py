"""
`runner models`: what a provider offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner.cli.command import Verb, shows_output
from runner.cli.envelope import listing, result_document
from runner.cli.scrub import scrub_line
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner models scripted",
    "runner models scripted --json",
)


@click.command("models", cls=Verb, examples=EXAMPLES)
@click.argument("provider", metavar="PROVIDER", help="A provider; runner providers lists them.")
@shows_output()
def models(shell: Shell, console: Console, provider: str) -> int:
    """
    List the models of PROVIDER, as it lists them itself.

    Each is printed as --model takes it.
    """
    names = [f"{provider}/{name}" for name in shell.wiring().list_models(provider)]
    if console.display.as_json:
        rows = [{"model": name} for name in names]
        console.document(result_document(listing(rows, {"models": len(rows)})))
    else:
        console.text("\n".join(scrub_line(name) for name in names))
    return 0
