"""
A snapshot goes on under another code generator as it would have at home: to the same memory.

Another release of the engine needs another environment: `.ci/other-release` does that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner import codec
from runner.kernel.abi import DeliveryKind
from runner.kernel.engine import EngineSettings
from runner.kernel.machine import Deliver, Machine
from runner.policy.grants import Grants
from runner.snapshot import read
from runner.wiring import Options, run_agent
from runner.wiring.host import Host
from runner.wiring.prepare import Prepared, prepare

GUESTS = Path(__file__).parents[2] / "guests"

# Arithmetic whose results are easy to get wrong: NaNs, rounding, vectors. Its state lies in memory and in
# a global of each kind that can be kept.
ARITHMETIC = r"""(module
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $sum (mut f64) (f64.const 0x1.fffffffffffffp-2))
  (global $mixed (mut i64) (i64.const -7046029254386353131))
  (data (i32.const 8) "\f6")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_wake") (param i32 i32 i32))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (local $left i32)
    (local.set $left (i32.const 1000))
    (loop $again
      (global.set $sum (f64.mul (f64.add (global.get $sum) (f64.const 0.1)) (f64.const 1.0000001)))
      (global.set $mixed
        (i64.xor
          (i64.mul (global.get $mixed) (i64.const 6364136223846793005))
          (i64.reinterpret_f64 (global.get $sum))))
      (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (f64.store (i32.const 64) (f64.sqrt (f64.neg (global.get $sum))))
    (f32.store (i32.const 72)
      (f32.div (f32.const 0) (f32.demote_f64 (f64.sub (global.get $sum) (global.get $sum)))))
    (v128.store (i32.const 80)
      (f32x4.mul (f32x4.splat (f32.demote_f64 (global.get $sum))) (v128.const f32x4 0.1 nan -inf 1e-40)))
    (i64.store (i32.const 96) (global.get $mixed))
    (drop (call $reply (local.get $n) (i32.const 8) (i32.const 1)))))"""


@pytest.fixture(params=["counter", "arithmetic"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Agents that need no answers, so that all there is to compare is computed."""
    if request.param == "counter":
        return GUESTS / "counter"
    path = tmp_path / "arithmetic.wat"
    path.write_text(ARITHMETIC)
    return path


def _prepared(agent: Path, cache: Path, target: str | None) -> Prepared:
    host = Host(cache, EngineSettings(target))
    return prepare(host, host.load(agent), grants=Grants.parse(), limits={}, on_log=lambda _line: None)


@pytest.mark.parametrize("target", [None, "pulley64"])
def test_a_snapshot_goes_on_to_the_same_memory_under_the_portable_interpreter(
    agent: Path, target: str | None, cache: Path, tmp_path: Path
):
    """Taken natively, continued natively and under Pulley, which stands for another processor."""
    file = tmp_path / "a.snap"
    run_agent(agent, "go", Options(cache=cache, snapshot=file, sync=False))
    digests = []
    for place in (None, target):
        prepared = _prepared(agent, cache, place)
        snapshot = read(file)
        machine = Machine.thaw(prepared.program, prepared.image, prepared.limits, snapshot.state)
        assert machine.digest() == snapshot.memory_digest
        results = [
            machine.step(Deliver(number, DeliveryKind.MESSAGE, codec.encode("go"), 0)) for number in (2, 3)
        ]
        digests.append((machine.digest(), [(result.reply, result.fuel) for result in results]))
    assert digests[0] == digests[1]
