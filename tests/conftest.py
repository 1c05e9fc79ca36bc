"""
What holds for every test: no network, and property tests that a slow machine can't fail.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import hypothesis

hypothesis.settings.register_profile(
    "short",
    deadline=None,
    max_examples=50,
    # A gate must say the same of the same commit; at a desk, every run looks somewhere new.
    derandomize="CI" in os.environ,
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=10_000)
hypothesis.settings.load_profile("short")

_NAMED = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_REACHED = frozenset({"socket.connect", "socket.sendto"})
_LOOPBACK = frozenset({None, "127.0.0.1", "::1", "localhost", b"127.0.0.1", b"::1", b"localhost"})


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """
    Stop a test that reaches for another machine.

    Raises:
        RuntimeError: Then; no `OSError`, so that no retry swallows it.
    """
    if event in _NAMED:
        host = arguments[0]
    elif event in _REACHED:
        peer = arguments[1]
        # A Unix socket's peer is a path.
        host = peer[0] if isinstance(peer, tuple) else None
    else:
        return
    if host not in _LOOPBACK:
        msg = f"tests have no network: {event} {host!r}"
        raise RuntimeError(msg)


# An audit hook sees what any library does, C code included; it can't be removed, and need not be.
sys.addaudithook(_refuse_network)
