"""
What a person would read of a page.

Input: written by strangers. One pass, in time proportional to the page: what is not closed ends with the
page. Nothing depends on tags being right, because nothing is done with the text but to show it.
"""

from __future__ import annotations

import html
import re
import string
from typing import Final

_NAME: Final = re.compile(r"/?[a-z][a-z0-9]{0,15}", re.ASCII)
_SILENT: Final = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "title"})
_BREAKS: Final = frozenset({
    "p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre", "table",
})  # fmt: skip
# Only these: a letter whose lower case is two would move every place after it.
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


def text_of_page(page: str) -> str:
    """
    The text of an HTML page, without scripts, styles and what stands in its head.
    """
    lowered = page.translate(_LOWER)
    pieces: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while at < len(page):
        tag = page.find("<", at)
        if tag < 0:
            pieces.append(page[at:])
            break
        pieces.append(page[at:tag])
        at = _after(lowered, tag, pieces, unclosed)
    text = html.unescape("".join(pieces))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


def _after(lowered: str, tag: int, pieces: list[str], unclosed: set[str]) -> int:
    """
    Where the text goes on behind what begins at a `<`.
    """
    if lowered.startswith("<!--", tag):
        return _behind(lowered, "-->", tag + 4)
    found = _NAME.match(lowered, tag + 1)
    if found is None and not lowered.startswith(("<!", "<?"), tag):
        pieces.append("<")
        return tag + 1
    name = found[0] if found else ""
    if name in _SILENT and name not in unclosed:
        end = lowered.find(f"</{name}", tag)
        if end >= 0:
            return _behind(lowered, ">", end)
        # Looked for once: a page full of them must not cost its length each time.
        unclosed.add(name)
    if name.removeprefix("/") in _BREAKS:
        pieces.append("\n")
    return _behind(lowered, ">", tag)


def _behind(text: str, mark: str, start: int) -> int:
    end = text.find(mark, start)
    return len(text) if end < 0 else end + len(mark)
