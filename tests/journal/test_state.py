"""
A state directory: instances are made, listed, opened and removed, and nothing is taken for a beginning.
"""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from runner.digest import digest
from runner.errors import (
    DiskFailed,
    InstanceBusy,
    InstanceExists,
    InstanceUnknown,
    InternalError,
    JournalCorrupt,
    RunnerError,
    StateFull,
    StateTooNew,
    StateUnusable,
    UsageError,
)
from runner.journal import InstanceRow, Journal, StateDirectory, StoredSnapshot, default_state_root, schema
from runner.journal.database import explain
from runner.journal.records import Stopped, Woken
from tests.journal.samples import AGENT, born, edit, filled, machine_state, opened, page, records_of, turn

GONE: Final = "the instance was made and its journal is gone"
ELSEWHERE: Final = "choose another with --state or RUNNER_STATE"


def message_of(root: Path) -> str:
    """
    Why the directory can't be opened.
    """
    with pytest.raises(RunnerError) as caught:
        StateDirectory(root)
    return caught.value.message.replace(str(root), "ROOT")


def test_instances_are_listed_as_they_stand(state: StateDirectory) -> None:
    """
    By name, with who holds them.
    """
    assert state.names() == []
    filled(state, "two", 2)
    with opened(state, "one") as journal:
        journal.append([Stopped(reason="", at_ms=0)])
        rows = state.names()
    assert rows == [
        InstanceRow(
            name="one",
            agent="one",
            agent_digest=digest(AGENT),
            status="stopped",
            position=2,
            created_at_ms=1_800_000_000_000,
            updated_at_ms=1_800_000_000_001,
            locked_by=os.getpid(),
            parent=None,
        ),
        InstanceRow(
            name="two",
            agent="two",
            agent_digest=digest(AGENT),
            status="idle",
            position=5,
            created_at_ms=1_800_000_000_000,
            updated_at_ms=1_800_000_000_001,
            locked_by=None,
            parent=None,
        ),
    ]


def test_a_state_outlives_its_process(root: Path) -> None:
    """
    What one has written another reads, agent and all.
    """
    with StateDirectory(root) as state:
        expected = [record for _, record in filled(state, "one", 3)]
    with StateDirectory(root) as state:
        assert records_of(state, "one") == expected
        assert state.agent("one") == AGENT


def test_an_instance_takes_over_a_past_and_an_origin_at_once(state: StateDirectory) -> None:
    """
    A fork is there whole, or not at all.
    """
    child = born("two", parent=("one", 3))
    woken = Woken(count=1, generation=2, at_ms=0)
    origin = StoredSnapshot(1, machine_state({3: page(1)}), {"a": 1}, b"d" * 32)
    state.create("two", child, AGENT, [*turn(1), woken], origin)
    assert records_of(state, "two") == [child, *turn(1), woken]
    assert state.names()[0].parent == ("one", 3)
    with state.open("two", write=False) as journal:
        assert journal.latest_snapshot() == origin
    with pytest.raises(InternalError):
        state.create("six", born("six", limits={"fuel": 0}), AGENT)
    with pytest.raises(InternalError):
        state.create("six", born("six"), AGENT, (), StoredSnapshot(1, machine_state({}), {}, b"short"))
    assert [row.name for row in state.names()] == ["two"]
    state.create("six", born("six"), AGENT)


@pytest.mark.parametrize("name", ["a", "0", "a.b_c-d", "x" * 64])
def test_names_that_an_instance_may_have(state: StateDirectory, name: str) -> None:
    """
    Short, in lower case, and no path.
    """
    filled(state, name, 0)
    assert [row.name for row in state.names()] == [name]


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "-a", "a/b", "A", "a b", "\u00e4", "a\n", "x" * 65])
def test_names_that_no_instance_may_have(state: StateDirectory, name: str) -> None:
    """
    Refused wherever a name is given.
    """
    for act in (
        lambda: state.create(name, born(), AGENT),
        lambda: state.open(name, write=True),
        lambda: state.agent(name),
        lambda: state.remove(name),
        lambda: state.gc(1, name),
    ):
        with pytest.raises(UsageError) as caught:
            act()
        assert caught.value.message == f"{name!r} is not a name for an instance"
        assert caught.value.hint == (
            "use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit"
        )


