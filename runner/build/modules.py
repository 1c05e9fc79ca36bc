"""
The modules of an agent in an interpreted language: its own files, below its own folder and nowhere else.

Input: the agent's author, who chose every name and every import. What a name leads to is decided by what lies
in the folder once links are followed; a name that leads out of it is refused, not searched for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from runner.digest import digest
from runner.errors import AgentInvalid, SourceRejected
from runner.package.files import read_file
from runner.units import MIB

MAX_MODULE_TEXT_BYTES: Final = 1 * MIB
MAX_MODULES: Final = 1_000
MAX_TEXT_BYTES: Final = 8 * MIB
"""
All modules of an agent together.
"""


@dataclass(frozen=True, slots=True)
class AgentModule:
    """
    One module, ready to be loaded by an engine.

    Attributes:
        name: Its file, as a path inside the agent's folder.
        text: What the engine gets; for some languages not what the author wrote.
        more: What the engine must know besides, by key of its protocol.
    """

    name: str
    text: str
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """
        The module as part of an engine's `load`.
        """
        return {"name": self.name, "text": self.text, **self.more}


@dataclass(slots=True)
class SourceTree:
    """
    An agent's folder as its modules see it; remembers what was read, and what was looked for in vain.

    Attributes:
        folder: The agent's.
        read: Digest of each file that was read, by name.
        absent: Names that were looked for and not there: should one appear, the agent is another.
    """

    folder: Path
    read: dict[str, bytes] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    _texts: dict[str, str] = field(default_factory=dict)
    _total_bytes: int = 0

    def find(self, names: Iterable[str]) -> str | None:
        """
        The first of these names that is a file, or `None`.

        Raises:
            AgentInvalid: If it leads outside the folder.
        """
        for name in names:
            if name in self._texts or self._is_file(name):
                return name
            self.absent.add(name)
        return None

    def has_folder(self, name: str) -> bool:
        """
        Whether a folder of this name lies in the agent's, and not elsewhere by a link.
        """
        path = self.folder / name
        return path.is_dir() and path.resolve().is_relative_to(self.folder.resolve())

    def text(self, name: str) -> str:
        """
        The text of a file.

        Raises:
            AgentInvalid: If it is missing, leads outside the folder, is too large, or one too many.
            SourceRejected: If it is not UTF-8.
        """
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def _read(self, name: str) -> str:
        data = read_file(self.folder / name, max_bytes=MAX_MODULE_TEXT_BYTES, inside=self.folder)
        self._total_bytes += len(data)
        if len(self._texts) >= MAX_MODULES or self._total_bytes > MAX_TEXT_BYTES:
            problem = f"more than {MAX_MODULES} modules, or {MAX_TEXT_BYTES} bytes of them"
            raise AgentInvalid(str(self.folder), problem)
        self.read[name] = digest(data)
        try:
            # As Python and JavaScript count lines, and as neither shows it: without the mark of its encoding.
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise SourceRejected(name, "not UTF-8", line=line) from error

    def _is_file(self, name: str) -> bool:
        path = self.folder / name
        try:
            if not path.is_file():
                return False
            inside = path.resolve(strict=True).is_relative_to(self.folder.resolve(strict=True))
        except (OSError, RuntimeError) as error:
            raise AgentInvalid(str(path), "can't be read") from error
        if not inside:
            raise AgentInvalid(str(path), "leads outside the agent's folder")
        return True


def join_inside(base: PurePosixPath, written: str) -> str | None:
    """
    The path that `written` names, seen from the folder `base`; `None` when it leaves the agent's folder.
    """
    parts = [] if written.startswith("/") else list(base.parts)
    for part in written.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)
