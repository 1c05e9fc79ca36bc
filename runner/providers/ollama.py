"""
Ollama, over HTTP of our own: it needs no SDK and no key.

Input: responses, written by whoever answers at its address.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from runner.errors import ProviderError
from runner.outbound import Ask, BrokenOff, Opened, Unreached, opened
from runner.providers import faults
from runner.providers.base import ModelRequest, Stop, StreamEvent
from runner.providers.dialect import Said, body_of
from runner.providers.ollama_api import OllamaDialect
from runner.providers.origin import Endpoint
from runner.providers.wire import Malformed, json_object, lines, plain
from runner.units import KIB, MIB

_MAX_STREAM_BYTES: Final = 32 * MIB
_MAX_ERROR_BYTES: Final = 64 * KIB
_OK: Final = 200
_STREAM_TYPES: Final = frozenset({"application/x-ndjson", "application/json", "application/ndjson"})


class OllamaProvider:
    """
    One profile of kind `ollama`.

    Args:
        name: The profile's.
        endpoint: Where it is. A key is sent as a bearer token, for servers that stand behind a gate.
        now_s: The wall clock, for dates that a response names.
    """

    def __init__(self, name: str, endpoint: Endpoint, *, now_s: Callable[[], float] = time.time) -> None:
        self.name = name
        self._endpoint = endpoint
        self._dialect = OllamaDialect()
        self._now_s = now_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        As the port says; one attempt, without any patience.
        """
        body = body_of(self._dialect, self.name, request)
        reader = self._dialect.reader(self.name, request)
        async with self._asked("POST", "/api/chat", body) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in _STREAM_TYPES:
                raise ProviderError(self.name, f"answered with {plain(kind)} in place of a stream")
            async with aclosing(lines(_within(self.name, response.chunks))) as pieces:
                async for line in pieces:
                    if not line.strip():
                        continue
                    for event in reader.take(json_object(line)):
                        yield event
                        if isinstance(event, Stop):
                            return

    async def models(self) -> tuple[str, ...]:
        """
        Names of the models that it has.

        Raises:
            ProviderError: If it can't say.
        """
        async with self._asked("GET", "/api/tags", None) as response:
            body = b"".join([chunk async for chunk in _within(self.name, response.chunks)])
            return tuple(model.text("name") for model in json_object(body.decode()).nodes("models"))

    @asynccontextmanager
    async def _asked(self, method: str, path: str, body: dict[str, Any] | None) -> AsyncIterator[Opened]:
        """
        The response of a request that went well; every failure inside becomes one that a guest may read.
        """
        try:
            async with opened(self._ask(method, path, body)) as response:
                if response.status != _OK:
                    raise await self._refusal(response)
                if response.headers.get("content-encoding", "identity") not in ("", "identity"):
                    raise ProviderError(self.name, "sent an encoding that was not asked for")
                yield response
        except Unreached:
            raise faults.unreached(self.name) from None
        except BrokenOff:
            raise faults.broken(self.name) from None
        except Said as said:
            raise faults.of_event(self.name, self._endpoint, said.error) from None
        except Malformed as error:
            raise faults.unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise faults.unreadable(self.name, Malformed("text that is not UTF-8")) from None

    async def _refusal(self, response: Opened) -> ProviderError:
        body = bytearray()
        async for chunk in response.chunks:
            body += chunk
            if len(body) >= _MAX_ERROR_BYTES:
                break
        return faults.of_status(
            self.name, self._endpoint, response.status, response.headers, bytes(body), self._now_s()
        )

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Ask:
        address, key = self._endpoint.address, self._endpoint.key
        headers = [("accept-encoding", "identity"), ("user-agent", "wasm-agent-runner")]
        if key is not None:
            headers.append(("authorization", f"Bearer {key.value}"))
        data = b""
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            headers += [("content-type", "application/json"), ("content-length", str(len(data)))]
        return Ask(
            method=method,
            scheme=address.origin.scheme,
            host=address.origin.host,
            address=address.origin.host,
            port=address.origin.port,
            target=f"{address.path}{path}",
            headers=headers,
            body=data,
            # One more, so that an answer that is too long is told from one that just fits.
            max_bytes=_MAX_STREAM_BYTES + 1,
        )


async def _within(name: str, chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > _MAX_STREAM_BYTES:
            raise ProviderError(name, "the answer is too long")
        yield chunk
