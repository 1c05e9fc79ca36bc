"""
Named instances over real journals: killed, stopped, asked about, forked, restored, and going on.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.errors import (
    ApprovalPending,
    EffectUncertain,
    GuestReturnedError,
    InstanceBusy,
    InstanceExists,
    InstanceUnknown,
    JournalCorrupt,
    StateFull,
    UsageError,
)
from runner.journal import StateDirectory
from runner.journal.records import Decision, Receipt, Slice, Start
from runner.kernel.abi import Status
from runner.wiring import (
    Options,
    approvals,
    collect_garbage,
    fork_named,
    journal_rows,
    list_instances,
    remove_named,
    replay,
    resolve_call,
    restore_named,
    restore_snapshot,
    resume,
    rule_on,
    run_named,
    send,
    snapshot_named,
    stop_named,
    verify,
)

ROOT = Path(__file__).parents[2]
GUESTS = ROOT / "guests"
COMMAND = [sys.executable, "-m", "runner.cli"]
COURIER = ("tool", "memory")

OptionsFor = Callable[..., Options]
Spawn = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def slow_script(tmp_path: Path) -> Path:
    """A model that says one word and takes an hour for the next."""
    path = tmp_path / "slow.json"
    path.write_text(json.dumps({"rules": [{"reply": "good morning", "delay_ms": 3_600_000}]}))
    return path


@pytest.fixture
def quick_script(tmp_path: Path) -> Path:
    """The same words, at once."""
    path = tmp_path / "quick.json"
    path.write_text(json.dumps({"rules": [{"reply": "good morning"}]}))
    return path


@pytest.fixture
def spawn(cache: Path, state: Path) -> Iterator[Spawn]:
    """Starts the command in a process of its own; none outlives the test."""
    children: list[subprocess.Popen[bytes]] = []
    environment = os.environ | {
        "RUNNER_CACHE": str(cache),
        "RUNNER_STATE": str(state),
        "PYTHONPATH": str(ROOT),
    }

    def start(*words: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [*COMMAND, *words],
            cwd=state.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def wait_until_asked(child: subprocess.Popen[bytes], state: Path, name: str) -> None:
    """Until the journal says that a model is being asked."""
    while True:
        assert child.poll() is None, child.stderr and child.stderr.read()
        known = [row["name"] for row in list_instances(state)] if state.exists() else []
        if name in known and any(row["kind"] == "receipt" for row in journal_rows(name, state=state)):
            return


def records_of(state: Path, name: str) -> list[object]:
    """All records of an instance."""
    with StateDirectory(state) as directory, directory.open(name, write=False) as journal:
        return [record for _, record in journal.read()]


def plant(state: Path, name: str, new: str, count: int) -> None:
    """Another instance, with the first records of one."""
    with StateDirectory(state) as directory:
        with directory.open(name, write=False) as journal:
            born, *past = [record for _, record in journal.read(0, count)]
        directory.create(new, born, directory.agent(name), past)  # type: ignore[arg-type]


def test_an_instance_counts_on_in_one_call_after_the_other(options: OptionsFor, state: Path):
    """Each opens it anew; what it is stands in its journal alone."""
    assert run_named(GUESTS / "counter", "tally", "go", options()).result == 1
    report = send("tally", "go", options())
    assert (report.result, report.instance, report.agent) == (2, "tally", "counter")
    assert report.journal == {"state": str(state), "records": 5}
    assert [row["status"] for row in list_instances(state)] == ["idle"]


def test_killed_in_the_middle_of_an_answer_it_goes_on_as_if_nothing_had_happened(
    options: OptionsFor, state: Path, spawn: Spawn, slow_script: Path, quick_script: Path
):
    """The same result, and the same memory, as without the kill."""
    child = spawn("run", str(GUESTS / "hello"), "hi", "--as", "victim", "--script", str(slow_script))
    wait_until_asked(child, state, "victim")
    child.kill()
    child.communicate()
    assert [row["status"] for row in list_instances(state)] == ["open"]
    resumed = resume("victim", options(script=quick_script))
    spared = run_named(GUESTS / "hello", "spared", "hi", options(script=quick_script))
    assert resumed.result == spared.result == "good morning"
    assert resumed.memory_digest == spared.memory_digest
    assert verify("victim", state=state, cache=options().cache)["memory_digest"] == spared.memory_digest


def test_two_processes_never_have_one_instance(
    options: OptionsFor, state: Path, spawn: Spawn, slow_script: Path
):
    """The second is told who the first is; looking is allowed all the while, and so is a snapshot."""
    child = spawn("run", str(GUESTS / "hello"), "hi", "--as", "taken", "--script", str(slow_script))
    wait_until_asked(child, state, "taken")
    with pytest.raises(InstanceBusy) as caught:
        send("taken", "hi", options())
    assert caught.value.pid == child.pid
    assert [row["pid"] for row in list_instances(state)] == [child.pid]
    out = state.parent / "taken.snap"
    facts = snapshot_named("taken", out, state=state, cache=options().cache)
    assert facts["position"] == len(records_of(state, "taken"))
    # It goes on with what was open, asking the model again.
    assert restore_snapshot(out, None, options()).result == "(scripted) You said: hi"


def test_stopping_ends_the_process_and_gives_up_nothing(
    options: OptionsFor, state: Path, spawn: Spawn, slow_script: Path, quick_script: Path
):
    """It ends with 143, and the delivery is still open."""
    child = spawn("run", str(GUESTS / "hello"), "hi", "--as", "long", "--script", str(slow_script))
    wait_until_asked(child, state, "long")
    assert stop_named("long", state=state) == {"instance": "long", "pid": child.pid}
    assert child.wait() == 143
    assert [row["status"] for row in list_instances(state)] == ["stopped"]
    assert journal_rows("long", state=state)[-1]["fields"]["reason"] == "terminated"
    assert resume("long", options(script=quick_script)).result == "good morning"


def test_stopping_tells_nobody_who_has_only_the_number_of_the_holder(
    options: OptionsFor, state: Path, monkeypatch: pytest.MonkeyPatch
):
    """Numbers are used again, and another container has its own."""
    monkeypatch.setattr("runner.wiring.lives._PATIENCE_S", 0.0)
    run_named(GUESTS / "counter", "tally", None, options())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        with StateDirectory(state) as directory, directory.open("tally", write=True):
            (state / "locks" / "tally").write_bytes(b"made\n%d\n" % stranger.pid)
            with pytest.raises(InstanceBusy):
                stop_named("tally", state=state)
        stranger.communicate(b"\n")
        assert stranger.returncode == 0


def test_an_interrupt_gives_the_delivery_up_durably(
    options: OptionsFor, state: Path, spawn: Spawn, slow_script: Path
):
    """As Ctrl-C does without a name; the instance lives on."""
    child = spawn("run", str(GUESTS / "hello"), "hi", "--as", "cut", "--script", str(slow_script))
    wait_until_asked(child, state, "cut")
    child.send_signal(signal.SIGINT)
    assert child.wait() == 130
    assert [row["status"] for row in list_instances(state)] == ["idle"]
    assert send("cut", "again", options()).result == "(scripted) You said: again"
    assert verify("cut", state=state, cache=options().cache)["slices"] == 4


def test_ten_approvals_in_ten_times_two_processes(state: Path, spawn: Spawn, asker: Path):
    """Each command that waits prints the commands that go on; a decision is never asked for again."""
    child = spawn("run", str(asker), "9", "--input-as", "json", "--as", "ten", "--ask", "llm")
    for call in range(1, 10):
        out, err = child.communicate()
        assert (child.returncode, out) == (6, b"")
        first, second = err.decode().splitlines()
        assert first == f"Error: ten waits for approval of call {call}"
        approve, go_on = second.removeprefix("  hint: ").split(" && ")
        assert shlex.split(approve)[:4] == ["runner", "approve", "ten", str(call)]
        assert spawn(*shlex.split(approve)[1:]).wait() == 0
        child = spawn(*shlex.split(go_on)[1:])
    out, err = child.communicate()
    assert (child.returncode, out, err) == (0, b"9\n", b"")
    decisions = [record for record in records_of(state, "ten") if isinstance(record, Decision)]
    assert [(record.call, record.verdict) for record in decisions] == [
        (call, verdict) for call in range(1, 10) for verdict in ("ask", "allow")
    ]


def test_a_denied_call_tells_the_agent_why(options: OptionsFor, state: Path):
    """And the same verdict twice is one verdict, the other one too late."""
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "shy", "hi", options(), ("llm",))
    [question] = approvals(state=state, cache=options().cache)
    assert (question["instance"], question["call"], question["operation"]) == ("shy", 1, "llm.chat")
    assert question["request"]["messages"] == [{"role": "user", "content": "hi"}]
    for _ in range(2):
        rule_on("shy", 1, "deny", because="not today", state=state, cache=options().cache)
    with pytest.raises(UsageError, match=r"^call 1 of shy does not wait for approval$"):
        rule_on("shy", 1, "allow", state=state, cache=options().cache)
    assert sum(isinstance(record, Decision) for record in records_of(state, "shy")) == 2
    with pytest.raises(GuestReturnedError, match=r"^not allowed: not today$"):
        resume("shy", options())


def test_a_failure_brings_what_was_reached(options: OptionsFor):
    """Who it was, what it used, and that it waits."""
    with pytest.raises(ApprovalPending) as caught:
        run_named(GUESTS / "hello", "shy", "hi", options(), ("llm",))
    report = caught.value.report
    assert (report.instance, report.result, report.waiting) == ("shy", None, (1,))
    assert report.fuel > 0
    assert report.journal["records"] == 4


def test_a_message_waits_until_the_one_before_has_its_verdict(options: OptionsFor):
    """It is not delivered, and says so."""
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "busy", "hi", options(), ("llm",))
    with pytest.raises(ApprovalPending) as caught:
        send("busy", "next", options())
    assert caught.value.details["delivered"] is False


def test_resuming_what_has_nothing_open_repeats_its_last_answer(options: OptionsFor, state: Path):
    """The process may have died between the answer and its printing."""
    run_named(GUESTS / "counter", "tally", None, options())
    before = len(records_of(state, "tally"))
    assert resume("tally", options()).result == 1
    assert resume(None, options(), last=True).result == 1
    assert len(records_of(state, "tally")) == before


def test_resuming_without_a_name_takes_the_only_one_with_something_open(options: OptionsFor):
    """Or says which there are."""
    run_named(GUESTS / "counter", "quiet", None, options())
    with pytest.raises(UsageError, match=r"^which instance\? with something open: none$"):
        resume(None, options())
    for name in ("one", "two"):
        with pytest.raises(ApprovalPending):
            run_named(GUESTS / "hello", name, "hi", options(), ("llm",))
    with pytest.raises(UsageError, match=r"^which instance\? with something open: one, two$"):
        resume(None, options())
    remove_named(["two"], state=options().state)
    with pytest.raises(ApprovalPending):
        resume(None, options())


def test_a_fork_shares_a_past_and_has_a_future_of_its_own(options: OptionsFor, state: Path):
    """It hears that it is another; neither sees what the other does."""
    run_named(GUESTS / "counter", "tally", None, options())
    send("tally", None, options())
    assert fork_named("tally", "young", at=2, state=state)["records"] == 3
    assert send("young", None, options()).result == 2 + 0
    assert send("tally", None, options()).result == 3
    assert send("young", None, options()).result == 3
    kinds = [
        row["fields"].get("kind") for row in journal_rows("young", state=state) if row["kind"] == "delivery"
    ]
    assert kinds == ["message", "restore", "message", "message"]
    for name in ("tally", "young"):
        verify(name, state=state, cache=options().cache)
    with pytest.raises(UsageError, match=r"^tally has no record 7$"):
        fork_named("tally", "other", at=7, state=state)


def test_a_fork_has_to_ask_for_itself(options: OptionsFor, state: Path):
    """One approval is for one effect, and it is the elder's."""
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "old", "hi", options(), ("llm",))
    rule_on("old", 1, "allow", state=state, cache=options().cache)
    fork_named("old", "young", state=state)
    with pytest.raises(ApprovalPending, match=r"^young waits for approval of call 1$"):
        resume("young", options())
    assert resume("old", options()).result == "(scripted) You said: hi"
    fork_named("old", "late", state=state)
    verify("late", state=state, cache=options().cache)


