"""
From a module to its image: run what a module runs before its first message, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.kernel.fit import check_fit
from runner.kernel.image import Image
from runner.kernel.instance import Instance
from runner.kernel.run import run_guest
from runner.kernel.slice import LogLine, Slice

if TYPE_CHECKING:
    from runner.kernel.admission import Admitted
    from runner.kernel.limits import Limits
    from runner.kernel.program import Program
    from runner.kernel.state import Mind


def boot(program: Program, limits: Limits, *, copied: bool = False) -> tuple[Image, tuple[LogLine, ...]]:
    """
    The image of a module: its mind after its start function and `agent_start`, and what it logged.

    There is no clock, no randomness and nobody to ask in there, so the image is a function of the module
    alone, the same on every machine.

    Args:
        program: The module.
        limits: Fuel and memory for all of it together; wall time for each of the two.
        copied: Whether instances shall copy the image instead of mapping it.

    Raises:
        RunnerError: Why the guest failed: a limit, a trap.
    """
    instance = Instance(program, limits)
    current = Slice(instance.store, instance.memory, limits, booting=True)
    fuel = limits.fuel
    start = program.admitted.start
    for name in (start, "agent_start") if start else ("agent_start",):
        failure, fuel = run_guest(program, current, instance.exports[name], (), fuel, limits.timeout_ms)
        if failure is not None:
            raise failure
    return Image(instance.freeze_whole(), copied=copied), tuple(current.logs)


def adopt(mind: Mind, admitted: Admitted, *, copied: bool = False) -> Image:
    """
    The image that an agent file carries, made earlier by `boot`.

    Args:
        mind: Its pages are those that are not zero. May come from anyone.
        admitted: The module that it is said to belong to.
        copied: Whether instances shall copy the image instead of mapping it.

    Raises:
        SnapshotIncompatible: If an instance of the module can't hold it.
    """
    check_fit(mind, admitted, at_least_bytes=0)
    return Image(mind, copied=copied)
