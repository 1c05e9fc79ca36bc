"""
Tools that change files: `write_file` and `edit_file`.

A file is replaced whole, by a new one that takes its name: a reader sees the old content or the new one, and
what was linked from elsewhere keeps its own.

Does not guarantee that a change which somebody else makes between the last look at a file and its replacement
is seen: for that the others would have to take part.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from runner.tools.base import Tool, ToolFailure
from runner.tools.reading import in_thread, revision_of, text_of, whole
from runner.tools.rooted import FILE_FLAGS, Place, Roots, failure_of, parent_of, show, status_of
from runner.tools.schema import check_of, schema_of
from runner.units import MIB

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.records import EffectClass

MAX_EDITED_BYTES: Final = 8 * MIB
ABSENT: Final = "absent"
"""
In place of a revision: the file must not be there.
"""

_REVISION: Final = "What read_file said of it: if it has changed since, nothing is written."
_MODE: Final = 0o666


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WriteFile(_Arguments):
    """
    Arguments of `write_file`.
    """

    path: Annotated[str, Field(description="File to write; directories on the way are made.")]
    content: Annotated[str, Field(description="The text.")]
    append: Annotated[bool, Field(description="Add to the end in place of replacing all.")] = False
    revision: Annotated[
        str | None, Field(description=f'{_REVISION} Or "absent": the file must not be there.')
    ] = None


class EditFile(_Arguments):
    """
    Arguments of `edit_file`.
    """

    path: Annotated[str, Field(description="File to change.")]
    old_text: Annotated[str, Field(min_length=1, description="Text to replace, exactly.")]
    new_text: Annotated[str, Field(description="What to put there.")]
    replace_all: Annotated[bool, Field(description="Replace all that there are, not only the first.")] = False
    revision: Annotated[str | None, Field(description=_REVISION)] = None


def write_tools(written: Roots, read: Roots) -> tuple[Tool, ...]:
    """
    The tools that change files below some directories.

    Args:
        written: Where files may be written.
        read: Where they may be read. Editing tells what is in a file, so it needs both.
    """
    writer = _Writer(written, read)
    write = Tool(
        name="write_file",
        description="Writes a text file whole, or adds to its end.",
        input_schema=schema_of(WriteFile),
        check=check_of(WriteFile),
        work=in_thread(writer.write),
        effect_of=_effect_of_write,
    )
    edit = Tool(
        name="edit_file",
        description="Replaces text in a file.",
        input_schema=schema_of(EditFile),
        check=check_of(EditFile),
        work=in_thread(writer.edit),
    )
    return (write, edit) if read else (write,)


def _effect_of_write(arguments: Value) -> EffectClass:
    # The same text written twice is there once; what is added, or guarded, is not.
    guarded = isinstance(arguments, dict) and ("append" in arguments or "revision" in arguments)
    return "effectful" if guarded else "idempotent"


class _Writer:
    def __init__(self, written: Roots, read: Roots) -> None:
        self._written = written
        self._read = read

    def write(self, asked: WriteFile) -> dict[str, Any]:
        place = self._written.find(asked.path)
        data = _encoded(asked.content)
        with parent_of(place, make=True) as (parent, name):
            old = _content(parent, name, place) if asked.append or asked.revision else None
            _guard(asked.revision, old, place)
            if asked.append:
                data = (old or b"") + data
            _put(parent, name, data, place, seen=old, is_guarded=asked.append or bool(asked.revision))
        return _told(place, data)

    def edit(self, asked: EditFile) -> dict[str, Any]:
        place = self._written.find(asked.path)
        if not self._read.contain(place.path):
            raise ToolFailure("denied", f"{show(place.path)} may be written, but not read")
        with parent_of(place) as (parent, name):
            old = _content(parent, name, place)
            if old is None:
                raise ToolFailure("not_found", f"{show(place.path)}: there is no such file or directory")
            _guard(asked.revision, old, place)
            text = text_of(old, place.path, is_cut=False)
            count = text.count(asked.old_text)
            if count == 0:
                raise ToolFailure(
                    "failed", f"{show(place.path)} does not have that text; nothing was changed"
                )
            data = _encoded(text.replace(asked.old_text, asked.new_text, -1 if asked.replace_all else 1))
            _put(parent, name, data, place, seen=old, is_guarded=True)
        return {**_told(place, data), "replaced": count if asked.replace_all else 1}


def _told(place: Place, data: bytes) -> dict[str, Any]:
    return {"path": place.path, "size_bytes": len(data), "revision": revision_of(data)}


def _encoded(text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_EDITED_BYTES:
        raise ToolFailure("invalid", f"a file has {MAX_EDITED_BYTES} bytes at most")
    return data


def _guard(revision: str | None, old: bytes | None, place: Place) -> None:
    """
    Refuse to write over what the writer has not seen.
    """
    if revision is None or (revision == ABSENT and old is None):
        return
    if revision == ABSENT:
        raise ToolFailure("failed", f"{show(place.path)} is there already; nothing was written")
    if old is None:
        raise ToolFailure("failed", f"{show(place.path)} is not there any more; nothing was written")
    if revision_of(old) != revision:
        raise ToolFailure("failed", f"{show(place.path)} has changed since it was read; nothing was written")


def _content(parent: int, name: str, place: Place) -> bytes | None:
    """
    What a file has, or `None` if it is not there.
    """
    _refuse_special(parent, name, place)
    try:
        descriptor = os.open(name, os.O_RDONLY | FILE_FLAGS | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure_of(error, place.path) from None
    try:
        data = whole(descriptor, MAX_EDITED_BYTES)
    finally:
        os.close(descriptor)
    if len(data) > MAX_EDITED_BYTES:
        raise ToolFailure("invalid", f"{show(place.path)} has more than {MAX_EDITED_BYTES} bytes")
    return data


def _refuse_special(parent: int, name: str, place: Place) -> os.stat_result | None:
    """
    What will be replaced, or `None`; only a regular file may be.
    """
    status = status_of(parent, name)
    if status is None or stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISLNK(status.st_mode):
        raise ToolFailure("denied", f"{show(place.path)} is a link; links are not followed")
    kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
    raise ToolFailure("invalid", f"{show(place.path)} is {kind}")


def _put(parent: int, name: str, data: bytes, place: Place, *, seen: bytes | None, is_guarded: bool) -> None:
    """
    Put a new file in the place of the old one.
    """
    status = _refuse_special(parent, name, place)
    mode = _MODE if status is None else stat.S_IMODE(status.st_mode) & 0o777
    with _temporary(parent, data, None if status is None else mode) as temporary:
        if is_guarded and _content(parent, name, place) != seen:
            raise ToolFailure("failed", f"{show(place.path)} has changed meanwhile; nothing was written")
        if is_guarded and seen is None:
            # A link does not replace what came into being meanwhile.
            try:
                os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except FileExistsError:
                msg = f"{show(place.path)} is there already; nothing was written"
                raise ToolFailure("failed", msg) from None
        else:
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


@contextmanager
def _temporary(parent: int, data: bytes, mode: int | None) -> Iterator[str]:
    """
    A file with the new content, on the disk; gone in the end, unless it has got another name.
    """
    name = f".runner-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS | os.O_CLOEXEC
    descriptor = os.open(name, flags, _MODE, dir_fd=parent)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
