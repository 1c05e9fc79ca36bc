"""
What the kernel knows of an instance, as plain data: what a snapshot stores and a restore reads.

Nothing here refers to an engine, a store or an address, so it can cross processes and machines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from runner.kernel.abi import WASM_PAGE_BYTES

PAGE_BYTES: Final = 4096
"""
Granularity of images, snapshots and dirty tracking: the smallest page of the processors we run on.
"""

MAX_MEMORY_BYTES: Final = 1 << 32
"""
All that 32-bit addresses reach.
"""


MAX_NUMBER: Final = 0x7FFF_FFFF
"""
Calls and deliveries are numbered by positive `i32`.
"""

MAX_ERROR_CHARS: Final = 256
"""
Longest text of a `LastSnapshot`'s error.
"""

ENTROPY_BYTES: Final = 32
"""
Size of the seed of a random stream.
"""


@dataclass(frozen=True, slots=True)
class Mind:
    """
    All that a guest can read back of itself at a moment without WebAssembly frames.

    Attributes:
        memory_bytes: Size of the linear memory, a multiple of 64 KiB.
        pages: 4 KiB pages by index that differ from the image; the rest is the image's, then zeros.
        globals: Values of the mutable globals, in the module's order: `int` for i32 and i64 (signed),
            `float` for f64.
    """

    memory_bytes: int
    pages: dict[int, bytes]
    globals: tuple[int | float, ...]

    def check(self) -> None:
        """
        Raises:
            ValueError: If a page does not lie in the memory, or a size is no multiple of its unit: such a
                mind must not come near an address.
        """
        if self.memory_bytes % WASM_PAGE_BYTES or not 0 <= self.memory_bytes <= MAX_MEMORY_BYTES:
            msg = f"memory of {self.memory_bytes} bytes"
            raise ValueError(msg)
        last = self.memory_bytes // PAGE_BYTES - 1
        for index, page in self.pages.items():
            if not 0 <= index <= last or len(page) != PAGE_BYTES:
                msg = f"page {index} of {len(page)} bytes in a memory of {self.memory_bytes}"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Call:
    """
    One request of the guest that is not answered yet.

    Attributes:
        number: Unique in the instance's life, 1 or more.
        operation: Such as `llm.chat`.
        request: Deterministic CBOR, as the guest wrote it.
        delivery: The delivery during which it was made, or 0 for none.
    """

    number: int
    operation: str
    request: bytes
    delivery: int


@dataclass(frozen=True, slots=True)
class Restored:
    """
    What the guest may know of its last restore.

    Attributes:
        count: Restores in this line of snapshots.
        generation: Tells two restores of one snapshot apart, when the host can; 1 or more.
        at_ms: When, in milliseconds since the Unix epoch.
    """

    count: int
    generation: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """
    What the guest may know of the last snapshot that was tried.

    Attributes:
        ok: Whether there is one.
        size_bytes: What it took; 0 when there is none.
        at_ms: When, in milliseconds since the Unix epoch.
        error: Why there is none, in a word or a sentence, or `None`.
    """

    ok: bool
    size_bytes: int
    at_ms: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """
    The answer to a call, or a part of it.

    Attributes:
        call: The call's number.
        status: `abi.Status.OK`, `abi.Status.PART`, or the reason for which it failed.
        payload: Deterministic CBOR.
    """

    call: int
    status: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class OpenDelivery:
    """
    A delivery without an answer yet, and what a failure puts back.

    Attributes:
        number: The delivery.
        fuel: Fuel left for it.
        before: The mind before it.
        calls_before: Calls in flight before it.
        answers: Answers to those calls that came in since; a failure gives them back.
    """

    number: int
    fuel: int
    before: Mind
    calls_before: tuple[Call, ...] = ()
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineState:
    """
    An instance at quiescence.

    Attributes:
        mind: Memory and globals.
        calls: Calls in flight, by number.
        next_call: Number of the next call; never goes back, not even after a failure.
        last_delivery: Highest delivery number seen.
        entropy: 32-byte seed of the random stream.
        entropy_used: Requests made to that stream; never goes back.
        delivery: The open delivery, or `None`.
        restored: The last restore, or `None`.
        last_snapshot: The last snapshot that was tried before this state was frozen, or `None`.
    """

    mind: Mind
    calls: tuple[Call, ...] = ()
    next_call: int = 1
    last_delivery: int = 0
    entropy: bytes = field(default=bytes(ENTROPY_BYTES), repr=False)
    entropy_used: int = 0
    delivery: OpenDelivery | None = None
    restored: Restored | None = None
    last_snapshot: LastSnapshot | None = None
