"""
A life goes on under another module: what the old one hands over the new one takes, and all is on record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner import codec
from runner.errors import (
    Denied,
    DiskFailed,
    FuelExhausted,
    GuestReturnedError,
    GuestTrapped,
    JournalCorrupt,
    LimitExceeded,
    MemoryExceeded,
    NeedsDecision,
    Nondeterminism,
    ProtocolViolation,
    RunnerError,
    SnapshotIncompatible,
    UsageError,
)
from runner.files import write_whole
from runner.journal import Journal, StateDirectory, export
from runner.journal.records import Delivery, Record, Slice, SnapshotTaken, Tried, Upgraded, Woken
from runner.kernel.abi import DeliveryKind
from runner.kernel.state import Mind
from runner.package.agent import pack
from runner.snapshot import decode, encode
from runner.wiring import (
    Options,
    collect_garbage,
    export_journal,
    fork_named,
    inspect_named,
    inspect_path,
    list_instances,
    remove_named,
    replay,
    restore_named,
    restore_snapshot,
    run_agent,
    run_named,
    send,
    snapshot_named,
    upgrade_named,
    verify,
)
from runner.wiring.host import Host
from runner.wiring.prepare import freeze_image

GUESTS = Path(__file__).parents[2] / "guests"
ONE, TWO = GUESTS / "counter", GUESTS / "counter_v2"

# Hands over and takes over as the body says; `$n` is the delivery, `$kind` 5 or 6. 0: null. 1: text "no".
UPGRADES = r"""(module
  IMPORTS
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\f6\62no\a0")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    DELIVER)
  (func (export "agent_upgrade") (param $n i32) (param $kind i32) (param $size i32)
    UPGRADE)
  (func $null (param $n i32) (drop (call $reply (local.get $n) (i32.const 0) (i32.const 1))))
  (func (export "agent_wake") (param i32 i32 i32)))"""

# Replies with the whole payload of its upgrade, whenever it is asked.
ECHO = r"""(if (i32.eq (local.get $kind) (i32.const 4)) (then (call $null (local.get $n)) (return)))
  (drop (call $reply (local.get $n) (i32.const 1000) (i32.load (i32.const 500))))"""
KEEP = r"""(i32.store (i32.const 500) (call $take (i32.const 1000) (i32.const 5000)))
  (call $null (local.get $n))"""
CHAT = '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))'

OptionsFor = Callable[..., Options]
AgentOf = Callable[..., Path]


@pytest.fixture
def agent_of(tmp_path: Path) -> AgentOf:
    """Makes an agent of the two bodies."""
    made: list[Path] = []

    def make(upgrade: str, deliver: str = "(call $null (local.get $n))", imports: str = "") -> Path:
        path = tmp_path / f"agent{len(made)}.wat"
        path.write_text(
            UPGRADES.replace("IMPORTS", imports).replace("DELIVER", deliver).replace("UPGRADE", upgrade)
        )
        made.append(path)
        return path

    return make


@pytest.fixture
def tally(options: OptionsFor, state: Path) -> Path:
    """A state directory with a counter that has counted to two."""
    run_named(ONE, "tally", "one", options())
    send("tally", "two", options())
    return state


def records_of(state: Path, name: str = "tally") -> list[Record]:
    """What is on record of an instance."""
    with StateDirectory(state) as directory, directory.open(name, write=False) as journal:
        return [record for _, record in journal.read()]


def test_an_instance_goes_on_under_the_next_version(tally: Path, options: OptionsFor, cache: Path):
    """It knows what the first version knew, also after that was never loaded again."""
    facts = upgrade_named("tally", TWO, options())
    assert facts.pop("fuel") > 0
    assert facts == {
        "instance": "tally",
        "agent": "counter",
        "version": "2.0.0",
        "before": {"agent": "counter", "version": "1.0.0"},
        "records": 12,
    }
    assert send("tally", "three", options()).result == {"count": 3, "before": 2}
    assert send("tally", "four", options()).result == {"count": 4, "before": 2}
    assert verify("tally", state=tally, cache=cache)["slices"] == 6
    assert collect_garbage(0, state=tally)["agents"] == 0
    assert send("tally", "five", options()).result == {"count": 5, "before": 2}


def test_an_upgrade_is_on_record_as_a_whole(tally: Path, options: OptionsFor):
    """What was handed over, who took over, and what that made of it."""
    before = records_of(tally)
    upgrade_named("tally", TWO, options())
    handed, gave, upgraded, given, took, *memo = records_of(tally)[len(before) :]
    assert [type(record) for record in memo] == [SnapshotTaken, Tried]
    assert isinstance(upgraded, Upgraded)
    assert isinstance(handed, Delivery)
    assert isinstance(given, Delivery)
    assert (handed.number, handed.kind) == (3, DeliveryKind.HAND_OVER)
    assert (given.number, given.kind) == (4, DeliveryKind.UPGRADE)
    to, came = codec.decode(handed.payload), codec.decode(given.payload)
    assert (to["to_version"], to["to_code"]) == ("2.0.0", upgraded.code_digest)
    assert (came["state"], came["from_agent"], came["from_version"]) == (2, "counter", "1.0.0")
    assert came["from_code"] == before[0].code_digest  # type: ignore[union-attr]
    assert isinstance(gave, Slice)
    assert isinstance(took, Slice)
    assert (gave.reply, took.reply) == ((True, b"\x02"), (True, b"\xf6"))
    assert upgraded.image_digest != took.digest != gave.digest


def test_it_stays_who_it_is(tally: Path, options: OptionsFor, cache: Path):
    """Name, descent and generation; only its agent is another."""
    fork_named("tally", "twin", state=tally)
    send("twin", "three", options())
    known = ("restores", "generation")
    before = inspect_named("twin", state=tally, cache=cache)
    upgrade_named("twin", TWO, options())
    after = inspect_named("twin", state=tally, cache=cache)
    assert (after["name"], after["parent"]) == (before["name"], before["parent"])
    assert [after["instance"][key] for key in known] == [before["instance"][key] for key in known] == [1, 1]
    assert after["code_digest"] != before["code_digest"]
    assert [(row["name"], row["agent"], row["status"]) for row in list_instances(tally)] == [
        ("tally", "counter", "idle"),
        ("twin", "counter", "idle"),
    ]


def test_its_past_can_be_looked_at_and_done_again(
    tally: Path, options: OptionsFor, cache: Path, tmp_path: Path
):
    """Each slice under its own module; also elsewhere, from a file."""
    upgrade_named("tally", TWO, options())
    send("tally", "three", options())
    done = replay("tally", state=tally, cache=cache)
    assert done.failure is None
    assert [row["input"] for row in done.rows[2:]] == [
        "delivery 3 hand_over",
        "delivery 4 upgrade",
        "delivery 5 message",
    ]
    old, new = (inspect_named("tally", at=at, state=tally, cache=cache) for at in (6, 9))
    assert old["code_digest"] != new["code_digest"]
    out = tmp_path / "tally.journal"
    export_journal("tally", out, state=tally, cache=cache)
    elsewhere = tmp_path / "elsewhere"
    assert verify(str(out), state=elsewhere, cache=cache)["memory_digest"] == done.memory_digest
    assert replay(str(out), to=5, state=elsewhere, cache=cache).records == 6


def test_a_fork_of_any_moment_goes_on(tally: Path, options: OptionsFor, cache: Path):
    """Cut in the middle of an upgrade it has not happened, and the old version goes on."""
    upgrade_named("tally", TWO, options())
    last = len(records_of(tally)) - 1
    results = []
    for at in range(4, last + 1):
        fork_named("tally", f"at-{at}", at=at, state=tally)
        results.append(send(f"at-{at}", "next", options()).result)
        assert verify(f"at-{at}", state=tally, cache=cache)["instance"] == f"at-{at}"
    assert results == [3] * 5 + [{"count": 3, "before": 2}] * 3
    upgrade_named("at-4", TWO, options())
    assert send("at-4", "next", options()).result == {"count": 4, "before": 3}


def test_a_snapshot_of_it_is_of_its_new_agent(tally: Path, options: OptionsFor, tmp_path: Path):
    """And is restored where the old one was never seen."""
    upgrade_named("tally", TWO, options())
    file = tmp_path / "tally.snap"
    snapshot_named("tally", file, state=tally, cache=options().cache)
    elsewhere = options(cache=tmp_path / "cache")
    assert restore_snapshot(file, "three", elsewhere, TWO).result == {"count": 3, "before": 2}


def test_what_belonged_to_its_agents_goes_when_it_goes(tally: Path, options: OptionsFor):
    """Both packages."""
    upgrade_named("tally", TWO, options())
    remove_named(["tally"], state=tally)
    assert collect_garbage(1, state=tally)["agents"] == 2


# -- what is refused ----------------------------------------------------------------------------


def is_unchanged(state: Path, options: OptionsFor, before: list[Record]) -> bool:
    """Whether the counter is as it was, and counts on."""
    return records_of(state) == before and send("tally", "three", options()).result == 3


def test_an_agent_without_the_export_neither_hands_over_nor_takes_over(tally: Path, options: OptionsFor):
    """The refusal is that of any other module, and the hint names what is missing."""
    before = records_of(tally)
    with pytest.raises(SnapshotIncompatible, match="code_digest") as caught:
        upgrade_named("tally", GUESTS / "hello", options())
    assert caught.value.hint == "hello 1.0.0 can't take over: its module does not export agent_upgrade"
    run_named(GUESTS / "hello", "shy", "hi", options())
    with pytest.raises(SnapshotIncompatible) as caught:
        upgrade_named("shy", TWO, options())
    assert caught.value.hint == "hello 1.0.0 can't hand over: its module does not export agent_upgrade"
    assert is_unchanged(tally, options, before)


def test_the_agent_that_it_has_is_no_upgrade(tally: Path, options: OptionsFor):
    """Nothing is written for it."""
    before = records_of(tally)
    with pytest.raises(UsageError, match=r"^tally runs this agent already$"):
        upgrade_named("tally", ONE, options())
    assert is_unchanged(tally, options, before)


def test_an_agent_that_refuses_leaves_the_instance_as_it_was(tally: Path, options: OptionsFor):
    """In its own words; the first version can't take over from the second."""
    upgrade_named("tally", TWO, options())
    before = records_of(tally)
    with pytest.raises(GuestReturnedError, match=r"^there is no earlier version$") as caught:
        upgrade_named("tally", ONE, options())
    assert caught.value.hint == "nothing has changed: tally is of counter 2.0.0 as before"
    assert records_of(tally) == before
    assert send("tally", "three", options()).result == {"count": 3, "before": 2}