def test_a_fork_of_doubt_is_in_doubt_whatever_was_ruled(options: OptionsFor, state: Path):
    """Made again, it would be made by both."""
    run_named(GUESTS / "courier", "done", None, options(allow=COURIER))
    start = next(seq for seq, record in enumerate(records_of(state, "done")) if isinstance(record, Start))
    plant(state, "done", "lost", start + 1)
    resolve_call("lost", 1, "rerun", state=state, cache=options().cache)
    fork_named("lost", "young", state=state)
    with pytest.raises(EffectUncertain):
        resume("young", options())
    assert resume("lost", options()).result == 7


def test_what_a_fork_cuts_off_at_an_input_never_happened(options: OptionsFor, state: Path):
    """A delivery without its slice is no delivery."""
    run_named(GUESTS / "counter", "tally", None, options())
    fork_named("tally", "young", at=1, deterministic=True, state=state)
    assert send("young", None, options()).result == 1


def test_a_snapshot_file_begins_a_life_with_what_was_known_of_its_calls(options: OptionsFor, state: Path):
    """What waited for approval still does; the agent hears of its restore."""
    with pytest.raises(ApprovalPending):
        run_named(GUESTS / "hello", "old", "hi", options(), ("llm",))
    out = state.parent / "old.snap"
    snapshot_named("old", out, state=state, cache=options().cache)
    with pytest.raises(UsageError, match=r"a person has to rule on call 1 before this snapshot goes on$"):
        restore_snapshot(out, None, options())
    with pytest.raises(ApprovalPending):
        restore_named(out, "new", None, options())
    rule_on("new", 1, "allow", state=state, cache=options().cache)
    assert resume("new", options()).result == "(scripted) You said: hi"
    assert [row["fields"]["reply"] for row in journal_rows("new", state=state) if row["kind"] == "slice"] == [
        {"ok": True, "payload": "(scripted) You said: hi"},
        {"ok": True, "payload": None},
    ]
    assert send("new", "more", options()).result == "(scripted) You said: more"
    verify("new", state=state, cache=options().cache)
    fork_named("new", "newer", state=state)
    collect_garbage(0, state=state)
    assert send("newer", "more", options()).result == "(scripted) You said: more"
    with pytest.raises(InstanceExists):
        restore_named(out, "new", None, options())


