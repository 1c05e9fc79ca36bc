"""
C agents compiled once for all tests, and a machine to run them on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from runner import codec
from runner.build import build_agent
from runner.kernel.abi import DeliveryKind
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine
from runner.kernel.image import Image
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine, StepResult, Wake
from runner.kernel.program import Program
from runner.kernel.state import Answer

AGENTS = Path(__file__).with_name("agents")


class Guest:
    """
    One instance, stepped by hand.
    """

    def __init__(self, program: Program, image: Image, limits: Limits) -> None:
        self.machine = Machine(program, image, limits, entropy=bytes(32))

    def deliver(
        self, value: codec.Value, kind: DeliveryKind = DeliveryKind.MESSAGE, *, now_ms: int = 0
    ) -> StepResult:
        """
        Hand over one delivery.
        """
        number = self.machine.last_delivery + 1
        return self.machine.step(Deliver(number, kind, codec.encode(value), now_ms))

    def wake(self, call: int, status: int, value: codec.Value) -> StepResult:
        """
        Hand over the answer to a call.
        """
        return self.machine.step(Wake(Answer(call, status, codec.encode(value)), 0))

    def ask(self, value: codec.Value) -> codec.Value:
        """
        The reply to a message, in the same slice.
        """
        return reply_of(self.deliver(value))


def reply_of(result: StepResult) -> codec.Value:
    """
    What a slice replied; its failure, raised, when it had one.
    """
    if result.failure is not None:
        raise result.failure
    assert result.reply is not None
    value = codec.decode(result.reply.payload)
    return value if result.reply.ok else {"failed": value}


@pytest.fixture(scope="session")
def engine() -> Engine:
    """
    One engine for all guests.
    """
    return Engine()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """
    Compiles one of `agents/`, once.
    """
    built: dict[tuple[str, bool], bytes] = {}

    def compile_agent(name: str, *, unwind: bool = False) -> bytes:
        if (name, unwind) not in built:
            folder = tmp_path_factory.mktemp(name)
            shutil.copy(AGENTS / f"{name}.c", folder / "agent.c")
            write_manifest(folder, "c", "agent.c", build=f"unwind = {str(unwind).lower()}")
            built[name, unwind] = build_agent(folder).read_bytes()
        return built[name, unwind]

    return compile_agent


@pytest.fixture(scope="session")
def instance_of(engine: Engine) -> Callable[..., Guest]:
    """
    Makes an instance of a module, granted all that it imports.
    """

    @cache
    def program_of(wasm: bytes) -> tuple[Program, Image]:
        admitted = admit(wasm, engine.wasmtime)
        program = Program(engine, admitted, engine.compile(admitted.code), frozenset(admitted.imports))
        return program, boot(program, Limits())[0]

    def make(wasm: bytes, **limits: int) -> Guest:
        return Guest(*program_of(wasm), Limits(**limits))

    return make


@pytest.fixture(scope="session")
def guest(instance_of: Callable[..., Guest], compiled: Callable[..., bytes]) -> Callable[..., Guest]:
    """
    Makes an instance of one of `agents/`.
    """

    def make(name: str, *, unwind: bool = False, **limits: int) -> Guest:
        return instance_of(compiled(name, unwind=unwind), **limits)

    return make


def write_manifest(folder: Path, language: str, entry: str, *, build: str = "") -> None:
    """
    An `agent.toml` with what must be in it.
    """
    lines = ['name = "tried"', f'language = "{language}"', f'entry = "{entry}"']
    (folder / "agent.toml").write_text("\n".join([*lines, *(["[build]", build] if build else [])]))


@pytest.fixture
def c_folder(tmp_path: Path) -> Callable[..., Path]:
    """
    Writes a C agent's folder from its text.
    """

    def write(source: str, *, build: str = "") -> Path:
        folder = tmp_path / "agent"
        folder.mkdir()
        (folder / "agent.c").write_text(source)
        write_manifest(folder, "c", "agent.c", build=build)
        return folder

    return write
