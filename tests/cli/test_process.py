"""
The command as a process of its own, on real agents: streams, signals, exit codes.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from runner.build.engines.store import ENGINES_VARIABLE
from runner.cli.app import VERBS, app
from runner.cli.command import Verb

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = [sys.executable, "-m", "runner.cli"]

Process = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> dict[str, str]:
    """
    The environment of a command: no variable of ours but for the engines, compiled code kept for this run of
    the tests, named instances for this test.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RUNNER_") or name == ENGINES_VARIABLE
    }
    cache = tmp_path_factory.getbasetemp() / "cli-cache"
    state = tmp_path / "state"
    return kept | {
        "XDG_CACHE_HOME": str(cache),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Process:
    """
    Runs the command in a folder with nothing but `guests`, and without input unless some is given.
    """
    (tmp_path / "guests").symlink_to(ROOT / "guests")

    def run(
        *arguments: str, given: bytes | None = None, stdout: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=environment,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=50,
        )

    return run


def test_the_first_command_of_a_newcomer_prints_the_answer_alone(process: Process) -> None:
    """
    The model's words on stdout, nothing on stderr.
    """
    done = process("run", "guests/hello", "What are you?")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"(scripted) You said: What are you?\n")


def test_a_counter_counts_through_snapshots_in_three_processes(process: Process) -> None:
    """
    1, 2, 3.
    """
    counts = [
        process("run", "guests/counter", "--snapshot", "c.snap", "-q"),
        process("restore", "c.snap", "again", "--snapshot", "c.snap", "-q"),
        process("restore", "c.snap", "--input", "again", "-q"),
    ]
    assert [(done.returncode, done.stderr) for done in counts] == [(0, b"")] * 3
    assert [json.loads(done.stdout) for done in counts] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("run", "guests/hello", "hi"), 0, None),
        (("run", "guests/notes-missing"), 2, "usage"),
        (("run", "guests/hello", "hi", "--deny", "llm"), 3, "denied"),
        (("run", "guests/hostile_spinner", "--max-fuel", "1M"), 4, "limit"),
        (("run", "guests/hostile_recurser"), 5, "trap"),
        (("check", "guests/hostile_escaper"), 7, "artifact"),
    ],
)
def test_every_outcome_has_its_exit_code(
    process: Process, arguments: tuple[str, ...], code: int, kind: str | None
) -> None:
    """
    And its kind, in one document that is all of stdout.
    """
    done = process(*arguments, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (code, code == 0)
    assert document.get("error", {}).get("kind") == kind


def test_input_comes_through_a_pipe(process: Process) -> None:
    """
    Named or not.
    """
    named = process("run", "guests/hello", "-", given=b"What are you?\n")
    unnamed = process("run", "guests/hello", given=b"What are you?\n")
    word = process("run", "guests/hello", "What are you?")
    assert named.stdout == unnamed.stdout == word.stdout
    assert (named.returncode, unnamed.returncode) == (0, 0)


def test_a_reader_that_leaves_early_changes_nothing(process: Process) -> None:
    """
    No traceback, and the exit code of the work.
    """
    for arguments in (("run", "guests/counter"), ("--help",), ("run", "--help"), ("schema", "report")):
        out, into = os.pipe()
        os.close(out)
        done = process(*arguments, stdout=into)
        os.close(into)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_result_that_can_not_be_written_is_an_error(process: Process) -> None:
    """
    Nobody takes a lost result for a good one.
    """
    for arguments in (
        ("run", "guests/counter"),
        ("run", "guests/counter", "--json"),
        ("--help",),
        ("schema", "error"),
    ):
        with Path("/dev/full").open("wb") as full:
            done = process(*arguments, stdout=full.fileno())
        message = b"Error: can't write the result: No space left on device\n"
        assert (done.returncode, done.stderr) == (8, message)


def test_closed_streams_do_no_harm(environment: dict[str, str]) -> None:
    """
    `>&-`, `2>&-` and `<&-` of a shell.
    """
    line = f"exec {sys.executable} -m runner.cli run guests/counter >&- 2>&- <&-"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment, check=False, timeout=50)
    assert done.returncode == 0


