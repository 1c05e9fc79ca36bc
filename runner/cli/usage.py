"""
`runner usage`: what a named instance has used of models.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.describe import describe, table
from runner.cli.envelope import result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner usage tally",
    "runner usage tally --json",
)


@click.command("usage", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@flags.state_flag
@shows_output()
def usage(shell: Shell, console: Console, instance: str, state: Path | None) -> int:
    """
    Show what a named instance has used of models: requests, tokens and cost, by its journal.

    What a model does not say is unknown, and no zero. Costs are an approximation by a table of prices, and no
    bill. A budget that was given is shown with what all that share it have spent or reserved.
    """
    facts = shell.wiring().usage_named(instance, state=state)
    if console.display.as_json:
        console.document(result_document(facts))
        return 0
    if not facts["models"]:
        console.note(f"{instance} has asked no model")
        return 0
    rows = [_shown(row) for row in [*facts["models"], {"model": "total", **facts["total"]}]]
    lines = table(rows)
    if facts["budget"]:
        lines += ["", describe({"budget": facts["budget"], "charged": facts["charged"]})]
    console.text("\n".join(lines))
    return 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """
    A row for people: what is not known is a question mark.
    """
    cost = row["cost_usd"]
    shown = {key: "?" if value is None else value for key, value in row.items() if key != "cost_usd"}
    return {**shown, "cost_usd": "?" if cost is None else f"{cost:.4f}"}
