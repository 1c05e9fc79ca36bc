"""
Stored snapshots: they come back as they were, share their pages, and are missed when they are damaged.
"""

from __future__ import annotations

import dataclasses
import sqlite3
import struct
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import InternalError, JournalPoisoned, SnapshotCorrupt
from runner.journal import Journal, StateDirectory, StoredSnapshot, collect, pages, snapshots
from runner.journal.shapes import ShapeError
from runner.journal.state_shapes import PackedMind, Pool, give
from runner.kernel.state import (
    PAGE_BYTES,
    Answer,
    Call,
    MachineState,
    Mind,
    OpenDelivery,
    Restored,
)
from tests.journal.samples import (
    AGENT,
    NULL,
    asking_state,
    born,
    digests,
    edit,
    filled,
    machine_state,
    opened,
    page,
    turn,
)

DIGEST: Final = b"d" * 32
HOST: Final = {"notes": [{"id": "1", "content": b"\x00"}], "usage": {"calls": 1, "cost": 0.25}}


def plain(value: Any) -> Any:
    """
    A state as data that compares: floats by their bits.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, float):
        return ("f64", struct.pack(">d", value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(plain(item) for item in value)]
    return value


def put(journal: Journal, position: int, state: MachineState) -> snapshots.SnapshotRow:
    """
    Store a snapshot.
    """
    return journal.put_snapshot(position, state, HOST, DIGEST)


def counted(root: Path, table: str) -> int:
    """
    Rows of a table.
    """
    connection = sqlite3.connect(root / "state.db")
    count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return int(count)


def test_a_snapshot_comes_back_as_it_was(state: StateDirectory) -> None:
    """
    Two minds that share pages, a page of zeros, calls, answers, and a NaN that CBOR can't say.
    """
    with opened(state) as journal:
        row = put(journal, 1, asking_state())
        stored = journal.latest_snapshot()
    assert (row.position, row.pages, row.pages_stored, row.pages_new) == (1, 6, 3, 3)
    assert stored is not None
    expected = StoredSnapshot(1, asking_state(), HOST, DIGEST)
    assert plain(stored) == plain(expected)
    delivery = stored.state.delivery
    assert delivery is not None
    assert stored.state.mind.pages[0] is stored.state.mind.pages[47] is delivery.before.pages[3]


_pages = st.dictionaries(
    st.integers(0, 31), st.integers(0, 5).map(page) | st.just(bytes(PAGE_BYTES)), max_size=4
)
_globals = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(), max_size=3).map(tuple)
_minds = st.builds(Mind, st.just(131_072), _pages, _globals)
_calls = st.lists(
    st.builds(Call, st.integers(1, 9), st.just("llm.chat"), st.just(NULL), st.integers(0, 9)), max_size=2
).map(tuple)
_states = st.builds(
    MachineState,
    mind=_minds,
    calls=_calls,
    next_call=st.integers(1, 1 << 31),
    last_delivery=st.integers(0, (1 << 31) - 1),
    entropy=digests,
    entropy_used=st.integers(0, (1 << 63) - 1),
    delivery=st.none()
    | st.builds(
        OpenDelivery,
        st.integers(1, 9),
        st.integers(0, 99),
        _minds,
        _calls,
        st.lists(st.builds(Answer, st.integers(1, 9), st.just(0), st.just(NULL)), max_size=2).map(tuple),
    ),
    restored=st.none() | st.builds(Restored, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """
    A journal that many examples put their snapshots into.
    """
    with (
        StateDirectory(tmp_path_factory.mktemp("shared") / "s", sync=False) as state,
        opened(state) as journal,
    ):
        yield journal


@given(_states)
def test_any_state_comes_back_as_it_was(shared: Journal, state: MachineState) -> None:
    """
    One at a position replaces the one before it.
    """
    shared.put_snapshot(1, state, {}, DIGEST)
    stored = shared.latest_snapshot()
    assert stored is not None
    assert plain(stored.state) == plain(state)


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=50))
def test_numbers_are_packed_by_their_steps(numbers: list[int]) -> None:
    """
    Whatever they are; those that follow each other take next to nothing.
    """
    assert pages.unpack_numbers(pages.pack_numbers(numbers), 50) == tuple(numbers)
    assert len(pages.pack_numbers(range(10_000))) < 50


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (None, "not a frame"),
        (b"", "not one whole frame of the size that is allowed"),
        (pages.compress(b"123456789"), "numbers end early"),
        (pages.compress(bytes(800)), "not one whole frame of the size that is allowed"),
        (pages.compress(b"12345678")[:-1], "not one whole frame of the size that is allowed"),
        (pages.compress(b"12345678") + b"x", "not one whole frame of the size that is allowed"),
    ],
)
def test_what_no_packing_made_is_refused(frame: object, problem: str) -> None:
    """
    Before it takes more memory than was allowed.
    """
    with pytest.raises(ShapeError) as caught:
        pages.unpack_numbers(frame, 99)
    assert str(caught.value) == problem
    with pytest.raises(ShapeError, match=r"^not a zstd frame: "):
        pages.unpack_numbers(b"garbage", 99)


@pytest.mark.parametrize(
    ("mind", "problem"),
    [
        (PackedMind(65_536, (0,), (), ()), "pages and contents do not fit"),
        (PackedMind(65_536, (0,), (2,), ()), "pages and contents do not fit"),
        (PackedMind(65_536, (16,), (1,), ()), "page 16 of 4096 bytes in a memory of 65536"),
        (PackedMind(65_537, (), (), ()), "memory of 65537 bytes"),
    ],
)
def test_a_mind_that_no_memory_could_hold_is_refused(mind: PackedMind, problem: str) -> None:
    """
    Its numbers never come near an address.
    """
    with pytest.raises(ShapeError) as caught:
        give(mind, [page(1)])
    assert str(caught.value) == problem


def test_a_pool_has_each_content_once() -> None:
    """
    In order of first appearance; zeros are number 0 and not in it.
    """
    pool = Pool()
    mind = Mind(65_536, {3: page(2), 1: page(1), 2: bytes(PAGE_BYTES), 5: page(2)}, ())
    packed = pool.take(mind)
    assert (packed.indices, packed.contents) == ((1, 2, 3, 5), (1, 0, 2, 2))
    assert pool.contents() == [page(1), page(2)]
    assert give(packed, pool.contents()) == mind


def test_the_nearest_snapshot_is_taken(state: StateDirectory) -> None:
    """
    The newest, or the newest that is not beyond a position.
    """
    with opened(state) as journal:
        assert journal.latest_snapshot() is None
        journal.append([*turn(1), *turn(2)])
        for position in (1, 3, 5):
            put(journal, position, machine_state({0: page(position)}))
        assert journal.snapshots() == [1, 3, 5]
        found = {at: journal.latest_snapshot(at) for at in (0, 1, 2, 3, 4, 5, 99, None)}
    positions = {at: stored and stored.position for at, stored in found.items()}
    assert positions == {0: None, 1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 99: 5, None: 5}
    with state.open("one", write=False) as reader:
        stored = reader.latest_snapshot()
        assert stored is not None
        assert stored.state == machine_state({0: page(5)})


def test_what_could_not_be_read_again_is_not_stored(state: StateDirectory) -> None:
    """
    Nor a snapshot of records that there are not. The journal goes on.
    """
    with opened(state) as journal:
        for position in (0, 2):
            with pytest.raises(InternalError) as caught:
                put(journal, position, machine_state({}))
            assert caught.value.message == f"a snapshot of one at {position} of 1 records"
        with pytest.raises(InternalError) as caught:
            journal.put_snapshot(1, machine_state({}), HOST, b"short")
        assert caught.value.message == "snapshot of one can't be stored: digest: 5 bytes"
        with pytest.raises(InternalError) as caught:
            put(journal, 1, MachineState(Mind(65_536, {}, (1 << 64,))))
        assert caught.value.message == (
            "snapshot of one can't be stored: state: mind: globals: neither an integer nor 8 bytes"
        )
        assert journal.append(turn(1)) == 3
        assert journal.snapshots() == []


def test_only_who_may_append_may_store(state: StateDirectory) -> None:
    """
    A poisoned journal's memory has records that are not written.
    """
    with opened(state) as journal:
        with pytest.raises(InternalError):
            journal.append([born()])
        with pytest.raises(JournalPoisoned):
            put(journal, 1, machine_state({}))
    with state.open("one", write=False) as journal, pytest.raises(InternalError):
        put(journal, 1, machine_state({}))


def test_snapshots_and_instances_share_their_pages(state: StateDirectory, root: Path) -> None:
    """
    A second one that differs in a page stores that page.
    """
    heap = {index: page(index) for index in range(20)}
    with opened(state, "one") as journal:
        assert put(journal, 1, machine_state(heap)).pages_new == 20
        journal.append(turn(1))
        row = put(journal, 3, machine_state({**heap, 7: page(99)}))
        assert (row.pages, row.pages_stored, row.pages_new) == (20, 20, 1)
        assert row.size_bytes < 6000
    with opened(state, "two") as journal:
        assert put(journal, 1, machine_state(heap)).pages_new == 0
    assert counted(root, "pages") == 21


def test_a_thousand_checkpoints_of_a_heap_that_changes_by_a_page_are_small(root: Path) -> None:
    """
    2 MiB of memory that no compression makes smaller, 1,000 times: under 20 MiB on the disk.
    """
    heap = {index: page(index) for index in range(512)}
    with StateDirectory(root, sync=False) as state:
        with opened(state) as journal:
            for number in range(1000):
                heap[number * 7 % 512] = page(1000 + number)
                put(journal, journal.position, machine_state(heap))
                journal.append(turn(number + 1))
            stored = journal.latest_snapshot()
            assert stored is not None
            assert stored.state == machine_state(heap)
        assert sum(path.stat().st_size for path in root.rglob("*")) < 20 << 20
        report = state.gc(1)
        assert (report.snapshots, report.pages, report.agents) == (998, 1511 - 1024, 0)
        assert sum(path.stat().st_size for path in root.rglob("*")) < 8 << 20
        with state.open("one", write=False) as journal:
            assert journal.latest_snapshot() == stored


def test_collecting_keeps_what_is_in_use(state: StateDirectory, root: Path) -> None:
    """
    The newest of each instance, the origin of each life, and every page of those.
    """
    for name in ("one", "two"):
        state.create(
            name, born(name), AGENT, turn(1), StoredSnapshot(1, machine_state({0: page(1)}), {}, DIGEST)
        )
        with state.open(name, write=True) as journal:
            for position in (2, 3):
                put(journal, position, machine_state({0: page(position), 1: page(7)}))
    assert counted(root, "pages") == 4
    report = state.gc(9)
    assert (report.snapshots, report.pages, report.agents) == (0, 0, 0)
    report = state.gc(1, "one")
    assert (report.snapshots, report.pages, report.agents) == (1, 0, 0)
    report = state.gc(1)
    assert (report.snapshots, report.pages) == (1, 1)
    for name in ("one", "two"):
        with state.open(name, write=False) as journal:
            assert journal.snapshots() == [1, 3]
            for at in (1, 3):
                assert journal.latest_snapshot(at) is not None
    report = state.gc(0)
    assert (report.snapshots, report.pages) == (2, 2)
    assert counted(root, "pages") == 1
    state.remove("one")
    state.remove("two")
    report = state.gc(0)
    assert (report.snapshots, report.pages, report.agents) == (0, 1, 1)
    assert collect.ORIGIN_POSITION == 1


def test_collecting_gives_the_room_back(state: StateDirectory) -> None:
    """
    The file is smaller afterwards, by what the report says.
    """
    with opened(state) as journal:
        journal.append(turn(1))
        put(journal, 3, machine_state({index: page(index) for index in range(200)}))
    before_bytes = state._database.size_bytes()
    report = state.gc(0)
    assert report.pages == 200
    assert report.freed_bytes > 800_000
    assert before_bytes - state._database.size_bytes() == report.freed_bytes


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE snapshots SET header = x'00' WHERE position = 3", "its row is not what was written"),
        ("UPDATE snapshots SET pages = x'00' WHERE position = 3", "its row is not what was written"),
        ("UPDATE snapshots SET seal = 'x' WHERE position = 3", "its row has values of wrong types"),
        ("UPDATE snapshots SET position = 4 WHERE position = 3", "its row is not what was written"),
        ("UPDATE pages SET digest = zeroblob(32)", "a page is not what was stored"),
        (
            "UPDATE pages SET frame = zeroblob(9)",
            "not a zstd frame: Unable to decompress Zstandard data: Unknown frame descriptor",
        ),
        ("DELETE FROM pages", "a page is gone"),
    ],
)
def test_a_damaged_snapshot_is_refused_and_the_one_before_it_is_not(
    state: StateDirectory, root: Path, sql: str, problem: str
) -> None:
    """
    It is a memo: what it says can be had from the records.
    """
    filled(state, "one", 2)
    with state.open("one", write=True) as journal:
        put(journal, 2, machine_state({}))
        put(journal, 3, machine_state({0: page(1)}))
        edit(root, sql)
        with pytest.raises(SnapshotCorrupt) as caught:
            journal.latest_snapshot()
        assert caught.value.message.endswith(f": snapshot is damaged: {problem}")
        before = journal.latest_snapshot(2)
        assert before is not None
        assert before.state == machine_state({})
        assert len(list(journal.read())) == 5


def test_a_header_that_no_runner_wrote_is_refused(state: StateDirectory, root: Path) -> None:
    """
    Even under a sound seal; so are pages that are another's.
    """
    filled(state, "one", 0)

    def seal(header: bytes, ids: bytes) -> None:
        edit(
            root,
            "UPDATE snapshots SET header = ?, pages = ?, seal = ?",
            header,
            ids,
            snapshots._seal("one", 1, header, ids),
        )

    with state.open("one", write=True) as journal:
        put(journal, 1, machine_state({0: page(1), 1: page(2)}))
        connection = sqlite3.connect(root / "state.db")
        header, ids = connection.execute("SELECT header, pages FROM snapshots").fetchone()
        connection.close()
        found = pages.unpack_numbers(ids, 9)
        for parts, problem in (
            ((pages.compress(b"\xa1"), ids), "container ends early at byte 0"),
            ((pages.compress(b"\xa0"), ids), "key 'digest' is missing"),
            ((header, pages.pack_numbers(found[::-1])), "its pages are not those that were stored"),
            ((header, pages.pack_numbers(found[:1])), "its pages are not those that were stored"),
        ):
            seal(*parts)
            with pytest.raises(SnapshotCorrupt) as caught:
                journal.latest_snapshot()
            assert caught.value.message == f"one at 1: snapshot is damaged: {problem}"
        seal(header, ids)
        assert journal.latest_snapshot() is not None


def test_a_damaged_snapshot_is_collected_and_counts_for_nothing(state: StateDirectory, root: Path) -> None:
    """
    A damaged origin stays: without it the life would seem to begin at its image.
    """
    filled(state, "one", 2)
    with state.open("one", write=True) as journal:
        for position in (1, 2, 3, 4):
            put(journal, position, machine_state({0: page(position)}))
        edit(root, "UPDATE snapshots SET seal = x'00' WHERE position = 4")
        edit(root, "UPDATE snapshots SET header = x'00' WHERE position = 1")
        assert state.gc(1).snapshots == 2
        assert journal.snapshots() == [1, 3]
        assert journal.latest_snapshot() is not None
        with pytest.raises(SnapshotCorrupt):
            journal.latest_snapshot(1)


def test_a_page_that_was_collected_meanwhile_is_stored_again(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Between the look at what is there and the transaction, another may have made room.
    """
    with opened(state) as journal:
        journal.append(turn(1))
        put(journal, 2, machine_state({0: page(1)}))
        find = pages.find_ids
        gate = threading.Event()

        def find_and_collect(query: Any, wanted: Any) -> Any:
            found = find(query, wanted)
            if not gate.is_set():
                gate.set()
                assert state.gc(0).pages == 1
            return found

        monkeypatch.setattr(pages, "find_ids", find_and_collect)
        assert put(journal, 3, machine_state({0: page(1)})).pages_new == 0
        stored = journal.latest_snapshot()
        assert stored is not None
        assert stored.state.mind.pages == {0: page(1)}


def test_no_field_of_the_state_is_forgotten() -> None:
    """
    One that the kernel gains and the store lacks would be lost without a sound.
    """
    state = asking_state()
    header = snapshots._HEADER.pack(snapshots.Header(snapshots._packed(state, Pool()), HOST, DIGEST, DIGEST))[
        "state"
    ]
    packed = {"pages"}
    parts: list[tuple[type, Any]] = [
        (MachineState, header),
        (OpenDelivery, header["delivery"]),
        (Call, header["calls"][0]),
        (Answer, header["delivery"]["answers"][0]),
        (Restored, header["restored"]),
    ]
    for kind, found in parts:
        assert set(found) == {field.name for field in dataclasses.fields(kind)}
    assert (
        set(header["mind"]) - {"indices", "contents"}
        == {field.name for field in dataclasses.fields(Mind)} - packed
    )
    assert codec.encode(header)