SPINNER: Final = r"""
(module
  (import "agent" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "llm" "usage" (func $usage (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\65ready\a0")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param i32 i32 i32)
    (drop (call $log (i32.const 1) (i32.const 0) (i32.const 6)))
    (drop (call $usage (i32.const 6) (i32.const 1))))
  (func (export "agent_wake") (param i32 i32 i32)
    (loop $ever (br $ever))))
"""
"""
Says that it is ready when its first slice has ended, and spins in the second.
"""


@pytest.fixture
def spinner(environment: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """
    A command whose agent spins, or is about to.
    """
    folder = tmp_path / "spinner"
    folder.mkdir()
    (folder / "agent.wat").write_text(SPINNER, encoding="utf-8")
    (folder / "agent.toml").write_text(
        'name = "spinner"\nversion = "1"\ndescription = "Spins."\nlanguage = "wat"\nentry = "agent.wat"\n',
        encoding="utf-8",
    )
    with subprocess.Popen(
        [*COMMAND, "run", "spinner", "--max-fuel", "900000G", "--timeout", "50s", "--json"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            assert child.stderr is not None
            assert child.stderr.readline() == b"agent: ready\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_spinning_guest(
    spinner: subprocess.Popen[bytes], number: signal.Signals, code: int
) -> None:
    """
    With an exit code of its own, and the document all the same.
    """
    spinner.send_signal(number)
    stdout, stderr = spinner.communicate(timeout=20)
    assert (spinner.returncode, stderr) == (code, b"")
    assert json.loads(stdout)["error"]["kind"] == "interrupted"


def read_terminal(number: int) -> bytes:
    """
    All that comes out of a terminal until its other end is closed.
    """
    data = b""
    while True:
        try:
            part = os.read(number, 65_536)
        except OSError:
            # Linux says that nobody holds the other end any more.
            return data
        if not part:
            return data
        data += part


def test_a_terminal_gets_no_escape_from_an_agent(environment: dict[str, str], process: Process) -> None:
    """
    A pipe gets it exactly, a person sees it as text.
    """
    piped = process("run", "guests/hello", "\x1b[2Jhi").stdout
    assert piped.startswith(b"(scripted) You said: \x1b[2Jhi\n")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", "guests/hello", "\x1b[2Jhi"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    ) as child:
        os.close(theirs)
        shown = read_terminal(ours)
        os.close(ours)
    assert child.returncode == 0
    assert shown.replace(b"\r\n", b"\n") == piped.replace(b"\x1b", b"\\x1b")


def test_on_a_terminal_a_person_allows_a_call_and_the_run_goes_on(environment: dict[str, str]) -> None:
    """
    The whole call is shown on stderr; stdout has the answer alone.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", "guests/hello", "Shall I?", "--as", "clerk", "--ask", "llm"],
        cwd=ROOT,
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as child:
        os.close(theirs)
        os.write(ours, b"y\n")
        shown = read_terminal(ours).decode()
        os.close(ours)
        assert child.stdout is not None
        assert child.stdout.read() == b"(scripted) You said: Shall I?\n"
    assert child.returncode == 0
    assert "clerk asks for llm.chat (call 1):" in shown
    assert '"content": "Shall I?"' in shown
    assert "Allow it? [y/N] " in shown


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("run", "--help"), ("restore", "-W", "help"), ("rum",), ("run", "nothing")],
)
def test_nothing_heavy_is_imported_before_there_is_work(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    """
    Help, versions and mistakes are answered at once.
    """
    program = (
        "import sys\n"
        "from runner.cli.app import run_command_line\n"
        "run_command_line(sys.argv[1:])\n"
        "heavy = {'wasmtime', 'anthropic', 'openai', 'anyio', 'asyncio', 'httpx', 'pydantic', 'cbor2'}\n"
        "sys.exit(len(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, check=False, capture_output=True
    )
    assert done.returncode == 0


def test_completion_offers_verbs_flags_and_paths(environment: dict[str, str], tmp_path: Path) -> None:
    """
    What the scripts of `runner completion` ask for.
    """

    def complete(*words: str) -> list[str]:
        variables = {"_RUNNER_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("runner", *words))}
        done = subprocess.run(
            COMMAND,
            env=environment | variables | {"COMP_CWORD": str(len(words))},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.split()

    assert complete("res") == ["plain,resume", "plain,restore", "plain,resolve"]
    assert complete("run", "--max") == ["plain,--max-memory", "plain,--max-fuel", "plain,--max-state"]
    assert complete("run", "--color", "a") == ["plain,auto", "plain,always"]
    assert complete("run", "gu") == ["file,gu"]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    A state directory with the named instances that examples speak of: `tally` counts, `asker` waits for
    approval, and nobody knows what became of a call of `courier`.
    """
    from runner import wiring
    from runner.errors import ApprovalPending
    from runner.journal import StateDirectory
    from runner.journal.records import Start

    root = tmp_path_factory.mktemp("lives")
    options = wiring.Options(cache=root / "cache", state=root / "state", allow=("tool", "memory"))
    with pytest.raises(ApprovalPending):
        wiring.run_named(ROOT / "guests" / "hello", "asker", "hi", options, ("llm",))
    wiring.run_named(ROOT / "guests" / "courier", "whole", None, options)
    with StateDirectory(root / "state") as state:
        with state.open("whole", write=False) as journal:
            records = [record for _, record in journal.read()]
        is_begun = [isinstance(record, Start) and record.call == 4 for record in records]
        born, *past = records[: is_begun.index(True) + 1]
        state.create("courier", born, state.agent("whole"), past)  # type: ignore[arg-type]
        state.remove("whole")
    # Last, for `resume --last`.
    wiring.run_named(ROOT / "guests" / "counter", "tally", None, options)
    return root / "state"


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.js] if verb == "test" else []) for verb in VERBS]
)
@pytest.mark.c
def test_the_examples_of_every_verb_run(
    verb: str, environment: dict[str, str], tmp_path: Path, lives: Path
) -> None:
    """
    As they stand, from a checkout, after the snapshot that some of them speak of was taken, and each with the
    same named instances.
    """
    (tmp_path / "guests").symlink_to(ROOT / "guests")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "runner"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m runner.cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}"
    take_snapshot = "runner run guests/counter --snapshot counter.snap"
    command = app.get_command(click.Context(app), verb)
    assert isinstance(command, Verb)
    for number, line in enumerate((take_snapshot, *command.examples)):
        state = shutil.copytree(lives, tmp_path / f"lives-{number}")
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=environment | {"PATH": path, "RUNNER_STATE": str(state)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=50,
        )
        # What some of them are about: a planted defect is found.
        is_found = done.returncode == 1 and "--plant" in line
        assert is_found or (done.returncode, b"Error" in done.stderr) == (0, False), (line, done.stderr)


def test_a_failed_delivery_says_what_it_cost_and_where_its_snapshot_is(process: Process) -> None:
    """The instance is as before the delivery; in JSON all that is known is there."""
    done = process("run", "guests/hostile_spinner", "--snapshot", "s.snap", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (4, False)
    assert document["agent"] == "hostile-spinner"
    assert document["fuel"] == 10_000_000
    assert document["snapshot"]["path"] == "s.snap"
    assert document["error"]["kind"] == "limit"


def test_the_snapshot_of_a_failed_delivery_is_told_of(process: Process) -> None:
    """It used to be written in silence."""
    done = process("run", "guests/hostile_spinner", "--snapshot", "s.snap")
    assert done.returncode == 4
    assert b"snapshot s.snap: 0 pages" in done.stderr
    assert b"Error: limit fuel exceeded" in done.stderr


def test_the_program_alone_prints_its_help(process: Process) -> None:
    """As it is to be read, not as one escaped line."""
    done = process()
    assert done.returncode == 2
    assert b"\nCommands:\n" in done.stdout