@pytest.mark.parametrize(
    ("body", "kind", "imports"),
    [
        ("(unreachable)", GuestTrapped, ""),
        ("(loop $spin (br $spin))", FuelExhausted, ""),
        ("", ProtocolViolation, ""),
        ("(drop (call $chat (i32.const 4) (i32.const 1)))", ProtocolViolation, CHAT),
        ("(drop (call $reply (local.get $n) (i32.const 70000) (i32.const 1)))", ProtocolViolation, ""),
    ],
    ids=["trap", "fuel", "silence", "waiting", "fault"],
)
def test_an_agent_that_fails_leaves_the_instance_as_it_was(
    tally: Path,
    options: OptionsFor,
    agent_of: AgentOf,
    body: str,
    kind: type[RunnerError],
    imports: str,
):
    """In its migration, whichever way."""
    before = records_of(tally)
    with pytest.raises(kind) as caught:
        upgrade_named("tally", agent_of(body, imports=imports), options(limits={"fuel": 10_000_000}))
    assert str(caught.value.hint).endswith("nothing has changed: tally is of counter 1.0.0 as before")
    assert is_unchanged(tally, options, before)


def test_an_agent_that_fails_to_hand_over_keeps_its_instance(options: OptionsFor, agent_of: AgentOf):
    """Its memory is as before, too: it has only been asked."""
    bodies = {
        GuestTrapped: "(unreachable)",
        ProtocolViolation: "(drop (call $chat (i32.const 4) (i32.const 1))) (call $null (local.get $n))",
    }
    for kind, body in bodies.items():
        name = kind.__name__.lower()
        run_named(agent_of(body, imports=CHAT), name, "one", options())
        with pytest.raises(kind):
            upgrade_named(name, TWO, options())
        assert send(name, "two", options()).result is None


