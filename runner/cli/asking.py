"""
What waits for a person: asked on a terminal, or told with the command that answers it.

Everything is durable before anybody is asked. So asking is nothing but `approve` or `deny`, and then
`resume`: who walks away, or is interrupted, finds it as it was.
"""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.core import ParameterSource

from runner.cli import jsonform
from runner.cli.scrub import scrub, scrub_line
from runner.errors import ApprovalPending, EffectUncertain, NeedsDecision, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.cli.console import Console
    from runner.cli.shell import Wiring
    from runner.codec import Value
    from runner.wiring.options import Options, Report

_SAID_NO: Final = "a person said no"


def see_through(
    wiring: Wiring,
    console: Console,
    options: Options,
    start: Callable[[], Report],
    *,
    value: Value = None,
    may_ask: bool,
) -> Report:
    """
    Start, and go on after each answer until nothing waits for a person.

    Args:
        wiring: Does the work.
        console: Asks.
        options: Choices for each part of the way.
        start: The first part.
        value: The message; sent again if it could not be delivered before an answer.
        may_ask: Whether to ask on a terminal.

    Raises:
        NeedsDecision: If nobody was there to ask, or nobody answered; its hint is the next command.
        RunnerError: As `start`.
    """
    go = start
    while True:
        try:
            return go()
        except NeedsDecision as error:
            pending = error
        name = str(pending.details["instance"])
        is_answered = (
            isinstance(pending, ApprovalPending)
            and may_ask
            and console.can_ask
            and _ask_all(wiring, console, name, options)
        )
        if not is_answered:
            pending.hint = next_command(pending, _typed_state(options))
            raise pending
        was_delivered = pending.details.get("delivered", True)
        go = _going_on(wiring, name, options) if was_delivered else _sending(wiring, name, value, options)


def next_command(pending: NeedsDecision, state: Path | None) -> str:
    """
    What to type, as it stands.
    """
    tail = shlex.join(["--state", str(state)]) if state else ""
    name, call = str(pending.details["instance"]), pending.calls[0]
    go_on = f"runner resume {name} {tail}".rstrip()
    if isinstance(pending, EffectUncertain):
        resolve = f"runner resolve {name} {call} {tail}".rstrip()
        return f"find out, then: {resolve} --rerun | --done RESULT | --abandon; then: {go_on}"
    return f"{f'runner approve {name} {call} {tail}'.rstrip()} && {go_on}"


def _typed_state(options: Options) -> Path | None:
    """
    The state directory, if it must be typed again: the environment is there for the next command too.
    """
    context = click.get_current_context()
    return options.state if context.get_parameter_source("state") is ParameterSource.COMMANDLINE else None


def show_call(row: dict[str, Any]) -> str:
    """
    All of a call that waits, safe on a terminal.
    """
    request = jsonform.dumps(row["request"], indent=2)
    head = f"{row['instance']} asks for {row['operation']} (call {row['call']}):"
    return f"{scrub_line(head)}\n{scrub(request)}"


def _ask_all(wiring: Wiring, console: Console, name: str, options: Options) -> bool:
    """
    Ask for each call that waits; whether one was answered and none was left.
    """
    for row in wiring.approvals(name, state=options.state):
        if row["question"] != "approve":
            continue
        answer = console.ask(show_call(row), "Allow it?")
        if answer is None:
            return False
        verdict: Literal["allow", "deny"] = "allow" if answer else "deny"
        because = None if answer else _SAID_NO
        # Somebody else may have ruled meanwhile; the first verdict stands.
        with contextlib.suppress(UsageError):
            wiring.rule_on(name, row["call"], verdict, because=because, state=options.state)
    return True


def _going_on(wiring: Wiring, name: str, options: Options) -> Callable[[], Report]:
    return lambda: wiring.resume(name, options)


def _sending(wiring: Wiring, name: str, value: Value, options: Options) -> Callable[[], Report]:
    return lambda: wiring.send(name, value, options)
