"""
`runner test`: an agent's own tests, inside the sandbox.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import flags
from runner.cli.command import Verb, flag, shows_output
from runner.cli.envelope import result_document
from runner.cli.parameters import PATH, existing
from runner.cli.scrub import scrub, scrub_line
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.cli.console import Console

EXAMPLES = (
    "runner test guests/assistant --allow memory",
    "runner test guests/assistant --allow memory --json",
)

_FAILED: Final = 1
_INDENT: Final = "    "
_MAX_LINE_CHARS: Final = 500


@click.command("test", cls=Verb, examples=EXAMPLES)
@click.argument("folder", metavar="DIR", type=PATH, help="The agent's folder, with its agent.toml.")
@flag(
    "-k",
    "--only",
    metavar="TEXT",
    section="Tests",
    help="Run only tests whose SUITE:TEST contains TEXT.",
)
@flags.grant_flags
@flags.limit_flags
@flags.model_flags
@shows_output()
def test(shell: Shell, console: Console, folder: Path, only: str | None, **parameters: Any) -> int:
    """
    Run the tests of the agent in DIR, each in a fresh instance.

    Tests are exported functions of *.test.js, and functions test_* of test_*.py. The model is the
    scripted one. Ends with 1 if a test fails, or if there is none.
    """
    existing(folder, "folder")
    wiring = shell.wiring()
    facts = wiring.run_tests(folder, flags.take_options(wiring, console, parameters, shell), only)
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.text("\n".join(_lines(facts)))
    if not facts["tests"]:
        console.note("there are no tests", hint="write some: test_run.py, agent.test.js")
    return 0 if facts["tests"] and not facts["failed"] else _FAILED


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    for outcome in facts["tests"]:
        mark = "ok  " if outcome["passed"] else "FAIL"
        yield scrub_line(f"{mark}  {outcome['suite']}  {outcome['test']}".rstrip(), _MAX_LINE_CHARS)
        if not outcome["passed"]:
            told = outcome["message"]
            # The stack of most languages begins with the message.
            told = outcome["stack"] if told in outcome["stack"] else f"{told}\n{outcome['stack']}"
            yield from (_INDENT + line for line in scrub(told).rstrip().split("\n"))
    yield f"{facts['passed']} passed, {facts['failed']} failed"