def test_what_both_log_is_told(options: OptionsFor, agent_of: AgentOf):
    """As in any other delivery."""
    log = '(import "agent" "log" (func $log (param i32 i32 i32) (result i32)))'
    body = "(drop (call $log (local.get $kind) (i32.const 1) (i32.const 3))) (call $null (local.get $n))"
    run_named(agent_of(body, imports=log), "loud", "one", options())
    lines: list[str] = []
    chosen = options(on_log=lambda line: lines.append(line.message))
    upgrade_named("loud", agent_of(f"{body} (nop)", imports=log), chosen)
    assert lines == ["no", "no"]


def test_what_is_handed_over_must_fit(options: OptionsFor, agent_of: AgentOf, state: Path):
    """As deep as a payload may be, it is too deep inside another."""
    deepest = "".join(
        f"(i32.store8 (i32.const {100 + depth}) (i32.const {0x81 if depth < 64 else 0xF6}))"
        for depth in range(65)
    )
    deep = agent_of(f"{deepest} (drop (call $reply (local.get $n) (i32.const 100) (i32.const 65)))")
    run_named(deep, "deep", "one", options())
    with pytest.raises(ProtocolViolation, match=r"^guest handed over more than can be passed on$"):
        upgrade_named("deep", TWO, options())
    run_named(ONE, "narrow", "one", options(limits={"payload_bytes": 100}))
    with pytest.raises(LimitExceeded, match="payload_bytes"):
        upgrade_named("narrow", TWO, options())
    assert [row["status"] for row in list_instances(state)] == ["idle", "idle"]


