"""
The C SDK, from outside: agents that use all of it, on a machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import GuestTrapped, ProtocolViolation, RunnerError
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Machine
from runner.kernel.state import LastSnapshot
from tests.build.conftest import reply_of

pytestmark = pytest.mark.c

MakeGuest = Callable[..., Any]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 64), (1 << 64) - 1)
    | st.floats()
    | st.floats(width=16)
    | st.floats(width=32)
    | st.text(max_size=40)
    | st.binary(max_size=40)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=40,
)


# -- CBOR -------------------------------------------------------------------------------------


@given(values=st.lists(VALUES, max_size=5))
def test_the_reader_and_the_writer_keep_every_value(guest: MakeGuest, values: list[codec.Value]) -> None:
    """
    Bytes in, values through the reader into the writer with maps backwards, the same bytes out.
    """
    encoded = [codec.encode(value) for value in values]
    assert guest("codec").ask(encoded) == encoded


@given(data=st.data())
def test_the_reader_takes_exactly_what_the_host_takes(guest: MakeGuest, data: st.DataObject) -> None:
    """
    Payloads, payloads with a byte changed, cut or added, and noise.
    """
    samples = []
    for value in data.draw(st.lists(VALUES, max_size=4)):
        whole = bytearray(codec.encode(value))
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
        cut = data.draw(st.integers(0, len(whole)))
        samples += [bytes(whole), bytes(whole[:cut]), bytes(whole) + b"\0"]
    samples += data.draw(st.lists(st.binary(max_size=20), max_size=20))
    assert guest("codec").ask(samples) == [_if_payload(sample) for sample in samples]


def test_every_short_payload_is_judged_as_the_host_judges_it(guest: MakeGuest) -> None:
    """
    All of one and two bytes.
    """
    instance = guest("codec", fuel=10**12)
    for first in range(256):
        samples = [bytes([first]), *(bytes([first, second]) for second in range(256))]
        assert instance.ask(samples) == [_if_payload(sample) for sample in samples]


@pytest.mark.parametrize(
    "payload",
    [pytest.param(b"\x81" * depth + b"\xf6", id=f"{depth} lists deep") for depth in (63, 64, 65, 5000)]
    + [pytest.param(b"\xa1\x60" * depth + b"\xf6", id=f"{depth} maps deep") for depth in (64, 65)]
    + [pytest.param(b"\x81" * 64 + b"\x80", id="an empty list 65 deep")]
    + [
        pytest.param(head + b"\xff" * 8, id=f"a length of 2^64 - 1 after {head.hex()}")
        for head in (b"\x5b", b"\x7b", b"\x9b", b"\xbb")
    ]
    + [
        pytest.param(b"\xbb\x80" + bytes(7), id="a map of 2^63 pairs"),
        pytest.param(b"\x9a\x00\x01\x00\x00", id="a list that ends early"),
        pytest.param(b"\x63\xed\xa0\x80", id="a surrogate"),
        pytest.param(b"\x64\xf4\x90\x80\x80", id="beyond the last character"),
        pytest.param(b"\x62\xc0\x80", id="an overlong null"),
        pytest.param(b"\x63\xe0\x9f\xbf", id="overlong in three bytes"),
        pytest.param(b"\x64\xf0\x8f\xbf\xbf", id="overlong in four bytes"),
        pytest.param(b"\x61\xc3", id="half a character"),
        pytest.param(b"\x64\xf0\x9f\x98\x80", id="a character of four bytes"),
        pytest.param(b"\xa2\x61b\x01\x61a\x02", id="keys out of order"),
        pytest.param(b"\xa2\x61a\x01\x61a\x02", id="one key twice"),
        pytest.param(b"\xa2\x62aa\x01\x61b\x02", id="a long key before a short one"),
    ],
)
def test_hard_payloads_are_judged_as_the_host_judges_them(guest: MakeGuest, payload: bytes) -> None:
    """
    One for each rule and each bound.
    """
    assert guest("codec").ask([payload]) == [_if_payload(payload)]


def test_every_half_is_written_as_it_was_read(guest: MakeGuest) -> None:
    """
    All of them: zeros, subnormals and infinities too; of what is no number, only one form.
    """
    instance = guest("codec", fuel=10**12)
    for start in range(0, 1 << 16, 1 << 14):
        samples = [b"\xf9" + bits.to_bytes(2, "big") for bits in range(start, start + (1 << 14))]
        assert instance.ask(samples) == [_if_payload(sample) for sample in samples]


@pytest.mark.parametrize(
    "number",
    [
        *(0.0, -0.0, 1.5, 65504.0, 65505.0, 65520.0, 2.0**-14, 2.0**-24, 2.0**-25, 3 * 2.0**-24),
        *(1023 * 2.0**-24, 3.4028234663852886e38, 3.5e38, 2.0**-149, 2.0**-150, 1e308, 5e-324),
        *(0.1, float.fromhex("0x1.99999ap-4"), 2.0**53 + 2, math.inf, -math.inf, math.nan),
    ],
)
def test_floats_at_the_edges_take_the_fewest_bytes(guest: MakeGuest, number: float) -> None:
    """
    Of 2, 4 and 8.
    """
    payload = codec.encode(number)
    assert guest("codec").ask([payload]) == [payload]


def test_a_large_map_written_backwards_comes_out_sorted(guest: MakeGuest) -> None:
    """
    Each pair is put in front of all that came before.
    """
    payload = codec.encode({f"key {number:04}": number for number in range(400)})
    assert guest("codec", fuel=10**12).ask([payload]) == [payload]


@pytest.mark.parametrize(
    ("mistake", "status"),
    [
        ("none", Status.OK),
        ("nothing written", Status.INVALID),
        ("two items", Status.INVALID),
        ("not ended", Status.INVALID),
        ("not begun", Status.INVALID),
        ("ended as another", Status.INVALID),
        ("key without value", Status.INVALID),
        ("key is a number", Status.INVALID),
        ("one key twice", Status.INVALID),
        ("missing value", Status.INVALID),
        ("65 deep", Status.INVALID),
        ("more than memory", Status.LIMIT),
        ("more than any memory", Status.LIMIT),
    ],
)
def test_the_writer_remembers_its_first_mistake(guest: MakeGuest, mistake: str, status: Status) -> None:
    """
    So that one test at the end is enough.
    """
    assert guest("writer", memory_bytes=1 << 20).ask(mistake) == status


# -- The heap ---------------------------------------------------------------------------------

WISHES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 15),
        st.integers(0, 200) | st.integers(0, 70_000) | st.just(3_000_000) | st.just((1 << 32) - 1),
    ),
    max_size=120,
)


@given(scripts=st.lists(WISHES, min_size=1, max_size=3))
def test_blocks_are_aligned_apart_and_keep_their_content(
    guest: MakeGuest, scripts: list[list[tuple[int, int, int]]]
) -> None:
    """
    The agent checks every byte; what does not fit is refused, and nothing is lost between deliveries.
    """
    instance = guest("heap", memory_bytes=1 << 20, fuel=10**12)
    for script in scripts:
        refused, pages = instance.ask([list(wish) for wish in script])
        assert refused == sum(1 for what, _, size in script if what != 3 and size > 1 << 20)
        assert pages <= 16


def test_freed_neighbours_become_one_block(guest: MakeGuest) -> None:
    """
    The same work over and over takes no more memory than once.
    """
    instance = guest("heap", fuel=10**12)
    script = [[what, slot, 5000 + 40 * slot] for what in (0, 2, 3, 1) for slot in range(16)]
    _, pages = instance.ask(script)
    for _ in range(20):
        instance.ask(script[::-1])
        assert instance.ask(script) == [0, pages]


@pytest.mark.parametrize(
    "crime",
    [
        "free twice",
        "free twice after joining",
        "write past the end",
        "free the middle",
        "realloc what was freed",
    ],
)
def test_crimes_against_the_heap_trap(guest: MakeGuest, crime: str) -> None:
    """
    At the next touch, before they spread.
    """
    instance = guest("broken_heap")
    with pytest.raises(GuestTrapped, match="unreachable"):
        instance.ask(crime)
    assert instance.ask("nothing") is None


def test_a_stack_that_overflows_traps_and_writes_over_nothing(guest: MakeGuest) -> None:
    """
    It lies below all data: what does not fit has nowhere to go.
    """
    instance = guest("deep")
    assert instance.ask(40) == 1
    with pytest.raises(GuestTrapped, match="memory_out_of_bounds"):
        instance.ask(100)
    assert instance.ask(40) == 1


# -- Handlers, calls and answers --------------------------------------------------------------


def test_answers_find_their_callbacks_in_any_order(guest: MakeGuest) -> None:
    """
    Each with its status and payload.
    """
    instance = guest("calling")
    asked = instance.deliver(3)
    assert [codec.decode(call.request) for call in asked.calls] == [
        {"number": 3},
        {"number": 2},
        {"number": 1},
    ]
    assert [(line.level, line.message) for line in asked.logs] == [(2, "asked")]
    first, second, third = (call.number for call in asked.calls)
    error = {"kind": "upstream", "message": "no"}
    assert instance.wake(second, Status.OK, "b").reply is None
    assert instance.wake(third, Status.PART, "c").reply is None
    assert instance.wake(first, Status.FAILED, error).reply is None
    last = instance.wake(third, Status.OK, None)
    assert codec.decode(last.reply.payload) == [
        [second, 0, "b"],
        [third, 1, "c"],
        [first, -9, error],
        [third, 0, None],
    ]


def test_a_call_given_up_wakes_nobody(guest: MakeGuest) -> None:
    """
    Neither here nor at the host.
    """
    instance = guest("calling")
    asked = instance.deliver(-2)
    (left,) = (call.number for call in asked.calls)
    assert codec.decode(instance.wake(left, Status.OK, 1).reply.payload) == [[left, 0, 1]]


def test_a_call_refused_on_the_spot_fails_the_delivery_in_words(guest: MakeGuest) -> None:
    """
    The SDK knows what each status means.
    """
    instance = guest("calling", calls_per_slice=1)
    result = instance.deliver(2)
    assert codec.decode(result.reply.payload) == {"message": "a limit of this instance was met"}


def test_an_answer_that_does_not_fit_is_no_answer(guest: MakeGuest) -> None:
    """
    The callback hears of a limit instead.
    """
    instance = guest("calling", memory_bytes=3 << 16)
    (call,) = instance.deliver(1).calls
    woken = instance.wake(call.number, Status.OK, bytes(500_000))
    assert codec.decode(woken.reply.payload) == [[call.number, Status.LIMIT]]


def test_a_message_that_does_not_fit_fails_in_words(guest: MakeGuest) -> None:
    """
    And the next one is served.
    """
    instance = guest("codec", memory_bytes=3 << 16)
    assert instance.ask([bytes(500_000)]) == {"failed": {"message": "the payload does not fit in memory"}}
    assert instance.ask([b"\xf6"]) == [b"\xf6"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (DeliveryKind.EVENT, "this agent takes no events"),
        (DeliveryKind.TICK, "this agent has no timer"),
        (77, "this agent does not know this kind of delivery"),
    ],
)
def test_handlers_left_out_fail_in_words(guest: MakeGuest, kind: DeliveryKind, message: str) -> None:
    """
    One for each kind.
    """
    result = guest("calling").deliver(None, kind)
    assert not result.reply.ok
    assert codec.decode(result.reply.payload) == {"message": message}


def test_a_restore_left_out_is_answered_with_null(guest: MakeGuest) -> None:
    """
    Most agents need do nothing then.
    """
    result = guest("codec").deliver(None, DeliveryKind.RESTORE)
    assert (result.reply.ok, result.reply.payload) == (True, b"\xf6")


def test_an_agent_never_restored_knows_of_no_restore(guest: MakeGuest) -> None:
    """
    `runner_restored` is null then.
    """
    result = guest("calling").deliver(None, DeliveryKind.RESTORE)
    assert codec.decode(result.reply.payload) is None


# -- Upgrades ---------------------------------------------------------------------------------


def test_an_agent_hands_over_and_takes_over(guest: MakeGuest) -> None:
    """
    With one line at file level; what it can't take over it refuses in words.
    """
    old, new = guest("upgrading"), guest("upgrading")
    assert old.ask("what it knows") == "what it knows"
    state = reply_of(old.deliver({"to_version": "2"}, DeliveryKind.HAND_OVER))
    assert reply_of(new.deliver({"state": state}, DeliveryKind.UPGRADE)) is None
    assert reply_of(new.deliver({}, DeliveryKind.HAND_OVER)) == "what it knows"
    refusal = reply_of(new.deliver({"state": 5}, DeliveryKind.UPGRADE))
    assert refusal == {"failed": {"message": "that was no text"}}
    assert not guest("codec").machine.program.admitted.upgrades


def test_an_agent_knows_how_its_last_snapshot_went(guest: MakeGuest) -> None:
    """
    Also when the answer is longer than the first guess.
    """
    agent = guest("upgrading")
    assert agent.ask(None) is None
    agent.machine.learn_snapshot(LastSnapshot(False, 0, 1 << 40, "x" * 256))
    assert agent.ask(None) == {"ok": False, "bytes": 0, "at_ms": 1 << 40, "error": "x" * 256}


# -- Sequential code --------------------------------------------------------------------------


def _serve(instance: Any, depth: int, *, freeze: bool = False) -> codec.Value:
    """
    The reply, with call number n answered by n, over as many slices as it takes.
    """
    result = instance.deliver(depth)
    while True:
        if result.failure is not None:
            raise result.failure
        if result.reply is not None:
            return codec.decode(result.reply.payload)
        if freeze:
            old = instance.machine
            instance.machine = Machine.thaw(old.program, old.image, old.limits, old.freeze())
        (call,) = instance.machine.calls
        result = instance.wake(call.number, Status.OK, call.number)


def _expected(depth: int, first: int = 1) -> int:
    calls = 2 * depth + 1
    return sum(range(first, first + calls)) + 10 * sum(range(1, depth + 1))


@pytest.mark.parametrize("depth", [0, 1, 7, 60])
def test_a_handler_waits_in_the_middle_of_recursion(guest: MakeGuest, depth: int) -> None:
    """
    On the way down and up, through a function pointer, with locals in memory.
    """
    assert _serve(guest("waiting", unwind=True), depth) == [_expected(depth), 0]


def test_a_waiting_handler_can_be_frozen_and_thawed_at_every_wait(guest: MakeGuest) -> None:
    """
    Its stack is in the memory, so it goes where the memory goes.
    """
    assert _serve(guest("waiting", unwind=True), 7, freeze=True) == [_expected(7), 0]


def test_a_handler_may_go_on_after_its_reply(guest: MakeGuest) -> None:
    """
    Beside the handler of the next delivery, each on its own stack.
    """
    instance = guest("waiting", unwind=True)
    assert _serve(instance, 2) == [_expected(2), 0]
    (left,) = instance.machine.calls
    second = instance.deliver(0)
    (asked,) = second.calls
    instance.wake(left.number, Status.OK, 1000)
    woken = instance.wake(asked.number, Status.OK, 5)
    assert codec.decode(woken.reply.payload) == [5, 1000]


def test_parts_of_a_streamed_answer_wake_no_waiting_handler(guest: MakeGuest) -> None:
    """
    It goes on when the whole is there.
    """
    instance = guest("waiting", unwind=True)
    (call,) = instance.deliver(0).calls
    assert instance.wake(call.number, Status.PART, 1).reply is None
    assert codec.decode(instance.wake(call.number, Status.OK, 7).reply.payload) == [7, 0]


def test_a_hundred_waits_take_no_more_memory_than_one(guest: MakeGuest) -> None:
    """
    Stacks are given back.
    """
    instance = guest("waiting", unwind=True)
    _serve(instance, 3)
    size_bytes = instance.machine.memory_bytes
    for _ in range(100):
        (left,) = instance.machine.calls
        instance.wake(left.number, Status.OK, 0)
        _serve(instance, 3)
    assert instance.machine.memory_bytes == size_bytes


def test_a_stack_too_deep_to_unwind_fails_and_the_instance_lives_on(guest: MakeGuest) -> None:
    """
    The overflow is found before anything runs on.
    """
    instance = guest("waiting", unwind=True)
    with pytest.raises(RunnerError) as caught:
        _serve(instance, 100_000)
    assert not isinstance(caught.value, ProtocolViolation)
    assert _serve(instance, 3)[1] == 0


def _if_payload(sample: bytes) -> bytes | None:
    try:
        codec.decode(sample)
    except codec.CodecError:
        return None
    return sample
