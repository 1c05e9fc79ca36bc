"""
A transport that reaches one origin, follows nothing, takes nothing from the environment, and puts in the key.

Below an SDK it is the last to see a request: whatever the SDK read from the environment, and wherever a
response would like to send it, the key goes to its own origin or nowhere.

This module imports `httpx2`, which the SDKs stand on. Whoever uses it imports it late.

Input: responses, written by strangers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx2

from runner.errors import ProviderError
from runner.providers.origin import Endpoint, Origin
from runner.providers.refused import Refused
from runner.units import KIB, MIB

MAX_STREAM_BYTES: Final = 32 * MIB
"""
More than any answer has, with all that is around its text.
"""

MAX_BODY_BYTES: Final = 4 * MIB
"""
Of a response that is no stream.
"""

_MAX_ERROR_BYTES: Final = 64 * KIB
_MAX_CONNECTIONS: Final = 64
_OK: Final = 200
_PORTS: Final = {"https": 443, "http": 80}
# What a provider needs to know. What the SDKs add tells of this machine.
_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "anthropic-beta", "anthropic-version", "content-length", "content-type",
        "host", "transfer-encoding", "user-agent",
    }
)  # fmt: skip


def http_client(name: str, endpoint: Endpoint) -> httpx2.AsyncClient:
    """
    A client for an SDK to use.

    Args:
        name: The provider's, for errors.
        endpoint: The one that it reaches.
    """
    transport = PinnedTransport(name, endpoint)
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=None)


class PinnedTransport(httpx2.AsyncBaseTransport):
    """
    Reaches one endpoint.

    Args:
        name: The provider's, for errors.
        endpoint: The one.
    """

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._name = name
        self._endpoint = endpoint
        # A connection for each answer: the next may be hours away.
        limits = httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, retries=0, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        Send it, if it is for the one origin.

        Raises:
            Refused: If it is not, or what comes back is not to be read.
        """
        self._seal(request)
        response = await self._inner.handle_async_request(request)
        encoding = response.headers.get("content-encoding", "identity")
        if encoding not in ("", "identity") or not isinstance(response.stream, httpx2.AsyncByteStream):
            await response.aclose()
            raise Refused(ProviderError(self._name, "sent an encoding that was not asked for"))
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_Bounded(self._name, response.stream, *_bound(response)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """
        Close what is open.
        """
        await self._inner.aclose()

    def _seal(self, request: httpx2.Request) -> None:
        """
        Hold the request to its origin, take out what tells of this machine, and put in the key.
        """
        url = request.url
        port = url.port or _PORTS.get(url.scheme, 0)
        if Origin(url.scheme, url.host.strip("[]").lower(), port) != self._endpoint.address.origin:
            raise Refused(ProviderError(self._name, "was about to be asked elsewhere; nothing was sent"))
        for header in [key for key in request.headers if key.lower() not in _HEADERS]:
            del request.headers[header]
        request.headers["accept-encoding"] = "identity"
        request.headers["user-agent"] = "wasm-agent-runner"
        if self._endpoint.key is not None:
            request.headers["authorization"] = f"Bearer {self._endpoint.key.value}"


def _bound(response: httpx2.Response) -> tuple[int, bool]:
    """
    How much of a body is read, and whether what is more is cut off instead of refused.
    """
    if response.status_code != _OK:
        return _MAX_ERROR_BYTES, True
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    return (MAX_STREAM_BYTES if is_stream else MAX_BODY_BYTES), False


class _Bounded(httpx2.AsyncByteStream):
    """
    The body of a response, up to a bound.
    """

    def __init__(self, name: str, inner: httpx2.AsyncByteStream, bound_bytes: int, cut: bool) -> None:
        self._name = name
        self._inner = inner
        self._left = bound_bytes
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            if len(chunk) > self._left:
                if not self._cut:
                    raise Refused(ProviderError(self._name, "the answer is too long"))
                yield chunk[: self._left]
                return
            self._left -= len(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