def test_an_instance_in_the_middle_of_something_is_not_upgraded(
    options: OptionsFor, agent_of: AgentOf, state: Path
):
    """Neither with a delivery open nor with a call that nobody has answered."""
    waiting = agent_of("(call $null (local.get $n))", "(drop (call $chat (i32.const 4) (i32.const 1)))", CHAT)
    with pytest.raises(NeedsDecision):
        run_named(waiting, "open", "one", options(), ("llm",))
    with pytest.raises(UsageError, match=r"^open can't be upgraded while delivery 1 is open$") as caught:
        upgrade_named("open", TWO, options())
    assert (
        caught.value.hint
        == "finish it first: runner resume open; what waits for a person: runner approvals open"
    )
    both = "(drop (call $chat (i32.const 4) (i32.const 1))) (call $null (local.get $n))"
    run_named(agent_of("(call $null (local.get $n))", both, CHAT), "busy", "one", options(), ("llm",))
    with pytest.raises(UsageError, match=r"^busy can't be upgraded with call 1 in flight: nobody could take"):
        upgrade_named("busy", TWO, options())
    assert [row["status"] for row in list_instances(state)] == ["waiting", "waiting"]


def test_an_upgrade_that_can_not_be_written_has_not_happened(
    tally: Path, options: OptionsFor, monkeypatch: pytest.MonkeyPatch
):
    """All of its records are one."""
    before = records_of(tally)

    def fail(*_args: object) -> None:
        raise DiskFailed("state", "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", fail)
        with pytest.raises(DiskFailed):
            upgrade_named("tally", TWO, options())
    assert is_unchanged(tally, options, before)


# -- what it may, and what it may use -----------------------------------------------------------


def test_grants_are_added_and_refusals_stay(options: OptionsFor, agent_of: AgentOf, state: Path, cache: Path):
    """An upgrade can't lift what the operator forbade, or wanted to see."""
    old = agent_of("(call $null (local.get $n))")
    run_named(old, "clerk", "one", options(allow=("tool",), deny=("memory",)), ("tool",))
    asks = '(import "llm" "complete" (func (param i32 i32) (result i32)))'
    memory = '(import "memory" "list" (func (param i32 i32) (result i32)))'
    with pytest.raises(Denied, match=r"memory\.list"):
        upgrade_named("clerk", agent_of(KEEP, ECHO, memory), options(allow=("memory",)))
    with pytest.raises(Denied, match=r"llm\.complete"):
        upgrade_named("clerk", agent_of(KEEP, ECHO, asks), options(deny=("llm",)))
    upgrade_named("clerk", agent_of(KEEP, ECHO, asks), options(allow=("llm",)), ("llm", "tool"))
    found = inspect_named("clerk", state=state, cache=cache)
    assert [found[key] for key in ("allow", "deny", "ask")] == [
        ["tool", "llm"],
        ["memory"],
        ["tool", "llm"],
    ]


