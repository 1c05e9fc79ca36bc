"""
One HTTP exchange with one address: the only module of ours that imports `httpx`.

There is no session: no cookies, no redirects, no retries, no proxy, nothing from the environment. Whom to
ask, and whether that is allowed, is decided above; here the connection goes to the address that was decided
on, and its certificate must be the host's.

Input: what comes back is written by strangers. It is read up to a bound, as it came over the wire: an
encoding that was not asked for is not undone, so nothing expands.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

    import httpx

_MAX_SHOWN_CHARACTERS: Final = 200


class Unreached(Exception):
    """
    Raised when no connection came about: nothing was sent.
    """


class BrokenOff(Exception):
    """
    Raised when an exchange ended too early: the request may have arrived all the same.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """
    One request.

    Attributes:
        method: Such as `GET`.
        scheme: `http` or `https`.
        host: The name that it is for, in lower case; an IPv6 address without brackets.
        address: Where to connect.
        port: Likewise.
        target: Path and query, as they go over the wire.
        headers: Without `Host`, `Content-Length` and `Connection`.
        body: What is sent.
        max_bytes: The most to read of the answer.
    """

    method: str
    scheme: str
    host: str
    address: str
    port: int
    target: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """
    What came back.

    Attributes:
        status: HTTP status.
        headers: Names in lower case, in their order.
        body: As it came, up to the bound.
        is_cut: Whether there was more.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    is_cut: bool

    def header(self, name: str) -> str:
        """
        The first header of that name, or an empty text.
        """
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """
    A response that is still coming.

    Attributes:
        status: HTTP status.
        headers: Names in lower case; of several with one name, the first.
        chunks: The body as it comes over the wire. Ends where the bound is met; `BrokenOff` if it breaks off.
    """

    status: int
    headers: dict[str, str]
    chunks: AsyncGenerator[bytes, None]


@asynccontextmanager
async def opened(ask: Ask) -> AsyncIterator[Opened]:
    """
    Send a request, and hand out the answer while it comes; the connection is closed in the end.

    There is no deadline; cancel it.

    Raises:
        Unreached: If no connection came about.
        BrokenOff: If it broke off later.
    """
    import httpx  # noqa: PLC0415 - heavy, and needed only where something is asked

    transport = httpx.AsyncHTTPTransport(trust_env=False, retries=0, verify=trusted())
    async with transport:
        try:
            response = await transport.handle_async_request(_request(ask))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreached(_words(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise BrokenOff(_words(error)) from error
        headers: dict[str, str] = {}
        for name, value in response.headers.raw:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        async with aclosing(response), aclosing(_chunks(response, ask.max_bytes)) as chunks:
            yield Opened(status=response.status_code, headers=headers, chunks=chunks)


async def _chunks(response: httpx.Response, bound_bytes: int) -> AsyncGenerator[bytes, None]:
    import httpx  # noqa: PLC0415 - see above

    left = bound_bytes
    try:
        async for chunk in response.aiter_raw():
            if chunk[:left]:
                yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                return
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise BrokenOff(_words(error)) from error


async def exchange(ask: Ask) -> Reply:
    """
    Send a request, and read the answer.

    There is no deadline; cancel it. Cancelled, the connection is closed.

    Raises:
        Unreached: If no connection came about.
        BrokenOff: If it broke off later.
    """
    import httpx  # noqa: PLC0415 - heavy, and needed only where something is asked

    transport = httpx.AsyncHTTPTransport(trust_env=False, retries=0, verify=trusted())
    async with transport:
        try:
            response = await transport.handle_async_request(_request(ask))
            async with aclosing(response):
                return await _read(response, ask.max_bytes)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreached(_words(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise BrokenOff(_words(error)) from error


@cache
def trusted() -> ssl.SSLContext:
    """
    Whom a certificate is believed from: those whom the system believes. Read once, because it takes its time.
    """
    import ssl  # noqa: PLC0415 - heavy, and needed only where something is asked

    return ssl.create_default_context()


def _request(ask: Ask) -> httpx.Request:
    import httpx  # noqa: PLC0415 - see above

    # From parts, so that nobody parses again what was checked.
    url = httpx.URL(scheme=ask.scheme, host=ask.address, port=ask.port, raw_path=ask.target.encode("ascii"))
    headers = [("host", authority(ask.scheme, ask.host, ask.port)), *ask.headers]
    extensions = {"sni_hostname": ask.host, "timeout": {}}
    return httpx.Request(ask.method, url, headers=headers, content=ask.body, extensions=extensions)


async def _read(response: httpx.Response, bound_bytes: int) -> Reply:
    pieces: list[bytes] = []
    left = bound_bytes
    is_cut = False
    async for chunk in response.aiter_raw():
        pieces.append(chunk[:left])
        is_cut = len(chunk) > left
        left -= len(pieces[-1])
        if is_cut:
            break
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw
    )
    return Reply(status=response.status_code, headers=headers, body=b"".join(pieces), is_cut=is_cut)


def authority(scheme: str, host: str, port: int) -> str:
    """
    Host and port as a URL says them; the port is left out where the scheme says it.
    """
    name = f"[{host}]" if ":" in host else host
    return name if port == {"http": 80, "https": 443}[scheme] else f"{name}:{port}"


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:_MAX_SHOWN_CHARACTERS]
