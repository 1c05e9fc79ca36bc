"""
`runner schema`: what programs may rely on, as data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from runner.cli import envelope
from runner.cli.command import Verb
from runner.cli.console import Console, Display

_SUBJECTS: Final[dict[str, Callable[[], Any]]] = {
    "exit-codes": envelope.exit_codes,
    "report": envelope.report_schema,
    "error": envelope.error_schema,
}

EXAMPLES = (
    "runner schema exit-codes",
    "runner schema report > report.schema.json",
)


@click.command("schema", cls=Verb, examples=EXAMPLES)
@click.argument("subject", type=click.Choice(list(_SUBJECTS)))
def schema(subject: str) -> int:
    """
    Print a JSON description of exit codes, of the --json report, or of the error in it.
    """
    Console(Display()).document(_SUBJECTS[subject]())
    return 0
