"""
Servers on loopback that speak the protocols of providers: HTTP/1.1 by hand, so that a test says what goes
over the wire, byte by byte, and when.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream

_MOST: Final = 1 << 20


@dataclass(frozen=True)
class Stall:
    """
    Sends nothing more until the client is gone.
    """


@dataclass(frozen=True)
class Cut:
    """
    Breaks the connection, as a crash of the server does.
    """


@dataclass(frozen=True)
class Wait:
    """
    Sends nothing more until an event of the test.
    """

    until: anyio.Event


Step: TypeAlias = bytes | Stall | Cut | Wait


@dataclass(frozen=True, kw_only=True)
class Answer:
    """
    One response, and how it comes.
    """

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})


@dataclass(frozen=True, kw_only=True)
class Received:
    """
    One request, as it came.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """
        Its body.
        """
        return json.loads(self.body)


class Server:
    """
    Answers one request after the other; the last answer again and again.
    """

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.answers = list(answers)
        self.received: list[Received] = []
        self.port = 0
        # Set when an answer stalls, and when the client of such a one has gone.
        self.stalled = anyio.Event()
        self.gone = anyio.Event()

    @property
    def origin(self) -> str:
        """
        Where it is.
        """
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, stream: SocketStream) -> None:
        """
        One connection: one request, one answer.
        """
        async with stream:
            received = await _read(stream)
            if received is None:
                return
            self.received.append(received)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            try:
                await self._send(stream, answer)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.gone.set()

    async def _send(self, stream: SocketStream, answer: Answer) -> None:
        head = [f"HTTP/1.1 {answer.status} So"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        head += ["transfer-encoding: chunked", "connection: close", "", ""]
        await stream.send("\r\n".join(head).encode())
        for step in answer.steps:
            match step:
                case b"":
                    # An empty chunk would be the last one.
                    pass
                case bytes():
                    await stream.send(f"{len(step):x}\r\n".encode() + step + b"\r\n")
                case Wait():
                    await step.until.wait()
                case Stall():
                    self.stalled.set()
                    # Ends when the other side closes: nobody sends anything after a request.
                    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                        await stream.receive()
                    self.gone.set()
                    return
                case Cut():
                    raw = stream.extra(SocketAttribute.raw_socket)
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
        await stream.send(b"0\r\n\r\n")


async def _read(stream: SocketStream) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive(_MOST)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive(_MOST)
    return Received(method=method, path=path, headers=headers, body=body)


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Server]:
    """
    A server with these answers, for the length of a block.
    """
    server = Server(answers)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    server.port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.serve)
        yield server
        group.cancel_scope.cancel()


def sse(*events: Any) -> bytes:
    """
    Server-sent events, each with its `type` as its name where it has one; a text is sent as it is.
    """
    written = []
    for event in events:
        if isinstance(event, str):
            written.append(f"data: {event}\n\n")
            continue
        name = f"event: {event['type']}\n" if "type" in event else ""
        written.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join(written).encode()


def ndjson(*events: Any) -> bytes:
    """
    Objects, one on each line.
    """
    return "".join(
        f"{event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n" for event in events
    ).encode()
