"""
Snapshots, agent files and caches that somebody else has made.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner import codec
from runner.cache import BlobCache
from runner.digest import digest, show
from runner.errors import (
    ApprovalPending,
    EffectUncertain,
    FuelExhausted,
    Interrupted,
    JournalCorrupt,
    LimitExceeded,
    MemoryExceeded,
    RunnerError,
    SnapshotCorrupt,
    SnapshotIncompatible,
    UsageError,
)
from runner.journal import export, wire
from runner.journal.records import (
    Born,
    Decision,
    Receipt,
    Record,
    Resolution,
    Slice,
    Start,
    Stopped,
    Upgraded,
    Woken,
)
from runner.kernel.abi import Status
from runner.kernel.state import Call, Restored
from runner.package.agent import pack, unpack
from runner.snapshot import Snapshot, decode, encode, read, write
from runner.wiring import (
    Options,
    build_agent,
    export_journal,
    fork_named,
    inspect_path,
    journal_rows,
    replay,
    restore_named,
    restore_snapshot,
    resume,
    run_agent,
    run_named,
    snapshot_named,
    upgrade_named,
    verify,
)
from runner.wiring.host import Host
from runner.wiring.line import Past

GUESTS = Path(__file__).parents[2] / "guests"
COUNTER = GUESTS / "counter"
SAVE = codec.encode({"title": "t", "content": "c"})

Change = Callable[[Snapshot], Snapshot]
OptionsFor = Callable[..., Options]


@pytest.fixture
def counter(cache: Path, tmp_path: Path) -> Path:
    """A snapshot of an agent that imports nothing but its own affairs."""
    path = tmp_path / "counter.snap"
    run_agent(COUNTER, "go", Options(cache=cache, snapshot=path, sync=False))
    return path


def _with_calls(*calls: Call) -> Change:
    return lambda snapshot: replace(
        snapshot, state=replace(snapshot.state, calls=calls, next_call=len(calls) + 1)
    )


def _with_host(**parts: object) -> Change:
    return lambda snapshot: replace(snapshot, host=snapshot.host | parts)


def _answer(**fields: object) -> dict[str, object]:
    return {"call": 1, "status": 0, "payload": b"\xf6"} | fields


NOT_GRANTED = (
    "snapshot does not fit: a call in flight is memory.save, expected an operation that the agent may use"
)
NOT_READABLE = "snapshot is damaged: what the host held is not readable: "


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            _with_calls(Call(1, "memory.save", SAVE, 0)),
            SnapshotIncompatible,
            NOT_GRANTED,
        ),
        (
            _with_calls(*(Call(number, "memory.save", SAVE, 0) for number in range(1, 300))),
            LimitExceeded,
            "limit calls_in_flight exceeded: 299 of 256",
        ),
        (
            lambda snapshot: replace(snapshot, imports=("llm.chat",)),
            SnapshotIncompatible,
            "snapshot does not fit: imports is llm.chat, expected agent.fail, agent.reply",
        ),
        (
            lambda snapshot: replace(snapshot, position=(1 << 63) - 1),
            SnapshotCorrupt,
            "snapshot is damaged: state: position 9223372036854775807 leaves no room to count on",
        ),
        (
            lambda snapshot: replace(
                snapshot, state=replace(snapshot.state, restored=Restored((1 << 63) - 1, 1, 0))
            ),
            SnapshotCorrupt,
            "snapshot is damaged: state: restored.count 9223372036854775807 leaves no room to count on",
        ),
        (_with_host(agent=b"short"), SnapshotCorrupt, NOT_READABLE + "agent: expected 32 bytes"),
        (_with_host(more=1), SnapshotCorrupt, NOT_READABLE + "more: unknown key"),
        (_with_host(provider={}), SnapshotCorrupt, NOT_READABLE + "requests: missing"),
        (
            _with_host(answers=[_answer()]),
            SnapshotCorrupt,
            NOT_READABLE + "answers: expected whole answers to calls in flight",
        ),
        (
            _with_host(answers=[_answer(status=-77)]),
            SnapshotCorrupt,
            NOT_READABLE + "answers[0].status: expected a status of the ABI",
        ),
        (
            _with_host(answers=[_answer(payload=b"\xff")]),
            SnapshotCorrupt,
            NOT_READABLE + "answers[0].payload: simple value is not allowed at byte 0",
        ),
        (
            _with_host(answers=[_answer(payload="text")]),
            SnapshotCorrupt,
            NOT_READABLE + "answers[0].payload: expected bytes, found text",
        ),
        (
            _with_host(answers=[_answer(call="1")]),
            SnapshotCorrupt,
            NOT_READABLE + "answers[0].call: expected an integer, found text",
        ),
    ],
)
def test_a_snapshot_that_this_agent_can_not_have_left_is_refused(
    cache: Path, counter: Path, change: Change, error: type[RunnerError], message: str
):
    """Its root is right, and what it says is not: above all it can't have calls made that nobody granted."""
    write(counter, change(read(counter)), sync=False)
    with pytest.raises(error) as caught:
        restore_snapshot(counter, "go", Options(cache=cache))
    assert caught.value.message.removeprefix(f"{counter}: ") == message


