"""
`runner upgrade`: a named instance goes on under another agent.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.delivery import show_done
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner upgrade tally guests/counter_v2",
    "runner upgrade tally guests/counter_v2 --allow memory --ask tool:pay --json",
)


@click.command("upgrade", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@click.argument("agent", type=PATH, help="What it shall be: an agent's folder or .wasm file.")
@flags.grant_flags
@flags.ask_flag
@flags.limit_flags
@flags.state_flags
@shows_output()
def upgrade(
    shell: Shell, console: Console, instance: str, agent: Path, ask: tuple[str, ...], **parameters: Any
) -> int:
    """
    Let a named instance go on under another version of its agent, which takes over what it knows.

    The old version is asked what the new one shall know, and the new one is told; both must be made for that.
    If either fails, nothing has changed. The instance must be at rest. Flags add to what it was made with: a
    refusal that it has stays.
    """
    existing(agent, "agent")
    wiring = shell.wiring()
    options = flags.take_options(wiring, console, parameters)
    facts = wiring.upgrade_named(instance, agent, options, ask)
    text = f"{instance} is {facts['agent']} {facts['version']} now, and was {_show(facts['before'])}"
    return show_done(console, facts, text, f"go on with: runner send {instance}")


def _show(agent: dict[str, str]) -> str:
    return f"{agent['agent']} {agent['version']}"
