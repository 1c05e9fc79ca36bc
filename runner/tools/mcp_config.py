"""
The common file that names MCP servers, read as it is: `{"mcpServers": {NAME: {...}}}`.

Keys that other programs have put there for themselves are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from runner.errors import ConfigError
from runner.files import read_whole
from runner.tools.secrets import Redactor, SecretMissing, expand
from runner.units import MIB

_MAX_BYTES: Final = MIB
_HTTP_KINDS: Final = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http"})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """
    One server.

    Attributes:
        name: Its name in the file.
        kind: How it is spoken to.
        command: Program and its words, of a child process.
        env: What is added to the child's environment.
        cwd: Where the child begins, or `None`.
        url: Where it is.
        headers: What is sent to it.
        redactor: Takes what came from the environment, and values of `env` and `headers`, out of texts.
        missing: A variable that is not set and that it needs, or `None`.
    """

    name: str
    kind: Literal["stdio", "http"]
    command: tuple[str, ...] = ()
    env: Mapping[str, str]
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str]
    redactor: Redactor
    missing: str | None = None


def read_config(path: Path) -> tuple[McpServer, ...]:
    """
    The servers that a file names, those that it has switched off left out.

    Raises:
        ConfigError: If the file is not of that form.
        UsageError: If it can't be read.
    """
    try:
        document = json.loads(read_whole(path, _MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), None, f"not JSON: {error}") from error
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(str(path), "mcpServers", "expected a map of servers by name")
    read = (_server(path, name, entry) for name, entry in servers.items())
    return tuple(server for server in read if server is not None)


def _server(path: Path, name: str, entry: Any) -> McpServer | None:
    where = f"mcpServers.{name}"
    if not isinstance(entry, dict):
        raise ConfigError(str(path), where, "expected a map")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None
    reader = _Reader(path, where, entry)
    kind = entry.get("type", "http" if "url" in entry and "command" not in entry else "stdio")
    if kind in _HTTP_KINDS:
        url = reader.text("url")
        if not url.startswith(("http://", "https://")):
            raise ConfigError(str(path), f"{where}.url", "expected http:// or https://")
        headers = reader.texts("headers")
        return McpServer(
            name=name,
            kind="http",
            url=url,
            headers=headers,
            env={},
            redactor=reader.redactor(headers),
            missing=reader.missing,
        )
    if kind != "stdio":
        raise ConfigError(str(path), f"{where}.type", f"expected stdio or http, found {str(kind)[:40]}")
    env = reader.texts("env")
    return McpServer(
        name=name,
        kind="stdio",
        command=(reader.text("command"), *reader.list("args")),
        env=env,
        cwd=reader.text("cwd") if "cwd" in entry else None,
        headers={},
        redactor=reader.redactor(env),
        missing=reader.missing,
    )


class _Reader:
    def __init__(self, path: Path, where: str, entry: dict[str, Any]) -> None:
        self._path = path
        self._where = where
        self._entry = entry
        self._used: dict[str, str] = {}
        self.missing: str | None = None

    def text(self, key: str) -> str:
        return self._expanded(key, self._entry.get(key))

    def list(self, key: str) -> list[str]:
        found = self._entry.get(key, [])
        if not isinstance(found, list):
            raise ConfigError(str(self._path), f"{self._where}.{key}", "expected a list of texts")
        return [self._expanded(key, item) for item in found]

    def texts(self, key: str) -> dict[str, str]:
        found = self._entry.get(key, {})
        if not isinstance(found, dict):
            raise ConfigError(str(self._path), f"{self._where}.{key}", "expected a map of texts")
        return {name: self._expanded(f"{key}.{name}", value) for name, value in found.items()}

    def redactor(self, values: Mapping[str, str]) -> Redactor:
        return Redactor({**{value: name for name, value in values.items()}, **self._used})

    def _expanded(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ConfigError(str(self._path), f"{self._where}.{key}", "expected a text")
        try:
            text, used = expand(value)
        except SecretMissing as missing:
            self.missing = str(missing)
            return value
        self._used.update(used)
        return text
