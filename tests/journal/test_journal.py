"""
One journal: what is appended is there, whole and in order, or the journal takes nothing more.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.digest import digest
from runner.errors import (
    DiskFailed,
    InstanceUnknown,
    InternalError,
    JournalCorrupt,
    JournalPoisoned,
    StaleWriter,
)
from runner.journal import Journal, StateDirectory, wire
from runner.journal.chain import GENESIS, link
from runner.journal.records import Born, Delivery, Record, Stopped, Upgraded
from tests.journal.samples import (
    AGENT,
    HELLO,
    any_record,
    born,
    edit,
    filled,
    forge,
    opened,
    records_of,
    turn,
    upgrade,
)

WRITE_AGAIN: Final = "open the instance again"


def test_what_was_appended_is_read_in_its_order(state: StateDirectory) -> None:
    """
    Contiguous from the birth on, whole transactions.
    """
    with opened(state) as journal:
        assert (journal.name, journal.position, journal.keeps) == ("one", 1, True)
        assert journal.append(turn(1)) == 3
        assert journal.append(turn(2)) == journal.position == 5
        expected = list(enumerate([born("one"), *turn(1), *turn(2)]))
        assert list(journal.read()) == expected
        assert list(journal.read(3)) == expected[3:]
        assert list(journal.read(1, 4)) == expected[1:4]
        assert list(journal.read(2, 99)) == expected[2:]
        assert list(journal.read(5)) == list(journal.read(3, 3)) == list(journal.read(9)) == []


def test_nothing_appended_is_nothing_written(state: StateDirectory) -> None:
    """
    The position stays.
    """
    with opened(state) as journal:
        assert journal.append([]) == 1
        assert records_of(state, "one") == [born("one")]


@given(
    st.lists(st.lists(any_record.filter(lambda record: not isinstance(record, Born)), max_size=3), max_size=3)
)
def test_any_records_are_read_as_they_were_appended(groups: list[list[Record]]) -> None:
    """
    By another connection too.
    """
    with tempfile.TemporaryDirectory() as folder, StateDirectory(Path(folder) / "s", sync=False) as state:
        with opened(state) as journal:
            for group in groups:
                journal.append(group, [AGENT for record in group if isinstance(record, Upgraded)])
        expected = [born("one"), *(record for group in groups for record in group)]
        with StateDirectory(Path(folder) / "s") as other:
            assert records_of(other, "one") == expected


def test_an_upgrade_is_written_with_its_package_or_not_at_all(state: StateDirectory) -> None:
    """
    It stays with the instance that had it, and goes with it.
    """
    later = AGENT + b" and later"
    with opened(state) as journal:
        assert journal.append([upgrade(later)], [later]) == 2
        assert state.gc(1).agents == 0
        assert state.agent("one") == AGENT
        assert state.agent("one", digest(later)) == later
    for packages in ([], [AGENT], [later, later]):
        with state.open("one", write=True) as journal:
            with pytest.raises(InternalError, match="an upgrade is to be written without its package"):
                journal.append([upgrade(later)], packages)
            assert journal.position == 2
    with pytest.raises(InternalError):
        state.create("two", born("two"), AGENT, [upgrade(later)])
    state.create("three", born("three"), AGENT, [upgrade(later)], upgrades=[later])
    state.remove("one")
    assert state.gc(1).agents == 0
    assert state.agent("three", digest(later)) == later
    state.remove("three")
    assert state.gc(1).agents == 2
    state.create("four", born("four"), AGENT)
    with pytest.raises(JournalCorrupt, match="its agent is not what was stored"):
        state.agent("four", digest(later))


def test_long_journals_are_read_in_parts(state: StateDirectory) -> None:
    """
    Payloads of more than a reader holds at once, and others written while it reads.
    """
    large = codec.encode("x" * 3_000_000)
    with opened(state) as journal:
        for number in range(1, 6):
            journal.append(turn(number, large))
        reader = journal.read()
        assert next(reader)[0] == 0
        journal.append(turn(6))
        assert [seq for seq, _ in reader] == list(range(1, 11))


def test_a_reader_sees_what_was_written_meanwhile(state: StateDirectory) -> None:
    """
    It holds no lock, and each reading goes to the end that there is.
    """
    with opened(state) as journal, state.open("one", write=False) as reader:
        assert reader.position == 1
        journal.append(turn(1))
        assert reader.position == 1
        assert [seq for seq, _ in reader.read()] == [0, 1, 2]
        assert reader.position == 3


def test_a_reader_of_an_instance_that_was_removed_is_told_so(state: StateDirectory) -> None:
    """
    Also when another has taken its name.
    """
    filled(state, "one", 1)
    reader = state.open("one", write=False)
    state.remove("one")
    with pytest.raises(InstanceUnknown):
        next(reader.read())
    state.create("two", born("two"), b"x")
    state.create("one", born("one"), b"x")
    with pytest.raises(InstanceUnknown):
        next(reader.read())


def test_only_a_writer_may_append(state: StateDirectory) -> None:
    """
    Neither one that reads, nor one that was closed.
    """
    filled(state, "one", 1)
    with state.open("one", write=False) as reader, pytest.raises(InternalError) as caught:
        reader.append(turn(2))
    assert caught.value.message == "journal of one is open to read only"
    journal = state.open("one", write=True)
    journal.close()
    journal.close()
    with pytest.raises(InternalError) as caught:
        journal.append(turn(2))
    assert caught.value.message == "journal of one is closed"


def test_another_writer_in_between_poisons_for_good(state: StateDirectory, root: Path) -> None:
    """
    Should the lock fail, the position does not: what the other wrote stays, and this one is done.
    """
    with opened(state) as journal:
        # As if someone had removed the lock's file under its holder.
        (root / "locks" / "one").unlink()
        with state.open("one", write=True) as other:
            other.append(turn(1))
        with pytest.raises(StaleWriter) as stale:
            journal.append(turn(7))
        assert stale.value.details == {"instance": "one", "expected": 1, "found": 3}
        with pytest.raises(JournalPoisoned) as poisoned:
            journal.append(turn(1))
        assert poisoned.value.message == (
            "journal of one takes no more records, because one before was not written: "
            "journal of one was written by somebody else: 1 records expected, 3 found"
        )
        assert poisoned.value.hint == WRITE_AGAIN
    assert records_of(state, "one") == [born("one"), *turn(1)]
    with state.open("one", write=True) as journal:
        assert journal.append(turn(2)) == 5


def test_a_writer_whose_instance_was_removed_is_stale(state: StateDirectory, root: Path) -> None:
    """
    It does not bring it back.
    """
    with opened(state) as journal:
        (root / "locks" / "one").unlink()
        state.remove("one")
        with pytest.raises(StaleWriter):
            journal.append(turn(1))
    assert state.names() == []


def test_a_rejected_write_leaves_nothing_and_poisons(state: StateDirectory) -> None:
    """
    A record that can't be written takes those before it in the same transaction along.
    """
    with opened(state) as journal:
        with pytest.raises(InternalError):
            journal.append([*turn(1), Delivery(number=0, kind=1, payload=HELLO, now_ms=0)])
        with pytest.raises(JournalPoisoned):
            journal.append(turn(1))
        assert list(journal.read()) == [(0, born("one"))]
    with state.open("one", write=True) as journal:
        assert journal.append(turn(1)) == 3


def test_a_second_birth_is_refused(state: StateDirectory) -> None:
    """
    A journal has one, at its beginning.
    """
    with opened(state) as journal, pytest.raises(InternalError) as caught:
        journal.append([born("one")])
    assert caught.value.message == "journal of one has its birth already"


def test_a_failure_of_the_disk_poisons_whoever_it_met(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whether the record is there is not known; opened again, it is.
    """
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC

    def fail(_: object) -> None:
        raise error

    with opened(state) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(state._database._committer, "_transact", fail)
            with pytest.raises(DiskFailed) as failed:
                journal.append(turn(1))
        assert failed.value.message == f"state {state.root}: the disk failed: disk I/O error"
        with pytest.raises(JournalPoisoned):
            journal.append(turn(1))


