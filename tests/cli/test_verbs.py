"""
Each verb: what it asks of the wiring, and what it shows of the answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runner import errors
from runner.cli import app
from runner.cli.envelope import REPORT_KEYS
from runner.kernel.abi import LogLevel
from runner.kernel.limits import Limits
from runner.kernel.slice import LogLine

NO_ANSWER = dict.fromkeys(REPORT_KEYS)
GITHUB_OWN = {"ARCH", "DEBUG", "ENVIRONMENT", "NAME", "OS", "TEMP", "TOOL_CACHE", "TRACKING_ID", "WORKSPACE"}


def commands() -> dict[str, Any]:
    """
    Every verb by name.
    """
    return {name: app.app.get_command(None, name) for name in app.VERBS}  # type: ignore[arg-type]


def test_run_delivers_its_word_and_prints_the_answer(command: Any, wiring: Any) -> None:
    """
    The whole of stdout is the result, and nothing is on stderr.
    """
    assert command("run", "agent", "What are you?") == (0, "hi\n", "")
    (name, path, value, options) = wiring.asked[0]
    assert (name, path, value) == ("run_agent", Path("agent"), "What are you?")
    assert options == wiring.Options(
        on_log=options.on_log, on_progress=options.on_progress, stopping=options.stopping
    )


def test_every_flag_of_run_reaches_its_option(command: Any, wiring: Any) -> None:
    """
    With its unit resolved.
    """
    Path("script.json").touch()
    outcome = command(
        "run", "agent", "--input", "-x", "--allow", "llm", "--allow", "memory:rw", "--deny", "tool",
        "--max-memory", "8MiB", "--max-fuel", "2M", "--timeout", "1.5s", "--deadline", "2m",
        "-W", "calls_in_flight=4", "--limit", "reply_bytes=1KiB", "-m", "scripted/x",
        "--script", "script.json", "--snapshot", "x.snap",
    )  # fmt: skip
    assert outcome.code == 0
    (_, _, value, options) = wiring.asked[0]
    assert value == "-x"
    assert options == wiring.Options(
        allow=("llm", "memory:rw"),
        deny=("tool",),
        limits={
            "calls_in_flight": 4,
            "reply_bytes": 1024,
            "memory_bytes": 8 << 20,
            "fuel": 2_000_000,
            "timeout_ms": 1500,
        },
        deadline_ms=120_000,
        script=Path("script.json"),
        model="scripted/x",
        snapshot=Path("x.snap"),
        on_log=options.on_log,
        on_progress=options.on_progress,
        stopping=options.stopping,
    )


def test_every_limit_has_exactly_one_flag(command: Any) -> None:
    """
    A new field of `Limits` is listed by `-W help` by itself.
    """
    text = command("run", "agent", "-W", "help").stdout
    listed = re.findall(r"^  (\w+)", text, re.MULTILINE)
    assert sorted([*listed, "fuel", "memory_bytes", "timeout_ms"]) == sorted(Limits().to_wire())
    assert "  request_bytes         1MiB\n" in text


def test_the_defaults_in_the_help_can_be_typed(command: Any, wiring: Any) -> None:
    """
    What `-W help` shows is what the flag takes.
    """
    listed = re.findall(r"^  (\w+) +(\w+)$", command("run", "agent", "-W", "help").stdout, re.MULTILINE)
    command("run", "agent", *(word for name, value in listed for word in ("-W", f"{name}={value}")))
    limits = wiring.asked[0][3].limits
    assert limits == {name: Limits().to_wire()[name] for name in limits}
    assert len(limits) == len(listed)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--max-memory", "3XB"), "'--max-memory': '3XB' is not a size such as 65536, 64KiB, 1.5MiB or 2MB"),
        (("--max-fuel", "0"), "'--max-fuel': '0' is not more than 0 and less than 2**63"),
        (("--timeout", "-1"), "'--timeout': '-1' is not a duration such as 30s, 500ms, 2m or 1h"),
        (("-W", "calls"), "'-W' / '--limit': 'calls' is not KEY=VALUE; -W help lists the keys"),
        (("-W", "calls=1"), "'-W' / '--limit': no limit 'calls'; -W help lists them"),
        (("-W", "fuel=1"), "'-W' / '--limit': fuel is set by --max-fuel"),
        (("-W", "reply_bytes=x"), "'-W' / '--limit': 'x' is not a size such as 65536, 64KiB, 1.5MiB or 2MB"),
        (("--script", "nope"), "'--script': File 'nope' does not exist"),
        (("--color", "red"), "'--color': 'red' is not one of 'auto', 'always', 'never'"),
    ],
)
def test_a_wrong_value_is_named_with_the_forms_that_are_right(
    command: Any, wiring: Any, arguments: tuple[str, ...], complaint: str
) -> None:
    """
    Exit code 2, no envelope, and nothing is started.
    """
    code, stdout, stderr = command("run", "agent", "--json", *arguments)
    assert (code, stdout) == (2, "")
    assert stderr == f"Error: Invalid value for {complaint}\n  hint: see runner run --help\n"
    assert wiring.asked == []


def test_options_can_not_be_abbreviated(command: Any) -> None:
    """
    A script that says less than it means breaks when a flag is added.
    """
    assert command("run", "agent", "--max-mem", "1MiB") == (
        2,
        "",
        (
            "Error: No such option '--max-mem'\n"
            "  hint: did you mean --max-memory or --max-fuel or --max-state?\n"
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        (("rum",), "Error: No such command 'rum'\n  hint: did you mean rm or run or resume?\n"),
        (("xyz",), "Error: No such command 'xyz'\n  hint: see runner --help\n"),
        (("run",), "Error: Missing argument 'AGENT'\n  hint: see runner run --help\n"),
        (("--nope",), "Error: No such option '--nope'\n  hint: see runner --help\n"),
    ],
)
def test_a_wrong_command_says_where_to_look(command: Any, arguments: tuple[str, ...], stderr: str) -> None:
    """
    Two lines.
    """
    assert command(*arguments) == (2, "", stderr)


def test_the_environment_mirrors_every_flag(
    command: Any, wiring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    `RUNNER_` and the flag's name, the same on every verb; the flag itself wins.
    """
    for name, value in {
        "MAX_MEMORY": "1MiB",
        "TIMEOUT": "5s",
        "ALLOW": "llm memory",
        "LIMIT": "calls_in_flight=4 reply_bytes=1KiB",
        "INPUT": "from afar",
        "JSON": "1",
    }.items():
        monkeypatch.setenv(f"RUNNER_{name}", value)
    outcome = command("run", "agent", "--timeout", "1s")
    (_, _, value, options) = wiring.asked[0]
    assert value == "from afar"
    assert options.allow == ("llm", "memory")
    assert options.limits == {
        "memory_bytes": 1 << 20,
        "timeout_ms": 1000,
        "calls_in_flight": 4,
        "reply_bytes": 1024,
    }
    assert json.loads(outcome.stdout)["ok"] is True


