"""
What is encoded comes back, whatever it is, and in one form only.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import InternalError, LimitExceeded, MemoryExceeded
from runner.kernel.abi import OPERATIONS, Status
from runner.kernel.limits import Limits
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored
from runner.snapshot import Snapshot, decode, encode
from runner.snapshot import format as snapshot_format
from runner.snapshot.rules import from_bits

MAX_COUNT = (1 << 63) - 1
MAX_NUMBER = (1 << 31) - 1

counts = st.integers(0, MAX_COUNT)
digests = st.binary(min_size=32, max_size=32)
payload_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_COUNT, MAX_COUNT)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
payloads = payload_values.map(codec.encode)
# A few contents, so that pages repeat within a mind and between two; one is all zeros.
contents = st.sampled_from([bytes(4096), b"\x01" * 4096, bytes(range(256)) * 16]) | st.binary(
    min_size=4, max_size=4
).map(lambda seed: seed * 1024)
doubles = st.integers(0, (1 << 64) - 1).map(lambda bits: from_bits(struct.pack(">Q", bits)))


@st.composite
def minds(draw: st.DrawFn, wasm_pages: int, kinds: list[bool]) -> Mind:
    """
    A memory of that size, with globals of those kinds.
    """
    indices = st.integers(0, max(wasm_pages * 16 - 1, 0))
    pages = draw(st.dictionaries(indices, contents, max_size=6 if wasm_pages else 0))
    values = [draw(doubles if is_float else st.integers(-(1 << 63), MAX_COUNT)) for is_float in kinds]
    return Mind(wasm_pages * 65536, pages, tuple(values))


@st.composite
def calls(draw: st.DrawFn, next_call: int, last_delivery: int) -> tuple[Call, ...]:
    """
    Calls in flight, by number.
    """
    if next_call == 1:
        return ()
    numbers = draw(st.sets(st.integers(1, next_call - 1), max_size=3))
    return tuple(
        Call(
            number,
            draw(st.sampled_from(sorted(OPERATIONS))),
            draw(payloads),
            draw(st.integers(0, last_delivery)),
        )
        for number in sorted(numbers)
    )


@st.composite
def states(draw: st.DrawFn) -> MachineState:
    """
    Any state that a kernel could produce.
    """
    last_delivery = draw(st.integers(0, MAX_NUMBER))
    next_call = draw(st.integers(1, MAX_NUMBER + 1))
    sizes = sorted((draw(st.integers(0, 4)), draw(st.integers(0, 65536))))
    kinds = draw(st.lists(st.booleans(), max_size=4))
    delivery = None
    in_flight = draw(calls(next_call, last_delivery))
    if last_delivery and in_flight and draw(st.booleans()):
        earlier = draw(calls(next_call, last_delivery))
        answers = tuple(
            Answer(call.number, draw(st.sampled_from([int(status) for status in Status])), draw(payloads))
            for call in earlier
        )
        number = draw(st.integers(1, last_delivery))
        delivery = OpenDelivery(number, draw(counts), draw(minds(sizes[0], kinds)), earlier, answers)
    restored = st.builds(Restored, counts, st.integers(1, MAX_COUNT), counts)
    return MachineState(
        mind=draw(minds(sizes[1], kinds)),
        calls=in_flight,
        next_call=next_call,
        last_delivery=last_delivery,
        entropy=draw(digests),
        entropy_used=draw(counts),
        delivery=delivery,
        restored=draw(st.none() | restored),
        last_snapshot=draw(
            st.none()
            | st.builds(LastSnapshot, st.booleans(), counts, counts, st.none() | st.text(max_size=256))
        ),
    )


snapshots = st.builds(
    Snapshot,
    agent=st.text(max_size=20),
    code_digest=digests,
    image_digest=digests,
    imports=st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=4).map(tuple),
    limits=st.builds(Limits, memory_bytes=st.integers(1, MAX_COUNT), fuel=st.integers(1, MAX_COUNT)),
    position=counts,
    created_at_ms=counts,
    state=states(),
    host=st.dictionaries(st.text(max_size=8), payload_values, max_size=3),
    memory_digest=digests,
)


@given(snapshots)
def test_every_snapshot_comes_back_bit_for_bit(snapshot: Snapshot) -> None:
    """
    Decoding gives the value, and encoding that value gives the bytes: one value, one form.
    """
    data = encode(snapshot)
    again = decode(data)
    assert encode(again) == data
    values = [
        *again.state.mind.globals,
        *(again.state.delivery.before.globals if again.state.delivery else ()),
    ]
    if not any(value != value for value in values):  # noqa: PLR0124 - only NaN differs from itself
        assert again == snapshot


def test_a_nan_keeps_its_payload(sample: Snapshot, plain: Callable[[Snapshot], Any]) -> None:
    """
    A guest may keep bits in a NaN; they are not the host's to lose.
    """
    again = decode(encode(sample))
    assert plain(again) == plain(sample)
    assert again.state.delivery is not None
    nan = again.state.delivery.before.globals[2]
    assert struct.pack(">d", nan).hex() == "7ff4deadbeef0001"


def test_equal_contents_are_stored_once_and_zeros_never(sample: Snapshot) -> None:
    """
    Six pages of two minds have three contents to store.
    """
    encoded = snapshot_format.encode_counted(sample)
    assert (encoded.pages, encoded.pages_stored) == (6, 3)
    again = decode(encoded.data)
    assert again.state.delivery is not None
    assert again.state.mind.pages[0] is again.state.delivery.before.pages[3]


def test_the_order_in_which_pages_were_found_does_not_matter(sample: Snapshot) -> None:
    """
    A mind's pages are a mapping; equal mappings give equal bytes.
    """
    mind = sample.state.mind
    for pages in itertools.islice(itertools.permutations(mind.pages.items()), 6):
        shuffled = dataclasses.replace(mind, pages=dict(pages))
        state = dataclasses.replace(sample.state, mind=shuffled)
        assert encode(dataclasses.replace(sample, state=state)) == encode(sample)


def test_every_page_of_a_default_heap_fits(sample: Snapshot) -> None:
    """
    64 MiB changed twice over are 32,768 entries, half as many as the codec lets a payload have items.
    """
    pages = {index: struct.pack("<I", index) * 1024 for index in range(16_384)}
    before = {index: content[1:] + content[:1] for index, content in pages.items()}
    mind = Mind(64 << 20, pages, ())
    delivery = OpenDelivery(1, 1, Mind(64 << 20, before, ()))
    call = Call(1, "llm.chat", b"\xa0", 1)
    state = MachineState(mind, calls=(call,), next_call=2, last_delivery=1, delivery=delivery)
    snapshot = dataclasses.replace(sample, state=state)
    assert decode(encode(snapshot)) == snapshot


def test_a_larger_memory_than_allowed_is_refused_before_it_is_unpacked(sample: Snapshot) -> None:
    """
    Whoever restores decides how much memory that may take.
    """
    data = encode(sample)
    assert decode(data, max_memory_bytes=196_608) is not None
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 196608 of 131072$"):
        decode(data, max_memory_bytes=131_072)


def change_state(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """
    The snapshot with other fields in its state.
    """
    return dataclasses.replace(snapshot, state=dataclasses.replace(snapshot.state, **changes))


def change_mind(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """
    The snapshot with other fields in its mind.
    """
    return change_state(snapshot, mind=dataclasses.replace(snapshot.state.mind, **changes))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: dataclasses.replace(s, code_digest=b"short"), "state: code_digest is not 32 bytes"),
        (
            lambda s: dataclasses.replace(s, position=-1),
            f"state: position -1 is not between 0 and {MAX_COUNT}",
        ),
        (lambda s: dataclasses.replace(s, imports=("llm.sing",)), "state: operation 'llm.sing' is unknown"),
        (
            lambda s: dataclasses.replace(s, host={"x": 1 << 64}),
            "not a payload value: tags are not allowed at byte 3",
        ),
        (lambda s: change_mind(s, memory_bytes=4096), "state: memory_bytes 4096 is not a multiple of 65536"),
        (
            lambda s: change_mind(s, pages={48: bytes(4096)}),
            "state: mind has a page outside its 196608 bytes",
        ),
        (
            lambda s: change_mind(s, pages={-1: bytes(4096)}),
            "state: mind has a page outside its 196608 bytes",
        ),
        (lambda s: change_mind(s, pages={1: b"short"}), "state: mind has a page that is not of 4096 bytes"),
        (lambda s: change_mind(s, globals=(1, True, 1.0)), "state: mind.globals has a bool"),
        (
            lambda s: change_mind(s, globals=(1 << 63, 1, 1.0)),
            f"state: mind.globals {1 << 63} is not between {-(1 << 63)} and {MAX_COUNT}",
        ),
        (lambda s: change_state(s, next_call=4), "state: calls number 4 is not between 2 and 3"),
        (lambda s: change_state(s, entropy=b""), "state: entropy is not 32 bytes"),
    ],
)
def test_a_value_that_could_not_be_read_back_is_not_written(
    sample: Snapshot, change: Callable[[Snapshot], Snapshot], problem: str
) -> None:
    """
    Better a bug reported now than a snapshot that is of no use later.
    """
    with pytest.raises(InternalError) as caught:
        encode(change(sample))
    assert caught.value.message == f"snapshot of hello can't be encoded: {problem}"


def test_a_header_beyond_its_bound_is_refused(sample: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A guest with many large requests in flight meets a limit, not a file that nobody reads.
    """
    size_bytes = int.from_bytes(encode(sample)[12:16], "big")
    monkeypatch.setattr(snapshot_format, "MAX_HEADER_BYTES", size_bytes - 1)
    message = f"^limit snapshot_header_bytes exceeded: {size_bytes} of {size_bytes - 1}$"
    with pytest.raises(LimitExceeded, match=message):
        encode(sample)


def test_a_snapshot_of_no_pages_has_no_body(sample: Snapshot) -> None:
    """
    An instance that has changed nothing, or only to zeros.
    """
    for pages in ({}, {0: bytes(4096)}):
        snapshot = change_mind(change_state(sample, delivery=None), pages=pages)
        data = encode(snapshot)
        assert int.from_bytes(data[16:24], "big") == 0
        assert decode(data) == snapshot


def test_a_small_change_makes_a_small_snapshot(sample: Snapshot) -> None:
    """
    The size follows what changed, not how large the heap is.
    """
    pages = {index: zlib.crc32(bytes([index])).to_bytes(4, "big") * 1024 for index in range(10)}
    small = change_mind(change_state(sample, delivery=None), pages=pages, memory_bytes=2 << 20)
    large = change_mind(small, memory_bytes=64 << 20)
    assert len(encode(small)) < 4096
    assert abs(len(encode(large)) - len(encode(small))) <= 4
