"""
What goes into an engine: the published sources, our own port around them, and the compiler.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from runner.build.sdk import sdk_root
from runner.errors import UsageError

EngineLanguage = Literal["js", "python"]
ENGINE_LANGUAGES: Final[tuple[EngineLanguage, ...]] = ("js", "python")

_COMPILER: Final = "ziglang"
_HINT: Final = "pip install 'wasm-agent-runner[engines]'"

Run: TypeAlias = Callable[[Sequence[str]], None]
"""
Runs one program of a build; raises `BuildFailed` with its output when it fails.
"""


@dataclass(frozen=True, slots=True)
class PyPISource:
    """
    Sources that are published as the source distribution of a Python package.

    Attributes:
        package: Its name.
        version: Its version.
        sha256: Digest of the archive, in hexadecimal.
    """

    package: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class DebianSource:
    """
    Sources that are published as a source package of Debian.

    Attributes:
        package: Its name.
        version: Upstream's version; any Debian revision of it has the same archive.
        suite: Where apt finds it.
        sha256: Digest of the upstream archive, in hexadecimal.
    """

    package: str
    version: str
    suite: str
    sha256: str


Source: TypeAlias = PyPISource | DebianSource


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    How an engine is made.

    Attributes:
        language: What it interprets.
        title: The language's name, for people.
        name: The engine's name and version.
        source: What is fetched.
        folders: Of the guest SDK: all of ours that goes in. The first has the `NOTICES.txt` of what is not.
        compile_engine: Makes the module; gets the unpacked sources, a scratch folder and `Run`.
    """

    language: EngineLanguage
    title: str
    name: str
    source: Source
    folders: tuple[str, ...]
    compile_engine: Callable[[Path, Path, Run], Path]

    def digest(self) -> bytes:
        """
        Digest of all that goes in: the same gives the same module, byte for byte.

        Raises:
            UsageError: If the compiler is not installed.
        """
        total = hashlib.sha256()
        for word in (self.language, self.source.version, self.source.sha256, compiler_release()):
            total.update(word.encode() + b"\0")
        for path in self._inputs():
            total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return total.digest()

    def notices(self) -> str:
        """
        What the licences of all that is compiled in ask to be told with it.
        """
        return (sdk_root() / self.folders[0] / "NOTICES.txt").read_text(encoding="utf-8")

    def _inputs(self) -> list[Path]:
        root = sdk_root()
        ours = (path for folder in self.folders for path in (root / folder).rglob("*"))
        kept = [path for path in ours if path.is_file() and "__pycache__" not in path.parts]
        recipe = Path(__file__).with_name(f"{self.language}.py")
        return [*sorted(kept, key=lambda path: path.relative_to(root).as_posix()), recipe]


def recipe_of(language: EngineLanguage) -> Recipe:
    """
    The recipe of a language's engine.
    """
    return cast("Recipe", import_module(f"runner.build.engines.{language}").RECIPE)


def compiler_release() -> str:
    """
    Version of the compiler.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        return metadata.version(_COMPILER)
    except metadata.PackageNotFoundError as error:
        msg = "compiling an engine needs zig, which is not installed"
        raise UsageError(msg, hint=_HINT) from error
