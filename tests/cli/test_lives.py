"""
The verbs of named instances: what each asks of the wiring, what it shows, and how it asks a person.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner import errors
from runner.cli.envelope import REPORT_KEYS
from runner.cli.shell import Wiring, load_wiring
from runner.errors import ApprovalPending, EffectUncertain, Nondeterminism

from .conftest import LIVES, make_report

ASKED = {
    "instance": "rex",
    "call": 3,
    "question": "approve",
    "operation": "llm.chat",
    "request": {"messages": ["\x1b[2Jhi"]},
}


class Person(io.StringIO):
    """
    A terminal at which somebody types.
    """

    def isatty(self) -> bool:
        """
        It is one.
        """
        return True


@pytest.fixture
def sits_there(monkeypatch: pytest.MonkeyPatch) -> Any:
    """
    Puts a person at both ends, who will type what is given; returns what they see.
    """

    def sit(typed: str) -> Person:
        seen = Person()
        monkeypatch.setattr("runner.cli.console._is_colored", lambda *_: False)
        monkeypatch.setattr("sys.stderr", seen)
        person = Person(typed)
        monkeypatch.setattr("runner.cli.console.sys", SimpleNamespace(stdin=person, stdout=None, stderr=seen))
        return seen

    return sit


def in_turn(*answers: Any) -> Any:
    """
    Answers one after the other; errors are raised.
    """
    left = list(answers)

    def answer() -> Any:
        value = left.pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    return answer


def test_the_wiring_has_what_the_verbs_ask_for() -> None:
    """
    The protocol, the real module and the stand-in agree.
    """
    real = load_wiring()
    wanted = {name for name in vars(Wiring) if not name.startswith("_")}
    assert wanted >= LIVES
    assert [name for name in sorted(wanted) if not hasattr(real, name)] == []


def test_a_name_makes_a_named_instance(command: Any, wiring: Any) -> None:
    """
    With what a person must approve, and where it lives.
    """
    outcome = command(
        "run", "agent", "go", "--as", "rex", "--ask", "llm", "--ask", "tool:x*", "--allow", "tool",
        "--state", "here", "--checkpoint", "100",
    )  # fmt: skip
    assert outcome == (0, "hi\n", "")
    (name, path, instance, value, options, ask, _) = wiring.asked[0]
    assert (name, path, instance, value, ask) == ("run_named", Path("agent"), "rex", "go", ("llm", "tool:x*"))
    assert (options.allow, options.state, options.checkpoint) == (("tool",), Path("here"), 100)
    assert options.stopping() is False


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--ask", "llm"), "--ask is for instances with a name, which can wait for the answer"),
        (("--as", "x", "--snapshot", "y"), "--snapshot is for instances without a name"),
    ],
)
def test_flags_that_do_not_fit_a_name_are_refused(
    command: Any, wiring: Any, arguments: tuple[str, ...], complaint: str
) -> None:
    """
    Nothing is started.
    """
    code, stdout, stderr = command("run", "agent", "x", *arguments)
    assert (code, stdout) == (2, "")
    assert stderr.splitlines()[0] == f"Error: {complaint}"
    assert wiring.asked == []


def test_a_moment_for_checkpoints_is_a_word_or_a_number(command: Any) -> None:
    """
    Anything else is told both.
    """
    code, _, stderr = command("send", "rex", "x", "--checkpoint", "never")
    assert code == 2
    assert stderr.startswith(
        "Error: Invalid value for '--checkpoint': 'never' is not asked, always or a number of records\n"
    )


def test_send_takes_no_grants(command: Any, wiring: Any) -> None:
    """
    They were settled when the instance was made; a deadline and a model are of the moment.
    """
    assert command("send", "rex", "go", "--deadline", "2s", "-m", "scripted/x") == (0, "hi\n", "")
    (name, instance, value, options, _) = wiring.asked[0]
    assert (name, instance, value) == ("send", "rex", "go")
    assert (options.deadline_ms, options.model, options.checkpoint) == (2000, "scripted/x", "asked")
    assert command("send", "rex", "go", "--allow", "llm").code == 2
    assert command("send", "rex", "go", "--max-fuel", "1").code == 2


@pytest.mark.parametrize(
    ("arguments", "asked"), [(("rex",), ("rex", {"last": False})), (("--last",), (None, {"last": True}))]
)
def test_resume_prints_the_answer_that_was_owed(
    command: Any, wiring: Any, arguments: tuple[str, ...], asked: tuple[Any, Any]
) -> None:
    """
    Of the instance that is named, or of the last.
    """
    assert command("resume", *arguments) == (0, "hi\n", "")
    (name, instance, _, keywords) = wiring.asked[0]
    assert (name, instance, keywords) == ("resume", *asked)


def test_resume_takes_a_name_or_the_last(command: Any, wiring: Any) -> None:
    """
    Not both.
    """
    assert (
        command("resume", "rex", "--last").stderr == "Error: both NAME and --last\n  hint: give one of them\n"
    )
    assert wiring.asked == []


def test_restore_with_a_name_begins_a_life(command: Any, wiring: Any) -> None:
    """
    With its own grants and questions.
    """
    Path("x.snap").touch()
    assert command("restore", "x.snap", "go", "--as", "rex", "--ask", "llm", "--agent", "agent").code == 0
    (name, path, instance, value, _, keywords) = wiring.asked[0]
    assert (name, path, instance, value) == ("restore_named", Path("x.snap"), "rex", "go")
    assert keywords == {"agent": Path("agent"), "ask": ("llm",)}


def test_waiting_for_a_person_ends_with_6_and_the_next_command(command: Any, wiring: Any) -> None:
    """
    As it stands, with the state directory that was named.
    """
    wiring.raises(ApprovalPending("rex", (3, 4)))
    code, stdout, stderr = command("send", "rex", "go", "--state", "my state")
    assert (code, stdout) == (6, "")
    assert stderr == (
        "Error: rex waits for approval of call 3, 4\n"
        "  hint: runner approve rex 3 --state 'my state' && runner resume rex --state 'my state'\n"
    )


def test_an_uncertain_effect_ends_with_6_and_the_three_rulings(command: Any, wiring: Any) -> None:
    """
    Nobody is asked y or n: it takes finding out.
    """
    wiring.raises(EffectUncertain("rex", (3,)))
    code, _, stderr = command("resume", "rex")
    assert code == 6
    assert stderr == (
        "Error: rex has a call whose effect is uncertain: 3\n"
        "  hint: find out, then: runner resolve rex 3 --rerun | --done RESULT | --abandon; "
        "then: runner resume rex\n"
    )


def test_waiting_is_a_document_too(command: Any, wiring: Any) -> None:
    """
    With the calls, and all keys of a report.
    """
    wiring.raises(ApprovalPending("rex", (3,)))
    code, stdout, stderr = command("resume", "rex", "--json")
    document = json.loads(stdout)
    assert (code, stderr, list(document)) == (6, "", ["ok", *REPORT_KEYS, "error"])
    assert document["error"]["kind"] == "needs_decision"
    assert document["error"]["details"] == {"instance": "rex", "calls": [3]}


@pytest.mark.parametrize(
    ("typed", "verdict", "because"),
    [
        ("y\n", "allow", None),
        ("YES\n", "allow", None),
        ("n\n", "deny", "a person said no"),
        ("\n", "deny", "a person said no"),
    ],
)
def test_on_a_terminal_the_whole_call_is_shown_and_asked_about(
    command: Any, wiring: Any, sits_there: Any, typed: str, verdict: str, because: str | None
) -> None:
    """
    The ruling is written down, then the instance goes on.
    """
    seen = sits_there(typed)
    wiring.answer = in_turn(ApprovalPending("rex", (3,)), [ASKED], None, make_report(result=None))
    assert command("run", "agent", "go", "--as", "rex").code == 0
    assert seen.getvalue() == (
        'rex asks for llm.chat (call 3):\n{\n  "messages": [\n    "\\u001b[2Jhi"\n  ]\n}\nAllow it? [y/N] '
    )
    assert [call[0] for call in wiring.asked] == ["run_named", "approvals", "rule_on", "resume"]
    assert wiring.asked[2][1:] == ("rex", 3, verdict, {"because": because, "state": None})


def test_a_message_that_was_not_delivered_is_sent_again(command: Any, wiring: Any, sits_there: Any) -> None:
    """
    Once what was open before it has its answer.
    """
    sits_there("y\n")
    pending = ApprovalPending("rex", (3,))
    pending.details["delivered"] = False
    wiring.answer = in_turn(pending, [ASKED], None, make_report())
    command("send", "rex", "go")
    assert [call[:3] for call in wiring.asked if call[0] == "send"] == [("send", "rex", "go")] * 2


def test_who_leaves_the_question_open_finds_it_again(command: Any, wiring: Any, sits_there: Any) -> None:
    """
    End of input is no verdict.
    """
    seen = sits_there("")
    wiring.answer = in_turn(ApprovalPending("rex", (3,)), [ASKED])
    assert command("resume", "rex").code == 6
    assert "hint: runner approve rex 3 && runner resume rex" in seen.getvalue()


def test_no_input_never_asks(command: Any, wiring: Any, sits_there: Any) -> None:
    """
    Also on a terminal.
    """
    sits_there("y\n")
    wiring.raises(ApprovalPending("rex", (3,)))
    assert command("send", "rex", "go", "--no-input").code == 6
    assert [call[0] for call in wiring.asked] == ["send"]


def test_the_first_of_two_verdicts_stands(command: Any, wiring: Any, sits_there: Any) -> None:
    """
    Somebody else was faster; the instance goes on with what they said.
    """
    sits_there("y\n")
    late = errors.UsageError("call 3 of rex does not wait for approval")
    wiring.answer = in_turn(ApprovalPending("rex", (3,)), [ASKED], late, make_report(result=None))
    assert command("resume", "rex").code == 0


def test_calls_that_wait_behind_an_answer_are_told(command: Any, wiring: Any) -> None:
    """
    The delivery has ended, the call has not.
    """
    wiring.reports(waiting=(3,))
    assert command("send", "rex", "go").stderr == (
        "runner: i-1 waits for approval of call 3\n  hint: see them: runner approvals i-1\n"
    )


def test_ps_is_a_table_or_a_listing(command: Any, wiring: Any) -> None:
    """
    Counted by where they stand; none is said on stderr.
    """
    rows = [{"name": "rex", "status": "idle"}, {"name": "tom", "status": "open"}]
    wiring.answer = lambda: rows
    assert command("ps").stdout == "name  status\nrex   idle\ntom   open\n"
    result = json.loads(command("ps", "--json", "--state", "here").stdout)["result"]
    assert (result["counts"], result["rows"], result["truncated"]) == ({"idle": 1, "open": 1}, rows, False)
    assert wiring.asked[-1] == ("list_instances", Path("here"), {})
    rows.clear()
    assert command("ps") == (
        0, "", "runner: there are no named instances\n  hint: make one: runner run AGENT --as NAME\n",
    )  # fmt: skip


def test_approvals_show_each_call_in_one_line(command: Any, wiring: Any) -> None:
    """
    Scrubbed.
    """
    wiring.answer = lambda: [ASKED]
    assert command("approvals", "rex").stdout == (
        "instance  call  question  operation  request\n"
        'rex       3     approve   llm.chat   {"messages": ["\\u001b[2Jhi"]}\n'
    )
    assert wiring.asked == [("approvals", "rex", {"state": None})]
    wiring.answer = list
    assert command("approvals").stderr == "runner: nothing waits for a person\n"
    assert json.loads(command("approvals", "--json").stdout)["result"]["rows"] == []


@pytest.mark.parametrize(
    ("arguments", "asked", "said"),
    [
        (
            ("approve", "rex", "3"),
            ("rule_on", "rex", 3, "allow", {"state": None}),
            "call 3 of rex is allowed\n  hint: make it: runner resume rex",
        ),
        (
            ("deny", "rex", "3", "--because", "no"),
            ("rule_on", "rex", 3, "deny", {"because": "no", "state": None}),
            "call 3 of rex is denied\n  hint: tell it: runner resume rex",
        ),
        (
            ("resolve", "rex", "3", "--rerun"),
            ("resolve_call", "rex", 3, "rerun", None, {"state": None}),
            "call 3 of rex: rerun\n  hint: go on with: runner resume rex",
        ),
        (
            ("resolve", "rex", "3", "--done", '{"n": 1}'),
            ("resolve_call", "rex", 3, "done", {"n": 1}, {"state": None}),
            "call 3 of rex: done\n  hint: go on with: runner resume rex",
        ),
        (
            ("resolve", "rex", "3", "--abandon"),
            ("resolve_call", "rex", 3, "abandon", None, {"state": None}),
            "call 3 of rex: abandon\n  hint: go on with: runner resume rex",
        ),
        (
            ("fork", "rex", "max", "--at", "2", "--deterministic"),
            ("fork_named", "rex", "max", {"at": 2, "deterministic": True, "state": None}),
            "max has 3 records of rex\n  hint: go on with: runner send max",
        ),
        (
            ("stop", "rex"),
            ("stop_named", "rex", {"state": None}),
            "rex is stopped, process 7 has ended\n  hint: go on with: runner resume rex",
        ),
    ],
)
def test_what_was_done_is_said_with_the_next_command(
    command: Any, wiring: Any, arguments: tuple[str, ...], asked: tuple[Any, ...], said: str
) -> None:
    """
    On stderr for people, a document for programs.
    """
    facts = {"records": 3, "pid": 7}
    wiring.answer = lambda: facts
    assert command(*arguments) == (0, "", f"runner: {said}\n")
    assert wiring.asked == [asked]
    assert json.loads(command(*arguments, "--json").stdout) == {"ok": True, "result": facts}


def test_an_upgrade_says_what_the_instance_was_and_is(command: Any, wiring: Any, tmp_path: Path) -> None:
    """
    Rules and bounds are passed on; what they are added to knows the wiring.
    """
    agent = tmp_path / "two.wat"
    agent.write_text("(module)")
    facts = {
        "agent": "counter",
        "version": "2.0.0",
        "before": {"agent": "counter", "version": "1.0.0"},
    }
    wiring.answer = lambda: facts
    flags = ("--allow", "llm", "--ask", "tool", "--max-fuel", "5M", "--timeout", "2s", "--max-state", "1MiB")
    assert command("upgrade", "rex", str(agent), *flags) == (
        0,
        "",
        "runner: rex is counter 2.0.0 now, and was counter 1.0.0\n  hint: go on with: runner send rex\n",
    )
    [(name, instance, path, options, ask, _)] = wiring.asked
    assert (name, instance, path, ask) == ("upgrade_named", "rex", agent, ("tool",))
    assert (options.allow, options.limits) == (("llm",), {"fuel": 5_000_000, "timeout_ms": 2_000})
    assert options.max_state_bytes == 1 << 20
    document = json.loads(command("upgrade", "rex", str(agent), "--json").stdout)
    assert document == {"ok": True, "result": facts}
    assert command("upgrade", "rex", str(tmp_path / "none")).code == 2


@pytest.mark.parametrize("rulings", [(), ("--rerun", "--abandon"), ("--done", "x", "--rerun")])
def test_a_ruling_is_one_of_three(command: Any, wiring: Any, rulings: tuple[str, ...]) -> None:
    """
    None is guessed.
    """
    assert command("resolve", "rex", "3", *rulings) == (
        2,
        "",
        "Error: what became of the call?\n  hint: say one of --rerun, --done RESULT and --abandon\n",
    )
    assert wiring.asked == []


def test_rm_asks_whether_it_is_meant(command: Any, wiring: Any, sits_there: Any) -> None:
    """
    On a terminal; without one it takes --yes.
    """
    wiring.answer = lambda: ["rex", "tom"]
    assert command("rm", "rex", "tom").stderr == (
        "Error: nothing was removed\n  hint: say --yes: what is removed is gone for good\n"
    )
    assert command("rm", "rex", "tom", "--yes").stderr == "runner: removed rex, tom\n"
    seen = sits_there("n\ny\n")
    assert command("rm", "rex").code == 2
    assert command("rm", "rex").code == 0
    assert seen.getvalue().startswith("rex: journal and snapshots will be gone for good.\nRemove? [y/N] ")
    assert [call[1] for call in wiring.asked] == [("rex", "tom"), ("rex",)]


def test_snapshot_prints_where_it_is(command: Any, wiring: Any) -> None:
    """
    Or, if wanted, what it took.
    """
    wiring.answer = lambda: {"instance": "rex", "size_bytes": 10}
    assert command("snapshot", "rex") == (0, "rex.snap\n", "")
    assert command("snapshot", "rex", "-o", "x.snap", "--stats").stdout == "instance  rex\nsize      10 B\n"
    assert [call[:3] for call in wiring.asked] == [
        ("snapshot_named", "rex", Path("rex.snap")),
        ("snapshot_named", "rex", Path("x.snap")),
    ]
    assert command("snapshot", "rex", "-o", "no/where").code == 2


def test_journal_is_a_line_for_each_record(command: Any, wiring: Any) -> None:
    """
    What is empty is left out, digests are cut; nothing of it can forge a line.
    """
    fields = {
        "number": 1,
        "digest": "sha256:" + "ab" * 32,
        "reply": None,
        "payload": {"n": "x\ny"},
        "kind": "message",
    }
    wiring.answer = lambda: [{"seq": 1, "kind": "delivery", "fields": fields}]
    assert command("journal", "rex").stdout == (
        "seq  record    what\n"
        '1    delivery  number=1 digest=sha256:abababababab payload={"n": "x\\ny"} kind=message\n'
    )
    result = json.loads(command("journal", "rex", "--json").stdout)["result"]
    assert result["rows"] == [{"seq": 1, "kind": "delivery", "fields": fields}]
    assert result["counts"] == {"delivery": 1}


def test_journal_goes_to_a_file_with_its_agent(command: Any, wiring: Any) -> None:
    """
    And the command that reads it is said.
    """
    wiring.answer = lambda: {"records": 7, "size_bytes": 2048}
    assert command("journal", "rex", "-o", "my rex.journal").stderr == (
        "runner: my rex.journal: 7 records, 2.0 KiB\n"
        "  hint: do it all again: runner replay 'my rex.journal'\n"
    )
    assert wiring.asked == [("export_journal", "rex", Path("my rex.journal"), {"state": None})]


def test_replay_prints_slices_up_to_where_it_differs(command: Any, wiring: Any) -> None:
    """
    Then the difference, with 9.
    """
    rows = [{"seq": 2, "memory_digest": "sha256:aa", "recorded": "sha256:aa"}]
    done = SimpleNamespace(name="rex", rows=rows, records=3, memory_digest="sha256:aa", failure=None)
    wiring.answer = lambda: done
    assert command("replay", "rex", "--to", "2") == (0, "seq  memory digest\n2    sha256:aa\n", "")
    assert wiring.asked == [("replay", "rex", {"to": 2, "limits": {}, "state": None})]
    assert command("replay", "rex", "--max-memory", "1GiB", "-W", "reply_bytes=2MiB").code == 0
    assert wiring.asked[-1][-1]["limits"] == {"memory_bytes": 1 << 30, "reply_bytes": 2 << 20}
    assert json.loads(command("replay", "rex", "--json").stdout)["result"]["rows"] == rows
    done.failure = Nondeterminism(2, "digest", "a", "b")
    code, stdout, stderr = command("replay", "rex")
    assert (code, stdout.count("\n")) == (9, 2)
    assert stderr.startswith("Error: replay differs at record 2: digest was a, now b\n")
    error = json.loads(command("replay", "rex", "--json").stdout)["error"]
    assert (error["details"]["recorded"], error["details"]["observed"]) == ("a", "b")


def test_verify_and_gc_show_facts(command: Any, wiring: Any) -> None:
    """
    Aligned for people, one document for programs.
    """
    wiring.answer = lambda: {"slices": 2}
    for verb, arguments, asked in [
        ("verify", ("rex",), ("verify", "rex", {"limits": {}, "state": None})),
        ("gc", ("--keep", "2"), ("collect_garbage", 2, {"state": None})),
    ]:
        wiring.asked.clear()
        assert command(verb, *arguments).stdout == "slices  2\n"
        assert wiring.asked == [asked]
        assert json.loads(command(verb, *arguments, "--json").stdout)["result"] == {"slices": 2}


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("tally",), ("inspect_named", "tally", {"at": None, "state": None})),
        (("other", "--at", "3"), ("inspect_named", "other", {"at": 3, "state": None})),
        (("agent",), ("inspect_path", Path("agent"))),
    ],
)
def test_inspect_knows_names_too(
    command: Any, wiring: Any, arguments: tuple[str, ...], asked: tuple[Any, ...]
) -> None:
    """
    A path that is there comes first, unless a record is asked for.
    """
    wiring.answer = lambda: {"name": "x"}
    assert command("inspect", *arguments).stdout == "name  x\n"
    assert wiring.asked == [asked]
