"""
Loading an agent from its folder, its module or its text, and the one-file form that travels.

Input: the agent's author.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, assert_never

from runner import codec
from runner.codec import CodecError
from runner.errors import AgentInvalid
from runner.kernel.wasm.custom import custom_sections, with_custom_section, without_custom_sections
from runner.package.fields import FieldProblem
from runner.package.files import read_file
from runner.package.manifest import MANIFEST_NAME, Language, Manifest, default_manifest, load_manifest
from runner.package.sources import BUILT_MODULE, read_built
from runner.units import MIB

MAX_MODULE_BYTES: Final = 64 * MIB
MAX_TEXT_BYTES: Final = 4 * MIB

MANIFEST_SECTION: Final = "runner.manifest"
IMAGE_SECTION: Final = "runner.image"

_MAGIC: Final = b"\0asm"

Assemble = Callable[[str], bytes]
"""
Turns WebAssembly text into a module; raises `AgentInvalid` with the assembler's words when it can't.
"""

Build = Callable[[Path], Path]
"""
Compiles the agent in a folder, keeps the record of it (`record_build`), and returns the module's path.
"""

Interpret = Callable[[Path, Manifest], bytes]
"""
The agent file of an agent in an interpreted language, by its folder and its manifest.
"""

_INTERPRETED_SUFFIXES: Final[dict[str, Language]] = {
    ".js": "js",
    ".mjs": "js",
    ".ts": "js",
    ".mts": "js",
    ".py": "python",
}


@dataclass(frozen=True, slots=True)
class AgentPackage:
    """
    An agent, loaded; nothing of it has run or been admitted.

    Attributes:
        manifest: What it says of itself.
        wasm: The module without our own sections, so that its digest is that of the code.
        origin: The folder or file that it came from.
        image: The image that it carried, or `None` when it boots from the module.
    """

    manifest: Manifest
    wasm: bytes
    origin: Path
    image: bytes | None = None

    @property
    def name(self) -> str:
        """
        The agent's name, from its manifest.
        """
        return self.manifest.name


class Unpacked(NamedTuple):
    """
    What one agent file holds.

    Attributes:
        wasm: The module without our own sections.
        manifest: The manifest that it carries, or `None`.
        image: The image that it carries, or `None`.
    """

    wasm: bytes
    manifest: Manifest | None
    image: bytes | None


def load_agent(
    path: Path,
    *,
    assemble: Assemble,
    build: Build | None,
    interpret: Interpret,
    sdk: Callable[[], bytes] = bytes,
) -> AgentPackage:
    """
    The agent at a path.

    Args:
        path: A folder with `agent.toml`, or a `.wasm`, `.wat`, `.js`, `.ts` or `.py` file.
        assemble: Turns WebAssembly text into a module.
        interpret: Loads an agent in an interpreted language into its engine.
        build: Compiles a C agent whose module is missing or older than its sources, or `None` when
            nothing is to be compiled.
        sdk: Digest of the SDK that C agents are compiled with; asked for only when there is one.

    Raises:
        AgentInvalid: If there is no well-formed agent at that path.
        ConfigError: If its `agent.toml` does not say what it must.
        BuildFailed: If it had to be compiled and could not be.
        SourceRejected: If a module of an interpreted one is wrong.
    """
    if path.is_dir():
        return _load_folder(path, assemble, build, interpret, sdk)
    if path.suffix == ".wasm":
        wasm, manifest, image = unpack(_read_module(path), origin=path)
        return AgentPackage(manifest or default_manifest(path, "wasm"), wasm, path, image)
    if path.suffix == ".wat":
        return AgentPackage(default_manifest(path, "wat"), _assemble(path, assemble), path)
    if not path.exists():
        raise AgentInvalid(str(path), "no such file or folder")
    if path.suffix in _INTERPRETED_SUFFIXES:
        manifest = default_manifest(path, _INTERPRETED_SUFFIXES[path.suffix])
        return _interpreted(path.parent, manifest, interpret, path)
    known = "a .wasm, .wat, .js, .ts or .py file"
    raise AgentInvalid(str(path), f"not an agent: expected a folder with {MANIFEST_NAME}, or {known}")


def pack(wasm: bytes, manifest: Manifest, image: bytes | None = None) -> bytes:
    """
    One file that is the whole agent: the module with manifest and image in sections of their own.

    The same arguments give the same bytes. Such sections that the module has already are replaced.

    Raises:
        ValueError: If `wasm` is not well formed.
    """
    packed = without_custom_sections(wasm, {MANIFEST_SECTION, IMAGE_SECTION})
    packed = with_custom_section(packed, MANIFEST_SECTION, codec.encode(manifest.to_wire()))
    return packed if image is None else with_custom_section(packed, IMAGE_SECTION, image)


def unpack(wasm: bytes, *, origin: Path) -> Unpacked:
    """
    The parts that `pack` put together; a module that was never packed has neither manifest nor image.

    Args:
        wasm: The file's content.
        origin: The file, to name it in a refusal.

    Raises:
        AgentInvalid: If it is no module, has a section twice, or carries a manifest that is none.
    """
    if not wasm.startswith(_MAGIC):
        raise AgentInvalid(str(origin), "not a WebAssembly module")
    try:
        manifest = _only_section(wasm, MANIFEST_SECTION)
        image = _only_section(wasm, IMAGE_SECTION)
        code = without_custom_sections(wasm, {MANIFEST_SECTION, IMAGE_SECTION})
        return Unpacked(code, None if manifest is None else _read_manifest(manifest), image)
    except ValueError as error:
        raise AgentInvalid(str(origin), str(error)) from error


def _load_folder(
    folder: Path, assemble: Assemble, build: Build | None, interpret: Interpret, sdk: Callable[[], bytes]
) -> AgentPackage:
    if not (folder / MANIFEST_NAME).exists():
        raise AgentInvalid(str(folder), f"has no {MANIFEST_NAME}")
    manifest = load_manifest(folder)
    entry = folder / manifest.entry
    match manifest.language:
        case "wat":
            wasm, image = _assemble(entry, assemble, inside=folder), None
        case "wasm":
            wasm, _, image = unpack(_read_module(entry, inside=folder), origin=entry)
        case "c":
            wasm, _, image = unpack(_compiled(folder, manifest, build, sdk()), origin=folder / BUILT_MODULE)
        case "js" | "python":
            return _interpreted(folder, manifest, interpret, folder)
        case _:
            assert_never(manifest.language)
    return AgentPackage(manifest, wasm, folder, image)


def _interpreted(folder: Path, manifest: Manifest, interpret: Interpret, origin: Path) -> AgentPackage:
    wasm, _, image = unpack(interpret(folder, manifest), origin=origin)
    return AgentPackage(manifest, wasm, origin, image)


def _assemble(path: Path, assemble: Assemble, *, inside: Path | None = None) -> bytes:
    data = read_file(path, max_bytes=MAX_TEXT_BYTES, inside=inside)
    try:
        return assemble(data.decode())
    except UnicodeDecodeError as error:
        raise AgentInvalid(str(path), f"not UTF-8 at byte {error.start}") from error


def _compiled(folder: Path, manifest: Manifest, build: Build | None, sdk: bytes) -> bytes:
    module = read_built(folder, manifest, max_bytes=MAX_MODULE_BYTES, sdk=sdk)
    if module is not None:
        return module
    if build is None:
        raise AgentInvalid(
            str(folder),
            "not built from its sources as they are",
            hint=f"runner build {folder}; that runs a C compiler on its sources",
        )
    return _read_module(build(folder))


def _read_module(path: Path, *, inside: Path | None = None) -> bytes:
    return read_file(path, max_bytes=MAX_MODULE_BYTES, inside=inside)


def _only_section(wasm: bytes, name: str) -> bytes | None:
    contents = [section.content for section in custom_sections(wasm) if section.name == name]
    if len(contents) > 1:
        msg = f"section {name} is there {len(contents)} times"
        raise ValueError(msg)
    return contents[0] if contents else None


def _read_manifest(data: bytes) -> Manifest:
    try:
        return Manifest.from_wire(codec.decode(data))
    except (CodecError, FieldProblem) as error:
        msg = f"section {MANIFEST_SECTION}: {error}"
        raise ValueError(msg) from error
