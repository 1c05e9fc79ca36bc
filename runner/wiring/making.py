"""
Making agents: a new folder from a template, and one file from a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.build.scaffold import new_agent as scaffold
from runner.build.sdk import sdk_digest
from runner.digest import digest, show
from runner.files import write_whole
from runner.package.agent import pack
from runner.package.sources import BUILT_MODULE, build_folder, record_build
from runner.wiring.host import Host
from runner.wiring.prepare import carried_image, freeze_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.build.scaffold import TemplateLanguage
    from runner.codec import Value
    from runner.package.agent import AgentPackage

_PROGRESS: Final = "freezing the image"


def build_agent(
    folder: Path, out: Path | None, progress: Callable[[str], None], cache: Path | None = None
) -> dict[str, Value]:
    """
    One file from an agent's folder: compiled, admitted, booted, and frozen with its manifest inside.

    Args:
        folder: Holds `agent.toml`; or an agent that is one file.
        out: Where to; by default `build/agent.wasm` in the folder, or beside the file.
        progress: Takes one line for people at a time.
        cache: Where compiled code is kept; `None` for the user's cache directory.

    Returns:
        `path`, `size_bytes`, `digest`, `code_digest`, `image_digest`, `image_bytes`.

    Raises:
        RunnerError: If it can't be built, is refused, or fails while it boots; `out` is not written then.
    """
    host = Host(cache)
    package = host.load(folder, may_compile=True, progress=progress)
    section, image_digest = _image(host, package, progress)
    packed = pack(package.wasm, package.manifest, section)
    path = out or _default_path(folder)
    write_whole(path, packed)
    if out is None and package.manifest.language == "c":
        record_build(folder, package.manifest, packed, sdk_digest())
    return {
        "path": str(path),
        "size_bytes": len(packed),
        "digest": show(digest(packed)),
        "code_digest": show(host.admit(package.wasm).code_digest),
        "image_digest": show(image_digest),
        "image_bytes": len(section),
    }


def _image(host: Host, package: AgentPackage, progress: Callable[[str], None]) -> tuple[bytes, bytes]:
    """
    The agent's image as its file carries it, and its digest.
    """
    # That of an interpreted agent was made when it was loaded; a module may carry one that is out of date.
    if package.image is not None and package.manifest.is_interpreted:
        admitted, limits = host.admit(package.wasm), package.manifest.limits_under({})
        carried = carried_image(package, admitted, max_memory_bytes=limits.memory_bytes)
        return package.image, carried.digest
    progress(_PROGRESS)
    section, image = freeze_image(host, package, {})
    return section, image.digest


def _default_path(folder: Path) -> Path:
    if not folder.is_dir():
        return folder.with_suffix(".wasm")
    build_folder(folder)
    return folder / BUILT_MODULE


def new_agent(folder: Path, lang: str) -> dict[str, Value]:
    """
    A new agent's folder from a template.

    Args:
        folder: Absent or empty.
        lang: `js`, `python`, `c` or `wat`.

    Raises:
        UsageError: If the folder is not empty, or there is no such template.
    """
    language: TemplateLanguage = lang  # type: ignore[assignment]
    files = scaffold(folder, language)
    return {"folder": str(folder), "files": [str(path) for path in files]}
