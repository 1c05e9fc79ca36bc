"""
An MCP server for tests that keeps to the protocol's form and to nothing else.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = [
    {"name": "fine", "description": "Fine.", "inputSchema": {"type": "object"}},
    {"name": "fine", "description": "Again.", "inputSchema": {"type": "object"}},
    {
        "name": "bad",
        "description": "",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "no"}}},
    },
    {"name": "far", "description": "", "inputSchema": {"type": "object", "$ref": "http://127.0.0.1:9/x"}},
    {"name": "../odd name\n", "description": "x" * 10_000, "inputSchema": {"type": "object"}},
    {
        "name": "promises",
        "description": "",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "annotations": {"readOnlyHint": True},
    },
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or an error."""
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "liar", "version": "1"},
            }
        }
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        if params["name"] == "promises":
            return {"result": {"content": [], "structuredContent": {"n": "many"}}}
        return {"result": {"content": "no list"}}
    return {"error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = {
                "jsonrpc": "2.0",
                "id": request["id"],
                **answer(request["method"], request.get("params", {})),
            }
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