def test_an_effect_that_was_confirmed_is_not_made_again_after_a_restore(options: OptionsFor, state: Path):
    """Its answer is in the snapshot file, though the agent had not taken it in yet."""
    run_named(GUESTS / "courier", "done", None, options(allow=COURIER))
    records = records_of(state, "done")
    receipt = next(seq for seq, record in enumerate(records) if isinstance(record, Receipt))
    plant(state, "done", "dying", receipt + 1)
    out = state.parent / "dying.snap"
    snapshot_named("dying", out, state=state, cache=options().cache)
    restore_named(out, "next", None, options(allow=COURIER))
    calls = [record.call for record in records_of(state, "next") if isinstance(record, Start)]
    assert calls == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("ruling", "value", "status"),
    [("rerun", None, "not_found"), ("done", {"ok": 1}, "ok"), ("abandon", None, "failed")],
)
def test_an_uncertain_effect_waits_for_a_ruling(
    options: OptionsFor, state: Path, ruling: str, value: object, status: str
):
    """Nothing runs before it; then the agent gets what the person said, or the effect is made again."""
    run_named(GUESTS / "courier", "done", None, options(allow=COURIER))
    records = records_of(state, "done")
    start = next(seq for seq, record in enumerate(records) if isinstance(record, Start))
    plant(state, "done", "lost", start + 1)
    assert [row["status"] for row in list_instances(state) if row["name"] == "lost"] == ["uncertain"]
    with pytest.raises(EffectUncertain, match=r"^lost has a call whose effect is uncertain: 1$"):
        resume("lost", options())
    assert len(records_of(state, "lost")) == start + 1
    [question] = approvals("lost", state=state, cache=options().cache)
    assert (question["question"], question["call"]) == ("uncertain", 1)
    resolve_call("lost", 1, ruling, value, state=state, cache=options().cache)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^call 1 of lost is not uncertain$"):
        resolve_call("lost", 1, "abandon", state=state, cache=options().cache)
    assert resume("lost", options()).result == 7
    wakes = [row["fields"] for row in journal_rows("lost", state=state) if row["kind"] == "wake"]
    assert (wakes[0]["call"], wakes[0]["status"]) == (1, status)
    verify("lost", state=state, cache=options().cache)


