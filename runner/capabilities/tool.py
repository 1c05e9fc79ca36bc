"""
`tool.*`: this host has no tools yet, so the truthful answers are an empty list and "not found".
"""

from __future__ import annotations

from typing import Final

from runner.capabilities.base import Emit, Handler, Refusal
from runner.codec import Value
from runner.kernel.abi import Status
from runner.package.fields import Fields, any_map, text

_SHOWN_CHARACTERS: Final = 64


async def call(request: Value, emit: Emit) -> Value:
    """
    Refuse: no tool has that name.
    """
    del emit
    with Fields(request) as fields:
        name = fields.required("name", text)
        fields.optional("arguments", any_map)
    raise Refusal(Status.NOT_FOUND, f"no tool named {name[:_SHOWN_CHARACTERS]!r} is granted")


async def listing(request: Value, emit: Emit) -> Value:
    """
    The tools granted: none.
    """
    del emit
    with Fields(request):
        return []


def handlers() -> dict[str, Handler]:
    """
    Handler by operation.
    """
    return {"tool.call": call, "tool.list": listing}