def test_a_snapshot_from_beyond_the_calendar_can_be_looked_at(cache: Path, counter: Path):
    """Whoever wrote it chose the number."""
    write(counter, replace(read(counter), created_at_ms=1 << 62), sync=False)
    facts = inspect_path(counter, cache)
    assert facts["created_at"] == "4611686018427387904 ms"
    assert facts["host"]["agent"] == show(read(counter).host["agent"])


def test_a_snapshot_larger_than_the_operator_allows_is_refused_before_it_is_unpacked(
    cache: Path, counter: Path
):
    """By the operator's own bound; a manifest could only lower it."""
    snapshot = read(counter)
    large = replace(snapshot.state.mind, memory_bytes=256 << 20)
    write(counter, replace(snapshot, state=replace(snapshot.state, mind=large)), sync=False)
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 268435456 of 67108864$"):
        restore_snapshot(counter, "go", Options(cache=cache))


def test_an_agent_is_recalled_as_it_was_and_not_as_another_with_the_same_code(cache: Path, tmp_path: Path):
    """Two manifests around one module: each snapshot goes on under its own."""
    limits = {}
    for fuel in (1_000_000, 2_000_000):
        folder, file = tmp_path / str(fuel), tmp_path / f"{fuel}.snap"
        folder.mkdir()
        (folder / "agent.wat").write_bytes((COUNTER / "agent.wat").read_bytes())
        (folder / "agent.toml").write_text(
            f'name = "counter"\nlanguage = "wat"\nentry = "agent.wat"\n[limits]\nfuel = {fuel}\n'
        )
        run_agent(folder, "go", Options(cache=cache, snapshot=file, sync=False))
        limits[fuel] = file
    for fuel, file in limits.items():
        assert restore_snapshot(file, "go", Options(cache=cache)).limits["fuel"] == fuel


def test_an_agent_in_the_cache_that_is_not_what_its_name_says_is_not_recalled(tmp_path: Path):
    """It is asked for instead, and kept anew by the next run."""
    cache, file = tmp_path / "cache", tmp_path / "counter.snap"
    options = Options(cache=cache, snapshot=file, sync=False)
    run_agent(COUNTER, "go", options)
    agent = read(file).host["agent"]
    entry = BlobCache(cache).get("agents", agent)
    assert entry is not None
    assert digest(entry.read_bytes()) == agent
    content = entry.read_bytes()
    entry.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UsageError, match="the agent of this snapshot is not known here"):
        restore_snapshot(file, "go", options)
    assert restore_snapshot(file, "go", options, COUNTER).result == 2
    assert restore_snapshot(file, "go", options).result == 3
    assert Host(cache).recall_agent(agent) == content


@pytest.fixture
def packed(cache: Path, tmp_path: Path) -> Path:
    """An agent in one file, with its image inside."""
    path = tmp_path / "counter.wasm"
    progress: list[str] = []
    build_agent(COUNTER, path, progress.append, cache)
    return path


def _repack(path: Path, change: Change) -> None:
    wasm, manifest, image = unpack(path.read_bytes(), origin=path)
    assert manifest is not None
    assert image is not None
    path.write_bytes(pack(wasm, manifest, encode(change(decode(image)))))


def test_an_image_larger_than_the_operator_allows_is_refused_before_it_is_unpacked(cache: Path, packed: Path):
    """A file of a few kilobytes must not become gigabytes."""
    _repack(
        packed,
        lambda image: replace(
            image, state=replace(image.state, mind=replace(image.state.mind, memory_bytes=4 << 30))
        ),
    )
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 4294967296 of 65536$"):
        run_agent(packed, "go", Options(cache=cache))
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 4294967296 of 1073741824$"):
        inspect_path(packed, cache)


