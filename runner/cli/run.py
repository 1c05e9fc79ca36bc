"""
`runner run`: one agent, one delivery, one result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.asking import see_through
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
    "runner run guests/counter --as my-counter --max-memory 8MiB --timeout 5s",
)


@click.command("run", cls=Verb, examples=EXAMPLES)
@click.argument("agent", type=PATH, help="An agent: its folder or its .wasm file.")
@flags.input_flags
@flags.grant_flags
@flags.tool_flags
@flags.limit_flags
@flags.model_flags
@flags.naming_flags
@flags.life_flags
@flags.snapshot_flags
@shows_output(REPORT_KEYS)
def run(shell: Shell, console: Console, agent: Path, **parameters: Any) -> int:
    """
    Start an agent, deliver INPUT to it, and print what it answers.

    The agent can do nothing but what --allow grants. Its answer is all that stdout gets: text as it is,
    anything else as JSON. With --as its instance gets a name and a journal, and send and resume go on
    with it.
    """
    existing(agent, "agent")
    naming = flags.take_naming(parameters)
    value = read_input(flags.take_source(parameters), console)
    wiring = shell.wiring()
    options = flags.take_options(wiring, console, parameters, shell)
    name = naming.name
    if name is None:
        return show_report(wiring.run_agent(agent, value, options), console)
    report = see_through(
        wiring,
        console,
        options,
        lambda: wiring.run_named(agent, name, value, options, naming.ask),
        may_ask=naming.may_ask,
    )
    return show_report(report, console)
