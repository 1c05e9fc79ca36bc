"""
Engines, kept: inside an installed wheel, or in the user's cache under the digest of all that went in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runner.build.engines.fetch import fetch
from runner.build.engines.recipe import EngineLanguage, Recipe, recipe_of
from runner.build.tool import run_tool
from runner.cache import BlobCache
from runner.errors import BuildFailed
from runner.package.files import read_file
from runner.units import MIB

MAX_ENGINE_BYTES: Final = 16 * MIB

_KIND: Final = "engines"
_PREBUILT: Final = Path(__file__).resolve().parents[2] / "_engines"


def prebuilt_module(language: EngineLanguage) -> Path | None:
    """
    The engine that this installation has inside, or `None`.
    """
    path = _PREBUILT / f"{language}.wasm"
    return path if path.is_file() else None


def engine_key(language: EngineLanguage) -> bytes:
    """
    What tells one state of an engine from another; cheap.

    Raises:
        UsageError: If this installation has none inside, and no compiler.
    """
    prebuilt = prebuilt_module(language)
    if prebuilt is not None:
        status = prebuilt.stat()
        return f"{language} {status.st_size} {status.st_mtime_ns}".encode()
    return recipe_of(language).digest()


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
    if prebuilt is not None:
        return prebuilt.read_bytes()
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
            return read_file(built, max_bytes=MAX_ENGINE_BYTES)

    def _run(self, scratch: Path, command: Sequence[str], *, fetches: bool = False) -> None:
        result = run_tool(command, folder=scratch, scratch=scratch, fetches=fetches)
        if not result.ok:
            raise BuildFailed(self._recipe.name, result.output.replace(f"{scratch}/", ""))


def _say_nothing(line: str) -> None:
    del line
