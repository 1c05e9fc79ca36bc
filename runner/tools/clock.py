"""
`current_datetime`: what time it is, where somebody is.

An answer is recorded like any other effect's, so doing a journal again gives the time that it was.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner.package.fields import Fields, text
from runner.tools.base import Tool, ToolContext, ToolFailure

if TYPE_CHECKING:
    from runner.codec import Value


def clock_tool(clock_ms: Callable[[], int]) -> Tool:
    """
    The tool.

    Args:
        clock_ms: Milliseconds since the Unix epoch.
    """

    async def work(timezone: str, context: ToolContext) -> dict[str, Any]:
        del context
        now_ms = clock_ms()
        here = datetime.fromtimestamp(now_ms // 1000, UTC).astimezone(_zone(timezone))
        return {"datetime": here.isoformat(), "weekday": here.strftime("%A"), "unix_ms": now_ms}

    return Tool(
        name="current_datetime",
        description="The date and time now.",
        # By hand: this tool is always there, and must not load what validates others.
        input_schema={
            "type": "object",
            "properties": {"timezone": {"type": "string", "description": "Such as Europe/Berlin; else UTC."}},
            "additionalProperties": False,
        },
        check=_check,
        work=work,
        effect="pure",
    )


def _check(value: Value) -> str:
    with Fields(value) as fields:
        return fields.optional("timezone", text) or "UTC"


def _zone(name: str) -> Any:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - reads files, and few ask for it

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ToolFailure("invalid", f"there is no time zone {name[:64]!a}") from None
