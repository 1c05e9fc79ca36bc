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
    from runner.wiring.lives import (
        approvals,
        collect_garbage,
        fork_named,
        list_instances,
        remove_named,
        resolve_call,
        restore_named,
        resume,
        rule_on,
        run_named,
        send,
        snapshot_named,
        stop_named,
        upgrade_named,
    )
    from runner.wiring.looking import check_agent, doctor, inspect_path
    from runner.wiring.making import build_agent, new_agent
    from runner.wiring.models import list_keys, list_models, list_providers, remove_key, set_key
    from runner.wiring.options import Options, Report
    from runner.wiring.past import (
        export_journal,
        inspect_named,
        is_instance,
        journal_rows,
        replay,
        verify,
    )
    from runner.wiring.spending import usage_named
    from runner.wiring.testing import run_tests
    from runner.wiring.tools import list_tools

__all__ = [
    "Options",
    "Report",
    "approvals",
    "build_agent",
    "check_agent",
    "collect_garbage",
    "doctor",
    "export_journal",
    "fork_named",
    "inspect_named",
    "inspect_path",
    "is_instance",
    "journal_rows",
    "list_instances",
    "list_keys",
    "list_models",
    "list_providers",
    "list_tools",
    "new_agent",
    "remove_key",
    "remove_named",
    "replay",
    "resolve_call",
    "restore_named",
    "restore_snapshot",
    "resume",
    "rule_on",
    "run_agent",
    "run_named",
    "run_tests",
    "send",
    "set_key",
    "snapshot_named",
    "stop_named",
    "upgrade_named",
    "usage_named",
    "verify",
]

_HOMES: Final = {
    "Options": "options",
    "Report": "options",
    "approvals": "lives",
    "build_agent": "making",
    "check_agent": "looking",
    "collect_garbage": "lives",
    "doctor": "looking",
    "export_journal": "past",
    "fork_named": "lives",
    "inspect_named": "past",
    "inspect_path": "looking",
    "is_instance": "past",
    "journal_rows": "past",
    "list_instances": "lives",
    "list_keys": "models",
    "list_models": "models",
    "list_providers": "models",
    "list_tools": "tools",
    "new_agent": "making",
    "remove_key": "models",
    "remove_named": "lives",
    "replay": "past",
    "resolve_call": "lives",
    "restore_named": "lives",
    "restore_snapshot": "live",
    "resume": "lives",
    "rule_on": "lives",
    "run_agent": "live",
    "run_named": "lives",
    "run_tests": "testing",
    "send": "lives",
    "set_key": "models",
    "snapshot_named": "lives",
    "stop_named": "lives",
    "upgrade_named": "lives",
    "usage_named": "spending",
    "verify": "past",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{home}"), name)
