"""
`runner tools`: what an agent would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli import flags
from runner.cli.command import Verb, shows_output
from runner.cli.describe import table
from runner.cli.envelope import listing, result_document
from runner.cli.shell import Shell

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner tools --allow tool --root .",
    "runner tools --allow 'tool:*_file' --root guests --allow-write . --json",
    "runner tools --allow tool:fetch_url --http-host '*.example.com'",
)


@click.command("tools", cls=Verb, examples=EXAMPLES)
@flags.grant_flags
@flags.tool_flags
@shows_output()
def tools(shell: Shell, console: Console, **parameters: Any) -> int:
    """
    List the tools that an agent would have with these flags.

    A tool has to be there, by a flag that says how far it reaches, and granted, by --allow. MCP servers are
    started for the list, and ended. The effect says what happens when a call is begun and never reported:
    pure and idempotent ones are made again, of an effectful one a person says what became of it.
    """
    wiring = shell.wiring()
    # No agent runs here: what is logged is what the host has to say of servers.
    options = wiring.Options(on_log=lambda line: console.note(line.message), **parameters)
    rows = wiring.list_tools(options)
    granted = [
        {name: value for name, value in row.items() if name != "granted"} for row in rows if row["granted"]
    ]
    if console.display.as_json:
        counts = {"granted": len(granted), "not_granted": len(rows) - len(granted)}
        console.document(result_document(listing(granted, counts)))
        return 0
    if granted:
        columns = ("name", "effect", "source", "description")
        console.text("\n".join(table([{name: row[name] for name in columns} for row in granted])))
    left = [row["name"] for row in rows if not row["granted"]]
    if left:
        console.note(f"not granted: {', '.join(left)}", hint=f"grant one with --allow tool:{left[0]}")
    return 0
