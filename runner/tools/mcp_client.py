"""
Tools of MCP servers, through the official SDK.

A server is a stranger, though an operator named it: it may be dead, hang, die in the middle, lie about its
tools or answer with anything. Whatever it does is a failure of its own: its tools are absent, or a call of
one fails. What it says of its tools' effects is not believed either: each may do anything.

Input: descriptions, schemas and answers of servers.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio

from runner.package.fields import FieldProblem
from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.tools.schema import ValidatorMissing, check_against
from runner.units import MIB

if TYPE_CHECKING:
    import mcp
    from anyio.abc import TaskStatus

    from runner.tools.mcp_config import McpServer
    from runner.tools.registry import ToolRegistry

CONNECT_MS: Final = 15_000
CALL_MS: Final = 60_000

_ANSWER_BYTES: Final = 4 * MIB
_MAX_TOOLS: Final = 256
_MAX_PAGES: Final = 20
_MAX_DESCRIPTION_CHARACTERS: Final = 4_096
_MAX_MESSAGE_CHARACTERS: Final = 400
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


class McpServers:
    """
    Some servers, as one source of tools.

    Args:
        servers: As the file names them.
        warn: Hears what is wrong with one.
        connect_ms: How long one may take to tell its tools.
        call_ms: How long a call may take.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        warn: Callable[[str], None],
        *,
        connect_ms: int = CONNECT_MS,
        call_ms: int = CALL_MS,
    ) -> None:
        self._servers = tuple(servers)
        self._warn = warn
        self._connect_ms = connect_ms
        self._call_ms = call_ms

    @asynccontextmanager
    async def source(self, registry: ToolRegistry) -> AsyncIterator[None]:
        """
        Start the servers all at once, and go on when each has told its tools or had its time.
        """
        # What the SDK logs has words of strangers in it.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        async with anyio.create_task_group() as tasks:
            ready = []
            for server in self._servers:
                connection = _Connection(server, registry, self._warn, self._connect_ms, self._call_ms)
                ready.append(connection.ready)
                tasks.start_soon(connection.keep)
            for event in ready:
                await event.wait()
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()


