"""
The flags that several verbs share, spelled and explained once.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from runner.cli.command import flag
from runner.cli.input import Source
from runner.cli.parameters import CHECKPOINT, COUNT, DURATION, FILE, PATH, SIZE, quantity_of, writable
from runner.errors import UsageError
from runner.units import show_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.cli.console import Console
    from runner.cli.shell import Shell, Wiring
    from runner.wiring.options import Options

_INPUT, _GRANTS, _TOOLS, _LIMITS, _MODEL, _STATE = "Input", "Grants", "Tools", "Limits", "Model", "State"

OWN_FLAGS: Final = {"memory_bytes": "--max-memory", "fuel": "--max-fuel", "timeout_ms": "--timeout"}
"""
Limits that have a flag to themselves; the others are set by `-W`.
"""


def input_flags(function: Any) -> Any:
    """
    INPUT and the other ways to give one.
    """
    return _apply(
        function,
        click.argument(
            "word", metavar="[INPUT]", required=False, help="What to deliver; - reads stdin. See --input-as."
        ),
        flag(
            "--input",
            metavar="TEXT",
            section=_INPUT,
            help="INPUT, for text that begins with a dash.",
        ),
        flag("--input-file", type=FILE, metavar="FILE", section=_INPUT, help="Read the input from FILE."),
        flag(
            "--input-as",
            type=click.Choice(["auto", "json", "text"]),
            default="auto",
            section=_INPUT,
            help="What the input's text is; auto: JSON if it is an object or an array, text otherwise.  "
            "[default: auto]",
        ),
    )


def grant_flags(function: Any) -> Any:
    """
    `--allow` and `--deny`.
    """
    return _apply(
        function,
        flag(
            "--allow",
            multiple=True,
            metavar="CAP[:SELECTOR]",
            section=_GRANTS,
            help="Grant a capability, or a part of it; repeatable.",
        ),
        flag(
            "--deny",
            multiple=True,
            metavar="CAP[:SELECTOR]",
            section=_GRANTS,
            help="Refuse it; wins over --allow. Repeatable.",
        ),
    )


def tool_flags(function: Any) -> Any:
    """
    Which tools there are; --allow says which of them an agent may use.
    """
    return _apply(
        function,
        flag(
            "--root",
            multiple=True,
            type=PATH,
            metavar="DIR",
            section=_TOOLS,
            help="Directory whose files tools may read. Repeatable.",
        ),
        flag(
            "--allow-write",
            multiple=True,
            type=PATH,
            metavar="DIR",
            section=_TOOLS,
            help="Directory whose files tools may write; reading them takes --root. Repeatable.",
        ),
        flag(
            "--http-host",
            multiple=True,
            metavar="HOST[:PORT]",
            section=_TOOLS,
            help="Host that tools may ask, as in example.com, *.example.com or 127.0.0.1:8080; addresses of "
            "private networks only where one is named. Repeatable.",
        ),
        flag(
            "--allow-command",
            multiple=True,
            metavar="PROGRAM",
            section=_TOOLS,
            help="Program that tools may run, outside of any sandbox: it can do what you can. Repeatable.",
        ),
        flag(
            "--tools",
            multiple=True,
            type=FILE,
            metavar="FILE",
            section=_TOOLS,
            help="Tools that are HTTP requests, as a manifest declares them. Repeatable.",
        ),
        flag(
            "--mcp-config",
            type=FILE,
            metavar="FILE",
            section=_TOOLS,
            help="MCP servers whose tools there are: a file with mcpServers.",
        ),
    )


def limit_flags(function: Any) -> Any:
    """
    The bounds of an instance and of its delivery.
    """
    return _apply(function, bound_flags, deadline_flag)


def bound_flags(function: Any) -> Any:
    """
    The bounds of an instance.
    """
    from runner.kernel.limits import Limits  # noqa: PLC0415 - plain data, but only these verbs need it

    default = Limits()
    return _apply(
        function,
        flag(
            "--max-memory",
            type=SIZE,
            metavar="SIZE",
            section=_LIMITS,
            help=f"Linear memory and tables.  [default: {_show(default.memory_bytes, 'memory_bytes')}]",
        ),
        flag(
            "--max-fuel",
            type=COUNT,
            metavar="COUNT",
            section=_LIMITS,
            help=f"Instructions per delivery, about one unit each.  [default: {_show(default.fuel, 'fuel')}]",
        ),
        flag(
            "--timeout",
            type=DURATION,
            metavar="DURATION",
            section=_LIMITS,
            help="The agent's own execution per delivery, waiting for the host excluded; bare numbers are "
            f"seconds.  [default: {_show(default.timeout_ms, 'timeout_ms')}]",
        ),
        flag(
            "--budget",
            multiple=True,
            metavar="KEY=VALUE,...",
            section=_LIMITS,
            help="What a new instance may spend on models in its life, its forks and restores included: "
            "tokens=10000, usd=0.5, calls=20 requests, wall=2m of waiting for them, and turns=5 of one "
            "llm.chat. Repeatable.",
        ),
        flag(
            "-W",
            "--limit",
            multiple=True,
            metavar="KEY=VALUE",
            section=_LIMITS,
            callback=_parse_limits,
            help="A rarer bound; repeatable. -W help lists them.",
        ),
    )


def deadline_flag(function: Any) -> Any:
    """
    `--deadline`.
    """
    return flag(
        "--deadline",
        type=DURATION,
        metavar="DURATION",
        section=_LIMITS,
        help="Wall time of the delivery, everything included.  [default: none]",
    )(function)


def model_flags(function: Any) -> Any:
    """
    Which model answers.
    """
    return _apply(
        function,
        flag(
            "-m",
            "--model",
            metavar="PROVIDER/MODEL",
            section=_MODEL,
            help="Model that answers llm calls; runner providers lists who there is. Granted with --allow "
            "llm:PROVIDER/MODEL.  [default: that of the configuration, or the scripted one]",
        ),
        flag(
            "--script",
            type=FILE,
            metavar="FILE",
            section=_MODEL,
            help="Answers of the scripted provider, which needs no key.",
        ),
        flag(
            "--persona",
            type=FILE,
            metavar="FILE",
            section=_MODEL,
            help="Text that stands above all that the agent tells a model; the agent can't drop it.",
        ),
    )


def snapshot_flags(function: Any) -> Any:
    """
    `--snapshot`.
    """
    return _apply(
        function,
        flag(
            "--snapshot",
            type=PATH,
            metavar="FILE",
            section=_STATE,
            help="Write a snapshot to FILE once the delivery has ended.",
        ),
    )


def ask_flag(function: Any) -> Any:
    """
    `--ask`.
    """
    return flag(
        "--ask",
        multiple=True,
        metavar="CAP[:SELECTOR]",
        section=_GRANTS,
        help="Of a named instance: a person approves each such call first. Repeatable.",
    )(function)


def naming_flags(function: Any) -> Any:
    """
    What makes a named instance: `--as` and `--ask`.
    """
    return _apply(
        function,
        ask_flag,
        flag(
            "--as",
            metavar="NAME",
            section=_STATE,
            help="Give the instance a name and a journal: it outlives this process, whatever ends it.",
        ),
    )


def deterministic_flag(function: Any) -> Any:
    """
    `--deterministic`.
    """
    return flag(
        "--deterministic",
        is_flag=True,
        section=_STATE,
        help="Keep the old stream of randomness, to repeat what happened.",
    )(function)


def state_flag(function: Any) -> Any:
    """
    `--state`.
    """
    return flag(
        "--state",
        type=PATH,
        metavar="DIR",
        section=_STATE,
        help="Where named instances live.  [default: the user's state directory]",
    )(function)


def state_flags(function: Any) -> Any:
    """
    `--state` and `--max-state`.
    """
    return _apply(
        function,
        state_flag,
        flag(
            "--max-state",
            type=SIZE,
            metavar="SIZE",
            section=_STATE,
            help="The most that the state directory's database may have; beyond it nothing more is kept, and "
            "the command fails.  [default: no bound]",
        ),
    )


def life_flags(function: Any) -> Any:
    """
    How a named instance goes on: `--state`, `--max-state`, `--checkpoint` and `--no-input`.
    """
    return _apply(
        function,
        state_flags,
        flag(
            "--checkpoint",
            type=CHECKPOINT,
            default="asked",
            metavar="WHEN",
            section=_STATE,
            help="When to keep a snapshot, which makes opening the instance faster: when asked by the agent, "
            "always after a delivery, or every so many records.  [default: asked]",
        ),
        flag(
            "--no-input",
            is_flag=True,
            section=_STATE,
            help="Never ask on the terminal; a call that waits for approval ends the command with 6.",
        ),
    )


def take_source(parameters: dict[str, Any]) -> Source:
    """
    The input flags, taken out of a verb's parameters.
    """
    return Source(
        word=parameters.pop("word"),
        option=parameters.pop("input"),
        file=parameters.pop("input_file"),
        form=parameters.pop("input_as"),
    )


class Naming(NamedTuple):
    """
    What the flags say of a named instance.

    Attributes:
        name: Its name, or `None` for an instance without one.
        ask: What a person must approve at each call.
        may_ask: Whether to ask on a terminal.
    """

    name: str | None
    ask: tuple[str, ...]
    may_ask: bool


def take_naming(parameters: dict[str, Any]) -> Naming:
    """
    The flags of a named instance, taken out of a verb's parameters.

    Raises:
        UsageError: If there is one that an instance without a name has no use for, or the other way round.
    """
    naming = Naming(
        name=parameters.pop("as"),
        ask=parameters.pop("ask"),
        may_ask=not parameters.pop("no_input"),
    )
    if naming.name is None and naming.ask:
        msg = "--ask is for instances with a name, which can wait for the answer"
        raise UsageError(msg, hint="add --as NAME")
    if naming.name is not None and parameters["snapshot"] is not None:
        msg = "--snapshot is for instances without a name"
        raise UsageError(msg, hint=f"afterwards: runner snapshot {naming.name} -o FILE")
    return naming


def take_options(
    wiring: Wiring, console: Console, parameters: dict[str, Any], shell: Shell | None = None
) -> Options:
    """
    All other shared flags as `runner.wiring.Options`; what is left of them must be fields of it.

    Args:
        wiring: Has the class.
        console: Takes what the agent logs.
        parameters: The verb's; emptied of the flags.
        shell: Hears of a termination, for a verb that may have a named instance.

    Raises:
        UsageError: If no snapshot can be written where one is asked for.
    """
    limits = take_limits(parameters)
    snapshot: Path | None = parameters.get("snapshot")
    if snapshot is not None:
        writable(snapshot, "--snapshot")
    return wiring.Options(
        limits=limits,
        **_take_common(shell, console, parameters),
    )


def take_limits(parameters: dict[str, Any]) -> dict[str, int]:
    """
    The bounds that the operator chose, by field of `Limits`, taken out of a verb's parameters.
    """
    own = {
        "memory_bytes": parameters.pop("max_memory"),
        "fuel": parameters.pop("max_fuel"),
        "timeout_ms": parameters.pop("timeout"),
    }
    limits: dict[str, int] = parameters.pop("limit")
    return limits | {name: value for name, value in own.items() if value is not None}


def take_life_options(wiring: Wiring, console: Console, parameters: dict[str, Any], shell: Shell) -> Options:
    """
    The flags of a verb that goes on with a named instance, as `runner.wiring.Options`.
    """
    return wiring.Options(**_take_common(shell, console, parameters))


def _take_common(shell: Shell | None, console: Console, parameters: dict[str, Any]) -> dict[str, Any]:
    stopping = {"stopping": shell.termination.is_requested} if shell else {}
    return {
        "deadline_ms": parameters.pop("deadline"),
        "max_state_bytes": parameters.pop("max_state", None),
        "on_log": lambda line: console.log(line.level, line.message, line.fields),
        "on_progress": console.note,
        **stopping,
        **parameters,
    }


def _parse_limits(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, int]:
    if "help" in words:
        click.echo(limits_help())
        ctx.exit()
    limits: dict[str, int] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            msg = f"{word!r} is not KEY=VALUE; -W help lists the keys"
            raise click.BadParameter(msg, ctx, param)
        if name in OWN_FLAGS:
            msg = f"{name} is set by {OWN_FLAGS[name]}"
            raise click.BadParameter(msg, ctx, param)
        if name not in _rare_limits():
            msg = f"no limit {name!r}; -W help lists them"
            raise click.BadParameter(msg, ctx, param)
        limits[name] = quantity_of(name).convert(text, param, ctx)
    return limits


def limits_help() -> str:
    """
    What `-W help` prints: each key with its default.
    """
    rows = [f"  {name:<22}{_show(value, name)}" for name, value in _rare_limits().items()]
    return "\n".join(["Limits for -W KEY=VALUE, with their defaults:", *rows])


def _rare_limits() -> dict[str, int]:
    from runner.kernel.limits import Limits  # noqa: PLC0415 - see `limit_flags`

    return {name: value for name, value in dataclasses.asdict(Limits()).items() if name not in OWN_FLAGS}


def _show(value: int, name: str) -> str:
    """
    A limit the way its flag takes it.
    """
    if name.endswith("_bytes"):
        return show_bytes(value).replace(".0 ", "").replace(" ", "")
    if name.endswith("_ms"):
        return f"{value // 1000}s"
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


def _apply(function: Any, *decorators: Callable[[Any], Any]) -> Any:
    """
    Put decorators on so that they are listed in this order.
    """
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
