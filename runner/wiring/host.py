"""
What all instances of a process share: the engine, its ticker, the threads that slices run on, and the code
that was compiled once.

Admission and compilation are cached by content: the first sight of a module pays for them, no later run
does, and agents with the same code share the entries.
"""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from runner import codec
from runner.cache import BlobCache, default_cache_root, next_number
from runner.digest import digest
from runner.errors import Interrupted
from runner.kernel.admission import Admitted, admit
from runner.kernel.boot import boot
from runner.kernel.engine import CodeUnusable, Engine, EngineSettings, assemble_wat
from runner.kernel.program import Program
from runner.package.agent import AgentPackage, load_agent
from runner.package.manifest import Manifest
from runner.session.crew import Crew
from runner.session.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.kernel.image import Image
    from runner.kernel.limits import Limits
    from runner.kernel.slice import LogLine
    from runner.policy.grants import Binding

    Progress = Callable[[str], None]

_T = TypeVar("_T")

_ADMITTED_KIND: Final = "admitted-3"
"""
Raise the number when admission decides differently or its record changes.
"""

_CODE_KIND: Final = "code"
_AGENT_KIND: Final = "agents"
_GENERATION_KIND: Final = "generations"
_GRACE_S: Final = 0.1


class Host:
    """
    Shared by all instances of a process; safe between threads.

    Args:
        cache: Where compiled code is kept; `None` for the user's cache directory. What lies there is
            executed, so it must be the user's own: that is checked.
        settings: Of the engine.

    Raises:
        UsageError: If the cache directory could be written by others.
    """

    def __init__(self, cache: Path | None = None, settings: EngineSettings | None = None) -> None:
        self.cache = BlobCache(cache or default_cache_root())
        self.engine = Engine(settings)
        self.ticker = Ticker(self.engine)
        self.crew = Crew()

    def load(
        self, path: Path, *, may_compile: bool = False, progress: Progress | None = None
    ) -> AgentPackage:
        """
        The agent at a path.

        Args:
            path: A folder or file.
            may_compile: Whether a C agent that is not built, or out of date, is compiled. A compiler is
                no sandbox, so this takes a person's word for that source. What an interpreted language
                needs is done inside of one, so it needs no word.
            progress: Gets the compiler's warnings, and what takes long.

        Raises:
            RunnerError: If there is no well-formed agent there, or it is not built, or can't be.
        """

        def build(folder: Path) -> Path:
            # Imported here: an agent that needs no compiler must start without one.
            from runner.build import build_agent  # noqa: PLC0415

            return build_agent(folder, progress=progress)

        def sdk() -> bytes:
            from runner.build.sdk import sdk_digest  # noqa: PLC0415 - as above

            return sdk_digest()

        def interpret(folder: Path, manifest: Manifest) -> bytes:
            from runner.wiring.interpreted import interpreted_agent  # noqa: PLC0415 - as above

            return interpreted_agent(self, folder, manifest, progress=progress)

        return load_agent(
            path,
            interpret=interpret,
            assemble=lambda text: assemble_wat(text, path=str(path)),
            build=build if may_compile else None,
            sdk=sdk,
        )

    def admit(self, wasm: bytes) -> Admitted:
        """
        What admission found of a module, from the cache if it was seen before.

        Raises:
            ModuleRejected: If it is refused.
        """
        key = hashlib.sha256(self.engine.fingerprint + wasm).digest()
        entry = self.cache.get_or_make(
            _ADMITTED_KIND, key, lambda: codec.encode(admit(wasm, self.engine.wasmtime).to_wire())
        )
        return Admitted.from_wire(codec.decode(entry.read_bytes()))

    def program(self, admitted: Admitted, binding: Binding) -> Program:
        """
        The module, compiled and linked to what was granted.
        """
        code, key = admitted.code, self.engine.code_key(admitted.code)

        def compiled() -> Path:
            make = partial(self.engine.precompile, code)
            return self.apart(lambda: self.cache.get_or_make(_CODE_KIND, key, make))

        entry = self.cache.get(_CODE_KIND, key) or compiled()
        try:
            module = self.engine.load(entry)
        except CodeUnusable:
            self.cache.discard(_CODE_KIND, key)
            module = self.engine.load(compiled())
        return Program(self.engine, admitted, module, binding.granted, binding.denied)

    def boot(self, program: Program, limits: Limits) -> tuple[Image, tuple[LogLine, ...]]:
        """
        The image of a module and what it logged, under a wall deadline and Ctrl-C.

        Raises:
            RunnerError: Why the guest failed: a limit, a trap, an interrupt.
        """

        def work() -> tuple[Image, tuple[LogLine, ...]]:
            with self.ticker.guest_runs():
                return boot(program, limits)

        return self.apart(work)

    def apart(self, work: Callable[[], _T]) -> _T:
        """
        Do `work` on another thread: Python hears Ctrl-C only where no foreign code runs.

        Raises:
            Interrupted: On Ctrl-C. Guests are ended; a compiler goes on until the process ends.
        """
        results: list[_T] = []
        errors: list[BaseException] = []

        def target() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors.append(error)

        thread = threading.Thread(target=target, name="runner-work", daemon=True)
        try:
            thread.start()
            thread.join()
        except KeyboardInterrupt:
            self.engine.interrupt()
            # A guest is gone at once; its thread must not come back to an interpreter that is going.
            thread.join(_GRACE_S)
            raise Interrupted from None
        if errors:
            raise errors[0]
        return results[0]

    def remember_agent(self, packed: bytes) -> None:
        """
        Keep an agent's file, so that a snapshot of it can be restored without naming it again.
        """
        self.cache.get_or_make(_AGENT_KIND, digest(packed), lambda: packed)

    def recall_agent(self, agent: bytes) -> bytes | None:
        """
        The file that `remember_agent` kept, by its digest; `None` when there is none.
        """
        entry = self.cache.get(_AGENT_KIND, agent)
        packed = None if entry is None else entry.read_bytes()
        if packed is not None and digest(packed) != agent:
            self.cache.discard(_AGENT_KIND, agent)
            return None
        return packed

    def next_generation(self, key: bytes) -> int:
        """
        How often a snapshot was restored by this user here, this time included.
        """
        return next_number(self.cache, _GENERATION_KIND, hashlib.sha256(key).digest())