class _Connection:
    """
    One server, from its start to its end. A task of its own keeps it, because what the SDK opens must be
    closed where it was opened.
    """

    def __init__(
        self,
        server: McpServer,
        registry: ToolRegistry,
        warn: Callable[[str], None],
        connect_ms: int,
        call_ms: int,
    ) -> None:
        self._server = server
        self._registry = registry
        self._warn = warn
        self._connect_ms = connect_ms
        self._call_ms = call_ms
        self._changed = anyio.Event()
        self._tools: dict[str, str] = {}
        self.ready = anyio.Event()

    @property
    def _source(self) -> str:
        return f"mcp server {self._server.name}"

    async def keep(self) -> None:
        try:
            await self._keep()
        except Exception as error:  # noqa: BLE001 - whatever a server does is a failure of its own
            self._say(f"its tools are absent: {_words(error)}")
        finally:
            self._registry.replace(self._source, ())
            self.ready.set()

    async def _keep(self) -> None:
        if self._server.missing is not None:
            self._say(f"its tools are absent: the variable {self._server.missing} is not set")
            return
        with anyio.CancelScope() as scope:
            scope.deadline = anyio.current_time() + self._connect_ms / 1000
            async with AsyncExitStack() as stack:
                client = await self._connect(stack)
                tasks = await stack.enter_async_context(anyio.create_task_group())
                # First, or a change in between would be lost.
                await tasks.start(self._listen, client)
                await self._list(client)
                scope.deadline = float("inf")
                self.ready.set()
                await self._heed_changes(client)
        if scope.cancelled_caught:
            self._say(f"its tools are absent: it said nothing for {self._connect_ms} ms")

    async def _connect(self, stack: AsyncExitStack) -> mcp.Client:
        import mcp  # noqa: PLC0415 - an extra

        async def heed(message: Any) -> None:
            if isinstance(message, mcp.types.ToolListChangedNotification):
                self._changed.set()

        transport = await self._transport(stack)
        client = mcp.Client(
            transport, message_handler=heed, read_timeout_seconds=self._connect_ms / 1000, cache=None
        )
        return await stack.enter_async_context(client)

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server = self._server
        if server.kind == "stdio":
            from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415 - an extra

            parameters = StdioServerParameters(
                command=server.command[0],
                args=list(server.command[1:]),
                # The SDK adds what a program needs to be found and to run, and no more of ours.
                env=dict(server.env),
                cwd=server.cwd,
                encoding_error_handler="replace",
            )
            return stdio_client(parameters, errlog=stack.enter_context(_silence()))
        import httpx2  # noqa: PLC0415 - what the SDK speaks HTTP with
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - an extra

        timeout = httpx2.Timeout(self._connect_ms / 1000, read=self._call_ms / 1000)
        http = httpx2.AsyncClient(headers=dict(server.headers), trust_env=False, timeout=timeout)
        return streamable_http_client(server.url, http_client=await stack.enter_async_context(http))

    async def _listen(
        self, client: mcp.Client, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """
        Hear of changes where the protocol has a stream for them; elsewhere they come as messages.
        """
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost  # noqa: PLC0415
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - an extra

        is_told = False
        try:
            async with client.listen(tools_list_changed=True) as events:
                task_status.started()
                is_told = True
                async for _ in events:
                    self._changed.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError):
            pass
        if not is_told:
            task_status.started()

    async def _heed_changes(self, client: mcp.Client) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                with anyio.fail_after(self._connect_ms / 1000):
                    await self._list(client)
            except Exception as error:  # noqa: BLE001 - see `keep`
                self._registry.replace(self._source, ())
                self._say(f"its tools are absent: they changed, and can't be listed: {_words(error)}")

    async def _list(self, client: mcp.Client) -> None:
        listed: list[Any] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > _MAX_TOOLS:
                break
        if len(listed) > _MAX_TOOLS:
            self._say(f"it has more than {_MAX_TOOLS} tools; the rest are absent")
        tools = [tool for one in listed[:_MAX_TOOLS] if (tool := self._tool(client, one)) is not None]
        for problem in self._registry.replace(self._source, tools):
            self._say(problem)

    def _tool(self, client: mcp.Client, listed: Any) -> Tool | None:
        name = f"mcp__{_fit(self._server.name)}__{_fit(listed.name)}"
        try:
            check = check_against(listed.input_schema)
            check_result = None if listed.output_schema is None else check_against(listed.output_schema)
        except FieldProblem as problem:
            self._say(f"its tool {_cut(listed.name)} is absent: {problem.problem}")
            return None
        except ValidatorMissing:
            self._say("its tools are absent: pip install 'wasm-agent-runner[tools]'")
            return None

        async def work(arguments: Any, context: ToolContext) -> Any:
            return await self._call(
                client, listed.name, arguments, context, has_shape=check_result is not None
            )

        return Tool(
            name=name,
            description=self._server.redactor.text(listed.description or "")[:_MAX_DESCRIPTION_CHARACTERS],
            input_schema=self._server.redactor.value(dict(listed.input_schema)),
            check=check,
            work=work,
            source=self._source,
            timeout_ms=self._call_ms,
            max_output_bytes=_ANSWER_BYTES,
            check_result=check_result,
        )

    async def _call(
        self, client: mcp.Client, name: str, arguments: Any, context: ToolContext, *, has_shape: bool
    ) -> Any:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - an extra

        redactor = self._server.redactor
        meta: Any = {"idempotencyKey": context.idempotency_key} if context.idempotency_key else None
        try:
            result = await client.call_tool(
                name,
                arguments,
                # The registry's own deadline comes first.
                read_timeout_seconds=2 * self._call_ms / 1000,
                meta=meta,
            )
        except MCPError as error:
            raise ToolFailure("failed", f"{self._source}: {_cut(redactor.text(error.message))}") from error
        except Exception as error:
            raise ToolFailure("failed", f"{self._source}: {redactor.text(_words(error))}") from error
        told = redactor.value(_told(result.content))
        if result.is_error:
            message = told if isinstance(told, str) else "the tool failed"
            raise ToolFailure("failed", _cut(message) or "the tool failed")
        if has_shape:
            return redactor.value(result.structured_content)
        return told

    def _say(self, problem: str) -> None:
        self._warn(f"{self._source}: {self._server.redactor.text(problem)}")


@contextmanager
def _silence() -> Iterator[TextIO]:
    """
    Where what a server says on the side goes: words of a stranger are nothing for a terminal.
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        yield nowhere


def _told(blocks: Iterable[Any]) -> Any:
    """
    What a server answered: text if it is nothing else.
    """
    told = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]
    if all(block.get("type") == "text" for block in told):
        return "\n".join(str(block.get("text", "")) for block in told)
    return told


def _fit(name: str) -> str:
    return _UNFIT.sub("_", name)


def _cut(text: str) -> str:
    return text[:_MAX_MESSAGE_CHARACTERS]


def _words(error: BaseException) -> str:
    """
    What an error says; of a group, its first one.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return _cut(str(error) or type(error).__name__)
