"""
Makes text that someone else wrote safe to show on a terminal.

Input: guest-controlled, and as bad: a model's or a tool's words. A terminal obeys control characters,
and a person believes what bidirectional controls pretend, so both are shown as escapes instead.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # line and paragraph ends, marks that nobody sees
    "\ud800-\udfff"  # halves of pairs, which no stream can encode
)
_UNSAFE: Final = re.compile(f"[{_CONTROLS}]")
_UNSAFE_IN_LINE: Final = re.compile(f"[\t\n{_CONTROLS}]")
_NAMED: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scrub(text: str) -> str:
    """
    `text` with its control characters as visible escapes; tabs and newlines stay.
    """
    return _UNSAFE.sub(_escape, text)


def scrub_line(text: str, max_chars: int | None = None) -> str:
    """
    `text` on one line, control characters as visible escapes.

    Args:
        text: Anything.
        max_chars: Show no more than this many characters of it, and say how many are left out.
    """
    if max_chars is not None and len(text) > max_chars:
        left_out = len(text) - max_chars
        return f"{_UNSAFE_IN_LINE.sub(_escape, text[:max_chars])}… ({left_out} more characters)"
    return _UNSAFE_IN_LINE.sub(_escape, text)


def scrub_json(text: str) -> str:
    r"""
    A JSON document that means the same, with control characters as JSON's own `\u` escapes.

    Newlines stay: a JSON text has them only between its tokens.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    return _NAMED.get(char) or (f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}")  # noqa: PLR2004
