"""
The world outside: what effects leave behind, one line each, on the disk before anyone is told.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner import codec
from runner.capabilities.base import CallResult, Steps
from runner.digest import digest
from runner.kernel.abi import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.capabilities.base import Emit, Handlers
    from runner.codec import Value

EFFECTFUL = "tool.call"
CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One effect that happened.

    Attributes:
        call: Number of the call that it was made for.
        execution: The attempt.
        operation: Such as `tool.call`.
        request: Digest of the request, in hex.
    """

    call: int
    execution: str
    operation: str
    request: str


class Ledger:
    """
    An append-only file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, entry: Entry) -> None:
        """
        Add a line; it is on the disk when this returns.
        """
        line = json.dumps([entry.call, entry.execution, entry.operation, entry.request]) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def confirm(self, call: int) -> None:
        """
        Note that the host has confirmed a call's outcome: from then on it may neither be made again nor asked
        about.
        """
        self.write(Entry(call, "", CONFIRMED, ""))

    def confirmed(self) -> frozenset[int]:
        """
        Calls whose outcome was confirmed.
        """
        return frozenset(entry.call for entry in self._lines() if entry.operation == CONFIRMED)

    def read(self) -> list[Entry]:
        """
        All effects, oldest first.
        """
        return [entry for entry in self._lines() if entry.operation != CONFIRMED]

    def _lines(self) -> list[Entry]:
        if not self._path.exists():
            return []
        return [Entry(*json.loads(line)) for line in self._path.read_text().splitlines()]


class LedgerHandlers:
    """
    Handlers whose every effect goes to the ledger first, and that have a tool of any name.

    Args:
        inner: What answers everything but tools.
        ledger: The world.
        boundary: Called where the process may die.
    """

    def __init__(self, inner: Handlers, ledger: Ledger, boundary: Callable[[str], None]) -> None:
        self._inner = inner
        self._ledger = ledger
        self._boundary = boundary

    async def handle(
        self, operation: str, request: Value, emit: Emit, *, execution: str = "", steps: Steps | None = None
    ) -> CallResult:
        """
        Do what a call asks for.
        """
        self._boundary("before the effect")
        call = int(execution.rsplit("-", 2)[1])
        self._ledger.write(Entry(call, execution, operation, digest(codec.encode(request)).hex()))
        self._boundary("after the effect")
        if operation == EFFECTFUL:
            result = CallResult(Status.OK, {"tool": request["name"], "call": call})
        else:
            result = await self._inner.handle(operation, request, emit, execution=execution, steps=steps)
        self._boundary("before the receipt")
        return result
