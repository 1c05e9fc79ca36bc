"""
Timers where no host waits for them: refused when they are armed, and as ever in lives that began before that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.journal import StateDirectory
from runner.journal.records import Born, Record, Slice, Wake
from runner.wiring import Options, fork_named, run_agent, run_named, send, verify

# Arms a timer and replies: 1 when that was refused on the spot, 2 when it was told so in an answer.
ARMS = r"""(module
  (import "agent" "after" (func $after (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a1\68delay_ms\01")
  (data (i32.const 20) "\01\02\f6")
  (global $delivery (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then (drop (call $reply (local.get $n) (i32.const 22) (i32.const 1))) (return)))
    (if (i32.eq (call $after (i32.const 0) (i32.const 11)) (i32.const -5))
      (then (drop (call $reply (local.get $n) (i32.const 20) (i32.const 1))))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (if (i32.eq (local.get $status) (i32.const -5))
      (then (drop (call $reply (global.get $delivery) (i32.const 21) (i32.const 1)))))))"""

OptionsFor = Callable[..., Options]


@pytest.fixture
def arming(tmp_path: Path) -> Path:
    """The agent."""
    path = tmp_path / "arming.wat"
    path.write_text(ARMS)
    return path


def records_of(state: Path, name: str) -> list[Record]:
    """What is on record of an instance."""
    with StateDirectory(state) as directory, directory.open(name, write=False) as journal:
        return [record for _, record in journal.read()]


def test_a_timer_is_refused_when_it_is_armed(arming: Path, options: OptionsFor, state: Path, cache: Path):
    """With a name and without: nothing is asked of the host, and replayed it is the same."""
    assert run_agent(arming, None, options()).result == 1
    assert run_named(arming, "sleeper", None, options()).result == 1
    assert [record.calls for record in records_of(state, "sleeper") if isinstance(record, Slice)] == [()]
    assert verify("sleeper", state=state, cache=cache)["slices"] == 1


def test_a_life_that_began_when_timers_made_calls_goes_on_so(
    arming: Path, options: OptionsFor, state: Path, cache: Path
):
    """Its past could not be repeated otherwise, nor that of its forks."""
    run_named(arming, "sleeper", None, options())
    born = records_of(state, "sleeper")[0]
    assert isinstance(born, Born)
    with StateDirectory(state) as directory:
        directory.create("elder", replace(born, timers=True), directory.agent("sleeper"))
    assert send("elder", None, options()).result == 2
    fork_named("elder", "child", state=state)
    assert send("child", None, options()).result == 2
    for name, slices in (("elder", 2), ("child", 5)):
        assert any(isinstance(record, Wake) for record in records_of(state, name))
        assert verify(name, state=state, cache=cache)["slices"] == slices