def test_bounds_that_the_operator_chose_stay_until_they_choose_others(
    options: OptionsFor, agent_of: AgentOf, state: Path, cache: Path
):
    """What the old manifest asked for goes with the old agent."""
    run_named(ONE, "tally", "one", options(limits={"fuel": 900_000, "timeout_ms": 5_000}))
    upgrade_named("tally", agent_of(KEEP, ECHO), options(limits={"timeout_ms": 6_000}))
    limits = inspect_named("tally", state=state, cache=cache)["limits"]
    assert (limits["fuel"], limits["timeout_ms"], limits["memory_bytes"]) == (900_000, 6_000, 64 << 20)
    with pytest.raises(MemoryExceeded):
        upgrade_named("tally", TWO, options(limits={"memory_bytes": 1_000}))
    with pytest.raises(UsageError):
        upgrade_named("tally", TWO, options(), ("no such thing",))


def test_calls_made_while_taking_over_are_the_new_agents_own(
    tally: Path, options: OptionsFor, agent_of: AgentOf, cache: Path
):
    """They are ruled on and made when the instance goes on."""
    body = "(drop (call $chat (i32.const 4) (i32.const 1))) (call $null (local.get $n))"
    assert not inspect_path(GUESTS / "hello", cache)["upgrades"]
    assert inspect_path(TWO, cache)["upgrades"]
    upgrade_named("tally", agent_of(body, imports=CHAT), options())
    [call] = inspect_named("tally", state=tally, cache=cache)["calls_in_flight"]
    assert (call["number"], call["next"]) == (1, "policy rules")
    assert send("tally", "three", options()).result is None
    assert inspect_named("tally", state=tally, cache=cache)["calls_in_flight"] == []
    assert verify("tally", state=tally, cache=cache)["instance"] == "tally"


# -- an interpreter: the same module, another image ----------------------------------------------


def test_another_program_of_the_same_interpreter_takes_over(
    options: OptionsFor, tmp_path: Path, state: Path, cache: Path
):
    """The module is the same; the image is not, and memory means something else."""
    host = Host(cache)
    package = host.load(TWO)
    section, image = freeze_image(host, package, {})
    frozen = decode(section)
    page = bytearray(image.mind.pages[0])
    page[2000:2005] = b"other"
    mind = Mind(image.memory_bytes, {0: bytes(page)}, image.globals)
    other = replace(frozen, state=replace(frozen.state, mind=mind))
    from runner.kernel.boot import adopt

    other = replace(other, memory_digest=adopt(mind, host.admit(package.wasm)).digest)
    program = tmp_path / "other.wasm"
    write_whole(program, pack(package.wasm, replace(package.manifest, version="2.1.0"), encode(other)))
    run_named(TWO, "js", "one", options())
    send("js", "two", options())
    before = inspect_named("js", state=state, cache=cache)
    upgrade_named("js", program, options())
    after = inspect_named("js", state=state, cache=cache)
    assert after["code_digest"] == before["code_digest"]
    assert after["image_digest"] != before["image_digest"]
    assert send("js", "three", options()).result == {"count": 3, "before": 2}
    assert verify("js", state=state, cache=cache)["slices"] == 5


# -- snapshots ----------------------------------------------------------------------------------


@pytest.fixture
def file(tally: Path, options: OptionsFor, tmp_path: Path) -> Path:
    """A snapshot of the counter at two."""
    path = tmp_path / "tally.snap"
    snapshot_named("tally", path, state=tally, cache=options().cache)
    return path


def test_a_snapshot_is_restored_under_the_next_version(
    file: Path, options: OptionsFor, state: Path, cache: Path
):
    """With a name and without: the old one hands over first, the new one is told of the restore."""
    assert restore_snapshot(file, "three", options(), TWO).result == {"count": 3, "before": 2}
    assert restore_named(file, "heir", "three", options(), agent=TWO).result == {"count": 3, "before": 2}
    kinds = [record.kind for record in records_of(state, "heir") if isinstance(record, Delivery)]
    assert kinds == [
        DeliveryKind.HAND_OVER,
        DeliveryKind.UPGRADE,
        DeliveryKind.RESTORE,
        DeliveryKind.MESSAGE,
    ]
    assert sum(isinstance(record, Woken) for record in records_of(state, "heir")) == 1
    assert verify("heir", state=state, cache=cache)["slices"] == 4
    assert send("heir", "four", options()).result == {"count": 4, "before": 2}


