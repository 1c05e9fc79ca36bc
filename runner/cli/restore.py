"""
`runner restore`: an instance from a snapshot, and perhaps one more delivery to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.asking import see_through
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_report, show_restored
from runner.cli.envelope import REPORT_KEYS
from runner.cli.input import read_input
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console
    from runner.wiring.options import Report

EXAMPLES = (
    "runner restore counter.snap",
    'runner restore counter.snap "once more" --snapshot counter.snap',
    "runner restore counter.snap --as another --json",
)


@click.command("restore", cls=Verb, examples=EXAMPLES)
@click.argument("snapshot_file", metavar="SNAPSHOT", type=PATH, help="A file that --snapshot wrote.")
@flags.input_flags
@flag(
    "--agent",
    type=PATH,
    metavar="PATH",
    section="State",
    help="The agent that the snapshot was taken of, or one that takes over from it, as in upgrade.  "
    "[default: the one that the snapshot names]",
)
@flags.deterministic_flag
@flags.naming_flags
@flags.life_flags
@flags.snapshot_flags
@flags.grant_flags
@flags.tool_flags
@flags.limit_flags
@flags.model_flags
@shows_output(REPORT_KEYS)
def restore(
    shell: Shell, console: Console, snapshot_file: Path, agent: Path | None, **parameters: Any
) -> int:
    """
    Wake an instance from SNAPSHOT, deliver INPUT to it, and print what it answers.

    Everything in the file is verified before any of it is used. Without INPUT the instance goes on with
    what it was doing and prints the answer to that; if there was nothing, its state is printed. With --as
    it gets a name and a journal that begins at the snapshot.
    """
    existing(snapshot_file, "snapshot")
    if agent is not None:
        existing(agent, "agent")
    naming = flags.take_naming(parameters)
    value = read_input(flags.take_source(parameters), console)
    wiring = shell.wiring()
    options = flags.take_options(wiring, console, parameters, shell)

    def start() -> Report:
        if naming.name is None:
            return wiring.restore_snapshot(snapshot_file, value, options, agent)
        return wiring.restore_named(snapshot_file, naming.name, value, options, agent=agent, ask=naming.ask)

    report = see_through(wiring, console, options, start, value=value, may_ask=naming.may_ask)
    return show_restored(report, console) if value is None else show_report(report, console)
