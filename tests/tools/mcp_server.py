"""
An MCP server for tests, written with the official SDK: `python mcp_server.py MODE`.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from mcp.server.mcpserver import Context, MCPServer


def build() -> MCPServer:
    """A server whose tools behave in several ways."""
    server = MCPServer("tester")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool(structured_output=False)
    def greet(name: str) -> str:
        """Greets."""
        return f"hello {name}"

    @server.tool(structured_output=False)
    def environment() -> str:
        """What the server has in its environment."""
        return "\n".join(sorted(os.environ))

    @server.tool(structured_output=False)
    def secret() -> str:
        """Tells a secret that it was given."""
        return f"it is {os.environ.get('TESTER_KEY', '')}"

    @server.tool(structured_output=False)
    def fails() -> str:
        """Fails."""
        raise ValueError("no luck")

    @server.tool(structured_output=False)
    def dies() -> str:
        """Ends the process."""
        os._exit(3)

    @server.tool(structured_output=False)
    def huge() -> str:
        """Answers with more than anybody wants."""
        return "x" * 6_000_000

    @server.tool(structured_output=False)
    async def hangs() -> str:
        """Never answers."""
        import anyio

        await anyio.sleep_forever()
        return ""

    @server.tool(structured_output=False)
    async def grow(ctx: Context) -> str:
        """Adds a tool, and says so."""
        server.add_tool(lambda: "new", name="grown", description="New.", structured_output=False)
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "grown"

    return server


def main(arguments: list[str]) -> None:
    """Serve on standard streams, or misbehave."""
    mode = arguments[0] if arguments else "stdio"
    if mode == "dead":
        sys.exit(1)
    if mode == "hangs":
        time.sleep(3600)
    if mode == "noise":
        sys.stdout.write("this is no JSON\n")
        sys.stdout.flush()
    server: Any = build()
    if mode == "http":
        server.run(transport="streamable-http", host="127.0.0.1", port=int(arguments[1]))
    else:
        server.run(transport="stdio")


if __name__ == "__main__":
    main(sys.argv[1:])
