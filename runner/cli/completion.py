"""
`runner completion`: the script that teaches a shell our words.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from runner.cli.command import Verb

EXAMPLES = (
    "runner completion bash > runner.bash",
    'eval "$(runner completion bash)"',
)


@click.command("completion", cls=Verb, examples=EXAMPLES)
@click.argument("shell_name", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
def completion(shell_name: str) -> int:
    """
    Print the completion script for SHELL: bash, zsh, fish or powershell.
    """
    context = click.get_current_context().find_root()
    complete = get_completion_class(shell_name)
    assert complete is not None, shell_name  # noqa: S101 - the choices are click's own
    click.echo(complete(context.command, {}, "runner", "_RUNNER_COMPLETE").source())
    return 0
