"""
All handlers of a host that runs one instance at a time.
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.capabilities import timers
from runner.capabilities.asking import Purse
from runner.capabilities.base import Handlers
from runner.capabilities.llm import Llm
from runner.capabilities.memory import Memory
from runner.capabilities.tool import Tools
from runner.memory.notes import NoteStore
from runner.policy.grants import Grants
from runner.providers.base import Provider
from runner.tools.registry import ToolRegistry


def standard_handlers(
    *,
    providers: Mapping[str, Provider],
    default_model: str,
    grants: Grants,
    notes: NoteStore,
    purse: Purse,
    tools: ToolRegistry | None = None,
    persona: str | None = None,
) -> Handlers:
    """
    A handler for every operation of the ABI that makes a call.

    Args:
        providers: Providers of this host, by name.
        default_model: `PROVIDER/MODEL` of a request that names none.
        grants: What the agent may ask.
        notes: The instance's notes.
        purse: What the instance may spend, and its totals.
        tools: The tools of this run, open for the length of it; `None` for none.
        persona: What stands above all that the agent tells a model, or `None`.
    """
    granted = Tools(tools or ToolRegistry(), grants)
    llm = Llm(
        providers=providers,
        default_model=default_model,
        grants=grants,
        purse=purse,
        tools=granted,
        persona=persona,
    )
    table = {**llm.handlers(), **Memory(notes).handlers(), **granted.handlers(), **timers.handlers()}
    return Handlers(table, granted.keyed_handlers(), llm.step_handlers())
