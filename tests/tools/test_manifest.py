"""
Tools that a file declares: what they send, and that neither an argument nor an error gets at a secret or a
host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import pytest

from runner.errors import ConfigError
from runner.tools.base import ToolFailure
from runner.tools.manifest import manifest_tools
from runner.tools.registry import ToolRegistry
from tests.tools.test_web import Server

SECRET = "s3cr3t/with&signs"
ENVIRONMENT = {"KEY": SECRET, "OTHER": "not for tools"}


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server on loopback."""
    server = Server()
    yield server
    server.close()


def declare(folder: Path, *tools: dict[str, Any], **changes: Any) -> Path:
    """A manifest on the disk."""
    whole = [
        {"name": "probe", "description": "Probes.", "input_schema": {"type": "object"}, **tool}
        for tool in tools
    ]
    path = folder / "tools.json"
    path.write_text(json.dumps({"name": "test", "secrets": ["KEY"], "tools": whole} | changes))
    return path


def run(path: Path, arguments: dict[str, Any], environment: Any = None) -> Any:
    """One call of the first tool."""

    async def main() -> Any:
        tools = manifest_tools(path, ENVIRONMENT if environment is None else environment)
        async with ToolRegistry(tools) as registry:
            return (await registry.call("probe", arguments)).value

    return anyio.run(main)


def failure(path: Path, arguments: dict[str, Any], environment: Any = None) -> tuple[str, str]:
    """How a call failed."""
    with pytest.raises(ToolFailure) as caught:
        run(path, arguments, environment)
    return caught.value.kind, caught.value.message