def test_where_its_own_agent_is_not_known_nobody_can_hand_over(
    file: Path, options: OptionsFor, tmp_path: Path
):
    """The refusal is that of another agent."""
    elsewhere = options(cache=tmp_path / "cache", state=tmp_path / "elsewhere")
    for restore in (
        lambda: restore_named(file, "heir", "three", elsewhere, agent=TWO),
        lambda: restore_snapshot(file, "three", elsewhere, TWO),
    ):
        with pytest.raises(SnapshotIncompatible, match="code_digest"):
            restore()


def test_a_restore_whose_migration_fails_makes_no_instance(
    file: Path, options: OptionsFor, agent_of: AgentOf, state: Path
):
    """The name stays free, and the snapshot is what it was."""
    broken = agent_of("(unreachable)")
    for restore in (
        lambda: restore_named(file, "heir", "three", options(), agent=broken),
        lambda: restore_snapshot(file, "three", options(), broken),
    ):
        with pytest.raises(GuestTrapped) as caught:
            restore()
        assert caught.value.hint == "nothing has changed: the snapshot is of counter 1.0.0 as before"
    assert [row["name"] for row in list_instances(state)] == ["tally"]
    assert restore_named(file, "heir", "three", options()).result == 3


def test_a_snapshot_in_the_middle_of_something_is_not_upgraded(
    options: OptionsFor, agent_of: AgentOf, tmp_path: Path
):
    """Whoever wants to must finish it first."""
    waiting = agent_of("(call $null (local.get $n))", "(drop (call $chat (i32.const 4) (i32.const 1)))", CHAT)
    with pytest.raises(NeedsDecision):
        run_named(waiting, "open", "one", options(), ("llm",))
    path = tmp_path / "open.snap"
    snapshot_named("open", path, state=options().state, cache=options().cache)
    with pytest.raises(
        UsageError, match=r"^the snapshot can't be upgraded while delivery 1 is open$"
    ) as caught:
        restore_named(path, "heir", "two", options(), agent=TWO)
    assert caught.value.hint == "finish it first, under the agent that it was taken of"


def test_a_nameless_snapshot_of_an_upgraded_instance_is_of_its_new_agent(options: OptionsFor, tmp_path: Path):
    """It knows its agent, and goes on by itself."""
    first, second = tmp_path / "first.snap", tmp_path / "second.snap"
    run_agent(ONE, "one", options(snapshot=first))
    restore_snapshot(first, "two", options(snapshot=second), TWO)
    assert restore_snapshot(second, "three", options()).result == {"count": 3, "before": 1}


# -- strangers' journals -------------------------------------------------------------------------


def doctored(state: Path, name: str, change: Callable[[list[Record]], list[Record]]) -> None:
    """Another instance whose journal is that of the counter, changed."""
    with StateDirectory(state) as directory:
        with directory.open("tally", write=False) as journal:
            born, *past = change([record for _, record in journal.read()])
        packages = [directory.agent("tally", each.package) for each in past if isinstance(each, Upgraded)]
        directory.create(name, born, directory.agent("tally"), past, upgrades=packages)  # type: ignore[arg-type]


def test_an_upgrade_that_can_not_have_been_is_damage(tally: Path, options: OptionsFor, cache: Path):
    """Nothing handed over, or something else taken, or another agent than is kept for it."""
    upgrade_named("tally", TWO, options())
    at = next(seq for seq, record in enumerate(records_of(tally)) if isinstance(record, Upgraded))

    def early(records: list[Record]) -> list[Record]:
        return [*records[:1], records[at], *records[1:at], *records[at + 1 :]]

    doctored(tally, "early", early)
    with pytest.raises(JournalCorrupt, match="at record 1: an upgrade to which nothing was handed over"):
        verify("early", state=tally, cache=cache)

    def refused(records: list[Record]) -> list[Record]:
        gave = records[at - 1]
        return [*records[: at - 1], replace(gave, reply=(False, b"\xa1\x67message\x60")), *records[at:]]  # type: ignore[arg-type]

    doctored(tally, "refused", refused)
    with pytest.raises(Nondeterminism, match="reply"):
        verify("refused", state=tally, cache=cache)

    for name, payload in (
        ("more", codec.encode({"state": 3})),
        ("true", codec.encode({"state": 2.0})),
        ("none", codec.encode({})),
        ("list", codec.encode([2])),
    ):

        def other_state(records: list[Record], payload: bytes = payload) -> list[Record]:
            given = records[at + 1]
            return [*records[: at + 1], replace(given, payload=payload), *records[at + 2 :]]  # type: ignore[arg-type]

        doctored(tally, name, other_state)
        with pytest.raises(JournalCorrupt, match=f"at record {at + 1}: not what was handed over"):
            verify(name, state=tally, cache=cache)

    def other_code(records: list[Record]) -> list[Record]:
        return [
            replace(each, code_digest=bytes(32)) if isinstance(each, Upgraded) else each for each in records
        ]

    doctored(tally, "other", other_code)
    with pytest.raises(SnapshotIncompatible, match="code_digest"):
        verify("other", state=tally, cache=cache)

    def other_limits(records: list[Record]) -> list[Record]:
        return [replace(each, limits={"fun": 1}) if isinstance(each, Upgraded) else each for each in records]

    doctored(tally, "limits", other_limits)
    with pytest.raises(JournalCorrupt, match=f"at record {at}: unknown limit 'fun'"):
        verify("limits", state=tally, cache=cache)