def test_a_name_is_taken_once(state: StateDirectory) -> None:
    """
    Until the instance is removed.
    """
    filled(state, "one", 1)
    with pytest.raises(InstanceExists):
        state.create("one", born("other"), b"other")
    assert state.agent("one") == AGENT
    state.remove("one")
    assert state.names() == []
    filled(state, "one", 2)
    assert state.names()[0].position == 5


def test_an_unknown_instance_is_unknown(state: StateDirectory, root: Path) -> None:
    """
    And asking for it leaves nothing behind.
    """
    for act in (
        lambda: state.open("one", write=True),
        lambda: state.open("one", write=False),
        lambda: state.agent("one"),
        lambda: state.remove("one"),
        lambda: state.gc(1, "one"),
    ):
        with pytest.raises(InstanceUnknown) as caught:
            act()
        assert caught.value.message == "there is no instance one"
    assert os.listdir(root / "locks") == []


def test_one_writer_at_a_time(state: StateDirectory) -> None:
    """
    Who opens, removes or makes it meanwhile is told who that is; readers are not kept out.
    """
    with opened(state):
        for act in (
            lambda: state.open("one", write=True),
            lambda: state.remove("one"),
            lambda: state.create("one", born(), AGENT),
        ):
            with pytest.raises(InstanceBusy) as caught:
                act()
            assert caught.value.pid == os.getpid()
        assert records_of(state, "one") == [born("one")]
    state.open("one", write=True).close()


