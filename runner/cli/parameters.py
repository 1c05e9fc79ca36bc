"""
Kinds of values on the command line: paths, quantities with units, named limits.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner import units
from runner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

PATH: Final = click.Path(path_type=Path)
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)

_MOMENTS: Final = ("asked", "always")
_MAX: Final = (1 << 63) - 1


class Quantity(click.ParamType[int]):
    """
    A positive number with a unit.

    Args:
        name: Shown as the metavar.
        parse: Reads the text.
    """

    def __init__(self, name: str, parse: Callable[[str], int]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """
        The quantity in its smallest unit.
        """
        try:
            number = self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not 0 < number <= _MAX:
            self.fail(f"{value!r} is not more than 0 and less than 2**63", param, ctx)
        return number


SIZE: Final = Quantity("size", units.parse_bytes)
DURATION: Final = Quantity("duration", units.parse_duration_ms)
COUNT: Final = Quantity("count", units.parse_count)


class CheckpointWhen(click.ParamType[Any]):
    """
    `asked`, `always`, or a number of records.
    """

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """
        The word, or the number.
        """
        if value in _MOMENTS or isinstance(value, int):
            return value
        try:
            return COUNT.convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not asked, always or a number of records", param, ctx)


CHECKPOINT: Final = CheckpointWhen()


def quantity_of(limit: str) -> Quantity:
    """
    How the limit of this name is written: its unit is the end of its name.
    """
    if limit.endswith("_bytes"):
        return SIZE
    return DURATION if limit.endswith("_ms") else COUNT


def existing(path: Path, what: str) -> Path:
    """
    `path`, if there is something at it.

    Checked by the verb and not by the parser, so that a program that asked for JSON hears of it there.

    Raises:
        UsageError: If there is nothing.
    """
    if not path.exists():
        msg = f"no {what} at {str(path)!r}"
        raise UsageError(msg, hint="check the path; it is taken from the current folder")
    return path


def writable(path: Path, flag: str) -> Path:
    """
    `path`, if a file can be written there; asked before anything is started.

    Raises:
        UsageError: If it can't.
    """
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        msg = f"can't write {str(path)!r}"
        raise UsageError(msg, hint=f"{flag} takes a file in a folder that exists")
    return path
