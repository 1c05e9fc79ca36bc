"""
What a state from outside must be before an instance is made of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from runner.errors import LimitExceeded, SnapshotIncompatible
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored
from tests.kernel.guests import GRANTED, image_of, program, scripted, scripted_image, scripted_text

PAGE: Final = b"x" * 4096
GLOBALS: Final = scripted_image().globals
SOUND: Final = MachineState(
    Mind(131072, {0: PAGE}, GLOBALS),
    calls=(Call(1, "llm.chat", b"\xa0", 1), Call(3, "llm.chat", b"\xa0", 2)),
    next_call=4,
    last_delivery=2,
    delivery=OpenDelivery(
        2, 1000, Mind(131072, {}, GLOBALS), (Call(1, "llm.chat", b"\xa0", 1),), (Answer(1, 1, b"\xf6"),)
    ),
    restored=Restored(1, 1, 1),
    last_snapshot=LastSnapshot(True, 1, 1),
)
assert SOUND.delivery is not None
OPEN: Final = SOUND.delivery
CALL: Final = SOUND.calls[0]


def with_mind(**changes: object) -> MachineState:
    """
    A state with another mind.
    """
    return replace(SOUND, mind=replace(SOUND.mind, **changes))  # type: ignore[arg-type]


def with_open(**changes: object) -> MachineState:
    """
    A state with another open delivery.
    """
    return replace(SOUND, delivery=replace(OPEN, **changes))  # type: ignore[arg-type]


def with_globals(*values: float) -> MachineState:
    """
    A state with other globals.
    """
    return with_mind(globals=values)


HOSTILE: Final = {
    "a page beyond the memory": with_mind(pages={32: PAGE}),
    "a page before it": with_mind(pages={-1: PAGE}),
    "a page that is too short": with_mind(pages={0: PAGE[1:]}),
    "a page that is too long": with_mind(pages={0: PAGE + b"."}),
    "half a page of memory": with_mind(memory_bytes=131072 + 4096),
    "negative memory": with_mind(memory_bytes=-65536, pages={}),
    "less memory than the image": with_mind(memory_bytes=65536),
    "more memory than addresses": with_mind(memory_bytes=(1 << 32) + 65536),
    "too few globals": with_globals(1, 2),
    "too many globals": with_globals(1, 2, 0.5, 0, 0),
    "an integer for a float": with_globals(1, 2, 3, 0),
    "a float for an integer": with_globals(1.0, 2, 0.5, 0),
    "a truth for an integer": with_globals(True, 2, 0.5, 0),
    "an i32 that is too large": with_globals(1 << 31, 2, 0.5, 0),
    "an i32 that is too small": with_globals(-(1 << 31) - 1, 2, 0.5, 0),
    "an i64 that is too large": with_globals(1, 1 << 63, 0.5, 0),
    "a short seed": replace(SOUND, entropy=bytes(31)),
    "a count of requests that no u64 holds": replace(SOUND, entropy_used=1 << 64),
    "a negative count of requests": replace(SOUND, entropy_used=-1),
    "a call number to come that was used": replace(SOUND, next_call=3),
    "a call number below the first": replace(SOUND, calls=(), next_call=0),
    "a call number beyond i32": replace(SOUND, next_call=(1 << 31) + 1),
    "a call twice": replace(SOUND, calls=(CALL, CALL)),
    "a call 0": replace(SOUND, calls=(replace(CALL, number=0),)),
    "a call to what is no call": replace(SOUND, calls=(replace(CALL, operation="agent.take"),)),
    "a call to what does not exist": replace(SOUND, calls=(replace(CALL, operation="llm.sing"),)),
    "a delivery number beyond i32": replace(SOUND, delivery=None, last_delivery=1 << 31),
    "a negative delivery number": replace(SOUND, delivery=None, last_delivery=-1),
    "a restore at a time that no i64 holds": replace(SOUND, restored=Restored(1, 1, 1 << 64)),
    "a snapshot at a time that no i64 holds": replace(SOUND, last_snapshot=LastSnapshot(True, 1, 1 << 64)),
    "a snapshot of negative size": replace(SOUND, last_snapshot=LastSnapshot(True, -1, 1)),
    "a long story of a snapshot": replace(SOUND, last_snapshot=LastSnapshot(False, 0, 1, "x" * 257)),
    "a negative generation": replace(SOUND, restored=Restored(1, -1, 1)),
    "an open delivery that is not the last": with_open(number=1),
    "an open delivery 0": replace(SOUND, last_delivery=0, delivery=replace(OPEN, number=0)),
    "negative fuel": with_open(fuel=-1),
    "fuel that no i64 holds": with_open(fuel=1 << 64),
    "a page beyond the memory before": with_open(before=replace(OPEN.before, pages={32: PAGE})),
    "more memory before than after": with_open(before=replace(OPEN.before, memory_bytes=196608)),
    "other globals before": with_open(before=replace(OPEN.before, globals=())),
    "an unordered call before": with_open(calls_before=(CALL, CALL)),
    "an answer to a call that was not there": with_open(answers=(Answer(3, 0, b"\xf6"),)),
    "an answer with a status of its own": with_open(answers=(Answer(1, 77, b"\xf6"),)),
}


def test_a_sound_state_is_thawed() -> None:
    """What the hostile ones below are made of."""
    instance = Machine.thaw(scripted(), scripted_image(), Limits(), SOUND)
    assert instance.freeze() == SOUND


@pytest.mark.parametrize("name", HOSTILE)
def test_a_state_that_no_kernel_made_is_refused(name: str) -> None:
    """Before any number of it becomes an address or is wrapped by the engine."""
    with pytest.raises(SnapshotIncompatible, match=r"^snapshot does not fit: "):
        Machine.thaw(scripted(), scripted_image(), Limits(), HOSTILE[name])


@pytest.mark.parametrize("where", ["now", "before"])
def test_a_call_that_is_not_granted_does_not_come_in_with_a_snapshot(where: str) -> None:
    """The host makes calls in flight again, so whoever writes a snapshot could ask for anything."""
    refused = frozenset({"llm.chat"})
    made = program(scripted_text(), granted=GRANTED - refused, denied=refused)
    state = replace(SOUND, delivery=None) if where == "now" else replace(SOUND, calls=())
    with pytest.raises(SnapshotIncompatible) as caught:
        Machine.thaw(made, image_of(made), Limits(), state)
    assert caught.value.message == (
        "snapshot does not fit: call is llm.chat, expected a call that is granted"
    )


@pytest.mark.parametrize("where", ["now", "before"])
def test_a_snapshot_brings_no_more_calls_than_the_limit(where: str) -> None:
    """The host would make them all at once."""
    calls = tuple(Call(number, "llm.chat", b"\xa0", 1) for number in range(1, 6))
    state = replace(SOUND, next_call=6, calls=calls if where == "now" else ())
    if where == "before":
        state = replace(state, delivery=replace(OPEN, calls_before=calls))
    Machine.thaw(scripted(), scripted_image(), Limits(calls_in_flight=5), state)
    with pytest.raises(LimitExceeded, match=r"^limit calls_in_flight exceeded: 5 of 4$"):
        Machine.thaw(scripted(), scripted_image(), Limits(calls_in_flight=4), state)
