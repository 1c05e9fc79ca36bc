"""
The command itself: finds a verb, and gives every way to end its exit code.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli.command import HELP_WIDTH, report
from runner.cli.console import Console, Display, discard_stdout
from runner.cli.envelope import RESULT_KEYS
from runner.cli.failures import classify, usage_lines
from runner.cli.shell import Shell
from runner.errors import EffectError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERBS: Final[dict[str, str]] = {
    "run": "Start an agent, deliver INPUT to it, and print what it answers.",
    "send": "Deliver INPUT to a named instance, and print what it answers.",
    "resume": "Go on with what a named instance was doing, and print what it answers.",
    "restore": "Wake an instance from SNAPSHOT, deliver INPUT to it, and print what it answers.",
    "chat": "Talk with an agent: each line that you type is delivered to it; its model's words show at once.",
    "usage": "Show what a named instance has used of models: requests, tokens and cost, by its journal.",
    "inspect": "Show what an agent, a snapshot or a named instance is: imports, limits, digests, sizes.",
    "ps": "List named instances: who they are, where they stand, and which process has them.",
    "approvals": "List the calls that a person has to rule on: those to approve, and those that may have "
    "happened or not.",
    "approve": "Allow a call that waits for approval; resume makes it.",
    "deny": "Refuse a call that waits for approval; resume tells the agent.",
    "resolve": "Say what became of a call that was begun and never reported: its process died in between.",
    "snapshot": "Write a named instance to a snapshot file, which restore takes here or on another machine.",
    "upgrade": "Let a named instance go on under another version of its agent, which takes over what it "
    "knows.",
    "fork": "Make a second instance that has the past of NAME up to a record, and a future of its own.",
    "journal": "Show the journal of a named instance: all that it learned, all that it asked for, and what "
    "came of it.",
    "replay": "Do all that a named instance did again, and print the digest of its memory after each slice.",
    "verify": "Do all that a named instance did again, and hold it against its journal.",
    "stop": "Stop a named instance; resume goes on with it.",
    "rm": "Remove named instances, with their journals and snapshots, for good.",
    "gc": "Remove old snapshots of named instances, and what nothing refers to any more.",
    "check": "Check that AGENT would be let in with these grants, without running it.",
    "tools": "List the tools that an agent would have with these flags.",
    "providers": "List whoever answers for models: where each is, its model, and whether it has a key.",
    "models": "List the models of PROVIDER, as it lists them itself.",
    "keys": "Store, list or remove the keys of providers; a key is bound to where its provider is.",
    "crashtest": "Kill AGENT's process at every boundary of its life, go on, and compare with a life that "
    "was left alone.",
    "build": "Build AGENT into one .wasm file: code, manifest and image.",
    "test": "Run the tests of the agent in DIR, each in a fresh instance.",
    "new": "Write a small working agent into DIR.",
    "doctor": "Check what runner needs on this machine, and say how to mend what is missing.",
    "completion": "Print the completion script for SHELL: bash, zsh, fish or powershell.",
    "schema": "Print a JSON description of exit codes, of the --json report, or of the error in it.",
}
"""
Every verb and the first line of its help, so that `runner --help` need not import them all; a test holds
the two together.
"""

_DISTRIBUTION: Final = "wasm-agent-runner"
_USAGE: Final = 2


@contextlib.contextmanager
def _writing_may_fail() -> Iterator[None]:
    """
    Tell a reader of a help text who left early from a disk that is full, as `Console.text` does.

    Click would end both with 1, which is an agent's failure.

    Raises:
        EffectError: If the text can't be written.
    """
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        discard_stdout()
        msg = f"can't write the result: {error.strerror}"
        raise EffectError(msg) from error


class LazyGroup(click.Group):
    """
    Imports the module of a verb when the verb is used.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """
        Parse the words before the verb.
        """
        with _writing_may_fail():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """
        Run the verb.
        """
        with _writing_may_fail():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """
        The verbs, in the order a newcomer meets them.
        """
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """
        The verb of this name, if there is one.
        """
        del ctx
        if cmd_name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"runner.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command), cmd_name  # noqa: S101 - ours, not the user's
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """
        Find the verb; what is close to none of them gets the nearest ones named.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # Click only looks among commands that were imported.
            raise click.NoSuchCommand(error.command_name, possibilities=VERBS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """
        Write the verbs from the table.
        """
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    from runner.cli.version import version_line  # noqa: PLC0415 - reads installed metadata

    click.echo(version_line(_DISTRIBUTION))
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"max_content_width": HELP_WIDTH},
    epilog="Every flag --some-flag of a command can also be set as RUNNER_SOME_FLAG. "
    "Exit codes: runner schema exit-codes.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version of runner and of what it stands on.",
)
def app() -> None:
    """
    Run agents that nobody has reason to trust: WebAssembly modules that can do nothing but ask.
    """


def run_command_line(arguments: Sequence[str], shell: Shell | None = None) -> int:
    """
    Run one command and return its exit code.

    Args:
        arguments: The words after `runner`.
        shell: What the verbs have around them.
    """
    shell = shell or Shell()
    shell.termination.install()
    # What fails out here fails before the flags are known.
    console = Console(Display())
    try:
        outcome: Any = app.main(
            list(arguments),
            prog_name="runner",
            complete_var="_RUNNER_COMPLETE",
            standalone_mode=False,
            obj=shell,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        console.text(error.format_message())
        return _USAGE
    except click.ClickException as error:
        console.error(usage_lines(error), {"message": error.format_message()})
        return _USAGE
    except click.Abort:
        return report(classify(KeyboardInterrupt(), shell.termination), console, RESULT_KEYS)
    except (Exception, KeyboardInterrupt) as cause:  # noqa: BLE001 - the last place to catch it
        return report(classify(cause, shell.termination), console, RESULT_KEYS)
    return outcome if isinstance(outcome, int) else 0
