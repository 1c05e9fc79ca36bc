"""
`build_agent`: one agent's folder to one file that is the whole agent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, assert_never

from runner.build.c import MAX_BUILT_BYTES, compile_c
from runner.build.sdk import sdk_digest
from runner.errors import AgentInvalid
from runner.files import write_whole
from runner.package.agent import MAX_TEXT_BYTES, pack
from runner.package.files import read_file
from runner.package.manifest import Manifest, load_manifest
from runner.package.sources import BUILT_MODULE, build_folder, record_build

Progress: TypeAlias = Callable[[str], None]
"""
Takes one line for people at a time.
"""


def build_agent(folder: Path, out: Path | None = None, *, progress: Progress | None = None) -> Path:
    """
    Compile the agent in a folder and write it, with its manifest inside.

    Args:
        folder: Holds `agent.toml`.
        out: Where to; by default `build/agent.wasm` in the folder, with a record of the sources, so that
            it is known when it is out of date.
        progress: Gets the compiler's warnings.

    Returns:
        The file that was written.

    Raises:
        ConfigError: If `agent.toml` does not say what it must.
        AgentInvalid: If a source is missing, or not one.
        UsageError: If a compiler is not installed, or nothing can be written at `out`.
        BuildFailed: If the compiler refused the sources.
    """
    manifest = load_manifest(folder)
    module, warnings = _module(folder, manifest)
    if warnings and progress is not None:
        progress(warnings)
    try:
        packed = pack(module, manifest)
    except ValueError as error:
        raise AgentInvalid(str(folder / manifest.entry), str(error)) from error
    if out is not None:
        write_whole(out, packed)
        return out
    # Before anything is written: a stranger's folder may have a link in its place.
    build_folder(folder)
    path = folder / BUILT_MODULE
    write_whole(path, packed)
    if manifest.language == "c":
        record_build(folder, manifest, packed, sdk_digest())
    return path


def _module(folder: Path, manifest: Manifest) -> tuple[bytes, str]:
    entry = folder / manifest.entry
    match manifest.language:
        case "c":
            return compile_c(folder, manifest)
        case "wat":
            return _assemble(folder, entry), ""
        case "wasm":
            return read_file(entry, max_bytes=MAX_BUILT_BYTES, inside=folder), ""
        case "js" | "python":
            raise AgentInvalid(str(entry), "is loaded into an engine, not compiled")
        case _:
            assert_never(manifest.language)


def _assemble(folder: Path, entry: Path) -> bytes:
    # Imported here: a C build needs no engine, and it is the slowest import we have.
    from runner.kernel.engine import assemble_wat  # noqa: PLC0415

    data = read_file(entry, max_bytes=MAX_TEXT_BYTES, inside=folder)
    try:
        return assemble_wat(data.decode(), path=str(entry))
    except UnicodeDecodeError as error:
        raise AgentInvalid(str(entry), f"not UTF-8 at byte {error.start}") from error
