"""
Files of every version that was ever released, as text, and the values that they must decode to for ever.

A file here is never written again. One whose value changes shows that snapshots out there have changed
their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from runner.kernel.limits import Limits
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored
from runner.snapshot import Snapshot, decode, encode
from runner.snapshot.rules import from_bits

GOLDEN: Final = Path(__file__).parent / "golden"

LIMITS: Final = Limits(
    memory_bytes=67_108_864,
    fuel=2_000_000_000,
    timeout_ms=30_000,
    request_bytes=1_048_576,
    reply_bytes=1_048_576,
    payload_bytes=16_777_216,
    calls_per_slice=64,
    calls_in_flight=256,
    log_line_bytes=4_096,
    log_lines_per_slice=64,
    random_bytes=65_536,
)

IDLE: Final = Snapshot(
    agent="counter",
    code_digest=bytes.fromhex("11" * 32),
    image_digest=bytes.fromhex("22" * 32),
    imports=("agent.take", "agent.reply"),
    limits=LIMITS,
    position=3,
    created_at_ms=1_800_000_000_000,
    state=MachineState(
        mind=Mind(65_536, {15: b"\x03" + bytes(4_095)}, (1_024,)),
        last_delivery=1,
        entropy=bytes.fromhex("33" * 32),
    ),
    host={},
    memory_digest=bytes.fromhex("44" * 32),
)

CALL_1: Final = Call(1, "agent.every", b"\xa1\x6binterval_ms\x19\x03\xe8", 1)
CALL_4: Final = Call(4, "llm.chat", b"\xa1\x68messages\x81\xa2\x64role\x64user\x67content\x65hello", 2)

ASKING: Final = Snapshot(
    agent="frage-\u00fc",
    code_digest=bytes(range(32)),
    image_digest=bytes(range(32, 64)),
    imports=("llm.chat", "agent.every", "agent.take", "agent.reply"),
    limits=LIMITS,
    position=9_007_199_254_740_993,
    created_at_ms=1_800_000_000_001,
    state=MachineState(
        mind=Mind(
            131_072,
            {0: b"runner\0\0" * 512, 1: bytes(4_096), 17: b"\xff" * 4_096, 31: b"runner\0\0" * 512},
            (-1, -(1 << 63), (1 << 63) - 1, -0.0, from_bits(bytes.fromhex("7ff4deadbeef0001"))),
        ),
        calls=(CALL_1, CALL_4),
        next_call=5,
        last_delivery=2,
        entropy=bytes(range(64, 96)),
        entropy_used=6,
        delivery=OpenDelivery(
            number=2,
            fuel=1_999_998_765,
            before=Mind(65_536, {1: b"\xff" * 4_096, 2: b"before\0\0" * 512}, (0, 0, 0, 0.5, 0.0)),
            calls_before=(CALL_1,),
            answers=(Answer(1, 1, b"\xf6"), Answer(1, 1, b"\x64tick")),
        ),
        restored=Restored(2, 1, 1_799_999_999_999),
    ),
    host={"notes": [{"id": "1", "title": "t", "content": "c"}], "usage": {"calls": 2, "cost": 0.25}},
    memory_digest=bytes(range(96, 128)),
)

KEPT: Final = replace(
    IDLE, state=replace(IDLE.state, last_snapshot=LastSnapshot(True, 1_234, 1_799_999_999_998))
)
FAILED: Final = replace(
    ASKING,
    state=replace(ASKING.state, last_snapshot=LastSnapshot(False, 0, 1_799_999_999_997, "limit")),
)

VALUES: Final = {
    "v1-idle.hex": IDLE,
    "v1-asking.hex": ASKING,
    "v2-kept.hex": KEPT,
    "v2-failed.hex": FAILED,
}


def read_golden(name: str) -> bytes:
    """
    The bytes of a golden file.
    """
    return bytes.fromhex((GOLDEN / name).read_text(encoding="ascii"))


@pytest.mark.parametrize("name", VALUES)
def test_a_file_of_a_released_version_decodes_to_the_value_it_was_made_of(
    name: str, plain: Callable[[Snapshot], Any]
) -> None:
    """
    Bit for bit, NaNs included.
    """
    assert plain(decode(read_golden(name))) == plain(VALUES[name])


@pytest.mark.parametrize("name", VALUES)
def test_what_was_written_then_is_written_now(name: str) -> None:
    """
    Version, header length and header are the same bytes; the frame depends on the release of zstd.
    """
    golden, fresh = read_golden(name), encode(VALUES[name])
    end = 56 + int.from_bytes(golden[12:16], "big")
    assert fresh[:16] == golden[:16]
    assert fresh[56:end] == golden[56:end]


def test_every_golden_file_has_its_value() -> None:
    """
    None is forgotten.
    """
    assert {path.name for path in GOLDEN.iterdir()} == set(VALUES)
