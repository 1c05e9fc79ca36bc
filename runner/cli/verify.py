"""
`runner verify`: whether a journal is true.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner verify tally",
    "runner verify tally --json",
)


@click.command("verify", cls=Verb, examples=EXAMPLES)
@click.argument("what", metavar="NAME|FILE", help="A named instance, or a file that journal -o wrote.")
@flags.bound_flags
@flags.state_flag
@shows_output()
def verify(shell: Shell, console: Console, what: str, state: Path | None, **parameters: Any) -> int:
    """
    Do all that a named instance did again, and hold it against its journal.

    It must ask for the same, and have the same memory after each slice. Ends with 9 where it does not,
    and shows both sides; with 7 if the journal is damaged. Limits are for a FILE, which may come from anyone:
    with 4 if its instance was given more.
    """
    facts = shell.wiring().verify(what, limits=flags.take_limits(parameters), state=state)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
