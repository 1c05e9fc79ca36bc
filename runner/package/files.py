"""
Reading an agent's files: regular ones, of bounded size, that lie where they claim to.

Input: the agent's author, who chose the names, the links and the sizes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from runner.errors import AgentInvalid
from runner.units import show_bytes

# Without waiting for a writer when the file is a pipe, and without following a link put there meanwhile.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_file(path: Path, *, max_bytes: int, inside: Path | None = None) -> bytes:
    """
    The content of a regular file.

    Args:
        path: The file; a link to one will do.
        max_bytes: More than this is refused before it is read.
        inside: Folder that the file must lie in once its links are followed, or `None` for anywhere.

    Raises:
        AgentInvalid: If it is missing, not regular, too large, outside the folder, or can't be read.
    """
    try:
        target = path.resolve(strict=True)
        if inside is not None and not target.is_relative_to(inside.resolve(strict=True)):
            raise AgentInvalid(str(path), "leads outside the agent's folder")
        return _read_regular(path, target, max_bytes)
    except FileNotFoundError as error:
        raise AgentInvalid(str(path), "no such file") from error
    # `resolve` says `RuntimeError` of a loop of links on Python 3.11 and 3.12, `OSError` later.
    except RuntimeError as error:
        raise AgentInvalid(str(path), "links in a circle") from error
    except OSError as error:
        raise AgentInvalid(str(path), f"can't be read: {error.strerror}") from error


def _read_regular(path: Path, target: Path, max_bytes: int) -> bytes:
    descriptor = os.open(target, _FLAGS | _NO_LINK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise AgentInvalid(str(path), "not a regular file")
        if status.st_size > max_bytes:
            raise AgentInvalid(str(path), f"larger than {show_bytes(max_bytes)}")
        with open(descriptor, "rb", closefd=False) as file:
            # No more than it was a moment ago: a file that grows meanwhile is cut, never read without end.
            return file.read(status.st_size)
    finally:
        os.close(descriptor)
