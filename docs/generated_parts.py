"""
Documents of which parts are made from the code that they describe, so that the two can't drift apart.

A part stands between `<!-- generated: NAME -->` and `<!-- end of generated: NAME -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

Parts: TypeAlias = Mapping[str, Callable[[], Iterable[str]]]
"""
What makes the lines of each part, by name.
"""

_PART: Final = re.compile(
    r"(?P<open><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<close><!-- end of generated: (?P=name) -->)",
    re.DOTALL,
)
_USAGE: Final = 2


def generate(text: str, parts: Parts) -> str:
    """
    `text` with its generated parts made anew.

    Raises:
        ValueError: If a part is missing, unknown, or there twice.
    """
    found = [match["name"] for match in _PART.finditer(text)]
    if sorted(found) != sorted(parts):
        msg = f"generated parts are {sorted(found)}, expected {sorted(parts)}"
        raise ValueError(msg)
    return _PART.sub(lambda match: match["open"] + _body(parts[match["name"]]()) + match["close"], text)


def main(script: str, document: Path, parts: Parts, arguments: Sequence[str]) -> int:
    """
    `--write` the generated parts of a document, or `--check` that they are up to date; 1 when they aren't.
    """
    if list(arguments) not in (["--write"], ["--check"]):
        sys.stderr.write(f"usage: python docs/{script} --check|--write\n")
        return _USAGE
    text = document.read_text(encoding="utf-8")
    fresh = generate(text, parts)
    if arguments[0] == "--write":
        document.write_text(fresh, encoding="utf-8")
    elif text != fresh:
        sys.stderr.write(f"{document} is out of date: run python docs/{script} --write\n")
        return 1
    return 0


def _body(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in ("", *lines, "")).replace("\n\n\n", "\n\n")
