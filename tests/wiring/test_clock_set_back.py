"""
A clock that goes back orders nothing: sequence numbers do.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.journal.records import Delivery
from runner.wiring import Options, fork_named, list_instances, replay, resume, run_named, send, verify
from tests.wiring.counted import World

OptionsFor = Callable[..., Options]

NOON_MS = 1_800_000_000_000
HOUR_MS = 3_600_000

# Replies with the time, as eight bytes.
CLOCK = r"""(module
  (import "agent" "now" (func $now (result i64)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 7) "\48")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (i64.store (i32.const 8) (call $now))
    (drop (call $reply (local.get $n) (i32.const 7) (i32.const 9))))
  (func (export "agent_wake") (param i32 i32 i32)))"""


@pytest.fixture
def clock_agent(tmp_path: Path) -> Path:
    """An agent that tells the time."""
    path = tmp_path / "clock.wat"
    path.write_text(CLOCK)
    return path


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the host's clock, of which everything else is told the time."""

    def at(now_ms: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: now_ms * 1_000_000)

    return at


def told_ms(result: object) -> int:
    """The time in a reply."""
    assert isinstance(result, bytes)
    [now_ms] = struct.unpack("<q", result)
    return int(now_ms)


def test_deliveries_keep_their_order_when_the_clock_is_set_back(
    clock_agent: Path,
    set_clock: Callable[[int], None],
    options: OptionsFor,
    tmp_path: Path,
    cache: Path,
    state: Path,
):
    """Each is told the time that it was, and is told it again whenever it is replayed."""
    times = [NOON_MS, NOON_MS - HOUR_MS, NOON_MS - 24 * HOUR_MS, 1, NOON_MS + HOUR_MS]
    set_clock(times[0])
    told = [told_ms(run_named(clock_agent, "watch", None, options(checkpoint=1)).result)]
    for now_ms in times[1:]:
        set_clock(now_ms)
        told.append(told_ms(send("watch", None, options(checkpoint=1)).result))
    assert told == times

    set_clock(NOON_MS - 48 * HOUR_MS)
    deliveries = [
        record for record in World(tmp_path, cache).records("watch") if isinstance(record, Delivery)
    ]
    assert [(record.number, record.now_ms) for record in deliveries] == list(enumerate(times, 1))
    done = replay("watch", state=state, cache=cache)
    assert [row["memory_digest"] for row in done.rows] == [row["recorded"] for row in done.rows]
    assert verify("watch", state=state, cache=cache)["slices"] == len(times)
    # Nothing is open: the report repeats the last answer, by sequence and not by time.
    assert told_ms(resume("watch", options()).result) == times[-1]


def test_an_instance_may_be_made_and_forked_before_its_own_past(
    clock_agent: Path, set_clock: Callable[[int], None], options: OptionsFor, state: Path, cache: Path
):
    """Its list shows what the clock said."""
    set_clock(NOON_MS)
    run_named(clock_agent, "watch", None, options())
    set_clock(NOON_MS - HOUR_MS)
    fork_named("watch", "early", state=state)
    assert told_ms(send("early", None, options()).result) == NOON_MS - HOUR_MS
    assert verify("early", state=state, cache=cache)["memory_digest"]
    [early, watch] = list_instances(state)
    assert (early["name"], watch["name"]) == ("early", "watch")
    assert early["updated_at"] < watch["updated_at"]


@pytest.mark.parametrize("now_ms", [0, -HOUR_MS])
def test_a_clock_at_its_beginning_or_before_it_is_at_nought(
    now_ms: int,
    clock_agent: Path,
    set_clock: Callable[[int], None],
    options: OptionsFor,
    state: Path,
    cache: Path,
):
    """A machine without a battery wakes up in 1970, and in the west a little before."""
    set_clock(NOON_MS)
    run_named(clock_agent, "watch", None, options())
    set_clock(now_ms)
    assert told_ms(send("watch", None, options()).result) == 0
    assert verify("watch", state=state, cache=cache)["slices"] == 2
