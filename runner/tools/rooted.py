"""
Directories that an operator granted, and reaching what lies in them and nowhere else.

Input: paths are guest-controlled, and what lies in a granted directory may be changed by others at any
moment. So nothing is decided by comparing resolved paths: each component is opened below the descriptor of
the one before, and none of them may be a link. What was opened is what is used.

Links inside a root are not followed even where they stay inside: telling the two apart without a race takes
system calls that not every system has, and a tool for files does not need them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from runner.errors import UsageError
from runner.tools.base import ToolFailure

if TYPE_CHECKING:
    from runner.tools.registry import ToolRegistry

_MAX_PATH_CHARACTERS: Final = 4096
_MAX_COMPONENTS: Final = 128
_SHOWN_CHARACTERS: Final = 200
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# Opening a pipe or a device must not wait for its other end.
FILE_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class Root:
    """
    One granted directory.

    Args:
        path: As the operator wrote it; links in it are followed, once, now.

    Raises:
        UsageError: If it is no directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        if not self.path.is_dir():
            msg = f"{path}: not a directory"
            raise UsageError(msg, hint="name a directory that is there", path=str(path))
        # A model says a root as it was told it, which may be as the operator wrote it.
        self.spellings = {_parts_of(str(self.path)), _parts_of(os.path.abspath(path))}
        self.descriptor = -1

    def open(self) -> None:
        """
        Hold the directory: from here on it is this one, whatever takes its name.
        """
        self.descriptor = os.open(self.path, _DIRECTORY)

    def close(self) -> None:
        """
        Let go of it.
        """
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Place(NamedTuple):
    """
    A path below a root, not yet opened.

    Attributes:
        root: The root.
        parts: Components below it; none of them empty, `.` or `..`.
    """

    root: Root
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """
        The whole path, for people and models.
        """
        return str(self.root.path.joinpath(*self.parts))


class Roots:
    """
    Granted directories, of one kind of access.

    Args:
        paths: As the operator wrote them.

    Raises:
        UsageError: If one is no directory.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.roots = tuple(Root(path) for path in paths)

    def __bool__(self) -> bool:
        return bool(self.roots)

    @asynccontextmanager
    async def source(self, registry: ToolRegistry) -> AsyncIterator[None]:
        """
        Hold the directories while a registry is open.
        """
        del registry
        with self.opened():
            yield

    @contextmanager
    def opened(self) -> Iterator[None]:
        """
        Hold the directories.
        """
        try:
            for root in self.roots:
                root.open()
            yield
        finally:
            for root in self.roots:
                root.close()

    def find(self, path: str) -> Place:
        """
        Where a path lies; a relative one lies in the first root.

        Raises:
            ToolFailure: If it is no path, or lies in none of them.
        """
        parts = _checked_parts(path)
        if not path.startswith("/"):
            return Place(self.roots[0], parts)
        within = [
            (len(spelling), root)
            for root in self.roots
            for spelling in root.spellings
            if parts[: len(spelling)] == spelling
        ]
        if not within:
            raise ToolFailure("denied", f"{show(path)} is in no directory that is granted")
        # The innermost root, whichever way it was spelled.
        length, root = max(within, key=lambda found: found[0])
        return Place(root, parts[length:])

    def contain(self, path: str) -> bool:
        """
        Whether a resolved path lies in one of them.
        """
        parts = _parts_of(path)
        return any(parts[: len(spelling)] == spelling for root in self.roots for spelling in root.spellings)


@contextmanager
def directory(place: Place, *, make: bool = False) -> Iterator[int]:
    """
    The directory at a place, as a descriptor.

    Args:
        place: Where.
        make: Whether directories that are missing are made.

    Raises:
        ToolFailure: If there is none, or the way there leads over a link.
    """
    descriptor = os.dup(place.root.descriptor)
    try:
        for depth, part in enumerate(place.parts):
            with _explained(place, depth + 1, descriptor, part):
                descriptor = _descend(descriptor, part, make=make)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def parent_of(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """
    The directory that a place lies in, and its name there.

    Raises:
        ToolFailure: If there is none, if the way there leads over a link, or if the place is a root itself.
    """
    if not place.parts:
        raise ToolFailure("invalid", f"{show(place.path)} is a directory")
    with directory(Place(place.root, place.parts[:-1]), make=make) as descriptor:
        yield descriptor, place.parts[-1]


@contextmanager
def regular_file(place: Place, flags: int = os.O_RDONLY) -> Iterator[tuple[int, os.stat_result]]:
    """
    The file at a place, open, and what it is.

    Raises:
        ToolFailure: If there is none, or it is no regular file.
    """
    with parent_of(place) as (parent, name):
        with _explained(place, len(place.parts), parent, name):
            descriptor = os.open(name, flags | FILE_FLAGS | os.O_CLOEXEC, dir_fd=parent)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
                raise ToolFailure("invalid", f"{show(place.path)} is {kind}")
            yield descriptor, status
        finally:
            os.close(descriptor)


def status_of(parent: int, name: str) -> os.stat_result | None:
    """
    What has a name in a directory, links as themselves; `None` if nothing has.
    """
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def show(path: str) -> str:
    """
    A path in a message, on one line.
    """
    return ascii(path[:_SHOWN_CHARACTERS]) if not path.isprintable() else path[:_SHOWN_CHARACTERS]


def failure_of(error: OSError, path: str) -> ToolFailure:
    """
    What a system said, as a tool says it.
    """
    match error.errno:
        case errno.ENOENT:
            return ToolFailure("not_found", f"{show(path)}: there is no such file or directory")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolFailure("denied", f"{show(path)}: {os.strerror(error.errno or 0)}")
        case errno.ENOTDIR | errno.EISDIR | errno.ENAMETOOLONG | errno.ENXIO | errno.EINVAL:
            return ToolFailure("invalid", f"{show(path)}: {os.strerror(error.errno or 0)}")
        case _:
            return ToolFailure("failed", f"{show(path)}: {os.strerror(error.errno or 0)}")


def _descend(descriptor: int, part: str, *, make: bool) -> int:
    """
    The directory below, in place of the one above.
    """
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=descriptor)
    below = os.open(part, _DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    os.close(descriptor)
    return below


@contextmanager
def _explained(place: Place, depth: int, parent: int, name: str) -> Iterator[None]:
    """
    Say what was wrong on the way; a link is told from what else it could be.
    """
    try:
        yield
    except OSError as error:
        reached = Place(place.root, place.parts[:depth]).path
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            status = status_of(parent, name)
            if error.errno != errno.ENOTDIR or (status is not None and stat.S_ISLNK(status.st_mode)):
                msg = f"{show(reached)} is a link; links are not followed"
                raise ToolFailure("denied", msg) from None
        raise failure_of(error, reached) from None


def _checked_parts(path: str) -> tuple[str, ...]:
    if "\0" in path:
        raise ToolFailure("invalid", "a path has no NUL")
    if len(path) > _MAX_PATH_CHARACTERS:
        raise ToolFailure("invalid", f"a path has {_MAX_PATH_CHARACTERS} characters at most")
    parts = _parts_of(path)
    if ".." in parts:
        raise ToolFailure("denied", f"{show(path)}: a path may not go up with ..")
    if len(parts) > _MAX_COMPONENTS:
        raise ToolFailure("invalid", f"a path has {_MAX_COMPONENTS} components at most")
    return parts


def _parts_of(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))
