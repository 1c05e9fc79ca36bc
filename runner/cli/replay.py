"""
`runner replay`: all that a named instance did, done again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import table
from runner.cli.envelope import result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner replay tally",
    "runner replay tally --to 2 --json",
)


@click.command("replay", cls=Verb, examples=EXAMPLES)
@click.argument("what", metavar="NAME|FILE", help="A named instance, or a file that journal -o wrote.")
@flag("--to", type=int, metavar="SEQ", section="State", help="Stop after this record.  [default: the last]")
@flags.bound_flags
@flags.state_flag
@shows_output()
def replay(
    shell: Shell, console: Console, what: str, to: int | None, state: Path | None, **parameters: Any
) -> int:
    """
    Do all that a named instance did again, and print the digest of its memory after each slice.

    Offline: answers come from the journal, and nothing leaves this process. Ends with 9 where it differs.
    Limits are for a FILE, which may come from anyone: with 4 if its instance was given more.
    """
    done = shell.wiring().replay(what, to=to, limits=flags.take_limits(parameters), state=state)
    if console.display.as_json and done.failure is None:
        facts = {"instance": done.name, "records": done.records, "memory_digest": done.memory_digest}
        console.document(result_document({**facts, "rows": done.rows}))
    elif done.rows and not console.display.as_json:
        console.text("\n".join(table([_shown(row) for row in done.rows])))
    if done.failure is not None:
        raise done.failure
    return 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "recorded"}
