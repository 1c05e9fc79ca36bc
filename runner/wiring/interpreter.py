"""
An engine at work for a build: it checks modules and loads an agent; its memory then is the agent's image.

The engine is an agent like any other here, under limits: what an author wrote is read and evaluated inside of
it, never by the host. It may ask for nothing meanwhile; clock and randomness stand still, so that the same
sources give the same image.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runner import codec
from runner.errors import LimitExceeded, ProtocolViolation, SourceRejected
from runner.kernel import abi
from runner.kernel.abi import DeliveryKind
from runner.kernel.image import Image
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine
from runner.kernel.state import ENTROPY_BYTES, Mind
from runner.policy.grants import Binding
from runner.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner.kernel.admission import Admitted
    from runner.kernel.slice import LogLine
    from runner.wiring.host import Host

LOAD_LIMITS: Final = replace(Limits(), payload_bytes=32 * MIB, log_lines_per_slice=1000)
"""
What loading an agent may use; the operator's limits of its instances say nothing of its author's build.
"""

_SHOWN_ERRORS: Final = ("file", "line", "column", "stack")


class Loaded(NamedTuple):
    """
    An agent that an engine has loaded.

    Attributes:
        image: Where its instances start.
        reply: What the engine says of it: `handlers`, or `tests` as pairs of suite and test.
    """

    image: Image
    reply: dict[str, Any]


class Interpreter:
    """
    One engine in this process.

    Args:
        host: Compiles it, or has it compiled.
        wasm: The engine.
        on_log: Takes what an agent logs while it is loaded.

    Raises:
        RunnerError: If the engine is refused, or does not boot.
    """

    def __init__(self, host: Host, wasm: bytes, on_log: Callable[[LogLine], None]) -> None:
        self._host = host
        self._on_log = on_log
        self.admitted: Admitted = host.admit(wasm)
        own = {
            name for name in self.admitted.imports if abi.OPERATIONS[name].capability == abi.OWN_CAPABILITY
        }
        asking = frozenset(self.admitted.imports) - own
        # While it loads there is nobody to ask, whatever its instances may ask later.
        self._program = host.program(self.admitted, Binding(frozenset(own), asking))
        self._image, _ = host.boot(self._program, LOAD_LIMITS)

    def check(self, name: str, text: str) -> tuple[str, ...]:
        """
        The specifiers that a module imports, as written.

        Raises:
            SourceRejected: If it does not compile.
            LimitExceeded: If it is too much to compile.
        """
        _, reply = self._deliver(name, {"check": {"name": name, "text": text}})
        return tuple(reply["imports"])

    def load(
        self, name: str, modules: Sequence[Mapping[str, Any]], entry: str, suites: Sequence[str] = ()
    ) -> Loaded:
        """
        Load an agent.

        Args:
            name: The agent's name.
            modules: All its modules, in the engine's form.
            entry: Name of the first.
            suites: Names of the modules that are tests of it; its handlers are not looked for then.

        Raises:
            SourceRejected: If it fails while it is loaded, or has no entry point.
            LimitExceeded: If it does not come to an end, or needs too much memory.
        """
        request: dict[str, Any] = {"name": name, "modules": list(modules), "entry": entry}
        if suites:
            request["suites"] = list(suites)
        machine, reply = self._deliver(entry, {"load": request})
        mind = machine.freeze().mind
        whole = Mind(mind.memory_bytes, self._image.nonzero_pages | mind.pages, mind.globals)
        return Loaded(Image(whole), reply)

    def _deliver(self, file: str, request: dict[str, Any]) -> tuple[Machine, dict[str, Any]]:
        machine = Machine(self._program, self._image, LOAD_LIMITS, entropy=bytes(ENTROPY_BYTES))
        step = Deliver(1, DeliveryKind.MESSAGE, codec.encode(request), now_ms=0)

        def work() -> Any:
            with self._host.ticker.guest_runs():
                return machine.step(step)

        result = self._host.apart(work)
        for line in result.logs:
            self._on_log(line)
        if isinstance(result.failure, LimitExceeded):
            result.failure.say_where(f"{file}: does not finish loading")
        if result.failure is not None:
            raise result.failure
        if result.reply is None:
            raise SourceRejected(file, "waits while it is loaded, for something that will never come")
        value: Any = codec.decode(result.reply.payload)
        if not isinstance(value, dict):
            raise ProtocolViolation("load", "the engine answers with something else than a map")
        if not result.reply.ok:
            raise _rejected(file, value)
        if result.calls:
            raise ProtocolViolation("load", "the engine asks for something while it loads an agent")
        return machine, value


def _rejected(file: str, value: dict[str, Any]) -> SourceRejected:
    """
    The engine's word that a source is wrong. The agent ran while it was loaded, so it may be any word.
    """
    found, said = value.get("data"), value.get("message")
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    where, line, column, stack = (data.get(key) for key in _SHOWN_ERRORS)
    return SourceRejected(
        where if isinstance(where, str) and where else file,
        said if isinstance(said, str) else "fails while it is loaded",
        line=line if type(line) is int and line > 0 else None,
        column=column if type(column) is int and column > 0 else None,
        stack=stack if isinstance(stack, str) else None,
    )
