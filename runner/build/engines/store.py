"""
Engines, kept: inside an installed wheel, where `RUNNER_ENGINES` says, or in the user's cache under the digest
of all that went in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runner.build.engines.fetch import fetch
from runner.build.engines.recipe import EngineLanguage, Recipe, recipe_of
from runner.build.tool import run_tool
from runner.cache import BlobCache
from runner.digest import digest
from runner.errors import BuildFailed, UsageError
from runner.package.files import read_file
from runner.units import MIB

MAX_ENGINE_BYTES: Final = 16 * MIB

ENGINES_VARIABLE: Final = "RUNNER_ENGINES"

_KIND: Final = "engines"
_PREBUILT: Final = Path(__file__).resolve().parents[2] / "_engines"


def prebuilt_module(language: EngineLanguage) -> Path | None:
    """
    The engine that the user names by `RUNNER_ENGINES`, or that this installation has inside; or `None`.

    Raises:
        UsageError: If the directory that the user names has none.
    """
    named = os.environ.get(ENGINES_VARIABLE)
    path = (Path(named).expanduser() if named else _PREBUILT) / f"{language}.wasm"
    if path.is_file():
        return path
    if named:
        msg = f"{ENGINES_VARIABLE}: {path} is not there"
        raise UsageError(msg, hint="fill it with: python -m runner.build.engines DIR")
    return None


def engine_key(language: EngineLanguage) -> bytes:
    """
    What tells one state of an engine from another; cheap.

    Raises:
        UsageError: If this installation has none inside, and no compiler.
    """
    prebuilt = prebuilt_module(language)
    if prebuilt is not None:
        return digest(_read(prebuilt))
    return recipe_of(language).digest()


def is_made(language: EngineLanguage, cache: BlobCache) -> bool:
    """
    Whether the cache has the engine as it is to be now.

    Raises:
        UsageError: If there is no compiler to make it with.
    """
    return cache.get(_KIND, recipe_of(language).digest()) is not None


def engine_module(
    language: EngineLanguage, cache: BlobCache, progress: Callable[[str], None] | None = None
) -> bytes:
    """
    The engine of a language; made when it is in neither place, which takes minutes and a network.

    Raises:
        UsageError: If it has to be made, and a tool for that is not installed.
        BuildFailed: If the sources can't be had, or do not compile.
    """
    prebuilt = prebuilt_module(language)
    return make_engine(language, cache, progress) if prebuilt is None else _read(prebuilt)


def make_engine(
    language: EngineLanguage, cache: BlobCache, progress: Callable[[str], None] | None = None
) -> bytes:
    """
    As `engine_module`, whatever is installed.
    """
    recipe = recipe_of(language)
    make = _Making(recipe, progress or _say_nothing)
    return cache.get_or_make(_KIND, recipe.digest(), make.make).read_bytes()


class _Making:
    """
    One engine's making.
    """

    def __init__(self, recipe: Recipe, progress: Callable[[str], None]) -> None:
        self._recipe = recipe
        self._progress = progress

    def make(self) -> bytes:
        """
        Fetch, compile, and give the module's bytes.
        """
        recipe = self._recipe
        with TemporaryDirectory(prefix="runner-engine-") as name:
            scratch = Path(name)
            self._progress(f"fetching the sources of {recipe.name}, once")
            sources = fetch(recipe.source, scratch, partial(self._run, scratch, fetches=True))
            self._progress(f"compiling {recipe.name}, once; this takes a minute or two")
            built = recipe.compile_engine(sources, scratch, partial(self._run, scratch))
            return _read(built)

    def _run(self, scratch: Path, command: Sequence[str], *, fetches: bool = False) -> None:
        result = run_tool(command, folder=scratch, scratch=scratch, fetches=fetches)
        if not result.ok:
            raise BuildFailed(self._recipe.name, result.output.replace(f"{scratch}/", ""))


def _read(path: Path) -> bytes:
    return read_file(path, max_bytes=MAX_ENGINE_BYTES)


def _say_nothing(line: str) -> None:
    del line
