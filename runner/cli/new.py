"""
`runner new`: a folder to start an agent from.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner new my-agent",
    "runner new my-python-agent --lang python",
)


@click.command("new", cls=Verb, examples=EXAMPLES)
@click.argument("folder", metavar="DIR", type=PATH, help="A folder that does not exist yet, or is empty.")
@flag(
    "--lang",
    type=click.Choice(["js", "python", "c", "wat"]),
    default="js",
    help="Language of the agent; c needs a compiler, see `runner doctor`.  [default: js]",
)
@shows_output()
def new(shell: Shell, console: Console, folder: Path, lang: str) -> int:
    """
    Write a small working agent into DIR.
    """
    facts = shell.wiring().new_agent(folder, lang)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
        console.note(f"{folder} is an agent", hint=f"run it with: runner run {shlex.quote(str(folder))} hi")
    return 0
