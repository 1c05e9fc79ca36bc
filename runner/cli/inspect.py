"""
`runner inspect`: what an agent, a snapshot or a named instance is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner inspect guests/hello",
    "runner inspect counter.snap",
    "runner inspect tally --at 2 --json",
)


@click.command("inspect", cls=Verb, examples=EXAMPLES)
@click.argument(
    "thing", type=PATH, help="An agent's folder or .wasm file, a snapshot, or the name of an instance."
)
@flag("--at", type=int, metavar="SEQ", section="State", help="A record, by number.  [default: the last]")
@flags.state_flag
@shows_output()
def inspect(shell: Shell, console: Console, thing: Path, at: int | None, state: Path | None) -> int:
    """
    Show what an agent, a snapshot or a named instance is: imports, limits, digests, sizes.

    Agents and snapshots are not run. A named instance is brought up to its journal, offline; with --at to
    a record of its past.
    """
    wiring = shell.wiring()
    if at is not None or (not thing.exists() and wiring.is_instance(str(thing), state=state)):
        facts = wiring.inspect_named(str(thing), at=at, state=state)
    else:
        facts = wiring.inspect_path(existing(thing, "agent or snapshot or instance"))
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
