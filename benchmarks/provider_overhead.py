"""
What the host spends on one streamed answer of a provider: processor time of client and loop, server apart.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import time
from typing import TYPE_CHECKING, Any, Final

import anyio

from benchmarks.report import Figure, figure, run
from runner.providers.base import Message, ModelRequest, Provider, Stop, TextDelta
from runner.providers.ollama import OllamaProvider
from runner.providers.origin import Endpoint, Key, parse_address
from runner.providers.sdk import SdkKind, SdkProvider
from runner.providers.steady import SteadyProvider

if TYPE_CHECKING:
    import argparse
    from multiprocessing.connection import Connection

_BAR_MS: Final = 30.0
_CHUNKS: Final = 200
_CALLS: Final = 12
_KINDS: Final[tuple[SdkKind, ...]] = ("anthropic", "openai", "compatible")
_ASK: Final = ModelRequest(model="some-model", messages=(Message("user", "hi"),))
_WORD: Final = "word "
_PAUSE_S: Final = 0.001


def _events(kind: str) -> list[Any]:
    """
    An answer of many small pieces.
    """
    if kind == "anthropic":
        delta = {"type": "text_delta", "text": _WORD}
        return [
            {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *[{"type": "content_block_delta", "index": 0, "delta": delta}] * _CHUNKS,
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": _CHUNKS},
            },
            {"type": "message_stop"},
        ]
    if kind == "openai":
        usage = {"input_tokens": 1, "output_tokens": _CHUNKS}
        return [
            {"type": "response.created", "response": {}},
            *[{"type": "response.output_text.delta", "delta": _WORD}] * _CHUNKS,
            {"type": "response.completed", "response": {"usage": usage}},
        ]
    if kind == "compatible":
        return [
            *[{"choices": [{"index": 0, "delta": {"content": _WORD}}]}] * _CHUNKS,
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    return [
        *[{"message": {"content": _WORD}, "done": False}] * _CHUNKS,
        {"message": {"content": ""}, "done": True, "done_reason": "stop"},
    ]


def _serve(ends: Connection) -> None:
    """
    Answer whoever connects, each event in a chunk of its own; the kind is in the path that was asked.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    ends.send(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked = b""
            while b"\r\n\r\n" not in asked or b"hi" not in asked:
                asked += connection.recv(65536)
            kind = asked.split(b" ", 2)[1].split(b"/")[1].decode()
            form = "application/x-ndjson" if kind == "ollama" else "text/event-stream"
            connection.sendall(
                f"HTTP/1.1 200 OK\r\ncontent-type: {form}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
            )
            for event in _events(kind):
                text = json.dumps(event)
                data = f"{text}\n" if kind == "ollama" else f"data: {text}\n\n"
                # Apart, as a model writes: each piece wakes the loop.
                time.sleep(_PAUSE_S)
                connection.sendall(f"{len(data):x}\r\n{data}\r\n".encode())
            connection.sendall(b"0\r\n\r\n")


def _provider(kind: str, port: int) -> Provider:
    address = parse_address(f"http://127.0.0.1:{port}/{kind}")
    endpoint = Endpoint(address, Key("sk-measured", address.origin))
    for known in _KINDS:
        if known == kind:
            return SdkProvider(kind, known, endpoint)
    return OllamaProvider(kind, endpoint)


async def _ask(provider: Provider) -> None:
    pieces = 0
    ended = False
    async for event in provider.stream(_ASK):
        pieces += isinstance(event, TextDelta)
        ended = isinstance(event, Stop)
    assert (pieces, ended) == (_CHUNKS, True)


async def _measure(kind: str, port: int) -> list[float]:
    provider = SteadyProvider(_provider(kind, port))
    # The first call loads an SDK.
    await _ask(provider)
    spent: list[float] = []
    for _ in range(_CALLS):
        began_ns = time.process_time_ns()
        await _ask(provider)
        spent.append((time.process_time_ns() - began_ns) / 1e6)
    return spent


def measure(options: argparse.Namespace) -> list[Figure]:
    """
    Figures for each adapter.
    """
    del options
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port = ours.recv()
        return [
            figure(
                f"{kind}: an answer of {_CHUNKS} pieces, processor time",
                "ms",
                anyio.run(_measure, kind, port),
                _BAR_MS,
            )
            for kind in (*_KINDS, "ollama")
        ]
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    run("provider_overhead", __doc__.strip(), measure)
