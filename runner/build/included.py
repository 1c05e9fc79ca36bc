"""
Which files a compiler has read: an agent's source may include its own files and the SDK's, nothing else.

Input: the compiler's own list in the form of a make rule, whose names the agent's author chose. A compiler
would put any file of the user's into the module, and the agent could then tell what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from runner.errors import AgentInvalid


def check_included(rule: str, folder: Path, roots: Sequence[Path]) -> None:
    """
    Hold the list against the folders that a source may include from.

    Args:
        rule: `target: file file …`, as `-MD` writes it; relative names count from `folder`.
        folder: The agent's, with its links followed.
        roots: The compiler's own folders and the SDK's.

    Raises:
        AgentInvalid: If a file lies elsewhere once its links are followed, or its name can't be told.
    """
    folders = (folder, *roots)
    listed = rule.partition(": ")[2].replace("\\\n", " ")
    for number, root in enumerate(folders):
        # Spaces are understood in the names of these folders alone, which the author did not choose. No name
        # has a zero byte, so nothing else can be taken for one of them.
        listed = re.sub(rf"(?<!\S){re.escape(_escaped(root))}/", f"\0{number}/", listed)
    if "\\" in listed or "$" in listed:
        raise AgentInvalid(str(folder), "includes a file whose name has a space, #, $ or backslash")
    for name in listed.split():
        root, path = folder, name
        if name.startswith("\0"):
            place, _, path = name[1:].partition("/")
            root = folders[int(place)]
        try:
            found = (root / path).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise AgentInvalid(str(folder), f"includes {path}, which is gone") from error
        if not found.is_relative_to(root.resolve()):
            raise AgentInvalid(str(folder), f"includes {path}, which lies outside the agent's folder")


def _escaped(path: Path) -> str:
    return str(path).replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
