"""
MCP servers as sources of tools: real ones in processes of their own, and each way in which one can go wrong.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner.errors import ConfigError
from runner.tools.base import ToolFailure, ToolOverran
from runner.tools.mcp_client import McpServers
from runner.tools.mcp_config import read_config
from runner.tools.registry import ToolRegistry

HERE = Path(__file__).parent
SERVER = str(HERE / "mcp_server.py")
LIAR = str(HERE / "mcp_liar.py")

Configure = Callable[[dict[str, Any]], Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Writes the common file."""

    def write(servers: dict[str, Any]) -> Path:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        return path

    return write


def child(*words: str, **more: Any) -> dict[str, Any]:
    """A server that is a child process."""
    return {"command": sys.executable, "args": list(words), **more}


def serve(path: Path, work: Callable[[ToolRegistry], Any], warnings: list[str], **bounds: int) -> Any:
    """What `work` makes of the servers' tools, while they run."""
    servers = McpServers(read_config(path), warnings.append, **bounds)

    async def main() -> Any:
        async with ToolRegistry((), [servers.source]) as registry:
            return await work(registry)

    return anyio.run(main)


async def names(registry: ToolRegistry) -> list[str]:
    """The tools that there are."""
    return [tool.name for tool in registry.tools]


def calling(name: str, arguments: dict[str, Any] | None = None) -> Callable[[ToolRegistry], Any]:
    """A call of a tool, and what came of it."""

    async def call(registry: ToolRegistry) -> Any:
        try:
            return (await registry.call(name, arguments or {})).value
        except ToolFailure as failure:
            return failure.kind, failure.message

    return call


def test_the_tools_of_a_child_process_are_called_by_their_own_names(configure: Configure):
    """Text comes as text, and what has a schema as a value; arguments are held against theirs here."""
    path = configure({"tester": child(SERVER)})

    async def work(registry: ToolRegistry) -> Any:
        answers = [await names(registry)]
        calls: list[Any] = [
            ("add", {"a": 1, "b": 2}),
            ("greet", {"name": "you"}),
            ("add", {"a": 1, "b": "2"}),
        ]
        for name, arguments in calls:
            answers.append(await calling(f"mcp__tester__{name}", arguments)(registry))
        return answers

    warnings: list[str] = []
    listed, added, greeted, wrong = serve(path, work, warnings)
    assert listed[:3] == ["mcp__tester__add", "mcp__tester__dies", "mcp__tester__environment"]
    assert (added, greeted) == ({"result": 3}, "hello you")
    assert wrong == ("invalid", 'mcp__tester__add: b: "2" is not of type "integer"')
    assert warnings == []


def test_a_server_gets_its_own_variables_and_none_of_the_hosts(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
):
    """No key of a provider, and what it was given does not come back."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    monkeypatch.setenv("MY_KEY", "open sesame")
    path = configure({"tester": child(SERVER, env={"TESTER_KEY": "${MY_KEY}"})})

    async def work(registry: ToolRegistry) -> Any:
        return [await calling(f"mcp__tester__{name}")(registry) for name in ("environment", "secret")]

    environment, secret = serve(path, work, [])
    assert "TESTER_KEY" in environment.split()
    assert not {"OPENAI_API_KEY", "MY_KEY"} & set(environment.split())
    assert secret == "it is ***MY_KEY***"


def test_a_failure_of_a_tool_is_told_and_a_server_that_dies_is_one(configure: Configure):
    """Later calls fail as well, at once."""
    path = configure({"tester": child(SERVER)})

    async def work(registry: ToolRegistry) -> Any:
        return [await calling(f"mcp__tester__{name}")(registry) for name in ("fails", "dies", "fails")]

    assert serve(path, work, []) == [
        ("failed", "Error executing tool fails"),
        ("failed", "mcp server tester: Connection closed"),
        ("failed", "mcp server tester: Connection closed"),
    ]


def test_a_huge_answer_is_a_failure(configure: Configure):
    """It is not passed on."""
    path = configure({"tester": child(SERVER)})
    kind, message = serve(path, calling("mcp__tester__huge"), [])
    assert (kind, message) == ("failed", "mcp__tester__huge answered with 6000005 bytes, more than 4194304")


def test_a_call_that_hangs_is_given_up(configure: Configure):
    """What a server's tool does is not known, so neither is what became of it."""
    path = configure({"tester": child(SERVER)})
    with pytest.raises(ToolOverran, match=r"^mcp__tester__hangs was given up after 100 ms"):
        serve(path, calling("mcp__tester__hangs"), [], call_ms=100)


def test_a_tool_that_comes_later_is_there_later(configure: Configure):
    """The server says that its list has changed."""
    path = configure({"tester": child(SERVER)})

    async def work(registry: ToolRegistry) -> Any:
        await calling("mcp__tester__grow")(registry)
        with anyio.fail_after(20):
            while registry.get("mcp__tester__grown") is None:
                await anyio.lowlevel.checkpoint()
        return await calling("mcp__tester__grown")(registry)

    assert serve(path, work, []) == "new"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (child(SERVER, "dead"), "its tools are absent: "),
        ({"command": "/no/such/program"}, "its tools are absent: "),
        (child(SERVER, env={"KEY": "${NOT_SET_HERE}"}), "its tools are absent: the variable NOT_SET_HERE"),
        ({"url": "http://127.0.0.1:9/mcp"}, "its tools are absent: "),
        (child("-c", "print('{}' * 10)"), "its tools are absent: "),
    ],
)
def test_a_server_that_does_not_come_up_is_a_warning(configure: Configure, server: Any, problem: str):
    """Its tools are absent, and those of others are there."""
    path = configure({"broken": server, "tester": child(SERVER)})
    warnings: list[str] = []
    listed = serve(path, names, warnings)
    assert any("mcp__tester__" in name for name in listed)
    assert not any("broken" in name for name in listed)
    assert [warning.partition(problem)[:2] for warning in warnings] == [("mcp server broken: ", problem)]


