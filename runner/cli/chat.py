"""
`runner chat`: a conversation with an agent, on a terminal.

Each line is one delivery to a named instance. So all of it is in a journal, and the next `chat` goes on.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import flags, jsonform
from runner.cli.asking import see_through
from runner.cli.command import Verb, shows_output
from runner.cli.failures import classify, lines_of
from runner.cli.parameters import existing
from runner.cli.scrub import scrub
from runner.cli.shell import Shell
from runner.errors import Interrupted, RunnerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.cli.console import Console
    from runner.cli.shell import Wiring
    from runner.codec import Value
    from runner.wiring.options import Options, Report

EXAMPLES = (
    "runner chat guests/hello --as clerk",
    "runner chat tally",
)

_PROMPT: Final = "> "
_SHOWN_CHARACTERS: Final = 100
_OF_BIRTH: Final = ("allow", "deny", "ask", "budget", "as")


@click.command("chat", cls=Verb, examples=EXAMPLES)
@click.argument("agent", metavar="AGENT|NAME", help="An agent, or a named instance to go on with.")
@flags.grant_flags
@flags.limit_flags
@flags.model_flags
@flags.tool_flags
@flags.naming_flags
@flags.life_flags
@shows_output()
def chat(shell: Shell, console: Console, agent: str, **parameters: Any) -> int:
    """
    Talk with an agent: each line that you type is delivered to it; its model's words show at once.

    Ctrl-C stops what it does, and twice leaves, as the end of input does. An agent gets an instance with a
    name, by --as or one of its own; chat NAME goes on with it.
    """
    wiring = shell.wiring()
    is_known = wiring.is_instance(agent, state=parameters["state"])
    given = [name for name in _OF_BIRTH if parameters[name]]
    if is_known and given:
        msg = f"{agent} keeps what it was made with: --{given[0]} is for a new instance"
        raise UsageError(msg)
    name = agent if is_known else parameters["as"] or f"chat-{secrets.token_hex(3)}"
    ask, may_ask = parameters.pop("ask"), not parameters.pop("no_input")
    del parameters["as"]
    if not is_known:
        existing(Path(agent), "agent")
    screen = _Screen(console)
    options = flags.take_options(wiring, console, parameters | {"on_model": screen.take}, shell)
    talk = _Talk(shell, console, wiring, options, screen, name, may_ask=may_ask)
    talk.start = None if is_known else lambda value: wiring.run_named(Path(agent), name, value, options, ask)
    return talk.go()


class _Screen:
    """
    What a model says and does, while it does.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_open = False
        self.said = ""

    def take(self, kind: str, value: Value) -> None:
        """
        One event.
        """
        if kind == "text":
            self.said += value
            self._is_open = True
            self._console.piece(scrub(value))
        elif kind == "turn":
            self.close()
        elif kind == "tool":
            self.close()
            arguments = jsonform.dumps(value["arguments"])[:_SHOWN_CHARACTERS]
            self._console.note(f"tool {value['name']} {arguments}")
            self.said = ""

    def close(self) -> None:
        """
        End the line, if one is begun.
        """
        if self._is_open:
            self._console.piece("\n")
            self._is_open = False


class _Talk:
    """
    One conversation.
    """

    def __init__(
        self,
        shell: Shell,
        console: Console,
        wiring: Wiring,
        options: Options,
        screen: _Screen,
        name: str,
        *,
        may_ask: bool,
    ) -> None:
        self._shell = shell
        self._console = console
        self._wiring = wiring
        self._options = options
        self._screen = screen
        self._name = name
        self._may_ask = may_ask
        self._used: dict[str, Any] = {}
        # Makes the instance, for the first line.
        self.start: Callable[[str], Report] | None = None

    def go(self) -> int:
        """
        Until the person leaves.
        """
        was_stopped = False
        while True:
            try:
                line = self._console.read_line(_PROMPT)
            except KeyboardInterrupt:
                if was_stopped:
                    break
                was_stopped = True
                self._console.note("Ctrl-C again leaves")
                continue
            if line is None:
                break
            if line.strip():
                was_stopped = self._say(line)
        self._console.note(f"left {self._name}", hint=f"go on with: runner chat {self._name}")
        return 0

    def _say(self, line: str) -> bool:
        """
        Deliver one line; whether the person stopped it.
        """
        self._screen.said = ""
        try:
            report = self._deliver(line)
        except (RunnerError, KeyboardInterrupt) as cause:
            self._screen.close()
            failure = classify(cause, self._shell.termination)
            if self._shell.termination.requested:
                raise
            if isinstance(failure.error, Interrupted):
                self._console.note("stopped; Ctrl-C again leaves")
                return True
            self._console.error(lines_of(failure, self._console.display.verbosity), failure.to_wire())
            return False
        self._screen.close()
        if report.result != self._screen.said:
            self._console.result(report.result)
        self._tell_cost(report.usage)
        return False

    def _deliver(self, line: str) -> Report:
        start = self.start
        if start is not None and not self._wiring.is_instance(self._name, state=self._options.state):
            go: Callable[[], Report] = lambda: start(line)  # noqa: E731 - as short as it gets
        else:
            go = lambda: self._wiring.send(self._name, line, self._options)  # noqa: E731 - likewise
        return see_through(self._wiring, self._console, self._options, go, value=line, may_ask=self._may_ask)

    def _tell_cost(self, used: dict[str, Any]) -> None:
        """
        What the line cost, as far as that is known.
        """
        before, self._used = self._used, used
        if used["calls"] == before.get("calls", 0):
            return
        read, written = used["input_tokens"], used["output_tokens"]
        tokens = "unknown" if read is None or written is None else f"{read} read, {written} written"
        cost = f", ${used['cost_usd']:.4f}" if "cost_usd" in used else ""
        self._console.note(f"{used['calls']} requests so far; tokens: {tokens}{cost}")
