"""
Whether a compiled agent still is what its sources say, by their content.

Times of files say little: a checkout gives every file the same one, and a copy gives them new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from runner import codec
from runner.digest import digest, show
from runner.errors import AgentInvalid
from runner.files import write_whole
from runner.package.files import read_file
from runner.package.manifest import Manifest
from runner.units import KIB, MIB

BUILD_FOLDER: Final = "build"
BUILT_MODULE: Final = f"{BUILD_FOLDER}/agent.wasm"
BUILD_RECORD: Final = f"{BUILD_FOLDER}/agent.digests"

MAX_SOURCE_BYTES: Final = 4 * MIB
MAX_SOURCE_FILES: Final = 1000

_SOURCE_SUFFIXES: Final = (".c", ".h", ".inc")
_MAX_RECORD_BYTES: Final = 1 * KIB


def source_digest(folder: Path, manifest: Manifest) -> bytes:
    """
    Digest of all that decides what an agent compiles to: its build settings, the files that it names,
    and every other C file in its folder, which those may include.

    Raises:
        AgentInvalid: If a file is missing, leads outside the folder, is too large, or there are too many.
    """
    names = sorted({*manifest.sources, *_c_files(folder)})
    if len(names) > MAX_SOURCE_FILES:
        raise AgentInvalid(str(folder), f"more than {MAX_SOURCE_FILES} source files")
    files = {
        name: digest(read_file(folder / name, max_bytes=MAX_SOURCE_BYTES, inside=folder)) for name in names
    }
    build = manifest.build
    decides = [list(manifest.sources), build.unwind, build.stack_bytes, files]
    return digest(codec.encode(decides))


def build_folder(folder: Path) -> Path:
    """
    The folder for what is built of an agent; made if it is not there.

    Raises:
        AgentInvalid: If it is something else than a folder of the agent's own, such as a link to elsewhere.
    """
    path = folder / BUILD_FOLDER
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise AgentInvalid(str(path), f"can't be made: {error.strerror}") from error
    if path.is_symlink():
        raise AgentInvalid(str(path), "leads outside the agent's folder")
    return path


def record_build(folder: Path, manifest: Manifest, module: bytes, sdk: bytes = b"") -> None:
    """
    Remember that `module`, now at `build/agent.wasm`, was compiled from the sources as they are.

    Args:
        folder: The agent's.
        manifest: Its manifest.
        module: What was made.
        sdk: Digest of the SDK that it was compiled with.

    Raises:
        AgentInvalid: If a source can't be read, or the build folder is none.
        UsageError: If the record can't be written.
    """
    record = _record(source_digest(folder, manifest), module, sdk)
    build_folder(folder)
    # A record that is lost or torn costs a build, nothing else.
    write_whole(folder / BUILD_RECORD, record.encode(), sync=False)


def read_built(folder: Path, manifest: Manifest, *, max_bytes: int, sdk: bytes = b"") -> bytes | None:
    """
    The module at `build/agent.wasm` if it was compiled from the sources and with the SDK as they are, else
    `None`.

    Raises:
        AgentInvalid: If a source can't be read, or the module is no regular file of bounded size.
    """
    if not (folder / BUILT_MODULE).exists() or not (folder / BUILD_RECORD).exists():
        return None
    record = read_file(folder / BUILD_RECORD, max_bytes=_MAX_RECORD_BYTES, inside=folder)
    module = read_file(folder / BUILT_MODULE, max_bytes=max_bytes, inside=folder)
    expected = _record(source_digest(folder, manifest), module, sdk)
    return module if record == expected.encode() else None


def _record(sources: bytes, module: bytes, sdk: bytes) -> str:
    return f"sources {show(sources)}\nsdk {sdk.hex()}\nmodule {show(digest(module))}\n"


def _c_files(folder: Path) -> Iterator[str]:
    """
    C files below the folder, but not what is hidden or was built; links to folders are not followed.
    """
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != BUILD_FOLDER)
        for name in names:
            if name.endswith(_SOURCE_SUFFIXES) and not name.startswith("."):
                yield PurePosixPath(os.path.relpath(os.path.join(where, name), folder)).as_posix()
