"""
Providers over the vendors' SDKs: these make a request and carry it; what comes back is not theirs to read.

The key is in none of their objects, so nothing that they log, trace, raise or keep can have it: the transport
below them puts it into a request.

Input: responses, written by strangers.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import anyio

from runner.errors import ProviderError
from runner.providers import faults
from runner.providers.base import ModelRequest, Stop, StreamEvent
from runner.providers.chat_api import DONE, ChatDialect
from runner.providers.dialect import Dialect, Said, body_of
from runner.providers.messages_api import MessagesDialect
from runner.providers.origin import Endpoint
from runner.providers.refused import Refused
from runner.providers.responses_api import ResponsesDialect
from runner.providers.wire import Malformed, json_object, plain, server_events

if TYPE_CHECKING:
    import httpx2

SdkKind = Literal["anthropic", "openai", "compatible"]

_STREAM_TYPE: Final = "text/event-stream"
_NOBODY: Final = "no-key"
_DIALECTS: Final[dict[SdkKind, Callable[[], Dialect]]] = {
    "anthropic": MessagesDialect,
    "openai": ResponsesDialect,
    "compatible": ChatDialect,
}


class _Opened(Protocol):
    """
    What is used of what an SDK makes of a stream; reading it is left to us.
    """

    response: httpx2.Response


class SdkProvider:
    """
    One profile of a kind that has an SDK.

    Args:
        name: The profile's.
        kind: Which dialect it speaks.
        endpoint: Where it is.
        now_s: The wall clock, for dates that a response names.
    """

    def __init__(
        self, name: str, kind: SdkKind, endpoint: Endpoint, *, now_s: Callable[[], float] = time.time
    ) -> None:
        self.name = name
        self._kind = kind
        self._endpoint = endpoint
        self._dialect = _DIALECTS[kind]()
        self._now_s = now_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        As the port says; one attempt, without any patience.
        """
        body = body_of(self._dialect, self.name, request)
        reader = self._dialect.reader(self.name, request)
        async with self._guarded(), self._answer(body) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != _STREAM_TYPE:
                raise ProviderError(self.name, f"answered with {plain(kind)} in place of a stream")
            async with aclosing(server_events(response.aiter_raw())) as events:
                async for data in events:
                    if data == DONE:
                        break
                    for event in reader.take(json_object(data)):
                        yield event
                        if isinstance(event, Stop):
                            return
            for event in reader.finish():
                yield event

    async def models(self) -> tuple[str, ...]:
        """
        Names of the models that it offers, as it lists them.

        Raises:
            ProviderError: If it can't say.
        """
        client = await self._client()
        async with self._guarded():
            import httpx2  # noqa: PLC0415 - heavy; was loaded with the SDK

            path = "/v1/models" if self._kind == "anthropic" else "/models"
            response = await client.get(path, cast_to=httpx2.Response)
            body = json_object((await response.aread()).decode())
            return tuple(model.text("id") for model in body.nodes("data"))

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        """
        Every failure inside becomes one that a guest may read.
        """
        try:
            yield
        except ProviderError:
            raise
        except Said as said:
            raise faults.of_event(self.name, self._endpoint, said.error) from None
        except Malformed as error:
            raise faults.unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise faults.unreadable(self.name, Malformed("text that is not UTF-8")) from None
        except Exception as error:  # noqa: BLE001 - an SDK may raise anything, and all of it may quote anything
            raise self._explain(error) from None

    def _explain(self, error: Exception) -> ProviderError:
        """
        What an SDK raised, or the library below it, or our own transport through both.
        """
        import httpx2  # noqa: PLC0415 - heavy; was loaded with the SDK

        response = getattr(error, "response", None)
        seen: BaseException | None = error
        # An SDK wraps what came from below. Its own chain may have more in it, but no circle.
        for _ in range(8):
            if isinstance(seen, Refused):
                return seen.error
            if isinstance(seen, httpx2.ConnectError | httpx2.ConnectTimeout):
                return faults.unreached(self.name)
            if isinstance(seen, httpx2.TransportError | httpx2.StreamError):
                return faults.broken(self.name)
            seen = (seen.__cause__ or seen.__context__) if seen is not None else None
        if isinstance(response, httpx2.Response):
            headers = {key.lower(): value for key, value in response.headers.items()}
            return faults.of_status(
                self.name, self._endpoint, response.status_code, headers, response.content, self._now_s()
            )
        return faults.crashed(self.name, error)

    @asynccontextmanager
    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[httpx2.Response]:
        client = await self._client()
        async with self._call(client, body) as opened:
            yield opened.response

    def _call(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[_Opened]:
        resource = {
            "anthropic": lambda: client.messages,
            "openai": lambda: client.responses,
            "compatible": lambda: client.chat.completions,
        }[self._kind]()
        call: AbstractAsyncContextManager[_Opened] = resource.with_streaming_response.create(**body)
        return call

    async def _client(self) -> Any:
        # It takes a second to load, and the loop has others to serve.
        return await anyio.to_thread.run_sync(lambda: self._made)

    @cached_property
    def _made(self) -> Any:
        from runner.providers.pinned import http_client  # noqa: PLC0415 - heavy

        http = http_client(self.name, self._endpoint)
        base = str(self._endpoint.address)
        if self._kind == "anthropic":
            import anthropic  # noqa: PLC0415 - heavy

            return anthropic.AsyncAnthropic(
                api_key=_NOBODY,
                # Theirs say the version in every path.
                base_url=base.removesuffix("/v1"),
                max_retries=0,
                timeout=None,
                http_client=http,
                open_telemetry={"traces": False},
            )
        import openai  # noqa: PLC0415 - heavy

        return openai.AsyncOpenAI(
            api_key=_NOBODY, base_url=base, max_retries=0, timeout=None, http_client=http
        )
