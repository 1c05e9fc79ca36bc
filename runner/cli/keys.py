"""
`runner keys`: keys of providers, kept in a file of the user's own.
"""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Final

import click

from runner.cli.command import Verb, shows_output
from runner.cli.describe import table
from runner.cli.envelope import listing, result_document
from runner.cli.shell import Shell
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.cli.console import Console

EXAMPLES = (
    "runner keys list",
    "printf %s a-key | runner keys set anthropic",
)

_MOST_BYTES: Final = 1 << 16


@click.command("keys", cls=Verb, examples=EXAMPLES)
@click.argument("action", type=click.Choice(["set", "list", "remove"]), help="What to do.")
@click.argument("provider", metavar="[PROVIDER]", required=False, help="A provider; not for list.")
@shows_output()
def keys(shell: Shell, console: Console, action: str, provider: str | None) -> int:
    """
    Store, list or remove the keys of providers; a key is bound to where its provider is.

    set reads the key from stdin, or asks for it on the terminal; never from the command line, where others
    can see it. It is sent to that origin and nowhere else: when a provider's address changes, its key must be
    set again. list shows no keys.
    """
    wiring = shell.wiring()
    if action == "list":
        if provider is not None:
            msg = "list takes no provider"
            raise UsageError(msg, hint="runner keys list")
        rows = wiring.list_keys()
        if console.display.as_json:
            console.document(result_document(listing(rows, {"keys": len(rows)})))
        elif rows:
            console.text("\n".join(table(rows)))
        else:
            console.note("no keys are stored", hint="store one: runner keys set PROVIDER")
        return 0
    if provider is None:
        msg = f"{action} needs a provider"
        raise UsageError(msg, hint=f"runner keys {action} PROVIDER")
    facts = wiring.remove_key(provider) if action == "remove" else wiring.set_key(provider, _read(provider))
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        where = f" for {facts['origin']}" if action == "set" else ""
        console.note(f"the key of {provider} is {'stored' if action == 'set' else 'removed'}{where}")
    return 0


def _read(provider: str) -> str:
    """
    The key: typed unseen, or all that stdin has.
    """
    stdin = sys.stdin
    if stdin is not None and stdin.isatty():
        return getpass.getpass(f"key of {provider}: ").strip()
    # As bytes: what is wrong with it must not be quoted by a decoder.
    data = b"" if stdin is None else stdin.buffer.read(_MOST_BYTES)
    try:
        return data.decode("ascii").strip()
    except UnicodeDecodeError:
        msg = "that is no key: a key is one word of plain characters"
        raise UsageError(msg) from None
