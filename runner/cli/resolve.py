"""
`runner resolve`: what became of a call that nobody knows of.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.delivery import show_done
from runner.cli.input import parse
from runner.cli.shell import Shell
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner resolve courier 4 --rerun",
    "runner resolve courier 4 --done '{\"delivered\": true}'",
    "runner resolve courier 4 --abandon",
)


@click.command("resolve", cls=Verb, examples=EXAMPLES)
@click.argument("instance", metavar="NAME", help="A named instance.")
@click.argument("call", type=int, metavar="CALL", help="Its call, by number.")
@flag("--rerun", is_flag=True, section="Ruling", help="It did not happen: make it again.")
@flag("--done", metavar="RESULT", section="Ruling", help="It happened; its answer, JSON or text.")
@flag("--abandon", is_flag=True, section="Ruling", help="Nobody can tell: the agent hears that it failed.")
@flags.state_flag
@shows_output()
def resolve(
    shell: Shell,
    console: Console,
    *,
    instance: str,
    call: int,
    rerun: bool,
    done: str | None,
    abandon: bool,
    state: Path | None,
) -> int:
    """
    Say what became of a call that was begun and never reported: its process died in between.

    Find out where the effect would show. The ruling is final; resume acts on it.
    """
    if [rerun, done is not None, abandon].count(True) != 1:
        msg = "what became of the call?"
        raise UsageError(msg, hint="say one of --rerun, --done RESULT and --abandon")
    ruling: Literal["rerun", "done", "abandon"] = "rerun" if rerun else "abandon" if abandon else "done"
    value = parse(done, "auto", console) if done is not None else None
    facts = shell.wiring().resolve_call(instance, call, ruling, value, state=state)
    text = f"call {call} of {instance}: {ruling}"
    return show_done(console, facts, text, f"go on with: runner resume {instance}")
