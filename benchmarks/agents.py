"""
The agents that benchmarks run: the C example when a compiler is there, else the one in text.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from runner import codec
from runner.kernel.abi import DeliveryKind
from runner.kernel.image import Image
from runner.kernel.machine import Deliver, Machine
from runner.kernel.state import PAGE_BYTES, Mind
from runner.policy.grants import Grants
from runner.units import MIB
from runner.wiring.host import Host
from runner.wiring.prepare import Prepared, prepare

if TYPE_CHECKING:
    from runner.kernel.slice import LogLine

GUESTS = Path(__file__).parents[1] / "guests"
SEED = bytes(32)


def prepared_agent(name: str | None = None) -> Prepared:
    """
    An agent, compiled, linked with all that it imports, and booted.
    """
    chosen = name or ("notes" if util.find_spec("ziglang") else "counter")
    host = Host()
    grants = Grants.parse(["memory", "llm", "tool"])
    package = host.load(GUESTS / chosen, may_compile=True)
    return prepare(host, package, grants=grants, limits={}, on_log=_ignore)


def machine_of(prepared: Prepared) -> Machine:
    """
    A fresh instance.
    """
    return Machine(prepared.program, prepared.image, prepared.limits, entropy=SEED)


def with_heap(prepared: Prepared, heap_mib: int) -> Prepared:
    """
    The same agent with an image of at least `heap_mib`, filled with bytes that don't compress.
    """
    limits = replace(prepared.limits, memory_bytes=(heap_mib + 1) * MIB)
    size_bytes = max(heap_mib * MIB, prepared.image.memory_bytes)
    own = prepared.image.nonzero_pages
    filler = range(prepared.image.memory_bytes // PAGE_BYTES, size_bytes // PAGE_BYTES)
    pages = own | {index: os.urandom(PAGE_BYTES) for index in filler}
    image = Image(Mind(size_bytes, pages, prepared.image.globals))
    return replace(prepared, image=image, limits=limits)


def message(number: int, value: codec.Value = "hello") -> Deliver:
    """
    A delivery.
    """
    return Deliver(number, DeliveryKind.MESSAGE, codec.encode(value), 1_700_000_000_000)


def _ignore(line: LogLine) -> None:
    del line
