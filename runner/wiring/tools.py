"""
Which tools there are, by what the operator named on the command line.

What no flag speaks of is not built, and its libraries are not loaded.
"""

from __future__ import annotations

from functools import partial
from importlib import util
from typing import TYPE_CHECKING, Any, Final

import anyio

from runner import codec
from runner.errors import UsageError
from runner.kernel.abi import LogLevel
from runner.kernel.slice import LogLine
from runner.policy.grants import Grants
from runner.session.recovery import Execute
from runner.session.session import wall_clock_ms
from runner.tools.clock import clock_tool
from runner.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from pathlib import Path

    from runner.tools.base import Tool
    from runner.tools.registry import Source
    from runner.wiring.line import Past
    from runner.wiring.options import Options

_FLAGS: Final = {
    "read_file": "--root",
    "list_directory": "--root",
    "grep_files": "--root",
    "write_file": "--allow-write",
    "edit_file": "--root and --allow-write",
    "http_request": "--http-host",
    "fetch_url": "--http-host",
    "run_command": "--allow-command",
}


def registry_of(options: Options, identity: bytes) -> ToolRegistry:
    """
    The tools that the options make available; whether an agent may use them is for its grants to say.

    Args:
        options: Choices for this command.
        identity: What makes this instance unlike any other, for idempotency keys.

    Raises:
        UsageError: If a flag names what is not there, or two tools have one name.
    """
    tools: list[Tool] = [clock_tool(wall_clock_ms), *options.own_tools]
    sources: list[Source] = []
    if options.root or options.allow_write or options.allow_command:
        _add_local(options, tools, sources)
    if options.http_host:
        from runner.tools.hosts import HostGrants  # noqa: PLC0415 - only with a flag
        from runner.tools.web import web_tools  # noqa: PLC0415 - likewise

        tools += web_tools(HostGrants(options.http_host))
    if options.tools:
        from runner.tools.manifest import manifest_tools  # noqa: PLC0415 - only with a flag

        for path in options.tools:
            tools += manifest_tools(path)
    if options.mcp_config is not None:
        sources.append(_servers(options, options.mcp_config))
    return ToolRegistry(tools, sources, identity=identity)


def _servers(options: Options, path: Path) -> Source:
    from runner.tools.mcp_client import McpServers  # noqa: PLC0415 - only with a flag
    from runner.tools.mcp_config import read_config  # noqa: PLC0415 - likewise

    servers = read_config(path)
    if servers and util.find_spec("mcp") is None:
        msg = f"{path}: MCP servers need a package that is not installed"
        raise UsageError(msg, hint="pip install 'wasm-agent-runner[mcp]'")
    return McpServers(servers, partial(warn, options)).source


def _add_local(options: Options, tools: list[Tool], sources: list[Source]) -> None:
    from runner.tools.reading import read_tools  # noqa: PLC0415 - only with a flag
    from runner.tools.rooted import Roots  # noqa: PLC0415 - likewise
    from runner.tools.writing import write_tools  # noqa: PLC0415 - likewise

    read, written = Roots(options.root), Roots(options.allow_write)
    sources += [read.source, written.source]
    if read:
        tools += read_tools(read)
    if written:
        tools += write_tools(written, read)
    if options.allow_command:
        from runner.tools.commands import Commands  # noqa: PLC0415 - likewise

        commands = Commands(options.allow_command, written, read)
        tools.append(commands.tool())
        sources.append(commands.source)


def check_wanted(past: Past, registry: ToolRegistry) -> None:
    """
    Refuse to go on where a call that is to be made now, by a person's word or once more, needs a tool whose
    flag was not given again: the agent would be told that there is no such tool, and the word would be
    lost.

    Raises:
        UsageError: Then.
    """
    for call in past.machine.calls:
        if call.operation != "tool.call" or not isinstance(past.fold.history.action(call.number), Execute):
            continue
        name = codec.decode(call.request).get("name")
        flag = flag_of(name) if isinstance(name, str) else None
        if flag is not None and registry.get(name) is None:
            msg = f"call {call.number} of {past.name} needs the tool {name}, which is not there"
            raise UsageError(msg, hint=f"give its flag again: {flag}", instance=past.name, call=call.number)


def flag_of(name: str) -> str | None:
    """
    The flag that makes a tool exist, if its name says so.
    """
    return "--mcp-config" if name.startswith("mcp__") else _FLAGS.get(name)


def list_tools(options: Options) -> list[dict[str, Any]]:
    """
    What an agent would have under these options: `name`, `effect`, `timeout_ms`, `source`, `granted`,
    `description` and `input_schema`, row by row; servers are started for it, and ended.

    Raises:
        RunnerError: If a flag names what is not there.
    """
    grants = Grants.parse(options.allow, options.deny)

    async def look() -> tuple[Tool, ...]:
        async with registry_of(options, b"") as registry:
            return registry.tools

    return [
        {
            "name": tool.name,
            "effect": tool.effect,
            "timeout_ms": tool.timeout_ms,
            "source": tool.source,
            "granted": grants.decide_tool(tool.name).allowed,
            "description": tool.description,
            "input_schema": dict(tool.input_schema),
        }
        for tool in anyio.run(look)
    ]


def warn(options: Options, message: str) -> None:
    """
    Tell the operator what is not as it was asked for; the run goes on.
    """
    options.on_log(LogLine(LogLevel.WARNING, message))
