"""
An instance frozen and thawed is the same instance, at any moment between two slices.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from runner.errors import (
    FuelExhausted,
    MemoryExceeded,
)
from runner.kernel.abi import Status
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine, digest_of
from runner.kernel.state import Restored
from tests.kernel.guests import (
    FREE,
    MARK,
    TIGHT,
    Op,
    ask,
    busy,
    chat,
    command,
    deliver,
    machine,
    reply,
    results,
    same,
    wake,
)


def thawed(instance: Machine, **options: object) -> Machine:
    """
    The instance in another life.
    """
    return Machine.thaw(instance.program, instance.image, instance.limits, instance.freeze(), **options)  # type: ignore[arg-type]


def test_an_instance_is_the_same_after_a_thaw_in_the_middle_of_a_delivery() -> None:
    """With calls in flight, fuel spent, and memory grown."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    deliver(instance, 2, busy(2))
    wake(instance, 1, MARK, status=Status.PART)
    other = thawed(instance)
    assert same(instance, other)
    assert (other.open_delivery, other.calls) == (2, instance.calls)
    for step in (
        lambda m: wake(m, 2, ask("agent.random", FREE + 64, 16) + chat()),
        lambda m: wake(m, 1, command(Op.UNREACHABLE)),
        lambda m: deliver(m, 3, busy(3) + reply(3)),
    ):
        one, two = step(instance), step(other)
        assert replace(one, failure=None) == replace(two, failure=None)
        assert same(instance, other)


def test_a_thaw_may_give_fresh_entropy_and_say_that_it_is_one() -> None:
    """Two restores of one snapshot must not share a nonce, and can see that they are two."""
    instance = machine()
    deliver(instance, 1, ask("agent.random", FREE + 64, 8) + reply(1))
    known = Restored(1, 2, 3)
    fresh = thawed(instance, entropy=b"\1" * 32, restored=known)
    assert fresh.freeze() == replace(instance.freeze(), entropy=b"\1" * 32, entropy_used=0, restored=known)
    again = thawed(fresh)
    assert again.freeze() == fresh.freeze()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_seed_has_one_size(size: int) -> None:
    """A host that forgot it would hand out randomness that anyone can foretell."""
    with pytest.raises(ValueError, match=f"^entropy must be 32 bytes, got {size}$"):
        machine(entropy=bytes(size))
    with pytest.raises(ValueError, match=f"^entropy must be 32 bytes, got {size}$"):
        thawed(machine(), entropy=bytes(size))


def test_the_entropy_is_not_shown() -> None:
    """A state may end up in a log."""
    assert "entropy=" not in repr(machine(entropy=b"\x07" * 32).freeze())


def test_a_failed_instance_can_be_frozen_before_it_is_needed_again() -> None:
    """It is not made anew before its next step."""
    instance, control = machine(), machine()
    for each in (instance, control):
        deliver(each, 1, busy(1) + reply(1))
    deliver(instance, 2, MARK + command(Op.UNREACHABLE))
    assert instance.freeze().mind == control.freeze().mind
    assert instance.memory_bytes == control.memory_bytes
    assert thawed(instance).digest() == control.digest()


def test_an_overlay_starts_where_a_snapshot_is() -> None:
    """Many instances of one snapshot share its pages; what they freeze refers to the agent's image."""
    instance = machine()
    deliver(instance, 1, busy(1) + reply(1))
    deliver(instance, 2, command(Op.FILL, FREE + 0x8000, 0, 4096) + chat())
    state = instance.freeze()
    overlay = instance.image.overlay(state.mind)
    assert overlay.root is instance.image
    assert overlay.digest == instance.digest()
    twins = [Machine.thaw(instance.program, overlay, instance.limits, state) for _ in range(2)]
    for twin in twins:
        assert same(twin, instance)
        wake(twin, 2, MARK + command(Op.STORE, FREE + 2048, 1) + reply(2))
    wake(instance, 2, MARK + command(Op.STORE, FREE + 2048, 1) + reply(2))
    assert all(same(twin, instance) for twin in twins)
    # After a failure a twin stands on the agent's image, and must still know all that differs.
    for each in (instance, *twins):
        deliver(each, 3, command(Op.FILL, 0x2000, 9, 20000) + command(Op.UNREACHABLE))
        deliver(each, 4, command(Op.STORE, 0x3000, 9) + reply(4))
    assert all(same(twin, instance) for twin in twins)


def test_a_thawed_delivery_has_no_more_fuel_than_the_limit() -> None:
    """Whatever the snapshot says."""
    instance = machine()
    deliver(instance, 1, chat())
    state = instance.freeze()
    assert state.delivery is not None
    greedy = replace(state, delivery=replace(state.delivery, fuel=(1 << 63) - 1))
    other = Machine.thaw(instance.program, instance.image, TIGHT, greedy)
    result = wake(other, 1, command(Op.SPIN))
    assert result.fuel == TIGHT.fuel


def test_a_mind_above_the_limit_is_not_thawed() -> None:
    """`memory_bytes` of the host that restores."""
    instance = machine()
    deliver(instance, 1, command(Op.GROW, 2) + reply(1))
    tight = Limits(memory_bytes=3 * 65536)
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 262144 of 196608$"):
        Machine.thaw(instance.program, instance.image, tight, instance.freeze())


def test_globals_keep_their_bits_over_failure_and_thaw() -> None:
    """Also those of a NaN with a payload, quiet or signaling, and of minus zero."""
    for low, high in ((0xDEADBEEF, 0x7FF80000), (0xDEADBEEF, 0x7FF40000), (1, 0xFFF00000), (0, 0x80000000)):
        instance = machine()
        deliver(
            instance,
            1,
            command(Op.SET_I32, -5)
            + command(Op.SET_I64, low, high)
            + command(Op.SET_F64, low, high)
            + reply(1),
        )
        expected = list(struct.unpack("<5i", struct.pack("<i4I", -5, low, high, low, high)))
        deliver(instance, 2, command(Op.SET_F64, 0, 0) + command(Op.UNREACHABLE))
        other = thawed(instance)
        assert same(instance, other)
        for each in (instance, other):
            deliver(each, 3, command(Op.PUSH_GLOBALS) + reply(3))
            assert results(each)[1:6] == expected


def test_the_digest_tells_minds_apart_and_nothing_else() -> None:
    """Equal memory and globals, equal digest, however they came about."""
    one, other = machine(), machine()
    deliver(one, 1, MARK + reply(1))
    deliver(other, 1, command(Op.STORE, FREE + 256, 41) + reply(1))
    assert one.digest() != other.digest()
    for each in (one, other):
        deliver(each, 2, MARK + reply(2))
    assert one.digest() == other.digest()
    mind = one.freeze().mind
    assert digest_of(mind, one.image) == one.digest()
    assert FuelExhausted(5).message == "limit fuel exceeded: 5 of 5"
