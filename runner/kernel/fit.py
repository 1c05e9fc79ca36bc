"""
Whether a mind from outside may come near an instance.

Input: a snapshot or an agent file, which anyone may have written. What it says is only data to the guest, but
its sizes and indices become addresses here, so they are checked here, whatever was checked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import SnapshotIncompatible
from runner.kernel.state import MAX_MEMORY_BYTES, Mind

if TYPE_CHECKING:
    from runner.kernel.admission import Admitted


def check_fit(mind: Mind, admitted: Admitted, *, at_least_bytes: int) -> None:
    """
    Raises:
        SnapshotIncompatible: If an instance of the module can't hold `mind`.
    """
    try:
        mind.check()
    except ValueError as error:
        raise SnapshotIncompatible("memory", "pages inside the memory", str(error)) from error
    smallest = max(at_least_bytes, admitted.memory_min_bytes)
    largest = admitted.memory_max_bytes or MAX_MEMORY_BYTES
    if not smallest <= mind.memory_bytes <= largest:
        raise SnapshotIncompatible("memory_bytes", f"{smallest} to {largest}", str(mind.memory_bytes))
    expected = [slot.type for slot in admitted.globals]
    found = ["f64" if type(value) is float else "integer" for value in mind.globals]
    if found != ["f64" if kind == "f64" else "integer" for kind in expected]:
        raise SnapshotIncompatible("globals", str(expected), str(found))
