"""
Bounds of one instance. Deterministic ones are counted by the kernel; wall time comes in as epoch ticks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from runner.units import KIB, MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    What one instance may use. Every bound is always in force; there is no "unlimited".

    Attributes:
        memory_bytes: Linear memory and tables together. Growth beyond it answers -1 to the guest.
        fuel: Instructions (about one unit each) and host work for one delivery, all its slices together;
            and for each slice that belongs to none.
        timeout_ms: Wall time of the guest's own execution for one delivery; waiting on the host is free.
        request_bytes: One request's payload.
        reply_bytes: One reply's payload.
        payload_bytes: One delivery's or one answer's payload towards the guest.
        calls_per_slice: Calls that one slice may make.
        calls_in_flight: Calls that may be unanswered at once.
        log_line_bytes: One log line's payload.
        log_lines_per_slice: Log lines that one slice may write.
        random_bytes: One request for randomness.
    """

    memory_bytes: int = 64 * MIB
    fuel: int = 20_000_000_000
    timeout_ms: int = 30_000
    request_bytes: int = 1 * MIB
    reply_bytes: int = 1 * MIB
    payload_bytes: int = 16 * MIB
    calls_per_slice: int = 64
    calls_in_flight: int = 256
    log_line_bytes: int = 4 * KIB
    log_lines_per_slice: int = 64
    random_bytes: int = 64 * KIB

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: If a bound is not a positive integer below 2**63.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or not 0 < value < 1 << 63:
                msg = f"limit {field.name} must be a positive integer, got {value!r}"
                raise ValueError(msg)

    def to_wire(self) -> dict[str, int]:
        """
        The limits as a map of integers.
        """
        return asdict(self)

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Limits:
        """
        The limits that `to_wire` wrote; absent ones take their default.

        Raises:
            ValueError: If a name is unknown or a value is not a positive integer.
        """
        unknown = wire.keys() - {field.name for field in fields(cls)}
        if unknown:
            msg = f"unknown limit {min(unknown)!r}"
            raise ValueError(msg)
        return cls(**wire)
