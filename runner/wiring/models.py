"""
Which model answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import UsageError
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider

if TYPE_CHECKING:
    from runner.wiring.options import Options


def model_of(options: Options) -> str:
    """
    `PROVIDER/MODEL` of requests that name none.
    """
    return options.model or SCRIPTED_MODEL


def provider_of(options: Options) -> ScriptedProvider:
    """
    The provider that the options name.

    Raises:
        UsageError: If this host has no such provider.
        ConfigError: If the script's file is wrong.
    """
    name = model_of(options).partition("/")[0]
    if name != ScriptedProvider.name:
        msg = f"no provider {name!r}"
        raise UsageError(msg, hint=f"this host has {ScriptedProvider.name!r}, as in {SCRIPTED_MODEL}")
    return ScriptedProvider.from_file(options.script) if options.script else ScriptedProvider()
