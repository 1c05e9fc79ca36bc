"""
Tools that read files: `read_file`, `list_directory`, `grep_files`.

Input: paths, patterns and the files themselves. Patterns are matched by `pydantic`'s engine, which takes time
in proportion to the text: the one of the standard library could be made to take for ever.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, NamedTuple

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import SchemaError, SchemaValidator, core_schema

from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.tools.rooted import Place, Roots, directory, failure_of, regular_file, show
from runner.tools.schema import check_of, schema_of
from runner.units import MIB

TRUNCATED: Final = "\n[truncated]"
"""
What stands at the end of a text that was cut.
"""

READ_BYTES: Final = 50_000
MAX_READ_BYTES: Final = 500_000
MAX_ENTRIES: Final = 1_000
FOUND_LINES: Final = 50
MAX_FOUND_LINES: Final = 500
MAX_GREP_FILE_BYTES: Final = 2_000_000

_MAX_HASHED_BYTES: Final = 64 * MIB
_REVISION_CHARACTERS: Final = 16
_MAX_GREP_BYTES: Final = 256 * MIB
_MAX_SEEN: Final = 50_000
_MAX_DEPTH: Final = 32
_MAX_LINE_CHARACTERS: Final = 500
_MAX_SKIPPED_SHOWN: Final = 20
_GREP_S: Final = 20.0
_CHUNK_BYTES: Final = 1 << 16


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReadFile(_Arguments):
    """
    Arguments of `read_file`.
    """

    path: Annotated[str, Field(description="File to read; relative paths are below the first root.")]
    offset: Annotated[int, Field(ge=0, description="First byte to read.")] = 0
    max_bytes: Annotated[int, Field(ge=1, le=MAX_READ_BYTES, description="The most to read.")] = READ_BYTES


class ListDirectory(_Arguments):
    """
    Arguments of `list_directory`.
    """

    path: Annotated[str | None, Field(description="Directory to list; without it, the roots are.")] = None
    recursive: Annotated[bool, Field(description="Whether to list what is below as well.")] = False


class GrepFiles(_Arguments):
    """
    Arguments of `grep_files`.
    """

    pattern: Annotated[str, Field(min_length=1, max_length=1000, description="Regular expression, or text.")]
    path: Annotated[str, Field(description="File or directory to search.")] = "."
    max_results: Annotated[int, Field(ge=1, le=MAX_FOUND_LINES, description="The most lines.")] = FOUND_LINES


def read_tools(roots: Roots) -> tuple[Tool, ...]:
    """
    The tools that read below some directories.
    """
    reader = _Reader(roots)
    return (
        _tool(
            "read_file", "Reads a text file. Long ones are cut; read on with offset.", ReadFile, reader.read
        ),
        _tool("list_directory", "Lists a directory: names, types and sizes.", ListDirectory, reader.list),
        _tool("grep_files", "Searches files for lines, whatever their case.", GrepFiles, reader.grep),
    )


def revision_of(data: bytes) -> str:
    """
    What tells one content of a file from another.
    """
    return hashlib.sha256(data).hexdigest()[:_REVISION_CHARACTERS]


def _revision(descriptor: int) -> str | None:
    """
    The revision of an open file, or `None` if it is too long to be looked at whole.
    """
    digest, left = hashlib.sha256(), _MAX_HASHED_BYTES
    # Piece by piece: an agent may ask for many files at once.
    while piece := os.read(descriptor, _CHUNK_BYTES):
        digest.update(piece)
        left -= len(piece)
        if left < 0:
            return None
    return digest.hexdigest()[:_REVISION_CHARACTERS]


def text_of(data: bytes, path: str, *, is_cut: bool) -> str:
    """
    Bytes as text; the end of what was cut may lie inside a character.

    Raises:
        ToolFailure: If they are no text.
    """
    for spare in range(4 if is_cut else 1):
        try:
            text = data[: len(data) - spare].decode("utf-8")
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise ToolFailure("invalid", f"{show(path)} is not a text in UTF-8")


def whole(descriptor: int, bound_bytes: int) -> bytes:
    """
    The content of an open file, up to a bound and one byte beyond it.
    """
    pieces, left = [], bound_bytes + 1
    while left > 0 and (piece := os.read(descriptor, min(left, _CHUNK_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


class _Entry(NamedTuple):
    name: str
    place: Place
    status: os.stat_result


class _Reader:
    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    def read(self, asked: ReadFile) -> dict[str, Any]:
        place = self._roots.find(asked.path)
        with regular_file(place) as (descriptor, status):
            revision = _revision(descriptor)
            os.lseek(descriptor, asked.offset, os.SEEK_SET)
            data = whole(descriptor, asked.max_bytes)
        is_cut = len(data) > asked.max_bytes
        text = text_of(data[: asked.max_bytes], place.path, is_cut=is_cut)
        used_bytes = len(text.encode())
        return {
            "path": place.path,
            "content": text + TRUNCATED if is_cut else text,
            "size_bytes": status.st_size,
            "next_offset": asked.offset + used_bytes if is_cut else None,
            "revision": revision,
            "truncated": is_cut,
        }

    def list(self, asked: ListDirectory) -> dict[str, Any]:
        if asked.path is None:
            entries = [
                {"name": str(root.path), "type": "directory", "bytes": 0} for root in self._roots.roots
            ]
            return {"path": None, "entries": entries, "truncated": False}
        place = self._roots.find(asked.path)
        found: list[dict[str, Any]] = []
        is_cut = False
        for entry in _walk(place, deeper=asked.recursive):
            if len(found) == MAX_ENTRIES:
                is_cut = True
                break
            found.append({"name": entry.name, "type": _type_of(entry.status), "bytes": entry.status.st_size})
        return {"path": place.path, "entries": found, "truncated": is_cut}

    def grep(self, asked: GrepFiles) -> dict[str, Any]:
        place, matches = self._roots.find(asked.path), _matcher(asked.pattern)
        search = _Search(matches, asked.max_results, time.monotonic() + _GREP_S)
        for name, file in _files(place):
            if not search.take(name, file):
                break
        return {
            "path": place.path,
            "matches": search.found,
            "skipped": search.skipped[:_MAX_SKIPPED_SHOWN],
            "truncated": search.is_cut,
        }


class _Search:
    def __init__(self, matches: Callable[[str], bool], bound: int, until_s: float) -> None:
        self._matches = matches
        self._bound = bound
        self._until_s = until_s
        self._bytes = 0
        self.found: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        self.is_cut = False

    def take(self, name: str, place: Place) -> bool:
        """
        Search one file; whether there is use in going on.
        """
        try:
            with regular_file(place) as (descriptor, status):
                if status.st_size > MAX_GREP_FILE_BYTES:
                    self.skipped.append(f"{name}: more than {MAX_GREP_FILE_BYTES} bytes")
                    return True
                data = whole(descriptor, MAX_GREP_FILE_BYTES)
            lines = text_of(data, name, is_cut=False).splitlines()
        except ToolFailure:
            # Gone meanwhile, not readable, or no text: it has no lines to find.
            return True
        self._bytes += len(data)
        for number, line in enumerate(lines, 1):
            if self._matches(line):
                if len(self.found) == self._bound:
                    self.is_cut = True
                    return False
                self.found.append({"path": name, "line": number, "text": line[:_MAX_LINE_CHARACTERS]})
        self.is_cut = self._bytes > _MAX_GREP_BYTES or time.monotonic() > self._until_s
        return not self.is_cut


def _matcher(pattern: str) -> Callable[[str], bool]:
    """
    Whether a line has what was asked for; a pattern that is none is looked for as text.
    """
    schema = core_schema.str_schema(pattern=f"(?i){pattern}", regex_engine="rust-regex")
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError:
        needle = pattern.casefold()
        return lambda line: needle in line.casefold()


def _files(place: Place) -> Iterator[tuple[str, Place]]:
    """
    The file at a place, or all below it.
    """
    try:
        for entry in _walk(place, deeper=True):
            if stat.S_ISREG(entry.status.st_mode):
                yield entry.name, entry.place
    except ToolFailure as failure:
        if failure.kind != "invalid":
            raise
        yield show(place.parts[-1] if place.parts else place.path), place


def _walk(place: Place, *, deeper: bool) -> Iterator[_Entry]:
    """
    What lies in a directory in order of names, but for what is hidden; links are listed, never followed.

    Raises:
        ToolFailure: If there is no directory.
    """
    seen = 0
    left: list[tuple[str, Place]] = [("", place)]
    while left:
        prefix, at = left.pop()
        try:
            entries = _entries(prefix, at)
        except ToolFailure:
            if at is place:
                raise
            continue
        below = []
        for entry in entries:
            seen += 1
            if seen > _MAX_SEEN:
                return
            yield entry
            if deeper and stat.S_ISDIR(entry.status.st_mode) and len(entry.place.parts) <= _MAX_DEPTH:
                below.append((f"{entry.name}/", entry.place))
        left.extend(reversed(below))


def _entries(prefix: str, place: Place) -> list[_Entry]:
    entries = []
    with directory(place) as descriptor:
        for name in sorted(os.listdir(descriptor)):
            if name.startswith("."):
                continue
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            told = prefix + os.fsencode(name).decode("utf-8", "replace")
            entries.append(_Entry(told, Place(place.root, (*place.parts, name)), status))
    return entries


def _type_of(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    if stat.S_ISLNK(status.st_mode):
        return "link"
    return "file" if stat.S_ISREG(status.st_mode) else "other"


def in_thread(work: Callable[[Any], Any]) -> Callable[[Any, ToolContext], Any]:
    """
    Work that blocks, as a tool does it. Given up, its thread goes on to its own bound.
    """

    def attempt(asked: Any) -> Any:
        try:
            return work(asked)
        except OSError as error:
            raise failure_of(error, getattr(asked, "path", "") or "") from None

    async def run(asked: Any, context: ToolContext) -> Any:
        del context
        return await anyio.to_thread.run_sync(attempt, asked, abandon_on_cancel=True)

    return run


def _tool(name: str, description: str, model: type[BaseModel], work: Callable[[Any], Any]) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema=schema_of(model),
        check=check_of(model),
        work=in_thread(work),
        effect="pure",
    )
