"""
An admitted module, compiled and linked: what instances are made of. Shared by all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import Denied
from runner.kernel.linker import build_linker

if TYPE_CHECKING:
    import wasmtime

    from runner.kernel.admission import Admitted
    from runner.kernel.engine import Engine


class Program:
    """
    Immutable; safe to share between threads.

    Args:
        engine: Where it was compiled.
        admitted: What admission found.
        module: Machine code of `admitted.code`.
        granted: Operations that the operator granted; the linker holds exactly these.
        denied: Operations that are imported but answer `Status.DENIED`.

    Raises:
        Denied: If the module imports an operation that is in neither set.
    """

    def __init__(
        self,
        engine: Engine,
        admitted: Admitted,
        module: wasmtime.Module,
        granted: frozenset[str],
        denied: frozenset[str] = frozenset(),
    ) -> None:
        for operation in admitted.imports:
            if operation not in granted and operation not in denied:
                raise Denied("this agent", operation, "default deny", flag=f"--allow {operation}")
        self.engine = engine
        self.admitted = admitted
        self.granted = granted
        self.linked = build_linker(engine, granted, denied - granted).instantiate_pre(module)
