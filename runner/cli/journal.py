"""
`runner journal`: what a named instance did, record by record.
"""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import flags, jsonform
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_done
from runner.cli.describe import table
from runner.cli.envelope import listing, result_document
from runner.cli.parameters import PATH, writable
from runner.cli.shell import Shell
from runner.units import show_bytes

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner journal tally",
    "runner journal tally --json",
    "runner journal tally -o tally.journal",
)

_NOTHING: Final[tuple[Any, ...]] = (None, "", [], (), {}, False)
_DIGEST: Final = "sha256:"
_DIGITS: Final = 12


@click.command("journal", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@flag(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    section="Output",
    help="Write records and agent to FILE, for replay and verify on another machine.",
)
@flags.state_flag
@shows_output(takes_output=False)
def journal(shell: Shell, console: Console, instance: str, output: Path | None, state: Path | None) -> int:
    """
    Show the journal of a named instance: all that it learned, all that it asked for, and what came of it.
    """
    wiring = shell.wiring()
    if output is not None:
        facts = wiring.export_journal(instance, writable(output, "--output"), state=state)
        text = f"{output}: {facts['records']} records, {show_bytes(facts['size_bytes'])}"
        return show_done(console, facts, text, f"do it all again: runner replay {shlex.quote(str(output))}")
    rows = wiring.journal_rows(instance, state=state)
    if console.display.as_json:
        counts = Counter(row["kind"] for row in rows)
        console.document(result_document(listing(rows, dict(counts))))
    else:
        console.text("\n".join(table([_shown(row) for row in rows])))
    return 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    fields = row["fields"]
    parts = [f"{name}={_value(value)}" for name, value in fields.items() if value not in _NOTHING]
    return {"seq": row["seq"], "record": row["kind"], "what": " ".join(parts)}


def _value(value: Any) -> str:
    if isinstance(value, str) and value.startswith(_DIGEST):
        return value[: len(_DIGEST) + _DIGITS]
    return value if isinstance(value, str) and " " not in value else jsonform.dumps(value)
