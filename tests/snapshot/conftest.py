"""
One snapshot that has everything, and the means to tamper with snapshots so that their root still holds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from runner import codec
from runner.kernel.limits import Limits
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored
from runner.snapshot import Snapshot, encode
from runner.snapshot.rules import from_bits

PREFIX_BYTES = 56
SIGNALING_NAN = from_bits(bytes.fromhex("7ff4deadbeef0001"))


def page(fill: int) -> bytes:
    """
    A page that compresses, but not to nothing.
    """
    return bytes((fill + offset // 64) % 251 for offset in range(4096))


def make_sample() -> Snapshot:
    """
    Two minds that share pages, a page of zeros, calls in flight, answers, and a NaN that CBOR can't say.
    """
    ask = codec.encode({"messages": [{"role": "user", "content": "hello"}]})
    waiting = Call(1, "agent.after", codec.encode({"delay_ms": 1000}), 1)
    asking = Call(4, "llm.chat", ask, 3)
    before = Mind(131072, {0: page(9), 3: page(1)}, (65536, -1, SIGNALING_NAN))
    after = Mind(196608, {0: page(1), 3: bytes(4096), 5: page(2), 47: page(1)}, (65552, -(1 << 63), -0.0))
    state = MachineState(
        mind=after,
        calls=(waiting, asking),
        next_call=5,
        last_delivery=3,
        entropy=bytes(range(32)),
        entropy_used=7,
        delivery=OpenDelivery(3, 1_999_000, before, (waiting,), (Answer(1, 0, codec.encode(None)),)),
        restored=Restored(2, 1, 1_700_000_000_000),
        last_snapshot=LastSnapshot(False, 0, 1_700_000_000_001, "limit"),
    )
    return Snapshot(
        agent="hello",
        code_digest=b"c" * 32,
        image_digest=b"i" * 32,
        imports=("llm.chat", "agent.take", "agent.reply"),
        limits=Limits(fuel=2_000_000),
        position=12,
        created_at_ms=1_800_000_000_000,
        state=state,
        host={"usage": {"calls": 1, "input_tokens": None}, "notes": [b"\x00", 1.5, "n"]},
        memory_digest=b"m" * 32,
    )


def with_root(data: bytes) -> bytes:
    """
    The same bytes with a root that fits them.
    """
    root = hashlib.sha256(data[:24] + data[PREFIX_BYTES:]).digest()
    return data[:24] + root + data[PREFIX_BYTES:]


def assemble(header: bytes, body: bytes) -> bytes:
    """
    A file of that header and that body, with lengths and root that fit.
    """
    prefix = struct.pack(">8sIIQ32s", b"\x89RSN\r\n\x1a\n", 2, len(header), len(body), b"")
    return with_root(prefix + header + body)


def take_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    """
    The header's map and the body.
    """
    end = PREFIX_BYTES + int.from_bytes(data[12:16], "big")
    return codec.decode(data[PREFIX_BYTES:end]), data[end:]


class Forge(Protocol):
    """
    The sample's bytes after `change` had its way with header and body; the root fits.
    """

    def __call__(self, change: Callable[[dict[str, Any]], None], body: bytes | None = None) -> bytes:
        """
        Forge one.
        """


@pytest.fixture
def sample() -> Snapshot:
    """
    The snapshot that has everything.
    """
    return make_sample()


@pytest.fixture
def forge() -> Forge:
    """
    Tamper with the sample, root and all.
    """

    def forged(change: Callable[[dict[str, Any]], None], body: bytes | None = None) -> bytes:
        header, old_body = take_apart(encode(make_sample()))
        change(header)
        return assemble(codec.encode(header), old_body if body is None else body)

    return forged


@pytest.fixture
def reroot() -> Callable[[bytes], bytes]:
    """
    Make the root fit whatever the bytes are.
    """
    return with_root


@pytest.fixture
def plain() -> Callable[[Snapshot], Any]:
    """
    A snapshot as data that compares: floats of globals by their bits.
    """

    def converted(value: Any) -> Any:
        if isinstance(value, float):
            return ("f64", struct.pack(">d", value))
        if isinstance(value, dict):
            return {key: converted(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [type(value).__name__, *(converted(item) for item in value)]
        return value

    return lambda snapshot: converted(dataclasses.asdict(snapshot))