def test_directories_and_files_are_private(root: Path) -> None:
    """
    Whatever the umask.
    """
    before = os.umask(0)
    try:
        with StateDirectory(root / "deep" / "state") as state, opened(state) as journal:
            journal.put_snapshot(1, machine_state({}), {}, b"d" * 32)
            modes = {
                path.relative_to(root / "deep").as_posix(): stat.S_IMODE(path.stat().st_mode)
                for path in (root / "deep" / "state").rglob("*")
            }
            assert stat.S_IMODE((root / "deep" / "state").stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert modes == {
        "state/locks": 0o700,
        "state/locks/one": 0o600,
        "state/state.db": 0o600,
        "state/state.db-shm": 0o600,
        "state/state.db-wal": 0o600,
        "state/state.lock": 0o600,
        "state/state.mark": 0o600,
    }


def test_the_default_is_named_by_the_environment() -> None:
    """
    Or is the user's.
    """
    assert default_state_root({"RUNNER_STATE": "/x/y"}) == Path("/x/y")
    assert default_state_root({"RUNNER_STATE": "~/y"}) == Path.home() / "y"
    assert default_state_root({}).name == "wasm-agent-runner"


def test_without_a_root_the_default_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    `RUNNER_STATE` is read when it is needed.
    """
    monkeypatch.setenv("RUNNER_STATE", str(root))
    with StateDirectory() as state:
        assert state.root == root


def test_a_place_that_others_can_write_to_is_refused(root: Path) -> None:
    """
    So is one that is no directory, or only points to one.
    """
    root.mkdir()
    root.chmod(0o770)
    with pytest.raises(StateUnusable) as caught:
        StateDirectory(root)
    assert caught.value.message == f"state {root} can be written by other users"
    assert caught.value.hint == f"chmod 700 {root}"
    root.chmod(0o755)
    StateDirectory(root).close()
    link = root.with_name("link")
    link.symlink_to(root)
    with pytest.raises(StateUnusable) as caught:
        StateDirectory(link)
    assert (caught.value.message, caught.value.hint) == (
        f"state {link} is a symbolic link",
        "name the directory itself",
    )
    file = root.with_name("file")
    file.write_bytes(b"")
    with pytest.raises(StateUnusable) as caught:
        StateDirectory(file)
    assert (caught.value.message, caught.value.hint) == (f"state {file} is not a directory", ELSEWHERE)
    with pytest.raises(StateUnusable) as caught:
        StateDirectory(file / "below")
    assert caught.value.message == f"state {file / 'below'} can't be used: not a directory"


def test_a_state_of_a_later_runner_is_left_alone(root: Path) -> None:
    """
    The message names both versions; not one byte changes.
    """
    with StateDirectory(root) as state:
        filled(state, "one", 1)
    connection = sqlite3.connect(root / "state.db")
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = (root / "state.db").read_bytes()
    with pytest.raises(StateTooNew) as caught:
        StateDirectory(root)
    assert caught.value.message == f"state {root} has version 7, this runner knows versions up to 2"
    assert caught.value.details == {"path": str(root), "found": 7, "known": 2}
    assert (root / "state.db").read_bytes() == before


def test_a_state_that_is_upgraded_meanwhile_is_not_written_to_any_more(
    state: StateDirectory, root: Path
) -> None:
    """
    An old process must not write into tables that it does not know.
    """
    with opened(state) as journal:
        connection = sqlite3.connect(root / "state.db")
        connection.execute("PRAGMA user_version = 3")
        connection.close()
        with pytest.raises(StateTooNew):
            journal.append(turn(1))


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        (
            "application_id = 0",
            "journal of ROOT is damaged: state.db is not the database of a state directory",
        ),
        ("user_version = 0", "journal of ROOT is damaged: state.db is not the database of a state directory"),
        (
            "user_version = -1",
            "journal of ROOT is damaged: state.db is not the database of a state directory",
        ),
    ],
)
def test_a_database_that_is_not_ours_is_not_made_ours(root: Path, pragma: str, message: str) -> None:
    """
    Neither where a state was, nor where none was.
    """
    StateDirectory(root).close()
    connection = sqlite3.connect(root / "state.db")
    connection.execute(f"PRAGMA {pragma}")
    connection.close()
    message = "journal of ROOT is damaged: state.db is not the database of a state directory"
    assert message_of(root) == message
    (root / "state.mark").unlink()
    assert message_of(root) == message


def test_a_database_that_is_gone_is_not_made_anew(root: Path) -> None:
    """
    Nor one that is empty: a mark beside it says that there must be one.
    """
    with StateDirectory(root) as state:
        filled(state, "one", 1)
    (root / "state.db").write_bytes(b"")
    assert message_of(root) == "journal of ROOT is damaged: state.db is gone or empty"
    (root / "state.db").unlink()
    assert message_of(root) == "journal of ROOT is damaged: state.db is gone or empty"
    assert not (root / "state.db").exists()


def test_a_making_that_was_cut_short_is_taken_up(root: Path) -> None:
    """
    An empty database without its mark is one that nobody has used; one with tables only lacks the mark.
    """
    root.mkdir(mode=0o700)
    (root / "state.db").write_bytes(b"")
    with StateDirectory(root) as state:
        filled(state, "one", 1)
    (root / "state.mark").unlink()
    with StateDirectory(root) as state:
        assert [row.name for row in state.names()] == ["one"]
    assert (root / "state.mark").exists()


def test_an_instance_that_is_gone_is_missed(state: StateDirectory, root: Path) -> None:
    """
    A witness outside the database says that it was made: its name is not free, and the list is not whole.
    """
    filled(state, "one", 1)
    filled(state, "two", 1)
    edit(root, "DELETE FROM instances WHERE name = 'one'")
    for act in (
        state.names,
        lambda: state.open("one", write=True),
        lambda: state.open("one", write=False),
        lambda: state.create("one", born(), AGENT),
        lambda: state.agent("one"),
    ):
        with pytest.raises(JournalCorrupt) as caught:
            act()
        assert caught.value.message == f"journal of one is damaged: {GONE}"
    assert state.open("two", write=False).position == 3


def test_a_witness_that_is_gone_is_made_again(state: StateDirectory, root: Path) -> None:
    """
    Whoever writes the instance next leaves it; one that was never made leaves none.
    """
    filled(state, "one", 1)
    (root / "locks" / "one").unlink()
    state.open("one", write=True).close()
    assert (root / "locks" / "one").read_bytes() == b"made\n"
    (root / "locks" / "two").write_bytes(b"new \n")
    assert [row.name for row in state.names()] == ["one"]
    filled(state, "two", 0)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE instances SET position = 2", "its row is not what was written"),
        ("UPDATE instances SET chain = zeroblob(32)", "its row is not what was written"),
        ("UPDATE instances SET standing = x'a0'", "its row is not what was written"),
        ("UPDATE instances SET position = 'three'", "its row has values of wrong types"),
        ("UPDATE instances SET seal = 'text'", "its row has values of wrong types"),
    ],
)
def test_a_row_that_was_changed_is_found(state: StateDirectory, root: Path, sql: str, message: str) -> None:
    """
    Before anything is opened by it, and in the list.
    """
    filled(state, "one", 1)
    edit(root, sql)
    for act in (state.names, lambda: state.open("one", write=True)):
        with pytest.raises(JournalCorrupt) as caught:
            act()
        assert caught.value.message == f"journal of one is damaged: {message}"


def test_an_agent_that_was_changed_is_found(state: StateDirectory, root: Path) -> None:
    """
    Its digest is its key.
    """
    filled(state, "one", 0)
    edit(root, "UPDATE agents SET content = x'00'")
    with pytest.raises(JournalCorrupt) as caught:
        state.agent("one")
    assert caught.value.message == "journal of one is damaged: its agent is not what was stored"


def test_an_agent_is_stored_once(state: StateDirectory, root: Path) -> None:
    """
    For all instances that have it, and until the last is gone.
    """
    for name in ("one", "two"):
        filled(state, name, 0)
    connection = sqlite3.connect(root / "state.db")
    assert connection.execute("SELECT count(*) FROM agents").fetchone() == (1,)
    connection.close()
    state.remove("one")
    assert state.gc(1).agents == 0
    state.remove("two")
    assert state.gc(1).agents == 1


def fill_up(journal: Journal) -> None:
    """
    Keep one snapshot after another, none like another.
    """
    for number in range(2, 100):
        journal.append(turn(number))
        state = machine_state({index: page(number * 16 + index) for index in range(16)})
        journal.put_snapshot(journal.position, state, {}, b"d" * 32)


def test_a_state_that_is_full_says_so_and_takes_more_once_there_is_room(root: Path) -> None:
    """
    A bound of our own is told from a full disk; snapshots that go make room.
    """
    with StateDirectory(root, max_bytes=400_000) as state:
        with opened(state) as journal:
            with pytest.raises(StateFull) as caught:
                fill_up(journal)
            assert caught.value.details["bound"] == 400_000
            assert caught.value.hint == f"make room in {root} with runner gc, or raise it with --max-state"
            position = journal.position
        state.gc(1)
        with state.open("one", write=True) as journal:
            assert journal.append(turn(1)) == position + 2


FULL: Final = """
import resource, signal, sys
from pathlib import Path
from runner.errors import DiskFailed
from runner.journal import StateDirectory
from tests.journal.samples import turn

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
state = StateDirectory(Path(sys.argv[1]))
journal = state.open("one", write=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for number in range(1, 1000):
        journal.append(turn(number))
        print(journal.position, flush=True)
except DiskFailed as error:
    print(error.message)
"""


def test_a_disk_that_is_full_loses_nothing_that_was_reported(state: StateDirectory, root: Path) -> None:
    """
    The process that met it is told; what it had appended is there.
    """
    filled(state, "one", 0)
    done = subprocess.run([sys.executable, "-c", FULL, str(root)], check=True, capture_output=True, text=True)
    *positions, message = done.stdout.splitlines()
    assert message.startswith(f"state {root}: the disk ")
    assert len(positions) > 5
    assert len(records_of(state, "one")) == int(positions[-1])
    with state.open("one", write=True) as journal:
        journal.append(turn(1000))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ)


def test_a_state_that_can_not_be_written_to_says_so(state: StateDirectory) -> None:
    """
    And reads on.
    """
    filled(state, "one", 1)
    state._database._writer.execute("PRAGMA query_only = ON")
    with state.open("one", write=True) as journal:
        with pytest.raises(StateUnusable) as caught:
            journal.append(turn(2))
        assert caught.value.message == f"state {state.root} can't be written to"
        assert caught.value.hint == ELSEWHERE
        assert len(list(journal.read())) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_refused(root: Path) -> None:
    """
    Before anything is made.
    """
    root.parent.chmod(0o500)
    try:
        assert message_of(root) == "state ROOT can't be used: permission denied"
    finally:
        root.parent.chmod(0o700)


def test_a_state_that_another_process_keeps_locked_says_so(state: StateDirectory, root: Path) -> None:
    """
    After it has waited.
    """
    filled(state, "one", 0)
    state._database._writer.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(root / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with state.open("one", write=True) as journal, pytest.raises(StateUnusable) as caught:
        journal.append(turn(1))
    other.close()
    assert caught.value.message == f"state {root} is locked by another process for more than 30 s"
    assert caught.value.hint == "end the process that holds it, and try again"


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (sqlite3.SQLITE_FULL, DiskFailed, "state /s: the disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, DiskFailed, "state /s: the disk failed: oh"),
        (sqlite3.SQLITE_READONLY_DBMOVED, StateUnusable, "state /s can't be written to"),
        (sqlite3.SQLITE_CANTOPEN, StateUnusable, "state /s can't be opened"),
        (sqlite3.SQLITE_MISUSE, InternalError, "state /s: oh"),
        (sqlite3.SQLITE_CORRUPT_VTAB, JournalCorrupt, "journal of /s is damaged: oh"),
        (sqlite3.SQLITE_NOTADB, JournalCorrupt, "journal of /s is damaged: oh"),
        (None, JournalCorrupt, "journal of /s is damaged: oh"),
    ],
)
def test_what_sqlite_says_is_said_in_our_words(
    code: int | None, kind: type[RunnerError], message: str
) -> None:
    """
    Where it happened, and what it means.
    """
    error = sqlite3.OperationalError("oh")
    if code is not None:
        error.sqlite_errorcode = code
    explained = explain(error, Path("/s"))
    assert (type(explained), explained.message) == (kind, message)


def test_a_quote_of_damaged_text_is_made_safe_to_show() -> None:
    """
    No control characters, and not too much.
    """
    error = sqlite3.DatabaseError("malformed \x1b[31m" + "x" * 300)
    assert explain(error, Path("/s")).message == "journal of /s is damaged: malformed ?[31m" + "x" * 185


def test_a_closed_state_is_not_used(root: Path) -> None:
    """
    A mistake of ours, and named as one.
    """
    state = StateDirectory(root)
    state.close()
    with pytest.raises(InternalError) as caught:
        state.names()
    assert caught.value.message == f"state {root}: Cannot operate on a closed database."


def test_an_old_state_goes_through_the_steps_that_it_lacks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    All of them or none, in one transaction, and once.
    """
    with StateDirectory(root) as state:
        expected = [record for _, record in filled(state, "one", 2)]
    second = ("ALTER TABLE instances ADD COLUMN note TEXT", "CREATE TABLE extra (x)")
    broken = (*second, "CREATE TABLE extra (x)")
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, broken))
    with pytest.raises(JournalCorrupt) as caught:
        StateDirectory(root)
    assert caught.value.message == f"journal of {root} is damaged: table extra already exists"
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS[:-1], second))
    for _ in range(2):
        with StateDirectory(root) as state:
            assert records_of(state, "one") == expected
    connection = sqlite3.connect(root / "state.db")
    assert schema.version_of(connection) == len(schema.STEPS)
    assert connection.execute("SELECT note FROM instances").fetchall() == [(None,)]
    connection.close()
