"""
`runner snapshot`: a named instance as a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, writable
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner snapshot tally",
    "runner snapshot tally -o monday.snap --stats",
)


@click.command("snapshot", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@flag("--stats", is_flag=True, section="Output", help="Print what writing it took, in place of its path.")
@flag("-o", "--output", type=PATH, metavar="FILE", section="Output", help="Where to.  [default: NAME.snap]")
@flags.state_flag
@shows_output(takes_output=False)
def snapshot(
    shell: Shell, console: Console, instance: str, stats: bool, output: Path | None, state: Path | None
) -> int:
    """
    Write a named instance to a snapshot file, which restore takes here or on another machine.

    It is as after the last record in its journal; nothing is stopped for it, and it may run meanwhile.
    The file also says what is known of its calls in flight, so that none is made twice.
    """
    out = writable(output or Path(f"{instance}.snap"), "--output")
    facts = shell.wiring().snapshot_named(instance, out, state=state)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts) if stats else str(out))
    return 0