def test_an_upgrade_in_the_middle_of_a_delivery_is_damage(
    options: OptionsFor, agent_of: AgentOf, state: Path, tally: Path, cache: Path
):
    """Its answer would have nowhere to go."""
    upgrade_named("tally", TWO, options())
    [upgraded] = [record for record in records_of(tally) if isinstance(record, Upgraded)]
    waiting = agent_of("(call $null (local.get $n))", "(drop (call $chat (i32.const 4) (i32.const 1)))", CHAT)
    with pytest.raises(NeedsDecision):
        run_named(waiting, "open", "one", options(), ("llm",))
    with StateDirectory(state) as directory:
        package = directory.agent("tally", upgraded.package)
        with directory.open("open", write=True) as journal:
            handed = Delivery(number=2, kind=5, payload=b"\xf6", now_ms=0)
            journal.append([handed, Slice(reply=(True, b"\xf6")), upgraded], [package])
    with pytest.raises(JournalCorrupt, match="can't follow what came before it: delivery 1 is still open"):
        verify("open", state=state, cache=cache)


def test_a_delivery_of_an_upgrade_to_a_module_without_one_is_damage(
    options: OptionsFor, state: Path, cache: Path
):
    """It has no export that could have taken it."""
    run_named(GUESTS / "hello", "shy", "hi", options())
    with StateDirectory(state) as directory, directory.open("shy", write=True) as journal:
        journal.append([Delivery(number=2, kind=5, payload=b"\xf6", now_ms=0), Slice(reply=(True, b"\xf6"))])
    with pytest.raises(JournalCorrupt, match="can't follow what came before it: the module has no agent_upg"):
        verify("shy", state=state, cache=cache)


def test_an_exported_journal_has_all_of_its_agents(
    tally: Path, options: OptionsFor, cache: Path, tmp_path: Path
):
    """Else it is refused before anything of it runs."""
    upgrade_named("tally", TWO, options())
    out = tmp_path / "tally.journal"
    export_journal("tally", out, state=tally, cache=cache)
    whole = export.read(out)
    assert len(whole.agents) == 2
    export.write(out, replace(whole, agents=whole.agents[:1]))
    with pytest.raises(JournalCorrupt, match="an agent that it had is missing"):
        verify(str(out), cache=cache)
    export.write(out, replace(whole, agents=(whole.agents[0], whole.agents[0])))
    with pytest.raises(JournalCorrupt, match="the agent that it was upgraded to is another"):
        verify(str(out), cache=cache)


def test_randomness_and_numbers_go_on(options: OptionsFor, agent_of: AgentOf, state: Path):
    """No nonce is drawn twice in a life, whichever module draws it."""
    draw = '(import "agent" "random" (func $random (param i32 i32) (result i32)))'
    deliver = r"""(if (i32.eq (local.get $kind) (i32.const 4)) (then (call $null (local.get $n)) (return)))
      (i32.store8 (i32.const 200) (i32.const 0x48))
      (drop (call $random (i32.const 201) (i32.const 8)))
      (drop (call $reply (local.get $n) (i32.const 200) (i32.const 9)))"""
    run = agent_of("(call $null (local.get $n))", deliver, draw)
    twin = agent_of("(call $null (local.get $n)) (nop)", deliver, draw)
    first = run_named(run, "dice", None, options()).result
    upgrade_named("dice", twin, options())
    second = send("dice", None, options()).result
    fork_named("dice", "again", at=2, deterministic=True, state=state)
    assert send("again", None, options()).result == second != first
