"""
`runner check`: would this agent be let in, and would these grants do?
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner check guests/hello",
    "runner check guests/counter --deny llm",
)


@click.command("check", cls=Verb, examples=EXAMPLES)
@click.argument("agent", type=PATH, help="An agent: its folder or its .wasm file.")
@flags.grant_flags
@shows_output()
def check(shell: Shell, console: Console, agent: Path, allow: tuple[str, ...], deny: tuple[str, ...]) -> int:
    """
    Check that AGENT would be let in with these grants, without running it.

    Ends with 7 if its module is refused, with 3 if it needs more than is granted.
    """
    facts = shell.wiring().check_agent(existing(agent, "agent"), allow, deny)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0
