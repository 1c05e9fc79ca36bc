"""
Keeps the generated parts of `docs/cli.md`: the help of every verb, and the tables behind it.

    python docs/cli_reference.py --check | --write
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from docs import generated_parts
from runner.cli import envelope, flags
from runner.cli.app import VERBS, app

DOCUMENT: Final = Path(__file__).resolve().parent / "cli.md"

_WIDTH: Final = 80


def _help(path: tuple[str, ...]) -> Callable[[], Iterator[str]]:
    """
    A part that is what `runner VERB --help` prints.
    """

    def lines() -> Iterator[str]:
        root = click.Context(app, info_name="runner", terminal_width=_WIDTH)
        context = root
        for name in path:
            command = app.get_command(root, name)
            assert command is not None, name  # noqa: S101 - names come from the table of verbs
            context = click.Context(command, info_name=name, parent=root, terminal_width=_WIDTH)
        yield "```text"
        yield from context.get_help().rstrip("\n").split("\n")
        yield "```"

    return lines


def exit_codes() -> Iterator[str]:
    """
    The exit codes as a table.
    """
    yield "| code | `error.kind` | meaning |"
    yield "| --- | --- | --- |"
    for row in envelope.exit_codes():
        kinds = ", ".join(f"`{kind}`" for kind in row["kinds"])
        yield f"| {row['code']} | {kinds} | {row['meaning']} |"


def limits() -> Iterator[str]:
    """
    What `-W help` prints.
    """
    yield "```text"
    yield from flags.limits_help().split("\n")
    yield "```"


PARTS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "exit-codes": exit_codes,
    "limits": limits,
    "runner": _help(()),
    **{name: _help((name,)) for name in VERBS},
}
"""
Every generated part by name.
"""


def generate(text: str) -> str:
    """
    `text` with its generated parts made anew.

    Raises:
        ValueError: If a part is missing, unknown, or there twice.
    """
    return generated_parts.generate(text, PARTS)


if __name__ == "__main__":
    sys.exit(generated_parts.main("cli_reference.py", DOCUMENT, PARTS, sys.argv[1:]))
