"""
Driving a language engine through the kernel: admit and boot it, load an agent into it, talk to an instance.

The engines of all languages speak one protocol, so this knows of none of them. Nothing of a session is in
here: the test answers the calls, in whichever order it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from runner import codec
from runner.errors import RunnerError
from runner.kernel.abi import OPERATIONS, DeliveryKind, Status
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, EngineSettings
from runner.kernel.image import Image
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, StepResult, Wake
from runner.kernel.program import Program
from runner.kernel.slice import LogLine
from runner.kernel.state import Answer, MachineState, Mind, Restored

Module = Mapping[str, Any]
Answers = Callable[["Request"], Any]

NOW_MS = 1_700_000_000_000
"""
The clock of a slice when a test does not set it.
"""


class Failed(Exception):
    """
    Raised when a delivery ended with a failure of the guest's own.

    Attributes:
        message: Its message.
        data: Its data, or an empty map.
    """

    def __init__(self, payload: bytes) -> None:
        value = codec.decode(payload)
        super().__init__(value["message"])
        self.message: str = value["message"]
        self.data: dict[str, Any] = value.get("data") or {}


@dataclass(frozen=True)
class Request:
    """
    A call in flight.

    Attributes:
        number: The call's number.
        operation: Such as `llm.chat`.
        request: Its decoded request.
    """

    number: int
    operation: str
    request: Any


@dataclass(frozen=True)
class Refusal:
    """
    What a test answers to a call that is to fail.

    Attributes:
        status: A negative status.
        kind: Of the `error`.
        message: Of the `error`.
    """

    status: Status
    kind: str
    message: str

    @property
    def payload(self) -> dict[str, str]:
        """
        The `error`.
        """
        return {"kind": self.kind, "message": self.message}


class Interpreter:
    """
    A compiled language engine: admitted, compiled by wasmtime, booted. Immutable; make one per process.

    Args:
        wasm: The engine.
        denied: Operations that the agents' manifest does not declare.
        target: See `EngineSettings`.
    """

    def __init__(
        self, wasm: bytes, *, denied: frozenset[str] = frozenset(), target: str | None = None
    ) -> None:
        self.engine = Engine(EngineSettings(target))
        self.admitted = admit(wasm, self.engine.wasmtime)
        compiled = self.engine.compile(self.admitted.code)
        granted = frozenset(OPERATIONS) - denied
        self.program = Program(self.engine, self.admitted, compiled, granted, denied)

    @cached_property
    def image(self) -> Image:
        """
        The engine's own image.
        """
        return boot(self.program, Limits())[0]

    def check(self, name: str, text: str) -> dict[str, Any]:
        """
        What the engine says of one module.

        Raises:
            Failed: If it does not compile.
        """
        answer: dict[str, Any] = self.fresh(Limits()).message({"check": {"name": name, "text": text}})
        return answer

    def load(
        self,
        modules: str | Mapping[str, str] | Sequence[Module],
        entry: str | None = None,
        *,
        suites: Sequence[str] | None = None,
        limits: Limits | None = None,
        name: str = "test",
    ) -> Agent:
        """
        An agent's image.

        Args:
            modules: One module's text; or texts by name, where every `./x` names a module; or whole records.
            entry: By default the first module.
            suites: Test suites among the modules.
            limits: For the load, and by default for the agent's instances.
            name: Of the agent.

        Raises:
            Failed: If the engine refuses the agent.
            RunnerError: If the load ended at a limit.
        """
        records = _records(modules)
        request: dict[str, Any] = {"name": name, "modules": records, "entry": entry or records[0]["name"]}
        if suites is not None:
            request["suites"] = list(suites)
        loading = self.fresh(limits or Limits())
        answer = loading.message({"load": request})
        mind = loading.machine.freeze().mind
        pages = {**self.image.mind.pages, **mind.pages}
        image = Image(Mind(mind.memory_bytes, pages, mind.globals))
        return Agent(self.program, image, answer, limits or Limits(), loading.logs)

    def fresh(self, limits: Limits | None = None) -> Living:
        """
        An instance of the engine, without an agent.
        """
        return Living(Machine(self.program, self.image, limits or Limits(), entropy=bytes(32)))


@dataclass(frozen=True)
class Agent:
    """
    A loaded agent: what its instances are made of.

    Attributes:
        program: The engine's program.
        image: The agent's image.
        answer: What the engine replied to the load.
        limits: Of its instances, by default.
        logs: What was logged while it loaded.
    """

    program: Program
    image: Image
    answer: Any
    limits: Limits
    logs: list[LogLine]

    def instance(
        self,
        *,
        entropy: bytes = bytes(32),
        limits: Limits | None = None,
        keeps_snapshots: bool = False,
        keeps_timers: bool = True,
    ) -> Living:
        """
        A new instance.
        """
        limits = limits or self.limits
        machine = Machine(
            self.program,
            self.image,
            limits,
            entropy=entropy,
            keeps_snapshots=keeps_snapshots,
            keeps_timers=keeps_timers,
        )
        return Living(machine)

    def thaw(
        self,
        state: MachineState,
        *,
        entropy: bytes | None = None,
        restored: Restored | None = None,
        limits: Limits | None = None,
        keeps_snapshots: bool = False,
    ) -> Living:
        """
        An instance that goes on where another was frozen.
        """
        machine = Machine.thaw(
            self.program,
            self.image,
            limits or self.limits,
            state,
            entropy=entropy,
            restored=restored,
            keeps_snapshots=keeps_snapshots,
            keeps_timers=True,
        )
        return Living(machine)


@dataclass
class Living:
    """
    An instance and what it has asked for.

    Attributes:
        machine: The kernel's side of it.
        logs: All lines that it has logged.
        steps: What each slice asked for.
        now_ms: The clock of the next slice.
    """

    machine: Machine
    logs: list[LogLine] = field(default_factory=list)
    steps: list[StepResult] = field(default_factory=list)
    now_ms: int = NOW_MS

    @property
    def calls(self) -> tuple[Request, ...]:
        """
        Calls in flight, oldest first.
        """
        return tuple(
            Request(call.number, call.operation, codec.decode(call.request)) for call in self.machine.calls
        )

    @property
    def log_texts(self) -> list[str]:
        """
        The text of each line.
        """
        return [line.message for line in self.logs]

    def deliver(self, payload: Any = None, kind: DeliveryKind = DeliveryKind.MESSAGE) -> StepResult:
        """
        Hand it a delivery, and run its first slice.
        """
        number = self.machine.last_delivery + 1
        return self._note(self.machine.step(Deliver(number, kind, codec.encode(payload), self.now_ms)))

    def answer(self, call: int, value: Any = None) -> StepResult:
        """
        Answer a call: with a value, or a `Refusal`.
        """
        if isinstance(value, Refusal):
            return self._wake(call, value.status, value.payload)
        return self._wake(call, Status.OK, value)

    def part(self, call: int, value: Any) -> StepResult:
        """
        Hand it one part of a streamed answer.
        """
        return self._wake(call, Status.PART, value)

    def message(
        self,
        payload: Any = None,
        answers: Answers | None = None,
        *,
        kind: DeliveryKind = DeliveryKind.MESSAGE,
    ) -> Any:
        """
        Deliver, answer the calls one by one, oldest first, and return the reply.

        Args:
            payload: Of the delivery.
            answers: What to answer to a call; none may be made without it.
            kind: Of the delivery.

        Raises:
            Failed: If the guest failed it.
            RunnerError: If a slice failed.
        """
        result = self.deliver(payload, kind)
        while result.reply is None:
            assert answers is not None, f"nobody answers {self.calls}"
            request = self.calls[0]
            result = self.answer(request.number, answers(request))
        return value_of(result)

    def drain(self, answers: Answers) -> None:
        """
        Answer every call that is still in flight, those made meanwhile too.
        """
        while self.calls:
            request = self.calls[0]
            self.answer(request.number, answers(request))

    def freeze(self) -> MachineState:
        """
        Its state, as plain data.
        """
        return self.machine.freeze()

    @property
    def dirty_pages(self) -> int:
        """
        How many of its 4 KiB pages differ from the agent's image.
        """
        return len(self.machine.freeze().mind.pages)

    def _wake(self, call: int, status: Status, value: Any) -> StepResult:
        return self._note(self.machine.step(Wake(Answer(call, status, codec.encode(value)), self.now_ms)))

    def _note(self, result: StepResult) -> StepResult:
        self.logs += result.logs
        self.steps.append(result)
        if result.failure is not None:
            raise result.failure
        return result


def value_of(result: StepResult) -> Any:
    """
    What a slice replied.

    Raises:
        Failed: If it failed the delivery.
    """
    assert result.reply is not None, "the delivery is still open"
    if not result.reply.ok:
        raise Failed(result.reply.payload)
    return codec.decode(result.reply.payload)


def same_state(one: MachineState, other: MachineState) -> bool:
    """
    Whether two states hold the same memory, calls and numbers; their random streams aside.
    """
    fresh = bytes(32)
    return replace(one, entropy=fresh, entropy_used=0) == replace(other, entropy=fresh, entropy_used=0)


def failure_of(action: Callable[[], Any]) -> RunnerError:
    """
    The failure of a slice that must fail.
    """
    try:
        action()
    except RunnerError as error:
        return error
    msg = "the slice did not fail"
    raise AssertionError(msg)


def read_engine(path: Path) -> bytes:
    """
    A compiled engine from disk.
    """
    return path.read_bytes()


def _records(modules: str | Mapping[str, str] | Sequence[Module]) -> list[dict[str, Any]]:
    if isinstance(modules, str):
        return [{"name": "agent.js", "text": modules}]
    if not isinstance(modules, Mapping):
        return [dict(module) for module in modules]
    imports = {f"./{name}": name for name in modules}
    return [{"name": name, "text": text, "imports": imports} for name, text in modules.items()]