HOSTILE = [
    "../x/y?c&k=1", "a/b", "..%2f", "a?b=c", "a#b", "a&b=c", "a b", "ü", "%00", "\r\nX: y", "@evil.example",
    "***KEY***", "{city}", "http://evil.example/", "a;b", "a\\b", "a+b", "\u2028",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_argument_is_one_piece_of_the_path_and_of_the_query(server: Server, tmp_path: Path, hostile: str):
    """Whatever it has in it; and no marker in it is read."""
    path = declare(
        tmp_path, {"method": "GET", "url": f"{server.url}/v1/{{city}}/now?q={{city}}"}, hosts=[server.host]
    )
    run(path, {"city": hostile, "more": hostile})
    [request] = server.requests
    route, _, query = request["path"].partition("?")
    assert [unquote(piece) for piece in route.split("/")] == ["", "v1", hostile, "now"]
    assert [[unquote(side) for side in pair.split("=")] for pair in query.split("&")] == [
        ["q", hostile],
        ["more", hostile],
    ]
    assert SECRET not in str(request)


@pytest.mark.parametrize("hostile", [".", "..", ""])
def test_an_argument_can_not_be_a_step_in_the_path(server: Server, tmp_path: Path, hostile: str):
    """Servers take those away before they look."""
    path = declare(tmp_path, {"method": "GET", "url": f"{server.url}/{{a}}/x"}, hosts=[server.host])
    assert failure(path, {"a": hostile}) == ("invalid", f"a: can't be {hostile!r} in a URL")
    assert failure(path, {}) == ("invalid", "probe: a: missing")


def test_arguments_of_a_post_are_its_body(server: Server, tmp_path: Path):
    """All of them, and true stays true."""
    path = declare(tmp_path, {"url": f"{server.url}/{{a}}"}, hosts=[server.host])
    run(path, {"a": "x", "b": True, "c": 1, "d": None})
    [request] = server.requests
    assert (request["method"], request["path"]) == ("POST", "/x")
    assert json.loads(request["body"]) == {"a": "x", "b": True, "c": 1, "d": None}
    assert b'"b": true' in request["body"]
    assert request["headers"]["content-type"] == "application/json"


def test_a_secret_is_put_where_the_operator_put_its_marker(server: Server, tmp_path: Path):
    """Encoded in a URL, as it is in a header; and nowhere else."""
    path = declare(
        tmp_path,
        {"method": "GET", "url": f"{server.url}/a?key=***KEY***", "headers": {"X-Key": "Bearer ***KEY***"}},
        hosts=[server.host],
    )
    run(path, {"say": "***KEY***"})
    [request] = server.requests
    assert request["path"] == "/a?key=s3cr3t%2Fwith%26signs&say=%2A%2A%2AKEY%2A%2A%2A"
    assert request["headers"]["x-key"] == f"Bearer {SECRET}"


def test_a_secret_does_not_come_back(server: Server, tmp_path: Path):
    """Neither in an answer nor in an error, as it is or as a URL says it."""
    path = declare(tmp_path, {"method": "GET", "url": f"{server.url}/a?key=***KEY***"}, hosts=[server.host])
    server.answers["/a?key=s3cr3t%2Fwith%26signs"] = (
        200,
        {},
        f"you said {SECRET} and s3cr3t%2Fwith%26signs".encode(),
    )
    assert run(path, {}) == "you said ***KEY*** and ***KEY***"
    server.answers["/a?key=s3cr3t%2Fwith%26signs"] = (404, {}, (f"no {SECRET} " + "x" * 900).encode())
    kind, message = failure(path, {})
    assert (kind, message) == ("failed", "127.0.0.1 answered 404: " + ("no ***KEY*** " + "x" * 900)[:500])


@pytest.mark.parametrize("secret", ["a\r\nb: c", "ü", "a\0b"])
def test_a_secret_that_is_no_header_is_not_told_by_the_refusal(server: Server, tmp_path: Path, secret: str):
    """The error names the header, not the value."""
    path = declare(tmp_path, {"url": server.url, "headers": {"X-Key": "***KEY***"}}, hosts=[server.host])
    assert failure(path, {}, {"KEY": secret}) == (
        "invalid",
        "headers: X-Key has a line break or what is no ASCII",
    )


def test_a_secret_that_is_not_set_is_said_before_anything_is_sent(server: Server, tmp_path: Path):
    """By its name."""
    path = declare(tmp_path, {"url": server.url, "headers": {"X-Key": "***KEY***"}}, hosts=[server.host])
    assert failure(path, {}, {}) == ("failed", "the secret KEY is not set")
    assert server.requests == []


def test_a_redirect_is_not_followed(server: Server, tmp_path: Path):
    """It would tell a secret to whom the server names."""
    server.answers["/"] = (302, {"Location": "/elsewhere"}, b"")
    path = declare(tmp_path, {"method": "GET", "url": f"{server.url}/"}, hosts=[server.host])
    assert failure(path, {})[1].startswith("127.0.0.1 answered 302: ")
    assert len(server.requests) == 1


def test_a_long_answer_is_cut(server: Server, tmp_path: Path):
    """At a hundred thousand characters, with a mark."""
    server.answers["/"] = (200, {}, b"x" * 200_000)
    path = declare(tmp_path, {"method": "GET", "url": f"{server.url}/"}, hosts=[server.host])
    assert run(path, {}) == "x" * 100_000 + "\n[truncated]"


def test_a_private_address_has_to_be_named_among_the_hosts(tmp_path: Path):
    """A name that leads to one is not enough."""

    async def resolve(name: str, port: int) -> list[str]:
        del name, port
        return ["127.0.0.1"]

    path = declare(tmp_path, {"url": "http://inside.example/"})

    async def main() -> None:
        async with ToolRegistry(manifest_tools(path, ENVIRONMENT, resolve)) as registry:
            await registry.call("probe", {})

    with pytest.raises(ToolFailure, match="at an address of a private network"):
        anyio.run(main)


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ({"url": "http://{host}/"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "http://api.{zone}.example/"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "http://a.example:{port}/"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "{scheme}://a.example/"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "{url}"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "http://***KEY***.example/"}, "tools[0].url: nothing can be put into scheme, host or port"),
        ({"url": "http://***KEY***@a.example/"}, "tools[0].url: nothing can be put into scheme"),
        ({"url": "http://a.example/x{y}"}, "tools[0].url: {y} must be a whole piece of the path or query"),
        ({"url": "http://a.example/{x}{y}"}, "tools[0].url: {x} must be a whole piece of the path"),
        ({"url": "http://a.example/{y}.json"}, "tools[0].url: {y} must be a whole piece of the path"),
        ({"url": "http://a.example/x#{y}"}, "tools[0].url: a fragment is not sent"),
        ({"url": "file:///etc/passwd"}, "tools[0].url: expected a URL such as"),
        ({"url": "http://2130706433/"}, "tools[0].url: the URL's host is a number, and no address in full"),
        ({"url": "http://a.example/", "headers": {"X": "{y}"}}, "tools[0].headers.X: an argument"),
        ({"url": "http://a.example/", "headers": {"X": "a\nb"}}, "tools[0].headers: X has a line"),
        ({"url": "http://a.example/", "headers": {"Host": "b"}}, "tools[0].headers: Host is not"),
        ({"url": "http://a.example/", "headers": {"X": "***NO***"}}, "tools[0]: ***NO*** is not among"),
        ({"url": "http://a.example/", "method": "TRACE"}, "tools[0].method: expected "),
        ({"url": "http://a.example/", "input_schema": {"type": 1}}, "tools[0].input_schema: not a "),
        ({"url": "http://a.example/", "name": "a b"}, "tools[0].name: expected letters, digits, _ and -"),
        ({"url": "http://a.example/", "shell": "x"}, "tools[0].shell: unknown key"),
        ({}, "tools[0].url: missing"),
    ],
)  # fmt: skip
def test_a_manifest_that_lets_more_be_decided_than_a_piece_is_refused(
    tmp_path: Path, tool: dict[str, Any], problem: str
):
    """When it is read, with the place at fault."""
    path = declare(tmp_path, tool)
    with pytest.raises(ConfigError) as caught:
        manifest_tools(path, ENVIRONMENT)
    assert caught.value.message.startswith(f"{path}: {problem}")


def test_a_manifest_may_be_toml(tmp_path: Path):
    """By its name."""
    path = tmp_path / "tools.toml"
    path.write_text(
        'name = "t"\n[[tools]]\nname = "probe"\ndescription = ""\nmethod = "GET"\nurl = "https://a.example/"\n'
        'input_schema = { type = "object" }\n'
    )
    [tool] = manifest_tools(path)
    assert (tool.name, tool.effect, tool.source) == ("probe", "idempotent", str(path))
    path.write_text("name =")
    with pytest.raises(ConfigError, match="not TOML: "):
        manifest_tools(path)
