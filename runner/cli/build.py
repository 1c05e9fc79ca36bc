"""
`runner build`: an agent's sources into one agent file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner build guests/counter -o counter.wasm",
    "runner build guests/hello --json -o hello.wasm",
)


@click.command("build", cls=Verb, examples=EXAMPLES)
@click.argument("agent", type=PATH, help="The agent's folder, with its agent.toml, or its one file.")
@flag(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    section="Output",
    help="Where the agent file goes.  [default: build/ in the folder, or beside the file]",
)
@shows_output(takes_output=False)
def build(shell: Shell, console: Console, agent: Path, output: Path | None) -> int:
    """
    Build AGENT into one .wasm file: code, manifest and image.
    """
    facts = shell.wiring().build_agent(existing(agent, "agent"), output, console.note)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