@pytest.mark.parametrize(
    "change",
    [
        _with_calls(Call(1, "memory.save", SAVE, 0)),
        lambda image: replace(image, host={"notes": 1}),
        lambda image: replace(image, image_digest=bytes(31) + b"\1"),
        lambda image: replace(image, state=replace(image.state, last_delivery=5)),
    ],
    ids=["calls", "host part", "stands on another", "past"],
)
def test_an_image_that_is_more_than_a_mind_is_refused(cache: Path, packed: Path, change: Change):
    """Nothing is silently left out."""
    _repack(packed, change)
    with pytest.raises(SnapshotCorrupt) as caught:
        run_agent(packed, "go", Options(cache=cache))
    expected = "snapshot is damaged: an agent's image stands on zeros and holds nothing but a mind"
    assert caught.value.message == f"{packed}: {expected}"


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (
            {"fuel": 1 << 62},
            ("limit fuel exceeded: 4611686018427387904 of 20000000000", "raise it with --max-fuel"),
        ),
        (
            {"timeout_ms": 1 << 40},
            ("limit timeout_ms exceeded: 1099511627776 of 30000", "raise it with --timeout"),
        ),
        (
            {"memory_bytes": 4 << 30},
            ("limit memory_bytes exceeded: 4294967296 of 67108864", "raise it with --max-memory"),
        ),
        (
            {"reply_bytes": 2 << 20},
            ("limit reply_bytes exceeded: 2097152 of 1048576", "raise it with -W reply_bytes=2097152"),
        ),
    ],
)
def test_a_journal_from_elsewhere_takes_no_more_than_the_operator_gives(
    options: OptionsFor,
    state: Path,
    cache: Path,
    tmp_path: Path,
    limits: dict[str, int],
    told: tuple[str, str],
):
    """Whatever it says its instance had; here it had so in truth, and its own host does not mind."""
    out = tmp_path / "tally.journal"
    run_named(COUNTER, "tally", "go", options(limits=limits))
    export_journal("tally", out, state=state, cache=cache)
    assert verify("tally", state=state, cache=cache)["slices"] == 1
    for look in (verify, replay):
        with pytest.raises(LimitExceeded) as caught:
            look(str(out), cache=cache)
        assert (caught.value.message, caught.value.hint) == told
    assert verify(str(out), limits=limits, cache=cache)["slices"] == 1


def test_a_journal_from_elsewhere_begins_with_no_larger_memory_than_the_operator_gives(
    options: OptionsFor, state: Path, cache: Path, tmp_path: Path, counter: Path
):
    """Neither in its birth nor in the snapshot that it begins with, nor after an upgrade."""
    out = tmp_path / "heir.journal"
    restore_named(counter, "heir", "go", options())
    upgrade_named("heir", GUESTS / "counter_v2", options())
    export_journal("heir", out, state=state, cache=cache)
    whole = export.read(out)
    assert whole.origin is not None
    large = decode(whole.origin)
    mind = replace(large.state.mind, memory_bytes=128 << 20)
    large = replace(large, state=replace(large.state, mind=mind))
    export.write(out, replace(whole, origin=encode(large)))
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 134217728 of 67108864$"):
        verify(str(out), cache=cache)
    for forged in ({"fuel": 1 << 62}, {"fun": 1}):
        records = tuple(
            replace(record, limits=forged) if isinstance(record, Upgraded) else record
            for record in whole.records
        )
        export.write(out, replace(whole, records=records))
        with pytest.raises((LimitExceeded, JournalCorrupt), match=r"fuel|unknown limit 'fun'"):
            verify(str(out), cache=cache)


ALLOWED = Decision(call=1, verdict="allow", rule="the file says so", by="operator", at_ms=0)
PARKED = Decision(call=1, verdict="ask", rule="--ask llm", by="policy", at_ms=0)


@pytest.fixture
def waiting(options: OptionsFor, state: Path, cache: Path, tmp_path: Path) -> Path:
    """A snapshot of an instance whose only call waits for a person."""
    path = tmp_path / "waiting.snap"
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "old", "hi", options(), ("llm",))
    snapshot_named("old", path, state=state, cache=cache)
    return path


def _say(path: Path, *history: Record) -> None:
    snapshot = read(path)
    write(path, _with_host(history=[wire.encode(record) for record in history])(snapshot), sync=False)


@pytest.mark.parametrize(
    "history",
    [
        (ALLOWED,),
        (ALLOWED, Start(call=1, execution="old-1-1", effect="pure")),
        (Resolution(call=1, ruling="rerun", payload=b"", by="operator", at_ms=0),),
        (PARKED,),
        (PARKED, ALLOWED),
    ],
)
def test_a_file_does_not_allow_what_the_operator_must_be_asked(
    options: OptionsFor, state: Path, waiting: Path, history: tuple[Record, ...]
):
    """Whatever it says of what was allowed, each call is ruled on here."""
    _say(waiting, *history)
    with pytest.raises(ApprovalPending, match=r"^new waits for approval of call 1$"):
        restore_named(waiting, "new", None, options(), ask=("llm",))
    assert not [row for row in journal_rows("new", state=state) if row["kind"] == "start"]


