"""
Quantities as people write them: `64MiB`, `30s`, `2G`. Only the command line and manifests parse them.
"""

from __future__ import annotations

import re
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20

_BYTES: Final = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
_SECONDS_MS: Final = {"": 1000, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_COUNTS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_QUANTITY: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?\s?([A-Za-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """
    Bytes: `65536`, `64KiB`, `1.5MiB`, `2MB`. A bare number is bytes.

    Raises:
        ValueError: If the text is not such a size, with the forms that are.
    """
    return _parse(text, _BYTES, "a size such as 65536, 64KiB, 1.5MiB or 2MB")


def parse_duration_ms(text: str) -> int:
    """
    Milliseconds: `30`, `30s`, `500ms`, `2m`, `1h`. A bare number is seconds.

    Raises:
        ValueError: If the text is not such a duration, with the forms that are.
    """
    return _parse(text, _SECONDS_MS, "a duration such as 30s, 500ms, 2m or 1h")


def parse_count(text: str) -> int:
    """
    A count: `200`, `50k`, `2G`.

    Raises:
        ValueError: If the text is not such a count, with the forms that are.
    """
    return _parse(text, _COUNTS, "a count such as 200, 50k or 2G")


def show_bytes(size_bytes: int) -> str:
    """
    A size for people: the largest binary unit that keeps it above one.
    """
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004 - the step between the units
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _parse(text: str, factors: dict[str, int], forms: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[3] not in factors:
        msg = f"{text!r} is not {forms}"
        raise ValueError(msg)
    whole, fraction, unit = match[1], match[2] or "", match[3]
    scaled, rest = divmod(int(whole + fraction) * factors[unit], 10 ** len(fraction))
    if rest:
        msg = f"{text!r} is not a whole number of the smallest unit"
        raise ValueError(msg)
    return int(scaled)