def test_a_server_that_hangs_is_not_waited_for_longer_than_its_time(configure: Configure):
    """A warning says how long that was."""
    warnings: list[str] = []
    assert serve(configure({"slow": child(SERVER, "hangs")}), names, warnings, connect_ms=300) == []
    assert warnings == ["mcp server slow: its tools are absent: it said nothing for 300 ms"]


def test_a_server_that_says_other_things_as_well_is_understood(configure: Configure):
    """What is no message is passed over."""
    listed = serve(configure({"tester": child(SERVER, "noise")}), names, [])
    assert "mcp__tester__add" in listed


def test_a_server_that_lies_has_the_tools_that_can_be_held_to_something(configure: Configure):
    """Schemas that are none, a name that is there twice, answers that are not what was promised."""
    path = configure({"li ar": child(LIAR)})

    async def work(registry: ToolRegistry) -> Any:
        odd = registry.get("mcp__li_ar_____odd_name_")
        assert odd is not None
        promises = registry.get("mcp__li_ar__promises")
        assert promises is not None
        # That it only reads is the server's word.
        assert registry.effect_of("mcp__li_ar__promises", {}) == "effectful"
        kinds = [(await calling(f"mcp__li_ar__{name}")(registry))[0] for name in ("fine", "promises")]
        return await names(registry), len(odd.description), kinds

    warnings: list[str] = []
    listed, size, kinds = serve(path, work, warnings)
    assert listed == ["mcp__li_ar_____odd_name_", "mcp__li_ar__fine", "mcp__li_ar__promises"]
    twice = "mcp server li ar: two tools have the name mcp__li_ar__fine: of {0} and of {0}".format(
        "mcp server li ar"
    )
    assert (size, kinds) == (4096, ["failed", "failed"])
    assert sorted(warning.partition(" is absent: ")[0] for warning in warnings) == [
        "mcp server li ar: its tool bad",
        "mcp server li ar: its tool far",
        twice,
    ]


@pytest.fixture
def http_server() -> Iterator[int]:
    """The port of a server that speaks streamable HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, SERVER, "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    give_up_s = time.monotonic() + 30
    while time.monotonic() < give_up_s and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
    yield port
    process.kill()
    process.wait()


def test_the_tools_of_a_server_over_http_are_called_alike(configure: Configure, http_server: int):
    """By the same names."""
    url = f"http://127.0.0.1:{http_server}/mcp"
    path = configure({"web": {"type": "http", "url": url, "headers": {"X-Key": "y"}}})
    warnings: list[str] = []
    assert serve(path, calling("mcp__web__add", {"a": 2, "b": 3}), warnings) == {"result": 5}
    assert warnings == []


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at processes")
def test_no_child_outlives_the_run(configure: Configure):
    """Also when the run ends by a failure."""
    marker = f"run-{os.getpid()}-{time.monotonic_ns()}"

    def children() -> list[str]:
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if marker.encode() in words:
                    found.append(entry)
        return found

    async def work(registry: ToolRegistry) -> Any:
        assert len(registry.tools) > 1
        assert len(children()) == 1
        raise KeyError(marker)

    with pytest.raises(KeyError):
        serve(configure({"tester": child(SERVER, "stdio", marker)}), work, [])
    assert children() == []


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not JSON: "),
        ("[]", "mcpServers: expected a map of servers by name"),
        ('{"mcpServers": []}', "mcpServers: expected a map of servers by name"),
        ('{"mcpServers": {"a": 1}}', "mcpServers.a: expected a map"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a.command: expected a text"),
        ('{"mcpServers": {"a": {"command": ["x"]}}}', "mcpServers.a.command: expected a text"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "mcpServers.a.args: expected a list"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"k": 1}}}}', "mcpServers.a.env.k: expected a text"),
        ('{"mcpServers": {"a": {"url": "file:///x"}}}', "mcpServers.a.url: expected http:// or https://"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "mcpServers.a.type: expected stdio"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, document: str, message: str):
    """With the key at fault."""
    path = tmp_path / "mcp.json"
    path.write_text(document)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert caught.value.message.startswith(f"{path}: {message}")


def test_a_server_that_is_switched_off_is_left_out_and_keys_of_others_are_left_alone(configure: Configure):
    """The file is common to several programs."""
    path = configure({
        "off": {"command": "x", "disabled": True},
        "on": {"command": "x", "autoApprove": ["y"], "timeout": 60, "args": ["${A_VARIABLE:-z}"]},
    })  # fmt: skip
    [server] = read_config(path)
    assert (server.name, server.command) == ("on", ("x", "z"))
