"""
Facts as aligned text for people.

Names say their unit, as everywhere here, and so decide how a number is shown. All text is scrubbed: an
agent chooses its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runner.cli import jsonform
from runner.cli.scrub import scrub_line
from runner.units import show_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INDENT: Final = "  "
_MAX_CELL_CHARS: Final = 200


def describe(facts: Mapping[str, Any]) -> str:
    """
    A map as lines: its plain facts first, then each list of maps as a table and each map as a section.
    """
    return "\n".join(_section(facts, ""))


def table(rows: Sequence[Mapping[str, Any]], indent: str = "") -> list[str]:
    """
    Maps with the same keys as lines of columns, headed by the keys.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_label(name) for name in names]]
    cells += [[_cell(name, row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _section(facts: Mapping[str, Any], indent: str) -> list[str]:
    plain = {name: value for name, value in facts.items() if not _is_nested(value)}
    width = max((len(_label(name)) for name in plain), default=0)
    lines = [f"{indent}{_label(name):<{width}}  {_cell(name, value)}" for name, value in plain.items()]
    for name, value in facts.items():
        if _is_nested(value):
            lines.append(f"{indent}{_label(name)}")
            deeper = indent + _INDENT
            lines += _section(value, deeper) if isinstance(value, dict) else table(value, deeper)
    return lines


def _is_nested(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, dict) for item in value)
    return isinstance(value, dict) and bool(value)


def _label(name: str) -> str:
    return scrub_line(name, _MAX_CELL_CHARS).removesuffix("_bytes").removesuffix("_ms").replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and (name.endswith("_bytes") or name == "bytes"):
        return f"{show_bytes(value)} ({value})" if value >= 1024 else show_bytes(value)  # noqa: PLR2004
    if isinstance(value, int | float) and name.endswith("_ms"):
        return f"{value:g} ms"
    if isinstance(value, list | tuple) and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(_cell("", item) for item in value) or "-"
    if isinstance(value, dict) and not value:
        return "-"
    text = value if isinstance(value, str | int | float) else jsonform.dumps(value)
    return scrub_line(str(text), _MAX_CELL_CHARS)
