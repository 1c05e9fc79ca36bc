"""
`runner inspect`: what an agent or a snapshot is, without running it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.command import Verb, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner inspect guests/hello",
    "runner inspect counter.snap",
    "runner inspect guests/hello --json",
)


@click.command("inspect", cls=Verb, examples=EXAMPLES)
@click.argument("thing", type=PATH, help="An agent's folder or .wasm file, or a snapshot.")
@shows_output()
def inspect(shell: Shell, console: Console, thing: Path) -> int:
    """
    Show what an agent or a snapshot is: its imports, limits, digests and sizes.

    Nothing of it is run.
    """
    facts = shell.wiring().inspect_path(existing(thing, "agent or snapshot"))
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
