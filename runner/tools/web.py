"""
Tools that ask the web: `http_request` and `fetch_url`.

Every hop is judged by itself: its host, and the address that the host's name leads to. See `hosts`.

Input: URLs, headers and bodies are guest-controlled; answers are written by strangers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urljoin

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from runner.outbound import Ask, BrokenOff, Reply, Unreached, exchange
from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.tools.hosts import Endpoint, HostGrants, Resolve, parse_url, resolve_name
from runner.tools.page import text_of_page
from runner.tools.reading import TRUNCATED
from runner.tools.schema import check_of, schema_of
from runner.units import MIB

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.records import EffectClass

BODY_BYTES: Final = 200_000
MAX_BODY_BYTES: Final = 8_000_000
TEXT_CHARACTERS: Final = 10_000
MAX_TEXT_CHARACTERS: Final = 2_000_000

_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_FIELD: Final = re.compile(r"[\t\x20-\x7e]{0,8192}", re.ASCII)
_MAX_HEADERS: Final = 64
# They would change whom the request is for, or where it ends.
_OWN_HEADERS: Final = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
    "expect", "proxy-authorization", "proxy-connection", "accept-encoding", "cookie", "cookie2",
})  # fmt: skip
_KEPT_ELSEWHERE: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_TEXTUAL: Final = re.compile(r"text/|application/(?:.*\+)?(?:json|xml|javascript|x-www-form-urlencoded)")
_CHARSET: Final = re.compile(r'charset="?([A-Za-z0-9_.:-]{1,40})', re.ASCII | re.IGNORECASE)
# Python knows further ones, some of which take their time.
_KNOWN_CHARSET: Final = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|us-ascii|ascii|latin1|iso-8859-\d{1,2}|windows-\d{3,4}|koi8-[ru]|"
    r"shift_jis|euc-(?:jp|kr)|gb2312|gbk|gb18030|big5",
)
_USER_AGENT: Final = ("user-agent", "wasm-agent-runner")
# Base64 of the largest body, and what stands around it.
_OUTPUT_BYTES: Final = 12 * MIB


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HttpRequest(_Arguments):
    """
    Arguments of `http_request`.
    """

    url: Annotated[str, Field(description="http or https.")]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: Annotated[dict[str, str], Field(description="Headers to send.")] = {}
    body: Annotated[str, Field(description="Text to send.")] = ""
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BODY_BYTES, description="The most to read.")] = BODY_BYTES
    follow_redirects: bool = True


class FetchUrl(_Arguments):
    """
    Arguments of `fetch_url`.
    """

    url: Annotated[str, Field(description="http or https.")]
    max_characters: Annotated[
        int, Field(ge=1, le=MAX_TEXT_CHARACTERS, description="The most to answer with.")
    ] = TEXT_CHARACTERS


class Sent(NamedTuple):
    """
    A request as its author wrote it.

    Attributes:
        method: Such as `GET`.
        url: Whole.
        headers: Checked by `Web.ask`.
        body: What is sent.
        max_bytes: The most to read.
        follow: Whether redirects are followed.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    max_bytes: int = BODY_BYTES
    follow: bool = True


class Web:
    """
    The web, as far as it is granted.

    Args:
        hosts: Whom to ask.
        resolve: What names lead to.
    """

    def __init__(self, hosts: HostGrants, resolve: Resolve = resolve_name) -> None:
        self._hosts = hosts
        self._resolve = resolve

    async def ask(self, sent: Sent, context: ToolContext) -> tuple[Endpoint, Reply]:
        """
        Send a request, and follow where it leads.

        Returns:
            What answered in the end, and how.

        Raises:
            ToolFailure: If a hop is not granted, or fails.
        """
        check_headers(sent.headers)
        endpoint = parse_url(sent.url)
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await self._hop(endpoint, sent, context)
            where = reply.header("location")
            if reply.status not in _REDIRECTS or not where or not sent.follow:
                return endpoint, reply
            onward = parse_url(urljoin(endpoint.url, where))
            sent, endpoint = _redirected(sent, reply.status, endpoint, onward), onward
        raise ToolFailure("failed", f"more than {_MAX_REDIRECTS} redirects")

    async def _hop(self, endpoint: Endpoint, sent: Sent, context: ToolContext) -> Reply:
        self._hosts.check(endpoint)
        addresses = await self._hosts.addresses(endpoint, self._resolve)
        problem = ""
        for address in addresses:
            ask = Ask(
                method=sent.method,
                scheme=endpoint.scheme,
                host=endpoint.host,
                address=address,
                port=endpoint.port,
                target=endpoint.target,
                headers=_headers(sent, context),
                body=sent.body,
                max_bytes=sent.max_bytes,
            )
            try:
                return await exchange(ask)
            except Unreached as error:
                problem = str(error)
            except BrokenOff as error:
                msg = f"{endpoint.host} broke off; the request may have arrived: {error}"
                raise ToolFailure("failed", msg) from error
        raise ToolFailure("failed", f"{endpoint.host} can't be reached: {problem}")


