"""
Tools that are HTTP requests, declared in a file and not programmed.

    {"name": "weather", "hosts": ["api.example.com"], "secrets": ["WEATHER_KEY"], "tools": [{
      "name": "forecast", "description": "…", "input_schema": {…}, "method": "GET",
      "url": "https://api.example.com/v1/{city}", "headers": {"X-Key": "***WEATHER_KEY***"}}]}

`{ARGUMENT}` in the URL stands for one whole piece of a path or query, whatever the argument is. What is not
used there becomes the query of a GET and DELETE, and the JSON body of the others. `***NAME***` stands for a
secret.

Input: the file is the operator's. Arguments are guest-controlled: they are put in after the secrets, so
they can name none, and encoded so that they stay one piece. The host is fixed when the file is read. What
comes back, and every error, has the secrets taken out.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from runner.errors import ConfigError
from runner.files import read_whole
from runner.package.fields import (
    FieldProblem,
    Fields,
    any_map,
    flag,
    list_of,
    matching,
    one_of,
    positive,
    text,
)
from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.tools.hosts import HostGrants, Resolve, parse_url, resolve_name
from runner.tools.reading import TRUNCATED
from runner.tools.schema import ValidatorMissing, check_against
from runner.tools.secrets import Redactor
from runner.tools.web import Sent, Web, check_headers, told_body
from runner.units import MIB

if TYPE_CHECKING:
    from runner.journal.records import EffectClass

RESPONSE_CHARACTERS: Final = 100_000
ERROR_CHARACTERS: Final = 500

_MAX_BYTES: Final = MIB
_MAX_TIMEOUT_MS: Final = 600_000
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_BODILESS: Final = frozenset({"GET", "DELETE"})
_EFFECTS: Final[tuple[EffectClass, ...]] = ("pure", "idempotent", "effectful")
_OK: Final = range(200, 300)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_SECRET: Final = re.compile(r"\*\*\*([A-Za-z_][A-Za-z0-9_]{0,63})\*\*\*", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_-]{1,64})\}", re.ASCII)
# Where what is put in can only be one piece.
_PIECE_ENDS: Final = frozenset("/?&=#")

_tool_name = matching(_NAME, "letters, digits, _ and -, 64 of them at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """
    One tool of a manifest.
    """

    name: str
    description: str
    schema: dict[str, Any]
    method: str
    url: str
    headers: Mapping[str, str]
    effect: EffectClass
    timeout_ms: int


def manifest_tools(
    path: Path, environment: Mapping[str, str] | None = None, resolve: Resolve = resolve_name
) -> tuple[Tool, ...]:
    """
    The tools that a manifest declares, each named as it is there.

    Args:
        path: JSON, or TOML when it is called so.
        environment: Where secrets are, by name; `None` for the process's own.
        resolve: What names of hosts lead to.

    Raises:
        ConfigError: If the file is not of that form, or a tool could be made to ask another host.
        UsageError: If it can't be read.
    """
    try:
        return _read(path, _load(path), os.environ if environment is None else environment, resolve)
    except FieldProblem as problem:
        raise ConfigError(str(path), problem.key or None, problem.problem) from problem
    except ValidatorMissing as error:
        hint = "pip install 'wasm-agent-runner[tools]'"
        raise ConfigError(
            str(path), None, "schemas need a package that is not installed", hint=hint
        ) from error


def _load(path: Path) -> Any:
    data = read_whole(path, _MAX_BYTES)
    try:
        return tomllib.loads(data.decode()) if path.suffix == ".toml" else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FieldProblem("", f"not {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}") from error


def _read(path: Path, document: Any, environment: Mapping[str, str], resolve: Resolve) -> tuple[Tool, ...]:
    with Fields(document) as fields:
        fields.required("name", _tool_name)
        fields.optional("description", text)
        # Hosts are named by the URLs; an address of a private network has to be named here as well.
        hosts = fields.optional("hosts", list_of(text)) or ()
        names = fields.optional("secrets", list_of(text)) or ()
        declared = fields.required("tools", list_of(_declared, at_least=1))
    tools = []
    for index, one in enumerate(declared):
        at = f"tools[{index}]"
        _check_secrets(one, names, at)
        grants = HostGrants([_fixed_host(one.url, f"{at}.url"), *hosts])
        missing = next((name for name in _secrets_of(one) if name not in environment), None)
        secrets = {environment[name]: name for name in names if name in environment}
        request = _Request(one, Web(grants, resolve), environment, Redactor(secrets), missing)
        tools.append(_tool(path, one, request, at))
    return tuple(tools)


def _declared(value: Any, at: str) -> _Declared:
    with Fields(value, at) as fields:
        method = fields.optional("method", one_of(_METHODS)) or "POST"
        safe: EffectClass = "idempotent" if method == "GET" else "effectful"
        timeout_ms = fields.optional("timeout_ms", positive) or 30_000
        declared = _Declared(
            name=fields.required("name", _tool_name),
            description=fields.required("description", text),
            schema=fields.required("input_schema", any_map),
            method=method,
            url=fields.required("url", text),
            headers={
                str(name): text(item, f"{at}.headers.{name}") for name, item in _headers(fields).items()
            },
            effect=fields.optional("effect", one_of(_EFFECTS)) or safe,
            timeout_ms=min(timeout_ms, _MAX_TIMEOUT_MS),
        )
        fields.optional("optional", flag)
    try:
        check_headers(tuple((name, _SECRET.sub("x", item)) for name, item in declared.headers.items()))
    except ToolFailure as failure:
        raise FieldProblem(f"{at}.headers", failure.message.removeprefix("headers: ")) from failure
    for name, item in declared.headers.items():
        if _PLACEHOLDER.search(item):
            raise FieldProblem(f"{at}.headers.{name}", "an argument can't be put into a header")
    return declared


def _headers(fields: Fields) -> dict[str, Any]:
    return fields.optional("headers", any_map) or {}


def _fixed_host(url: str, at: str) -> str:
    """
    The host and port that a tool asks, whatever its arguments are, as a grant.

    Raises:
        FieldProblem: If something is put in before the path, or into a part of a piece.
    """
    scheme, mark, rest = url.partition("://")
    end = next((place for place, letter in enumerate(rest) if letter in "/?#"), len(rest))
    if not mark or any(letter in scheme + rest[:end] for letter in "{}*@"):
        raise FieldProblem(at, "nothing can be put into scheme, host or port")
    for found in _PLACEHOLDER.finditer(url):
        before, after = url[found.start() - 1], url[found.end() : found.end() + 1]
        if before not in _PIECE_ENDS or (after and after not in _PIECE_ENDS):
            raise FieldProblem(at, f"{found[0]} must be a whole piece of the path or query")
    if "#" in url:
        raise FieldProblem(at, "a fragment is not sent")
    try:
        endpoint = parse_url(_PLACEHOLDER.sub("x", _SECRET.sub("x", url)))
    except ToolFailure as failure:
        raise FieldProblem(at, failure.message) from failure
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def _secrets_of(one: _Declared) -> list[str]:
    return _SECRET.findall("\n".join((one.url, *one.headers.values())))


def _check_secrets(one: _Declared, names: Iterable[str], at: str) -> None:
    for name in _secrets_of(one):
        if name not in names:
            raise FieldProblem(at, f"***{name}*** is not among the manifest's secrets")


def _tool(path: Path, one: _Declared, request: _Request, at: str) -> Tool:
    try:
        check = check_against(one.schema)
    except FieldProblem as problem:
        raise FieldProblem(f"{at}.input_schema", problem.problem) from problem
    return Tool(
        name=one.name,
        description=one.description,
        input_schema=one.schema,
        check=check,
        work=request.send,
        effect=one.effect,
        source=str(path),
        timeout_ms=one.timeout_ms,
    )


class _Request:
    """
    What a declared tool does.
    """

    def __init__(
        self,
        declared: _Declared,
        web: Web,
        environment: Mapping[str, str],
        redactor: Redactor,
        missing: str | None,
    ) -> None:
        self._declared = declared
        self._web = web
        self._environment = environment
        self._redactor = redactor
        self._missing = missing

    async def send(self, arguments: Any, context: ToolContext) -> str:
        if self._missing is not None:
            raise ToolFailure("failed", f"the secret {self._missing} is not set")
        try:
            endpoint, reply = await self._web.ask(self._sent(arguments), context)
            body = told_body(reply)
        except ToolFailure as failure:
            raise ToolFailure(failure.kind, self._redactor.text(failure.message)) from None
        if "body" not in body:
            raise ToolFailure("failed", f"{endpoint.host} answered with what is no text")
        told = self._redactor.text(body["body"])
        if reply.status not in _OK:
            raise ToolFailure("failed", f"{endpoint.host} answered {reply.status}: {told[:ERROR_CHARACTERS]}")
        is_cut = body["truncated"] or len(told) > RESPONSE_CHARACTERS
        return told[:RESPONSE_CHARACTERS] + TRUNCATED if is_cut else told

    def _sent(self, arguments: dict[str, Any]) -> Sent:
        declared = self._declared
        used: set[str] = set()

        def put(found: re.Match[str]) -> str:
            used.add(found[1])
            if found[1] not in arguments:
                raise ToolFailure("invalid", f"{declared.name}: {found[1]}: missing")
            return _piece(arguments[found[1]], found[1])

        # Pieces between markers are the operator's; each is filled by itself, so nothing put in is read
        # again.
        url = "".join(
            quote(self._environment[part], safe="") if index % 2 else _PLACEHOLDER.sub(put, part)
            for index, part in enumerate(_SECRET.split(declared.url))
        )
        headers = [(name, self._with_secrets(value)) for name, value in declared.headers.items()]
        body = b""
        if declared.method in _BODILESS:
            left = {name: value for name, value in sorted(arguments.items()) if name not in used}
            if left:
                query = "&".join(
                    f"{quote(name, safe='')}={_piece(value, name)}" for name, value in left.items()
                )
                url += ("&" if "?" in url else "?") + query
        else:
            body = json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
            if "content-type" not in {name.lower() for name, _ in headers}:
                headers.append(("content-type", "application/json"))
        # Four bytes for a character at most. A redirect could tell a secret to somebody else.
        return Sent(
            declared.method, url, tuple(headers), body, max_bytes=4 * RESPONSE_CHARACTERS, follow=False
        )

    def _with_secrets(self, value: str) -> str:
        return _SECRET.sub(lambda found: self._environment[found[1]], value)


def _piece(value: Any, name: str) -> str:
    """
    An argument as one piece of a URL.

    Raises:
        ToolFailure: If it would be taken for a step in the path.
    """
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if said in ("", ".", ".."):
        raise ToolFailure("invalid", f"{name}: can't be {said!r} in a URL")
    return quote(said, safe="")
