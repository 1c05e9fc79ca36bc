"""
`agent.after` and `agent.every`: timers outlive a delivery, so they need a host that does too.

Where there is none, the kernel refuses them when they are armed. What comes here are the timers that made a
call all the same: of lives that began before that, and of snapshots that were taken where a host was
resident.
"""

from __future__ import annotations

from runner.capabilities.base import Emit, Handler, Refusal
from runner.codec import Value
from runner.kernel.abi import Status
from runner.package.fields import Fields, anything, count


async def after(request: Value, emit: Emit) -> Value:
    """
    Refuse a timer that would ring once.
    """
    del emit
    _refuse(request, "delay_ms")


async def every(request: Value, emit: Emit) -> Value:
    """
    Refuse a timer that would ring again and again.
    """
    del emit
    _refuse(request, "interval_ms")


def handlers() -> dict[str, Handler]:
    """
    Handler by operation.
    """
    return {"agent.after": after, "agent.every": every}


def _refuse(request: Value, time_key: str) -> None:
    with Fields(request) as fields:
        fields.required(time_key, count)
        fields.optional("payload", anything)
    raise Refusal(Status.UNSUPPORTED, "timers need a resident host")
