"""
The WebAssembly engine, set up so that a guest is deterministic, bounded and capturable.

One engine serves any number of instances. It holds no clock: the host calls `tick` every
`EPOCH_TICK_MS` while guests run, and `interrupt` to end them all now.
"""

from __future__ import annotations

import hashlib
import platform
import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import wasmtime

from runner import codec
from runner.errors import AgentInvalid, InternalError, ModuleRejected

_MESSAGE_CHARS: Final = 240
_SMALLER: Final = "split large functions, or build for size"

EPOCH_TICK_MS: Final = 10
"""
How often the host must call `Engine.tick` while a guest runs; the grain of wall deadlines.
"""

MAX_DEADLINE_TICKS: Final = 1 << 18
"""
Longest wall deadline of one slice, about 44 minutes: `interrupt` has to step over all of them.
"""

MAX_STACK_BYTES: Final = 1 << 20
"""
Native stack for WebAssembly frames. A JavaScript engine needs 256 KiB for a clean range error; above
2 MiB wasmtime aborts the process; 1 MiB leaves room on every thread that Python starts.
"""

_FEATURES: Final = {
    # State that cannot be captured, or that another instance could change.
    "wasm_threads": False,
    "shared_memory": False,
    "wasm_stack_switching": False,
    "wasm_gc": False,
    "wasm_function_references": False,
    # Memory that snapshots and bounds do not cover.
    "wasm_multi_memory": False,
    "wasm_memory64": False,
    "wasm_custom_page_sizes": False,
    # Results that differ between processors.
    "wasm_relaxed_simd": False,
    # Not needed by any guest we know; off keeps the trusted surface small.
    "wasm_tail_call": False,
    "wasm_wide_arithmetic": False,
    "wasm_component_model": False,
    # On: compilers emit them, and none of them adds state.
    "wasm_simd": True,
    "wasm_bulk_memory": True,
    "wasm_multi_value": True,
    "wasm_reference_types": True,
    "wasm_exceptions": True,
}


class CodeUnusable(Exception):
    """
    Raised by `Engine.load` for code that must be compiled again.
    """


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """
    What may differ between engines without changing what a guest computes.

    Attributes:
        target: `None` for this processor, or `pulley64` for wasmtime's portable interpreter.
    """

    target: str | None = None