def test_no_variable_of_ours_is_one_that_a_ci_system_sets(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    GitHub's own agent speaks of itself as `RUNNER_*` too; nor do variables ask for help or a version.
    """
    ours = {param.name.upper() for verb in commands().values() for param in verb.params}
    assert ours & GITHUB_OWN == set()
    for name in ("HELP", "VERSION", *GITHUB_OWN):
        monkeypatch.setenv(f"RUNNER_{name}", "2.330.0")
    assert command("run", "agent", "x") == (0, "hi\n", "")


def test_the_same_flag_means_the_same_on_every_verb() -> None:
    """
    One spelling, one type, one explanation; only `-o` of verbs that write a file of their own names that.
    """
    seen: dict[str, Any] = {}
    for name, verb in commands().items():
        for param in verb.params:
            if param.param_type_name != "option" or (
                param.name == "output" and name in ("build", "snapshot", "journal")
            ):
                continue
            facts = (param.opts, param.type.name, param.help, param.multiple)
            assert seen.setdefault(param.name, facts) == facts


def test_json_is_one_document_with_the_whole_report(command: Any, wiring: Any) -> None:
    """
    Keys in the order of the contract.
    """
    snapshot = {"path": "x.snap", "size_bytes": 10, "pages": 2}
    wiring.reports(result={"n": b"\x00"}, snapshot=snapshot)
    code, stdout, stderr = command("run", "agent", "x", "--json")
    assert (code, stderr) == (0, "")
    assert list(json.loads(stdout).items()) == [
        ("ok", True),
        ("result", {"n": {"$bytes": "AA=="}}),
        ("instance", "i-1"),
        ("agent", "hello"),
        ("journal", None),
        ("snapshot", snapshot),
        ("usage", {"calls": 1, "input_tokens": None, "output_tokens": None}),
        ("limits", {"fuel": 2_000_000_000}),
        ("fuel", 1234),
        ("timing_ms", {"total": 12.5}),
        ("memory_digest", "sha256:" + "0" * 64),
        ("waiting", []),
    ]
    assert stdout.count("\n") == 1


def test_a_failure_in_json_has_the_same_outer_keys(command: Any, wiring: Any) -> None:
    """
    And its error; stderr stays empty, for stdout shows it.
    """
    wiring.raises(errors.GuestReturnedError("no such note", {"id": b"\x01"}))
    code, stdout, stderr = command("run", "agent", "x", "--json")
    assert (code, stderr) == (1, "")
    assert json.loads(stdout) == {
        "ok": False,
        **NO_ANSWER,
        "error": {
            "kind": "guest",
            "message": "no such note",
            "hint": None,
            "exception": "GuestReturnedError",
            "details": {"data": {"id": {"$bytes": "AQ=="}}},
        },
    }


def test_a_failure_for_people_leaves_stdout_empty(command: Any, wiring: Any) -> None:
    """
    Three lines on stderr.
    """
    wiring.raises(errors.Denied("a", "llm.chat", "--deny llm"))
    lines = (
        "Error: agent a needs llm.chat, which is not granted",
        "  rule: --deny llm",
        "  hint: remove --deny llm",
    )
    assert command("run", "agent", "x") == (3, "", "".join(f"{line}\n" for line in lines))


def test_a_failure_as_a_json_log_line(command: Any, wiring: Any) -> None:
    """
    Whoever parses stderr gets the error as data.
    """
    wiring.raises(errors.FuelExhausted(5))
    code, stdout, stderr = command("run", "agent", "x", "--log-format", "json")
    assert (code, stdout) == (4, "")
    assert json.loads(stderr)["error"]["details"] == {"limit": "fuel", "value": 5, "bound": 5}


def test_an_unforeseen_error_is_our_bug(command: Any, wiring: Any) -> None:
    """
    Exit code 70, a traceback only with -vv, also beside JSON.
    """
    wiring.raises(ZeroDivisionError("x\x1b"))
    code, stdout, stderr = command("run", "agent", "x")
    assert (code, stdout) == (70, "")
    assert stderr == (
        "Error: internal error: ZeroDivisionError: x\\x1b\n"
        "  hint: this is a bug of runner, please report it with the traceback that -vv shows\n"
    )
    code, stdout, stderr = command("run", "agent", "x", "-vv", "--json")
    assert json.loads(stdout)["error"]["kind"] == "internal"
    assert stderr.splitlines()[-1] == "ZeroDivisionError: x\\x1b"


def test_a_snapshot_that_can_not_be_written_is_refused_before_the_run(command: Any, wiring: Any) -> None:
    """
    The agent would have worked for nothing.
    """
    assert command("run", "agent", "x", "--snapshot", "no/where") == (
        2,
        "",
        "Error: can't write 'no/where'\n  hint: --snapshot takes a file in a folder that exists\n",
    )
    assert wiring.asked == []


def test_an_output_file_takes_the_result_and_stderr_the_error(command: Any, wiring: Any) -> None:
    """
    Stdout stays empty; a failure is said where a person looks, and in the file when that is JSON.
    """
    assert command("run", "agent", "x", "-o", "out") == (0, "", "")
    assert Path("out").read_bytes() == b"hi\n"
    wiring.raises(errors.FuelExhausted(5))
    code, stdout, stderr = command("run", "agent", "x", "--json", "-o", "out")
    assert (code, stdout) == (4, "")
    assert stderr == "Error: limit fuel exceeded: 5 of 5\n  hint: raise it with --max-fuel\n"
    assert json.loads(Path("out").read_text(encoding="utf-8"))["ok"] is False


def test_a_result_that_can_not_be_kept_is_refused_before_the_run(command: Any, wiring: Any) -> None:
    """
    The document about it goes to stderr, where else.
    """
    code, stdout, stderr = command("run", "agent", "x", "--json", "-o", "no/where")
    assert (code, stdout) == (2, "")
    assert stderr == (
        "Error: can't write 'no/where'\n  hint: --output takes a file in a folder that exists\n"
    )
    assert wiring.asked == []


@pytest.mark.parametrize("verb", ["run", "restore", "inspect", "check", "build"])
def test_a_missing_file_is_told_in_json_too(command: Any, wiring: Any, verb: str) -> None:
    """
    The commonest mistake is one that programs can read.
    """
    code, stdout, _ = command(verb, "nope", "--json")
    assert code == 2
    document = json.loads(stdout)
    assert document["ok"] is False
    assert re.fullmatch(r"no [\w ]+ at 'nope'", document["error"]["message"])
    assert wiring.asked == []


def test_a_snapshot_is_said_with_the_command_that_goes_on(command: Any, wiring: Any) -> None:
    """
    On stderr, unless quiet is wanted.
    """
    wiring.reports(snapshot={"path": "my agent.snap", "size_bytes": 2048, "pages": 2})
    code, stdout, stderr = command("run", "agent", "x", "--snapshot", "my agent.snap")
    assert (code, stdout) == (0, "hi\n")
    assert stderr == (
        "runner: snapshot my agent.snap: 2 pages, 2.0 KiB\n"
        "  hint: go on with: runner restore 'my agent.snap'\n"
    )
    assert command("run", "agent", "x", "--snapshot", "my agent.snap", "-q").stderr == ""


def test_verbose_sums_up(command: Any) -> None:
    """
    One line after the result.
    """
    assert command("run", "agent", "x", "-v").stderr == ("runner: instance i-1: fuel 1234, total 12.5 ms\n")


def test_an_agents_log_lines_go_to_stderr(command: Any, wiring: Any) -> None:
    """
    As they come, through the callback that the verb hands over.
    """

    def answer() -> Any:
        wiring.asked[-1][3].on_log(LogLine(LogLevel.WARNING, "a\nb", {"k": 1}))
        wiring.reports()
        return wiring.answer()

    wiring.answer = answer
    assert command("run", "agent", "x") == (0, "hi\n", 'agent warning: a\\nb {"k": 1}\n')


def test_restore_with_input_prints_the_answer(command: Any, wiring: Any) -> None:
    """
    Like `run`.
    """
    Path("x.snap").touch()
    assert command("restore", "x.snap", "again", "--agent", "agent", "--deterministic") == (0, "hi\n", "")
    (name, path, value, options, agent) = wiring.asked[0]
    assert (name, path, value, agent) == ("restore_snapshot", Path("x.snap"), "again", Path("agent"))
    assert options == wiring.Options(
        deterministic=True, on_log=options.on_log, on_progress=options.on_progress, stopping=options.stopping
    )


def test_restore_without_input_prints_the_state(command: Any, wiring: Any) -> None:
    """
    For people; `--json` is the report as always.
    """
    Path("x.snap").touch()
    wiring.reports(result=None)
    assert command("restore", "x.snap").stdout == (
        "instance       i-1\n"
        "agent          hello\n"
        f"memory digest  sha256:{'0' * 64}\n"
        "fuel           1234\n"
        "limits\n"
        "  fuel  2000000000\n"
    )
    assert wiring.asked[0][2] is None
    assert json.loads(command("restore", "x.snap", "--json").stdout)["instance"] == "i-1"


def test_restore_without_input_prints_an_answer_that_was_still_owed(command: Any, wiring: Any) -> None:
    """
    The snapshot was taken in the middle of a delivery.
    """
    Path("x.snap").touch()
    wiring.reports(result="at last")
    assert command("restore", "x.snap") == (0, "at last\n", "")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("inspect", "agent"), ("inspect_path", Path("agent"))),
        (
            ("check", "agent", "--allow", "llm", "--deny", "tool"),
            ("check_agent", Path("agent"), ("llm",), ("tool",)),
        ),
        (("build", "agent"), ("build_agent", Path("agent"), None)),
        (("build", "agent", "-o", "x.wasm"), ("build_agent", Path("agent"), Path("x.wasm"))),
        (("new", "fresh"), ("new_agent", Path("fresh"), "js")),
        (("new", "fresh", "--lang", "c"), ("new_agent", Path("fresh"), "c")),
    ],
)
def test_the_other_verbs_show_facts(
    command: Any, wiring: Any, arguments: tuple[str, ...], asked: tuple[Any, ...]
) -> None:
    """
    Aligned for people, one document for programs.
    """
    wiring.answer = lambda: {"name": "a\x1b", "size_bytes": 10}
    assert command(*arguments).stdout == "name  a\\x1b\nsize  10 B\n"
    assert wiring.asked == [asked]
    document = '{"ok": true, "result": {"name": "a\\u001b", "size_bytes": 10}}\n'
    assert command(*arguments, "--json").stdout == document


def test_building_says_what_it_does_on_stderr(command: Any, wiring: Any) -> None:
    """
    A compiler takes its time.
    """
    wiring.answer = lambda: {"path": "x.wasm"}
    assert command("build", "agent").stderr == "runner: compiling\n"
    assert command("build", "agent", "-q").stderr == ""


def test_new_says_the_next_command(command: Any, wiring: Any) -> None:
    """
    One that works as it stands.
    """
    wiring.answer = lambda: {"path": "my agent"}
    assert command("new", "my agent").stderr == (
        "runner: my agent is an agent\n  hint: run it with: runner run 'my agent' hi\n"
    )


def test_doctor_lists_what_is_there_and_what_mends_the_rest(command: Any, wiring: Any) -> None:
    """
    And never fails itself.
    """
    wiring.answer = lambda: [
        {"name": "engine", "ok": True, "found": "wasmtime 50.0.1", "hint": None},
        {"name": "compiler", "ok": False, "found": "none", "hint": "pip install"},
    ]
    code, stdout, stderr = command("doctor")
    assert (code, stderr) == (0, "")
    assert stdout == (
        "name      ok   found            hint\n"
        "engine    yes  wasmtime 50.0.1  -\n"
        "compiler  no   none             pip install\n"
    )
    result = json.loads(command("doctor", "--json").stdout)["result"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result.pop("as_of"))
    assert result == {"counts": {"ok": 1, "failed": 1}, "rows": wiring.answer(), "truncated": False}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_prints_a_script(command: Any, shell: str) -> None:
    """
    For every shell that click knows.
    """
    code, stdout, _ = command("completion", shell)
    assert code == 0
    assert "_RUNNER_COMPLETE" in stdout


def test_the_version_names_the_engine_too(command: Any) -> None:
    """
    One line to paste into a report.
    """
    code, stdout, _ = command("--version")
    assert code == 0
    assert re.fullmatch(r"runner [\w. ]+ \(wasmtime [\d.]+, CPython [\d.]+, \w+ \w+\)\n", stdout)


def test_the_table_of_verbs_is_what_the_verbs_say(command: Any) -> None:
    """
    `runner --help` reads the table, so that it imports none of them.
    """
    for name, verb in commands().items():
        assert " ".join(verb.help.split("\n\n")[0].split()) == app.VERBS[name]
    text = command("--help").stdout
    assert re.findall(r"^  (\w+)  ", text.partition("Commands:")[2], re.MULTILINE) == list(app.VERBS)


@pytest.mark.parametrize("verb", list(app.VERBS))
def test_the_help_of_every_verb_ends_with_examples(command: Any, verb: str) -> None:
    """
    Two or three, unwrapped, so that they can be copied.
    """
    examples = commands()[verb].examples
    assert 2 <= len(examples) <= 3
    text = command(verb, "--help").stdout
    assert text.endswith("\n\nExamples:\n" + "".join(f"  {line}\n" for line in examples))
    assert all("runner " + verb in line for line in examples)


def test_providers_and_models_are_listed(command: Any, wiring: Any) -> None:
    """
    As a table or as a document; a model is printed the way --model takes it.
    """
    row = {"name": "lab", "kind": "openai", "origin": "https://a", "model": None, "key": "missing"}
    wiring.answer = lambda: [row]
    table = "name  kind    origin     model  key\nlab   openai  https://a  -      missing\n"
    assert command("providers") == (0, table, "")
    assert json.loads(command("providers", "--json").stdout)["result"]["rows"] == [row]
    wiring.answer = lambda: ["small", "a/large\x1b[31m"]
    assert command("models", "lab") == (0, "lab/small\nlab/a/large\\x1b[31m\n", "")
    document = json.loads(command("models", "lab", "--json").stdout)["result"]
    assert document["counts"] == {"models": 2}
    assert wiring.asked[-1] == ("list_models", "lab", {})


def test_a_key_comes_from_stdin(command: Any, wiring: Any) -> None:
    """
    Never from the command line, and no output has it.
    """
    wiring.answer = lambda: {"provider": "lab", "origin": "https://a", "path": "keys.json"}
    outcome = command("keys", "set", "lab", stdin=b"sk-canary\n")
    assert outcome == (0, "", "runner: the key of lab is stored for https://a\n")
    assert wiring.asked == [("set_key", "lab", "sk-canary", {})]
    assert "sk-canary" not in command("keys", "set", "lab", "--json", stdin=b"sk-canary").stdout
    refused = command("keys", "set", "lab", "sk-canary", stdin=b"")
    assert refused.code == 2
    garbled = command("keys", "set", "lab", stdin=b"sk-\xff")
    assert garbled == (2, "", "Error: that is no key: a key is one word of plain characters\n")


def test_keys_are_listed_and_removed(command: Any, wiring: Any) -> None:
    """
    What is asked for must make sense.
    """
    wiring.answer = lambda: [{"provider": "lab", "origin": "https://a"}]
    assert command("keys", "list") == (0, "provider  origin\nlab       https://a\n", "")
    assert json.loads(command("keys", "list", "--json").stdout)["result"]["counts"] == {"keys": 1}
    wiring.answer = list
    assert command("keys", "list").stderr.startswith("runner: no keys are stored\n")
    wiring.answer = lambda: {"provider": "lab"}
    assert command("keys", "remove", "lab") == (0, "", "runner: the key of lab is removed\n")
    assert command("keys", "list", "lab").code == 2
    for action in ("set", "remove"):
        said = f"Error: {action} needs a provider\n  hint: runner keys {action} PROVIDER\n"
        assert command("keys", action, stdin=b"") == (2, "", said)
