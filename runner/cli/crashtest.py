"""
`runner crashtest`: does an agent's life survive?
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.describe import describe
from runner.cli.envelope import result_document
from runner.cli.input import read_input
from runner.cli.parameters import PATH, existing
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.cli.console import Console

EXAMPLES = (
    "runner crashtest guests/courier --allow tool --allow memory --kills 5 --deliveries 1",
    "runner crashtest guests/courier --allow tool --allow memory --kills 3 --deliveries 1 --json",
)

_DEFECTS: Final = ("no-start", "lost-receipt", "idle-start")
_FOUND: Final = 1


@click.command("crashtest", cls=Verb, examples=EXAMPLES)
@click.argument("agent", type=PATH, help="An agent: its folder or its .wasm file.")
@flags.input_flags
@flag(
    "--kills",
    type=click.IntRange(min=1),
    default=200,
    metavar="N",
    section="Crash test",
    help="Lives to cut short: each boundary once if N allows, then pairs of them.  [default: 200]",
)
@flag(
    "--deliveries",
    type=click.IntRange(min=1),
    default=2,
    metavar="N",
    section="Crash test",
    help="Messages that a life is handed.  [default: 2]",
)
@flag(
    "--upgrade",
    type=PATH,
    metavar="AGENT",
    section="Crash test",
    help="Let AGENT take over after the first delivery, as in runner upgrade.  [default: none]",
)
@flag(
    "--plant",
    type=click.Choice(_DEFECTS),
    section="Crash test",
    help="Plant a defect in the host, to see that the test finds it.",
)
@flag(
    "--seed",
    type=int,
    default=0,
    metavar="N",
    section="Crash test",
    help="Which pairs of boundaries are chosen.  [default: 0]",
)
@flags.grant_flags
@flags.limit_flags
@shows_output()
def crashtest(shell: Shell, console: Console, agent: Path, **parameters: Any) -> int:
    """
    Kill AGENT's process at every boundary of its life, go on, and compare with a life that was left alone.

    Each effect is witnessed by a ledger outside. Ends with 1 if one happened twice or was lost, if a life
    ended otherwise than without being killed, or could not go on.
    """
    from runner.crashtest.driver import crashtest as run  # noqa: PLC0415 - loads the engine

    existing(agent, "agent")
    value = read_input(flags.take_source(parameters), console)
    own = {name: parameters.pop(name) for name in ("kills", "deliveries", "upgrade", "plant", "seed")}
    if own["upgrade"] is not None:
        existing(own["upgrade"], "agent")
    verdict = run(
        agent,
        value,
        options=flags.take_options(shell.wiring(), console, parameters),
        kills=own["kills"],
        deliveries=own["deliveries"],
        upgrade=own["upgrade"],
        defect=own["plant"] or "",
        seed=own["seed"],
        progress=_every_tenth(console),
    )
    facts = {"clean": verdict.clean, **asdict(verdict)}
    facts["findings"] = [{"finding": line} for line in verdict.findings]
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text(describe(facts))
    return 0 if verdict.clean else _FOUND


def _every_tenth(console: Console) -> Callable[[str], None]:
    """
    Progress for people: a line for each life would hide the verdict.
    """
    lines = 0

    def show(text: str) -> None:
        nonlocal lines
        lines += 1
        if lines % 10 == 0:
            console.note(text)

    return show
