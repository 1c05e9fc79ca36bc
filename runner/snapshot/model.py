"""
What a snapshot says, as a value. How it looks in bytes is the business of `runner.snapshot.format`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runner.codec import Value
from runner.kernel.limits import Limits
from runner.kernel.state import MachineState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    One instance at one journal position.

    Attributes:
        agent: Name of the agent. Untrusted text once it comes from a file.
        code_digest: SHA-256 of the module without custom sections: which code may continue.
        image_digest: Digest of the image that the pages differ from.
        imports: Operations that the module imports, such as `llm.chat`, in its own order.
        limits: Bounds that the instance ran under.
        position: Journal entries that the state already contains.
        created_at_ms: When it was taken, in milliseconds since the Unix epoch, by the host's clock.
        state: What the kernel knows of the instance.
        host: What the host holds for the instance besides: any map of codec values.
        memory_digest: The machine's own digest at that moment, 32 bytes; opaque here.
    """

    agent: str
    code_digest: bytes
    image_digest: bytes
    imports: tuple[str, ...]
    limits: Limits
    position: int
    created_at_ms: int
    state: MachineState = field(repr=False)
    host: dict[str, Value] = field(repr=False)
    memory_digest: bytes


@dataclass(frozen=True, slots=True)
class SnapshotStats:
    """
    What writing one snapshot took.

    Attributes:
        size_bytes: Size of the file.
        pages: Pages that differ from the image, those before an open delivery included.
        pages_stored: How many of them have content of their own, neither repeated nor zero.
        encode_us: Time to make the bytes, microseconds of the monotonic clock.
        write_us: Time to hand them to the operating system.
        sync_us: Time until they were on the disk; 0 when that was not waited for.
    """

    size_bytes: int
    pages: int
    pages_stored: int
    encode_us: int
    write_us: int
    sync_us: int
