"""
All handlers of a host that runs one instance at a time.
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.capabilities import timers, tool
from runner.capabilities.base import Handlers
from runner.capabilities.llm import Llm
from runner.capabilities.memory import Memory
from runner.capabilities.usage import UsageMeter
from runner.memory.notes import NoteStore
from runner.policy.grants import Grants
from runner.providers.base import Provider


def standard_handlers(
    *,
    providers: Mapping[str, Provider],
    default_model: str,
    grants: Grants,
    notes: NoteStore,
    usage: UsageMeter,
) -> Handlers:
    """
    A handler for every operation of the ABI that makes a call.

    Args:
        providers: Providers of this host, by name.
        default_model: `PROVIDER/MODEL` of a request that names none.
        grants: What the agent may ask.
        notes: The instance's notes.
        usage: The instance's totals.
    """
    llm = Llm(providers=providers, default_model=default_model, grants=grants, usage=usage)
    return Handlers({**llm.handlers(), **Memory(notes).handlers(), **tool.handlers(), **timers.handlers()})
