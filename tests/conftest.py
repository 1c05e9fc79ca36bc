"""
What holds for every test: no network, property tests that a slow machine can't fail, and engines that are
made once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from runner.build.engines import ENGINE_LANGUAGES, EngineLanguage, fetch_problem, make_engine, recipe_of
from runner.build.engines.store import ENGINES_VARIABLE
from runner.cache import BlobCache

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

_ENGINES = Path(__file__).parents[1] / "build" / "engines"
"""
Where this checkout's tests keep the engines; each test has a cache of its own.
"""


def pytest_collection_finish(session: pytest.Session) -> None:
    """
    Make the engines that the chosen tests need. It takes minutes where there is none yet, so no test's
    timeout may run meanwhile.
    """
    needed = [
        language
        for language in ENGINE_LANGUAGES
        if any(item.get_closest_marker(language) for item in session.items)
    ]
    if session.config.option.collectonly or not needed:
        return
    for language in needed:
        problem = fetch_problem(recipe_of(language).source)
        if problem is None:
            _make(language)
            continue
        for item in session.items:
            if item.get_closest_marker(language):
                item.add_marker(pytest.mark.skip(reason=problem))
    os.environ[ENGINES_VARIABLE] = str(_ENGINES)


def _make(language: EngineLanguage) -> None:
    _ENGINES.mkdir(parents=True, exist_ok=True)
    cache = BlobCache(_ENGINES / "cache")
    (_ENGINES / f"{language}.wasm").write_bytes(make_engine(language, cache, _say))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@pytest.fixture(scope="session")
def engine_js() -> bytes:
    """The engine of JavaScript."""
    return (_ENGINES / "js.wasm").read_bytes()


@pytest.fixture(scope="session")
def engine_python() -> bytes:
    """The engine of Python."""
    return (_ENGINES / "python.wasm").read_bytes()