@pytest.mark.parametrize("checkpoint", ["asked", "always", 1, 4])
def test_what_the_host_holds_is_in_step_with_the_journal(
    options: OptionsFor, state: Path, checkpoint: str | int
):
    """Notes and usage come back once, wherever snapshots were taken."""
    chosen = options(allow=COURIER, checkpoint=checkpoint)
    first = run_named(GUESTS / "courier", "held", None, chosen)
    second = send("held", None, chosen)
    assert (first.usage["calls"], second.usage["calls"]) == (1, 2)
    assert resume("held", chosen).usage == second.usage
    notes = [
        row["fields"]["payload"]["id"]
        for row in journal_rows("held", state=state)
        if row["kind"] == "wake" and "id" in (row["fields"]["payload"] or {})
    ]
    assert notes == ["n1", "n2"]
    taken = [row for row in journal_rows("held", state=state) if row["kind"] == "snapshot_taken"]
    assert bool(taken) == (checkpoint != "asked")
    done = replay("held", state=state, cache=options().cache)
    assert done.failure is None
    assert [row["memory_digest"] for row in done.rows] == [row["recorded"] for row in done.rows]
    assert done.memory_digest == second.memory_digest


def test_a_damaged_snapshot_costs_time_and_nothing_else(options: OptionsFor, state: Path):
    """They are memos: the journal does as well."""
    run_named(GUESTS / "counter", "tally", None, options(checkpoint="always"))
    import sqlite3

    with sqlite3.connect(state / "state.db") as connection:
        connection.execute("UPDATE snapshots SET header = x'00'")
    connection.close()
    assert send("tally", None, options()).result == 2