def test_a_file_does_not_talk_away_that_an_effect_may_have_happened(options: OptionsFor, waiting: Path):
    """An effect that was started is in doubt, as its own runner saw it or as this one does."""
    _say(waiting, Start(call=1, execution="old-1-1", effect="effectful"))
    with pytest.raises(EffectUncertain, match=r"^new has a call whose effect is uncertain: 1$"):
        restore_named(waiting, "new", None, options())


@pytest.mark.parametrize(
    "record",
    [
        Woken(count=1, generation=1, at_ms=0),
        Slice(cancelled=(1,)),
        Receipt(call=1, execution="old-1-1", status=int(Status.PART), payload=b"\xf6"),
    ],
)
def test_a_history_tells_of_calls_and_of_nothing_else(options: OptionsFor, waiting: Path, record: Record):
    """It becomes a part of a journal."""
    _say(waiting, record)
    with pytest.raises(SnapshotCorrupt, match=r"history\[0\]: expected what is known of a call$"):
        restore_named(waiting, "new", None, options())


def test_a_fork_never_knows_less_than_its_instance_began_with(
    options: OptionsFor, state: Path, waiting: Path
):
    """Or it would do again what was in doubt when the snapshot was taken."""
    _say(waiting, Start(call=1, execution="old-1-1", effect="effectful"))
    with pytest.raises(EffectUncertain):
        restore_named(waiting, "new", None, options())
    for at in (0, 1, 2):
        assert fork_named("new", f"fork{at}", at=at, state=state)["records"] == 3
        with pytest.raises(EffectUncertain):
            resume(f"fork{at}", options())


@pytest.mark.parametrize("position", [2, 1000])
def test_a_journal_file_leaves_nothing_out_of_what_is_done_again(
    options: OptionsFor, state: Path, cache: Path, counter: Path, position: int
):
    """A snapshot that stands later than at the beginning would hide what came before it."""
    restore_named(counter, "heir", "go", options())
    out = counter.with_suffix(".journal")
    export_journal("heir", out, state=state, cache=cache)
    journal = export.read(out)
    assert journal.origin is not None
    moved = encode(replace(decode(journal.origin), position=position))
    export.write(out, replace(journal, origin=moved))
    with pytest.raises(JournalCorrupt, match=r"at record 1: does not begin with its snapshot$"):
        verify(str(out), cache=cache)
    export.write(out, replace(journal, origin=None))
    with pytest.raises(JournalCorrupt, match=r"at record 1: does not begin with its snapshot$"):
        verify(str(out), cache=cache)
    records = list(journal.records)
    records.insert(2, Stopped(reason="", at_ms=0))
    export.write(out, replace(journal, records=tuple(records)))
    with pytest.raises(JournalCorrupt, match=r"at record 2: comes before the beginning of its life$"):
        verify(str(out), cache=cache)


def test_limits_that_are_none_make_a_journal_file_damaged(
    options: OptionsFor, state: Path, cache: Path, tmp_path: Path
):
    """Not a bug of ours."""
    run_named(COUNTER, "tally", "go", options())
    out = tmp_path / "tally.journal"
    export_journal("tally", out, state=state, cache=cache)
    journal = export.read(out)
    born = journal.records[0]
    assert isinstance(born, Born)
    export.write(out, replace(journal, records=(replace(born, limits={"wings": 2}), *journal.records[1:])))
    with pytest.raises(JournalCorrupt, match=r"at record 0: unknown limit 'wings'$"):
        verify(str(out), cache=cache)


SPINS = r"""(module (memory (export "memory") 1)
  (func (export "runner_abi_v1")) (func (export "agent_start"))
  (func (export "agent_deliver") (param i32 i32 i32) (loop $for_ever (br $for_ever)))
  (func (export "agent_wake") (param i32 i32 i32)))"""


def test_a_journal_file_that_spins_ends_at_ctrl_c(
    options: OptionsFor, state: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """However much time its operator has given it."""
    agent, out = tmp_path / "spins.wat", tmp_path / "spins.journal"
    agent.write_text(SPINS)
    with pytest.raises(FuelExhausted):
        run_named(agent, "spins", None, options(limits={"fuel": 1000}))
    export_journal("spins", out, state=state, cache=cache)
    journal = export.read(out)
    born = journal.records[0]
    assert isinstance(born, Born)
    given = {"fuel": 1 << 62, "timeout_ms": 1 << 62}
    born = replace(born, limits=born.limits | given)
    export.write(out, replace(journal, records=(born, *journal.records[1:])))
    take = Past.take

    def interrupted(past: Past, seq: int, record: Record) -> None:
        if isinstance(record, Slice):
            os.kill(os.getpid(), signal.SIGINT)
        take(past, seq, record)

    monkeypatch.setattr(Past, "take", interrupted)
    with pytest.raises(Interrupted):
        verify(str(out), limits=given, cache=cache)
