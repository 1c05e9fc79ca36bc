"""
Running, freezing and going on, as the command line does it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.errors import AgentInvalid, SnapshotCorrupt, SnapshotIncompatible, UsageError
from runner.snapshot import read, write
from runner.wiring import Options, inspect_path, restore_snapshot, run_agent

GUESTS = Path(__file__).parents[2] / "guests"

# Rolls dice twice, once in each delivery, and says what it knows of its restore in the second.
DICE = r"""(module
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "random" (func $random (param i32 i32) (result i32)))
  (import "agent" "restored" (func $restored (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; [8 random bytes, what is known of the restore]
  (data (i32.const 0) "\82\48")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_wake") (param i32 i32 i32))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (drop (call $random (i32.const 2) (i32.const 8)))
    (drop (call $reply (local.get $n) (i32.const 0)
      (i32.add (i32.const 10) (call $restored (i32.const 10) (i32.const 200)))))))"""


@pytest.fixture
def dice(tmp_path: Path) -> Path:
    """An agent that rolls dice."""
    path = tmp_path / "dice.wat"
    path.write_text(DICE)
    return path


def test_an_agent_counts_on_through_snapshot_files(cache: Path, tmp_path: Path):
    """1, 2, 3: each from a file that the one before wrote."""
    file = tmp_path / "counter.snap"
    options = Options(cache=cache, snapshot=file, sync=False)
    first = run_agent(GUESTS / "counter", "go", options)
    second = restore_snapshot(file, "go", options)
    third = restore_snapshot(file, "go", options)
    assert [first.result, second.result, third.result] == [1, 2, 3]
    assert third.snapshot is not None
    assert third.snapshot["size_bytes"] == file.stat().st_size
    assert read(file).position == 5  # three messages, and two restore events
    assert inspect_path(file, cache)["memory_digest"] == third.memory_digest


def test_two_restores_of_one_snapshot_know_that_they_are_two_and_roll_other_dice(
    cache: Path, tmp_path: Path, dice: Path
):
    """Fresh entropy and a generation number, for both sides to see."""
    file = tmp_path / "dice.snap"
    run_agent(dice, None, Options(cache=cache, snapshot=file, sync=False))
    one = restore_snapshot(file, "roll", Options(cache=cache)).result
    two = restore_snapshot(file, "roll", Options(cache=cache)).result
    assert one[0] != two[0]
    assert [(known["count"], known["generation"]) for known in (one[1], two[1])] == [(1, 1), (1, 2)]


def test_deterministic_restores_roll_the_same_dice(cache: Path, tmp_path: Path, dice: Path):
    """The old stream goes on, in both."""
    file = tmp_path / "dice.snap"
    run_agent(dice, None, Options(cache=cache, snapshot=file, sync=False))
    options = Options(cache=cache, deterministic=True)
    one, two = restore_snapshot(file, "roll", options), restore_snapshot(file, "roll", options)
    assert one.result == two.result
    assert one.memory_digest == two.memory_digest


def test_a_snapshot_of_another_agent_is_refused(cache: Path, tmp_path: Path, dice: Path):
    """By its digest, whatever its name."""
    file = tmp_path / "counter.snap"
    run_agent(GUESTS / "counter", "go", Options(cache=cache, snapshot=file, sync=False))
    with pytest.raises(SnapshotIncompatible, match="snapshot does not fit: code_digest is sha256:"):
        restore_snapshot(file, "go", Options(cache=cache), dice)


def test_a_snapshot_whose_agent_is_not_known_here_asks_for_it(cache: Path, tmp_path: Path):
    """As on another machine; with the agent it goes on."""
    file = tmp_path / "counter.snap"
    run_agent(GUESTS / "counter", "go", Options(cache=cache, snapshot=file, sync=False))
    elsewhere = Options(cache=tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="the agent of this snapshot is not known here") as caught:
        restore_snapshot(file, "go", elsewhere)
    assert caught.value.hint == "name it with --agent PATH"
    assert restore_snapshot(file, "go", elsewhere, GUESTS / "counter").result == 2


def test_a_memory_that_is_not_what_its_digest_says_is_refused(cache: Path, tmp_path: Path):
    """A file whose root is right may still have been made by somebody else."""
    file = tmp_path / "counter.snap"
    run_agent(GUESTS / "counter", "go", Options(cache=cache, snapshot=file, sync=False))
    from dataclasses import replace

    write(file, replace(read(file), memory_digest=bytes(32)), sync=False)
    with pytest.raises(SnapshotCorrupt, match="its memory digest is another"):
        restore_snapshot(file, "go", Options(cache=cache))


def test_a_restore_without_a_message_reports_of_the_restore_event(cache: Path, tmp_path: Path):
    """The counter does not count being told of it."""
    file = tmp_path / "counter.snap"
    run_agent(GUESTS / "counter", "go", Options(cache=cache, snapshot=file, sync=False))
    assert restore_snapshot(file, None, Options(cache=cache, snapshot=file, sync=False)).result is None
    assert restore_snapshot(file, "go", Options(cache=cache)).result == 2


def test_a_failing_delivery_leaves_a_snapshot_of_the_state_before_it(cache: Path, tmp_path: Path):
    """The instance lives on, also on disk."""
    from runner.errors import FuelExhausted

    file = tmp_path / "spinner.snap"
    with pytest.raises(FuelExhausted):
        run_agent(GUESTS / "hostile_spinner", None, Options(cache=cache, snapshot=file, sync=False))
    facts = inspect_path(file, cache)
    assert facts["instance"]["deliveries"] == 1
    assert facts["instance"]["open_delivery"] is None
    assert facts["memory"]["own_pages"] == 0


def test_nothing_is_compiled_twice(cache: Path, tmp_path: Path):
    """Two runs, one entry; and the second run adds none."""
    own = tmp_path / "cache"
    run_agent(GUESTS / "counter", "go", Options(cache=own))
    entries = sorted(path.name for path in own.rglob("*") if path.is_file())
    run_agent(GUESTS / "counter", "go", Options(cache=own))
    assert sorted(path.name for path in own.rglob("*") if path.is_file()) == entries
    assert cache != own


def test_code_of_another_engine_in_the_cache_is_made_anew(tmp_path: Path):
    """Foreign bytes under the right name cost a compilation, not a crash."""
    own = tmp_path / "cache"
    run_agent(GUESTS / "counter", "go", Options(cache=own))
    [entry] = [path for path in (own / "code").iterdir() if not path.suffix]
    size = entry.stat().st_size
    entry.write_bytes(b"\x7fELF" + bytes(size - 4))
    assert run_agent(GUESTS / "counter", "go", Options(cache=own)).result == 1


def test_an_agent_that_is_not_there_is_named(cache: Path, tmp_path: Path):
    """The first thing that goes wrong for everyone."""
    with pytest.raises(AgentInvalid, match="no such file or folder"):
        run_agent(tmp_path / "nobody", None, Options(cache=cache))


def test_a_provider_that_this_host_has_not_is_a_usage_error(cache: Path):
    """Before anything is loaded."""
    with pytest.raises(UsageError, match=r"^no provider 'acme'$"):
        run_agent(GUESTS / "hello", "hi", Options(cache=cache, model="acme/one"))


def test_a_run_with_the_scripted_provider_imports_no_sdk(cache: Path):
    """Each would cost more than the whole run may."""
    program = (
        "import sys, pathlib\n"
        "from runner.wiring import Options, run_agent\n"
        "run_agent(pathlib.Path(sys.argv[1]), 'hi', Options(cache=pathlib.Path(sys.argv[2])))\n"
        "import json; print(json.dumps(sorted(set(sys.modules))))\n"
    )
    command = [sys.executable, "-c", program, str(GUESTS / "hello"), str(cache)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = set(json.loads(done.stdout))
    assert loaded.isdisjoint({"anthropic", "openai", "httpx", "httpx2", "pydantic", "importlib.metadata"})