def test_an_instance_that_was_half_made_is_told_from_one_that_begins(options: OptionsFor, state: Path):
    """A fork or a restored instance without its new life is none."""
    run_named(GUESTS / "counter", "tally", None, options())
    with StateDirectory(state) as directory:
        from dataclasses import replace

        with directory.open("tally", write=False) as journal:
            born = next(journal.read())[1]
        directory.create("half", replace(born, parent=("tally", 3)), directory.agent("tally"))  # type: ignore[arg-type]
    with pytest.raises(JournalCorrupt, match=r"was not made to its end; remove it with runner rm half$"):
        send("half", None, options())
    remove_named(["half"], state=state)


def test_names_are_unique_and_known(options: OptionsFor, state: Path):
    """A name that is not there comes with those that are near."""
    run_named(GUESTS / "counter", "tally", None, options())
    with pytest.raises(InstanceExists, match=r"^there is an instance tally already$"):
        run_named(GUESTS / "counter", "tally", None, options())
    with pytest.raises(UsageError, match=r"^'Tally' is not a name for an instance$"):
        run_named(GUESTS / "counter", "Tally", None, options())
    with pytest.raises(InstanceUnknown) as caught:
        send("taly", None, options())
    assert (caught.value.message, caught.value.hint) == ("there is no instance taly", "did you mean tally?")
    with pytest.raises(InstanceUnknown):
        remove_named(["tally", "other"], state=state)
    assert [row["name"] for row in list_instances(state)] == ["tally"]
    assert remove_named(["tally", "tally"], state=state) == ["tally"]
    assert list_instances(state) == []


def test_stopping_one_that_nobody_runs_is_on_record_once(options: OptionsFor, state: Path):
    """And is no end: it may be sent to."""
    run_named(GUESTS / "counter", "tally", None, options())
    for _ in range(2):
        assert stop_named("tally", state=state) == {"instance": "tally", "pid": None}
    assert [row["status"] for row in list_instances(state)] == ["stopped"]
    assert [row["kind"] for row in journal_rows("tally", state=state)].count("stopped") == 1
    assert send("tally", None, options()).result == 2


def test_statuses_of_wakes_are_told_by_name(options: OptionsFor, state: Path):
    """Numbers are for the wire."""
    run_named(GUESTS / "courier", "held", None, options(allow=COURIER))
    statuses = {row["fields"]["status"] for row in journal_rows("held", state=state) if row["kind"] == "wake"}
    assert statuses == {Status.OK.name.lower(), Status.NOT_FOUND.name.lower()}


def test_a_state_directory_at_its_bound_keeps_what_it_has(options: OptionsFor, state: Path):
    """The message that found no room is refused; with room it is delivered."""
    run_named(GUESTS / "counter", "tally", "go", options())
    before = records_of(state, "tally")

    def send_until_full() -> None:
        for _ in range(200):
            send("tally", "x" * 10_000, options(max_state_bytes=200_000))

    with pytest.raises(StateFull) as caught:
        send_until_full()
    assert "raise it with --max-state" in str(caught.value.hint)
    after = records_of(state, "tally")
    assert after[: len(before)] == before
    replies = sum(isinstance(record, Slice) and record.reply is not None for record in after)
    assert send("tally", "go", options()).result == replies + 1
