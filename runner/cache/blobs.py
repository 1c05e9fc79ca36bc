"""
The cache itself: `<root>/<kind>/<hex key>`, with the entry's size and lock in two small files beside it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from runner.cache.lock import hold
from runner.errors import UsageError
from runner.files import Exposure, find_exposure, is_ours, make_private, temporary_prefix, write_whole

CACHE_VARIABLE: Final = "RUNNER_CACHE"

_APPLICATION: Final = "wasm-agent-runner"
_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_MAX_KEY_BYTES: Final = 64
_MAX_SIZE_DIGITS: Final = 20
_ELSEWHERE: Final = f"set {CACHE_VARIABLE} to a directory of your own"


def default_cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Where the cache is unless told otherwise: `RUNNER_CACHE`, or the user's cache directory.
    """
    named = environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs  # noqa: PLC0415 - only those who need it pay for it

    return platformdirs.user_cache_path(_APPLICATION, appauthor=False)


class BlobCache:
    """
    Blobs by kind and key. Safe to share between threads, and between processes of one user.

    Guarantees: an entry is whole or absent, whatever crashes; no two holders of one cache make the same
    entry at once. Does not guarantee that an entry stays: `discard`, or the user, may remove it.

    Args:
        root: The directory; created, private to the user, if it is not there.

    Raises:
        UsageError: If others could put files there, or it can't be used.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        with self._explained():
            # A file in its place is told from the next step's error, which says what is wrong.
            with contextlib.suppress(FileExistsError):
                root.parent.mkdir(parents=True, exist_ok=True)
            _make_private(root)

    def get(self, kind: str, key: bytes) -> Path | None:
        """
        The file of the entry, or `None` when there is none that is whole.

        Raises:
            UsageError: If others could put files there, or it can't be used.
        """
        path = self._path(kind, key)
        with self._explained():
            try:
                _need_private(path.parent)
                status = path.lstat()
                sealed = _sealed_bytes(path)
            except FileNotFoundError:
                return None
        whole = stat.S_ISREG(status.st_mode) and is_ours(status) and status.st_size == sealed
        return path if whole else None

    def get_or_make(self, kind: str, key: bytes, make: Callable[[], bytes]) -> Path:
        """
        The file of the entry; `make` is called for its content when there is none.

        One process makes it, others that want it meanwhile wait. What `make` raises is passed on, and the
        next who asks tries again. `make` must not ask for the same entry: it would wait for itself.

        Raises:
            UsageError: If others could put files there, or it can't be used.
            ArtifactError: If the disk is full or broken.
        """
        found = self.get(kind, key)
        if found:
            return found
        with self.held(kind, key) as path:
            found = self.get(kind, key)
            if found:
                return found
            with self._explained():
                _remove(path)
                _sweep(path)
            blob = make()
            # The entry's own name comes last and says that all is there; a size that a power cut
            # takes away only costs a second making, so only the entry is waited for.
            write_whole(_seal(path), str(len(blob)).encode(), sync=False)
            write_whole(path, blob)
        return path

    def discard(self, kind: str, key: bytes) -> None:
        """
        Remove the entry, if there is one. Who has it open or mapped keeps what they have.

        Raises:
            UsageError: If others could put files there, or it can't be used.
        """
        path = self._path(kind, key)
        with self._explained():
            if not path.parent.is_dir():
                return
        with self._locked(path), self._explained():
            _remove(path)

    @contextlib.contextmanager
    def held(self, kind: str, key: bytes) -> Iterator[Path]:
        """
        Hold the lock of an entry, for who keeps something else than a blob at its path.

        Raises:
            UsageError: If others could put files there, or it can't be used.
        """
        path = self._path(kind, key)
        with self._explained():
            _make_private(path.parent)
        with self._locked(path):
            yield path

    def _path(self, kind: str, key: bytes) -> Path:
        if not _KIND.fullmatch(kind):
            msg = f"not a kind of blob: {kind!r}"
            raise ValueError(msg)
        if not 0 < len(key) <= _MAX_KEY_BYTES:
            msg = f"a key has 1 to {_MAX_KEY_BYTES} bytes, not {len(key)}"
            raise ValueError(msg)
        return self.root / kind / key.hex()

    @contextlib.contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            with self._explained():
                stack.enter_context(hold(path.with_name(f"{path.name}.lock")))
            yield

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            msg = f"cache {self.root} can't be used: {reason}"
            raise UsageError(msg, hint=_ELSEWHERE, path=str(self.root)) from error


def _make_private(directory: Path) -> None:
    _refuse(directory, make_private(directory))


def _need_private(directory: Path) -> None:
    _refuse(directory, find_exposure(directory))


def _refuse(directory: Path, exposure: Exposure | None) -> None:
    """
    Whoever may write here may choose what the host executes.
    """
    if exposure is None:
        return
    fix = exposure.fix
    if fix is None:
        fix = _ELSEWHERE
    elif fix.startswith("chmod"):
        fix = f"empty it, since others may have put code there, then: {fix}"
    else:
        fix = f"{fix}: {_ELSEWHERE}"
    raise UsageError(f"cache {directory} {exposure.problem}", hint=fix, path=str(directory))


def _seal(path: Path) -> Path:
    return path.with_name(f"{path.name}.size")


def _sealed_bytes(path: Path) -> int:
    """
    The size that the entry had when it was whole; -1 when that is unreadable.
    """
    with _seal(path).open("rb") as file:
        text = file.read(_MAX_SIZE_DIGITS)
    return int(text) if text.isdigit() else -1


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _seal(path).unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """
    Remove what a process that was killed while it wrote this entry has left. Needs the entry's lock.
    """
    leftovers = (temporary_prefix(path.name), temporary_prefix(_seal(path).name))
    for name in os.listdir(path.parent):
        if name.startswith(leftovers):
            path.with_name(name).unlink(missing_ok=True)
