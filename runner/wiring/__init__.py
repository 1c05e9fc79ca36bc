"""
The one place that builds the object graph: what the command line does, as functions.

Names are loaded when they are first used, so that looking at an agent loads no event loop, and help loads
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from runner.wiring.live import restore_snapshot, run_agent
    from runner.wiring.looking import check_agent, doctor, inspect_path
    from runner.wiring.making import build_agent, new_agent
    from runner.wiring.options import Options, Report

__all__ = [
    "Options",
    "Report",
    "build_agent",
    "check_agent",
    "doctor",
    "inspect_path",
    "new_agent",
    "restore_snapshot",
    "run_agent",
]

_HOMES: Final = {
    "Options": "options",
    "Report": "options",
    "build_agent": "making",
    "check_agent": "looking",
    "doctor": "looking",
    "inspect_path": "looking",
    "new_agent": "making",
    "restore_snapshot": "live",
    "run_agent": "live",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{home}"), name)