class Engine:
    """
    A wasmtime engine with the features of ABI version 1.

    Safe to share between threads.
    """

    def __init__(self, settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        config = wasmtime.Config()
        for name, enabled in _FEATURES.items():
            # Setting what this release's binding does not know would change nothing, silently.
            if not isinstance(getattr(wasmtime.Config, name, None), property):
                raise InternalError(f"this release of wasmtime has no switch for {name}")
            setattr(config, name, enabled)
        config.consume_fuel = True
        config.epoch_interruption = True
        config.cranelift_nan_canonicalization = True
        config.max_wasm_stack = MAX_STACK_BYTES
        # With the full 4 GiB reserved a memory never moves, so an image mapped under it stays.
        config.memory_may_move = False
        if self.settings.target is not None:
            config.target = self.settings.target
        self.wasmtime = wasmtime.Engine(config)
        # Reentrant: a signal's handler may interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._interrupted = False
        self._interrupts = 0
        self._longest_ticks = 0
        self._ticks = 0

    @cached_property
    def fingerprint(self) -> bytes:
        """
        Digest of all that makes compiled code of one engine unfit for another.
        """
        facts = [
            wasmtime_release(),
            platform.system(),
            platform.machine(),
            self.settings.target or "native",
            MAX_STACK_BYTES,
            sorted(_FEATURES.items()),
        ]
        return hashlib.sha256(codec.encode([_plain(fact) for fact in facts])).digest()

    def code_key(self, code: bytes) -> bytes:
        """
        Cache key of `code` compiled by this engine.
        """
        return hashlib.sha256(self.fingerprint + hashlib.sha256(code).digest()).digest()

    def compile(self, code: bytes) -> wasmtime.Module:
        """
        Machine code for an admitted module; takes up to seconds for a large one.

        Raises:
            ModuleRejected: If the compiler gives up on it.
        """
        try:
            return wasmtime.Module(self.wasmtime, code)
        except wasmtime.WasmtimeError as error:
            problem = " ".join(str(error).split())[:_MESSAGE_CHARS]
            raise ModuleRejected(
                "compile", "module", f"the compiler gives up: {problem}", _SMALLER
            ) from error

    def precompile(self, code: bytes) -> bytes:
        """
        Machine code as bytes for `load`.
        """
        return bytes(self.compile(code).serialize())

    def load(self, path: Path) -> wasmtime.Module:
        """
        Machine code that `precompile` made, mapped from its file.

        The file is trusted: it runs in this process. It must lie where only its owner can write.

        Raises:
            CodeUnusable: If it comes from another engine or release.
        """
        try:
            return wasmtime.Module.deserialize_file(self.wasmtime, str(path))
        except wasmtime.WasmtimeError as error:
            raise CodeUnusable(str(error)) from error

    def tick(self) -> None:
        """
        Tell the engine that `EPOCH_TICK_MS` have passed.
        """
        with self._lock:
            self._ticks += 1
            self.wasmtime.increment_epoch()

    @property
    def ticks(self) -> int:
        """
        Ticks so far, for host work to see what compiled code sees in the epoch.
        """
        return self._ticks

    def deadline_ticks(self, deadline_ms: int) -> int:
        """
        Ticks for a slice that may run `deadline_ms`; remembered, so that `interrupt` can outrun it.
        """
        ticks = min(-(-max(deadline_ms, 0) // EPOCH_TICK_MS) + 1, MAX_DEADLINE_TICKS)
        with self._lock:
            self._longest_ticks = max(self._longest_ticks, ticks)
        return ticks

    def interrupt(self) -> None:
        """
        End every slice that runs now, and any that starts before `resume`; each reports `Interrupted`.
        """
        with self._lock:
            self._interrupted = True
            self._interrupts += 1
            for _ in range(self._longest_ticks + 1):
                self.tick()

    def resume(self) -> None:
        """
        Undo `interrupt` for slices that start from now on.
        """
        self._interrupted = False

    @property
    def interrupted(self) -> bool:
        """
        Whether `interrupt` was called and `resume` was not.
        """
        return self._interrupted

    @property
    def interrupts(self) -> int:
        """
        How often `interrupt` was called: tells a slice of an interrupt that was undone meanwhile.
        """
        return self._interrupts


@lru_cache(maxsize=1)
def wasmtime_release() -> str:
    """
    Version of the engine's package.

    Read off the name of its metadata folder: importing `importlib.metadata` would take a tenth of the time
    that a whole run may take.
    """
    prefix, suffix = "wasmtime-", ".dist-info"
    for name in sorted(entry.name for entry in Path(wasmtime.__file__).parents[1].iterdir()):
        if name.startswith(prefix) and name.endswith(suffix):
            return name.removeprefix(prefix).removesuffix(suffix)
    from importlib import metadata  # noqa: PLC0415 - see above

    return metadata.version("wasmtime")


def _plain(fact: object) -> codec.Value:
    """
    Tuples as lists, so that a fact can be encoded.
    """
    if isinstance(fact, (list, tuple)):
        return [_plain(item) for item in fact]
    return fact


def assemble_wat(text: str, *, path: str = "<text>") -> bytes:
    """
    WebAssembly from its text form; needs no compiler.

    Raises:
        AgentInvalid: If the text does not parse, with the assembler's line and column.
    """
    try:
        return bytes(wasmtime.wat2wasm(text))
    except wasmtime.WasmtimeError as error:
        problem = str(error).replace("<anon>", path)
        raise AgentInvalid(path, f"not valid WebAssembly text\n{problem}") from error