def test_an_interrupted_append_poisons(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Ctrl-C in the middle leaves open what happened; the next to open finds out.
    """

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with opened(state) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(state._database._committer, "_transact", interrupt)
            with pytest.raises(KeyboardInterrupt):
                journal.append(turn(1))
        with pytest.raises(JournalPoisoned) as poisoned:
            journal.append(turn(1))
        assert poisoned.value.message.endswith("was not written: KeyboardInterrupt()")


def test_threads_that_append_to_one_journal_do_not_mix(state: StateDirectory) -> None:
    """
    Each append stays together.
    """
    gate = threading.Barrier(4)

    def write(journal: Journal, first: int) -> None:
        gate.wait()
        for number in range(first, first + 10):
            journal.append(turn(number))

    with opened(state) as journal:
        threads = [threading.Thread(target=write, args=(journal, 1 + 10 * index)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        records = [record for _, record in journal.read(1)]
    pairs = [records[index : index + 2] for index in range(0, len(records), 2)]
    assert sorted(pairs, key=lambda pair: pair[0].number) == [turn(number) for number in range(1, 41)]  # type: ignore[union-attr]


def test_the_chain_is_what_the_document_says(state: StateDirectory, root: Path) -> None:
    """
    Each link covers all bytes before it.
    """
    filled(state, "one", 2)
    connection = sqlite3.connect(root / "state.db")
    rows = connection.execute("SELECT seq, payload, chain FROM records ORDER BY seq").fetchall()
    ends = connection.execute("SELECT position, chain FROM instances").fetchone()
    connection.close()
    chain = GENESIS
    for seq, payload, stored in rows:
        chain = link(chain, seq, payload)
        assert stored == chain
    assert ends == (5, chain)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        (
            "UPDATE records SET payload = CAST(replace(payload, 'hello', 'jello') AS BLOB) WHERE seq = 3",
            "record 3: its bytes are not those that were written",
        ),
        (
            "UPDATE records SET chain = zeroblob(32) WHERE seq = 3",
            "record 3: its bytes are not those that were written",
        ),
        (
            "UPDATE records SET chain = zeroblob(31) WHERE seq = 3",
            "record 3: its row has values of wrong types",
        ),
        ("UPDATE records SET payload = 'text' WHERE seq = 3", "record 3: its row has values of wrong types"),
        ("DELETE FROM records WHERE seq = 3", "record 3: missing; record 4 follows"),
        ("DELETE FROM records WHERE seq = 0", "record 0: missing; record 1 follows"),
    ],
)
def test_a_record_that_was_changed_or_lost_is_found_when_it_is_read(
    state: StateDirectory, root: Path, sql: str, problem: str
) -> None:
    """
    Those before it are given, it and those after it are not.
    """
    expected = filled(state, "one", 4)
    edit(root, sql)
    before: list[tuple[int, Record]] = []
    with state.open("one", write=True) as journal, pytest.raises(JournalCorrupt) as caught:
        before.extend(journal.read())
    assert caught.value.message == f"journal of one is damaged at {problem}"
    assert before == expected[: caught.value.seq]


def test_a_journal_that_lost_its_end_does_not_open(state: StateDirectory, root: Path) -> None:
    """
    Nor one that has gained a record, or whose last one is another.
    """
    filled(state, "one", 2)
    for sql in (
        "INSERT INTO records VALUES (1, 5, x'00', zeroblob(32))",
        "DELETE FROM records WHERE seq = 5",
        "UPDATE records SET chain = zeroblob(32) WHERE seq = 4",
        "DELETE FROM records WHERE seq = 4",
    ):
        edit(root, sql)
        if sql.endswith("seq = 5"):
            state.open("one", write=False).close()
            continue
        with pytest.raises(JournalCorrupt) as caught:
            state.open("one", write=True)
        assert caught.value.message == (
            "journal of one is damaged at record 4: the journal does not end with this record"
        )


def test_records_that_go_away_while_they_are_read_are_missed(state: StateDirectory, root: Path) -> None:
    """
    By number, at the place where the reader stands.
    """
    filled(state, "one", 2)
    with state.open("one", write=False) as journal:
        edit(root, "DELETE FROM records WHERE seq = 2")
        with pytest.raises(JournalCorrupt) as caught:
            list(journal.read(3))
        assert caught.value.message == "journal of one is damaged at record 2: missing"
        edit(root, "DELETE FROM records WHERE seq = 1")
        with pytest.raises(JournalCorrupt) as caught:
            list(journal.read(3))
        assert caught.value.message == "journal of one is damaged at record 2: missing"


def test_a_record_of_a_kind_that_has_no_place_there_is_refused(state: StateDirectory, root: Path) -> None:
    """
    Whole bytes and a sound chain are not enough: a journal begins with its one birth.
    """
    filled(state, "one", 0)
    birth, stop = wire.encode(born("one")), wire.encode(Stopped(reason="first", at_ms=0))
    for payloads, problem in (
        ([stop], "record 0: a journal has one birth, at its beginning"),
        ([birth, stop, birth], "record 2: a journal has one birth, at its beginning"),
        ([birth, stop[:-1]], "record 1: string ends early at byte 24"),
        ([birth, codec.encode(["halted", {}])], "record 1: kind 'halted' is unknown"),
    ):
        forge(root, payloads)
        with state.open("one", write=False) as journal, pytest.raises(JournalCorrupt) as caught:
            list(journal.read())
        assert caught.value.message == f"journal of one is damaged at {problem}"


def test_an_instance_that_ends_otherwise_than_its_records_is_found(state: StateDirectory, root: Path) -> None:
    """
    Also when that happens while it is open; so is one that has become shorter.
    """
    filled(state, "one", 1)
    birth, stop = wire.encode(born("one")), wire.encode(Stopped(reason="first", at_ms=0))
    with state.open("one", write=False) as reader, state.open("one", write=True) as writer:
        forge(root, [birth, stop, stop])
        with pytest.raises(JournalCorrupt) as caught:
            list(writer.read())
        assert caught.value.message == (
            "journal of one is damaged at record 2: the instance ends with another record"
        )
        forge(root, [birth])
        with pytest.raises(JournalCorrupt) as caught:
            list(reader.read())
        assert caught.value.message == "journal of one is damaged at record 1: it was there, and is gone"


def test_a_standing_that_no_runner_wrote_is_found(state: StateDirectory, root: Path) -> None:
    """
    Even under a sound seal.
    """
    filled(state, "one", 0)
    forge(root, [wire.encode(born("one"))], b"\xa0")
    with pytest.raises(JournalCorrupt) as caught:
        state.names()
    assert caught.value.message == "journal of one is damaged: its standing: key 'agent' is missing"


def test_a_clock_that_was_set_back_changes_no_order(root: Path) -> None:
    """
    Sequence numbers say what came first; the list only shows what the clock said.
    """
    times = iter([5_000, 4_000, 3_000, 2_000, 1_000])
    with StateDirectory(root, now_ms=lambda: next(times)) as state:
        state.create("one", born("one", at_ms=9_000), b"x")
        with state.open("one", write=True) as journal:
            journal.append([Stopped(reason="late", at_ms=8_000)])
            journal.append([Stopped(reason="early", at_ms=7_000)])
        reasons = [record.reason for record in records_of(state, "one") if isinstance(record, Stopped)]
        assert reasons == ["late", "early"]
        row = state.names()[0]
        assert (row.created_at_ms, row.updated_at_ms) == (9_000, 2_000)
