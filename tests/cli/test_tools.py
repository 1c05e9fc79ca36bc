"""
`runner tools`, and the flags that say which tools there are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    {
        "name": "fetch_url",
        "effect": "idempotent",
        "timeout_ms": 30_000,
        "source": "built-in",
        "granted": False,
        "description": "Reads a page.",
        "input_schema": {"type": "object"},
    },
    {
        "name": "read_file",
        "effect": "pure",
        "timeout_ms": 30_000,
        "source": "built-in",
        "granted": True,
        "description": "Reads a file.",
        "input_schema": {"type": "object"},
    },
]

FLAGS = (
    "--root", "a", "--root", "b", "--allow-write", "c", "--http-host", "example.com", "--http-host", "::1",
    "--allow-command", "ls", "--tools", "t.toml", "--mcp-config", "m.json",
)  # fmt: skip


def test_a_person_sees_what_is_granted_and_hears_what_is_not(command: Any, wiring: Any):
    """Each with its effect and where it comes from."""
    wiring.answer = lambda: ROWS
    outcome = command("tools", "--allow", "tool:read_*")
    assert (outcome.code, outcome.stdout) == (
        0,
        "name       effect  source    description\nread_file  pure    built-in  Reads a file.\n",
    )
    assert "not granted: fetch_url" in outcome.stderr
    assert "grant one with --allow tool:fetch_url" in outcome.stderr


def test_a_program_gets_what_is_granted_as_one_document(command: Any, wiring: Any):
    """With schemas, and how many there are beside."""
    wiring.answer = lambda: ROWS
    document = json.loads(command("tools", "--json").stdout)
    assert document["ok"] is True
    assert document["result"]["counts"] == {"granted": 1, "not_granted": 1}
    assert document["result"]["rows"] == [{k: v for k, v in ROWS[1].items() if k != "granted"}]


@pytest.mark.parametrize(
    "words", [("run", "agent"), ("send", "rex", "hi"), ("resume", "rex"), ("restore", "x.snap"), ("tools",)]
)
def test_every_flag_of_tools_reaches_its_option(command: Any, wiring: Any, words: tuple[str, ...]):
    """On every verb that goes on with an instance."""
    for name in ("t.toml", "m.json", "x.snap"):
        Path(name).touch()
    if words == ("tools",):
        wiring.answer = lambda: ROWS
    outcome = command(*words, *FLAGS)
    assert outcome.code == 0, outcome.stderr
    options = next(value for value in wiring.asked[0] if isinstance(value, wiring.Options))
    assert (options.root, options.allow_write) == ((Path("a"), Path("b")), (Path("c"),))
    assert (options.http_host, options.allow_command) == (("example.com", "::1"), ("ls",))
    assert (options.tools, options.mcp_config) == ((Path("t.toml"),), Path("m.json"))
