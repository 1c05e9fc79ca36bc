"""
Small Python programs, run by the engine and by this Python: what they print must be the same.

The programs are ours; no text from elsewhere is ever run here.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
import warnings
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from runner.build.python import lower_module
from runner.kernel.limits import Limits
from tests.engines.driver import Failed, Interpreter

FILE = "agent.py"

_FOLDER = Path(__file__).parent / "programs"
_SPOT = re.compile(r"@(\d+)@")
_FRAME = re.compile(rf'File "{FILE}", line (\d+)')
_LIMITS = replace(Limits(), log_lines_per_slice=4_096)
_FIRST_OF_LATER_PYTHONS = 100


class Case(NamedTuple):
    """
    A program.

    Attributes:
        title: What it is about.
        text: What it is.
    """

    title: str
    text: str


def programs(name: str) -> list[Case]:
    """
    The programs of a file.
    """
    parts = (_FOLDER / f"{name}.txt").read_text("utf-8").split("=== ")[1:]
    return [Case(*part.split("\n", 1)) for part in parts]


def spots() -> list[int]:
    """
    Where the program of lines can fail. Those from 100 on are shown otherwise by Pythons after 3.11, which
    have no frames for comprehensions.
    """
    found = [int(number) for number in _SPOT.findall(_lines())]
    return [spot for spot in found if spot < _FIRST_OF_LATER_PYTHONS or sys.version_info < (3, 12)]


def failing_at(spot: int) -> str:
    """
    The program of lines, which fails in one place.
    """
    return _SPOT.sub(lambda found: "boom()" if int(found.group(1)) == spot else "ok()", _lines())


def printed_here(text: str) -> str:
    """
    What the program prints in this Python.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(text, FILE, "exec", dont_inherit=True)
        exec(code, {"__name__": "__agent__"})
    return out.getvalue().rstrip("\n")


def printed_by(engine: Interpreter, text: str) -> str:
    """
    What the program prints while the engine loads it.
    """
    logs = engine.load(records(text), limits=_LIMITS).logs
    return "\n".join(line.message for line in logs)


def lines_here(text: str) -> list[int]:
    """
    Lines of the traceback of a program that fails, in this Python.
    """
    try:
        printed_here(text)
    except ZeroDivisionError as error:
        return [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
    msg = "the program does not fail"
    raise AssertionError(msg)


def lines_by(engine: Interpreter, text: str) -> list[int]:
    """
    Lines of the traceback that the engine tells.
    """
    try:
        engine.load(records(text), limits=_LIMITS)
    except Failed as failure:
        return [int(line) for line in _FRAME.findall(failure.data["stack"])]
    msg = "the program does not fail"
    raise AssertionError(msg)


def records(text: str) -> list[dict[str, Any]]:
    """
    The program as the only module of an agent.
    """
    entry = "" if "def run(" in text else "\ndef run(given): pass\n"
    lowered = lower_module(text + entry, name=FILE)
    lines = array("H", lowered.lines).tobytes()
    return [{"name": FILE, "module": "__agent__", "package": False, "text": lowered.text, "lines": lines}]


def _lines() -> str:
    return (_FOLDER / "lines.txt").read_text("utf-8")
