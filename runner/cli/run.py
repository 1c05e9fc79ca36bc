"""
`runner run`: one agent, one delivery, one result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.delivery import show_report
from runner.cli.envelope import REPORT_KEYS
from runner.cli.input import read_input
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    'runner run guests/hello "What is an agent?"',
    """runner run guests/counter '{"any": ["JSON", "is", "JSON"]}' --allow memory""",
    "runner run guests/counter --snapshot counter.snap --max-memory 8MiB --timeout 5s",
)


@click.command("run", cls=Verb, examples=EXAMPLES)
@click.argument("agent", type=PATH, help="An agent: its folder or its .wasm file.")
@flags.input_flags
@flags.grant_flags
@flags.limit_flags
@flags.model_flags
@flags.snapshot_flags
@shows_output(REPORT_KEYS)
def run(shell: Shell, console: Console, agent: Path, **parameters: Any) -> int:
    """
    Start an agent, deliver INPUT to it, and print what it answers.

    The agent can do nothing but what --allow grants. Its answer is all that stdout gets: text as it is,
    anything else as JSON.
    """
    existing(agent, "agent")
    value = read_input(flags.take_source(parameters), console)
    wiring = shell.wiring()
    report = wiring.run_agent(agent, value, flags.take_options(wiring, console, parameters))
    return show_report(report, console)
