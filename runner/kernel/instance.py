"""
One instantiation of a module: a store, its memory, entry points and mutable globals.

An instantiation is cheap and disposable. A machine replaces it whenever a slice fails, because
WebAssembly memory can't shrink and an instance that trapped is in no defined state.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import wasmtime

from runner.errors import HostExhausted, MemoryExceeded
from runner.kernel.abi import MEMORY_EXPORT, UPGRADE_EXPORT, WASM_PAGE_BYTES
from runner.kernel.mapping import ZERO_PAGE
from runner.kernel.state import PAGE_BYTES, Mind
from runner.kernel.trap import trapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.kernel.image import Image
    from runner.kernel.limits import Limits
    from runner.kernel.program import Program

_UNBOUNDED: Final = (1 << 62) - 1


class Instance:
    """
    A live instantiation. Not safe to share between threads.

    Args:
        program: What to instantiate.
        limits: Bounds on memory and tables.

    Raises:
        MemoryExceeded: If the module starts with more than `limits` allow.
        GuestTrapped: If a data or element segment does not lie where the module puts it.
        HostExhausted: If the process can hold no more instances.
    """

    __slots__ = ("deliver", "exports", "globals", "memory", "store", "upgrade", "wake")

    def __init__(self, program: Program, limits: Limits) -> None:
        admitted = program.admitted
        room_bytes = limits.memory_bytes - admitted.table_bytes
        if admitted.memory_min_bytes > room_bytes:
            raise MemoryExceeded(admitted.memory_min_bytes + admitted.table_bytes, limits.memory_bytes)
        self.store = wasmtime.Store(program.engine.wasmtime)
        self.store.set_limits(memory_size=room_bytes, instances=1, memories=1)
        # Admission left no start function, so nothing of the guest runs here; but segments and globals with
        # computed offsets or references are laid by generated code, which counts fuel and time like any
        # other. It is bounded by the module's size.
        self.store.set_fuel(_UNBOUNDED)
        self.store.set_epoch_deadline(_UNBOUNDED)
        try:
            instance = program.linked.instantiate(self.store)
        except wasmtime.Trap as trap:
            raise trapped(trap) from trap
        except wasmtime.WasmtimeError as error:
            raise HostExhausted(str(error)) from error
        self.exports: Any = instance.exports(self.store)
        self.memory: Any = self.exports[MEMORY_EXPORT]
        self.deliver: Any = self.exports["agent_deliver"]
        self.wake: Any = self.exports["agent_wake"]
        self.upgrade: Any = self.exports[UPGRADE_EXPORT] if admitted.upgrades else None
        self.globals: Any = tuple(self.exports[slot.export] for slot in admitted.globals)

    @classmethod
    def thaw(cls, program: Program, limits: Limits, image: Image, mind: Mind | None) -> Instance:
        """
        An instantiation that holds `mind`, or the image itself.

        Raises:
            MemoryExceeded: If the mind is larger than `limits` allow.
            HostExhausted: If the process can hold no more instances.
        """
        instance = cls(program, limits)
        # Only a boot needs the rest of the exports; thousands of idle instances do not.
        instance.exports = None
        instance._resize(mind.memory_bytes if mind else image.memory_bytes, program, limits)
        image.backing.lay(instance.address)
        if mind is not None:
            for index, page in mind.pages.items():
                ctypes.memmove(instance.address + index * PAGE_BYTES, page, PAGE_BYTES)
        values = mind.globals if mind else image.globals
        for slot, value in zip(instance.globals, values, strict=True):
            slot.set_value(instance.store, value)
        return instance

    @property
    def address(self) -> int:
        """
        Where the memory begins in this process; it never moves.
        """
        return ctypes.addressof(self.memory.data_ptr(self.store).contents)

    @property
    def memory_bytes(self) -> int:
        """
        Size of the memory now.
        """
        size: int = self.memory.data_len(self.store)
        return size

    @property
    def global_values(self) -> tuple[int | float, ...]:
        """
        Values of the mutable globals now.
        """
        return tuple(slot.value(self.store) for slot in self.globals)

    def page(self, index: int) -> bytes:
        """
        Content of one page.
        """
        return ctypes.string_at(self.address + index * PAGE_BYTES, PAGE_BYTES)

    def freeze(self, image: Image) -> Mind:
        """
        The mind now, as pages that differ from the image's root.
        """
        size_bytes = self.memory_bytes
        touched: Iterable[int] = image.backing.touched(self.address, size_bytes)
        return Mind(size_bytes, image.differing(touched, self.page), self.global_values)

    def freeze_whole(self) -> Mind:
        """
        The mind now, as pages that are not all zero.
        """
        size_bytes = self.memory_bytes
        pages = ((index, self.page(index)) for index in range(size_bytes // PAGE_BYTES))
        return Mind(size_bytes, {i: page for i, page in pages if page != ZERO_PAGE}, self.global_values)

    def _resize(self, size_bytes: int, program: Program, limits: Limits) -> None:
        missing = size_bytes - self.memory_bytes
        if missing <= 0:
            return
        try:
            self.memory.grow(self.store, missing // WASM_PAGE_BYTES)
        except wasmtime.WasmtimeError as error:
            needed = size_bytes + program.admitted.table_bytes
            raise MemoryExceeded(needed, limits.memory_bytes) from error