def web_tools(hosts: HostGrants, resolve: Resolve = resolve_name) -> tuple[Tool, ...]:
    """
    The tools that ask granted hosts.
    """
    web = Web(hosts, resolve)

    async def request(asked: HttpRequest, context: ToolContext) -> dict[str, Any]:
        sent = Sent(
            asked.method,
            asked.url,
            tuple(asked.headers.items()),
            asked.body.encode(),
            asked.max_bytes,
            asked.follow_redirects,
        )
        endpoint, reply = await web.ask(sent, context)
        return {
            "status": reply.status,
            "url": endpoint.url,
            "headers": _told_headers(reply),
            **told_body(reply),
        }

    async def fetch(asked: FetchUrl, context: ToolContext) -> dict[str, Any]:
        # Four bytes for a character, and as much again for what is no text of a page.
        most_bytes = min(MAX_BODY_BYTES, max(BODY_BYTES * 5, asked.max_characters * 8))
        endpoint, reply = await web.ask(Sent("GET", asked.url, max_bytes=most_bytes), context)
        body = told_body(reply)
        if "body" not in body:
            raise ToolFailure("failed", f"{endpoint.url} is no text: {body['content_type'] or 'no type'}")
        text = body["body"]
        if "html" in body["content_type"].lower():
            # Megabytes of it would keep everybody else waiting.
            text = await anyio.to_thread.run_sync(text_of_page, text, abandon_on_cancel=True)
        is_cut = body["truncated"] or len(text) > asked.max_characters
        text = text[: asked.max_characters]
        return {
            "status": reply.status,
            "url": endpoint.url,
            "text": text + TRUNCATED if is_cut else text,
            "truncated": is_cut,
        }

    return (
        Tool(
            name="http_request",
            description="Sends an HTTP request to a host that is granted.",
            input_schema=schema_of(HttpRequest),
            check=check_of(HttpRequest),
            work=request,
            effect_of=_effect_of_request,
            max_output_bytes=_OUTPUT_BYTES,
        ),
        Tool(
            name="fetch_url",
            description="Reads a page of the web as text.",
            input_schema=schema_of(FetchUrl),
            check=check_of(FetchUrl),
            work=fetch,
            effect="idempotent",
            max_output_bytes=_OUTPUT_BYTES,
        ),
    )


def check_headers(headers: Sequence[tuple[str, str]]) -> None:
    """
    Raises:
        ToolFailure: If a header is none, could become two, or is the host's own to set.
    """
    if len(headers) > _MAX_HEADERS:
        raise ToolFailure("invalid", f"headers: {_MAX_HEADERS} at most")
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ToolFailure("invalid", f"headers: {name[:64]!a} is no name of a header")
        if name.lower() in _OWN_HEADERS:
            raise ToolFailure("denied", f"headers: {name} is not the agent's to set")
        if not _FIELD.fullmatch(value):
            raise ToolFailure("invalid", f"headers: {name} has a line break or what is no ASCII")


def told_body(reply: Reply) -> dict[str, Any]:
    """
    What came, for an agent: as text if it is one, otherwise as base64.
    """
    kind = reply.header("content-type")
    told = {"content_type": kind, "truncated": reply.is_cut}
    text = None if reply.header("content-encoding") not in ("", "identity") else _as_text(reply, kind)
    if text is None:
        return {**told, "body_base64": base64.b64encode(reply.body).decode("ascii")}
    return {**told, "body": text}


def _effect_of_request(arguments: Value) -> EffectClass:
    method = arguments.get("method", "GET") if isinstance(arguments, dict) else ""
    return "idempotent" if isinstance(method, str) and method in _SAFE else "effectful"


def _headers(sent: Sent, context: ToolContext) -> list[tuple[str, str]]:
    headers = [*sent.headers, ("accept-encoding", "identity")]
    given = {name.lower() for name, _ in sent.headers}
    if "user-agent" not in given:
        headers.append(_USER_AGENT)
    if sent.method not in _SAFE and "idempotency-key" not in given and context.idempotency_key:
        headers.append(("idempotency-key", context.idempotency_key))
    return headers


def _redirected(sent: Sent, status: int, old: Endpoint, new: Endpoint) -> Sent:
    """
    The request of the next hop: what was meant for one origin is not told to another.
    """
    if old.scheme == "https" and new.scheme == "http":
        raise ToolFailure("denied", "a redirect from https to http is not followed")
    headers = sent.headers
    if old.origin != new.origin:
        headers = [(name, value) for name, value in headers if name.lower() in _KEPT_ELSEWHERE]
    method, body = sent.method, sent.body
    if status in (301, 302, 303) and method not in ("GET", "HEAD"):
        method, body = "GET", b""
        headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
    return sent._replace(url=new.url, method=method, body=body, headers=tuple(headers))


def _told_headers(reply: Reply) -> dict[str, str]:
    return {
        name: value
        for name, value in reply.headers[:_MAX_HEADERS]
        if name not in ("set-cookie", "set-cookie2")
    }


def _as_text(reply: Reply, kind: str) -> str | None:
    named = _CHARSET.search(kind)
    charset = named[1].lower() if named else "utf-8"
    if not _KNOWN_CHARSET.fullmatch(charset):
        return None
    if named is None and kind and not _TEXTUAL.match(kind.lower()):
        return None
    for spare in range(4 if reply.is_cut else 1):
        try:
            text = reply.body[: len(reply.body) - spare].decode(charset)
        except (UnicodeDecodeError, LookupError):
            continue
        return None if "\0" in text else text
    return None
