"""
Agents in JavaScript that are frozen and woken: in the midst of anything, and the same as if nothing had been.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import codec
from runner.kernel.abi import DeliveryKind
from runner.kernel.state import Restored
from tests.engines.driver import NOW_MS, Agent, Interpreter, Living, value_of

pytestmark = pytest.mark.js

# Three calls in flight inside nested async functions, a generator half way, and a closure over a Map.
MIDST = """
import { tool } from "agent";

const seen = new Map();
function* counter() { for (let i = 1; ; i++) yield i; }
const numbers = counter();
numbers.next();

class Plan {
  #steps = [];
  async step(name, depth) {
    const number = numbers.next().value;
    const answer = depth > 0 ? await this.step(name + depth, depth - 1) : await tool.call(name);
    this.#steps.push([number, name, answer]);
    seen.set(name, (seen.get(name) ?? 0) + number);
    return answer;
  }
  get steps() { return this.#steps; }
}

export async function run(input) {
  const plan = new Plan();
  const text = `${input}:`;
  try {
    const answers = await Promise.all(["a", "b", "c"].map((name) => plan.step(name, 2)));
    return { text, answers, steps: plan.steps, seen: [...seen], next: numbers.next().value };
  } finally {
    seen.set("finally", 1);
  }
}
"""


@pytest.fixture(scope="module")
def midst(js: Interpreter) -> Agent:
    """An agent with much on its mind."""
    return js.load(MIDST)


def answered(living: Living, order: list[int]) -> Any:
    """
    The reply, when the calls are answered in an order.
    """
    result = living.steps[-1] if living.steps else None
    for number in order:
        result = living.answer(number, {"answer": number})
    assert result is not None
    return value_of(result)


def test_an_agent_in_the_midst_of_calls_goes_on_elsewhere(midst: Agent) -> None:
    """
    The answers come in another order, and nothing is lost.
    """
    straight = midst.instance()
    straight.deliver("x")
    expected = answered(straight, [2, 3, 1])
    frozen = midst.instance()
    frozen.deliver("x")
    thawed = midst.thaw(frozen.freeze())
    thawed.answer(2, {"answer": 2})
    again = midst.thaw(thawed.freeze())
    assert answered(again, [3, 1]) == expected
    assert expected["answers"] == [{"answer": 1}, {"answer": 2}, {"answer": 3}]
    assert again.machine.digest() == straight.machine.digest()


def test_an_agent_goes_on_in_another_process(midst: Agent, engine_js: bytes, tmp_path: Path) -> None:
    """
    With the same memory in the end as without the move.
    """
    here = midst.instance()
    here.deliver("x")
    state = here.freeze()
    engine = tmp_path / "engine.wasm"
    engine.write_bytes(engine_js)
    script = """
import pickle, sys
from pathlib import Path
from tests.engines.driver import Interpreter, value_of
from tests.engines.test_js_life import MIDST, answered
from runner import codec
agent = Interpreter(Path(sys.argv[1]).read_bytes()).load(MIDST)
living = agent.thaw(pickle.loads(bytes.fromhex(sys.stdin.read())))
print(codec.encode([answered(living, [3, 2, 1]), living.machine.digest()]).hex())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(engine)],
        input=pickle.dumps(state).hex(),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    reply, digest = codec.decode(bytes.fromhex(done.stdout))
    assert reply == answered(here, [3, 2, 1])
    assert digest == here.machine.digest()


MAPS = """
const notes = new Map();
export function run(n) {
  for (let i = 0; i < 20; i++) notes.set(`key ${(n * 7 + i) % 500}`, { n, list: [n, i], text: `text ${n}` });
  if (n % 3 === 0) for (const key of [...notes.keys()].slice(0, 10)) notes.delete(key);
  return notes.size;
}
"""


def test_five_hundred_moves_leave_no_trace(js: Interpreter) -> None:
    """
    Of an agent whose heap is always busy.
    """
    agent = js.load(MAPS)
    still, moved = agent.instance(), agent.instance()
    for n in range(500):
        moved = agent.thaw(moved.freeze())
        assert moved.message(n) == still.message(n)
    assert moved.machine.digest() == still.machine.digest()


def test_an_image_is_the_same_each_time(js: Interpreter, engine_js: bytes) -> None:
    """
    Of the engine, and of an agent; also when it draws random numbers and asks for the time while it loads.
    """
    text = "const r = [Math.random(), crypto.randomUUID(), Date.now()]; export const run = () => r;"
    other = Interpreter(engine_js)
    assert other.image.digest == js.image.digest
    assert other.load(text).image.digest == js.load(text).image.digest
    assert js.load(text).instance().message() == other.load(text).instance().message()


RANDOM = """
export const run = () => [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(4))];
"""


def test_two_instances_draw_other_numbers(js: Interpreter) -> None:
    """
    And one with the same stream the same.
    """
    agent = js.load(RANDOM)
    one, same, other = (agent.instance(entropy=bytes([seed]) * 32) for seed in (1, 1, 2))
    first = one.message()
    assert same.message() == first
    assert other.message() != first
    assert one.message() != first


def test_two_restores_of_one_snapshot_draw_other_numbers(js: Interpreter) -> None:
    """
    Also before they hear of the restore: an answer may come first.
    """
    agent = js.load("""
    export default {
      onMessage: async (x) => [Math.random(), await host.tool.call("x"), Math.random()],
      onRestore() {},
    };
    """)
    living = agent.instance()
    living.deliver()
    state = living.freeze()
    drawn = []
    for generation in (1, 2):
        restored = Restored(1, generation, NOW_MS)
        again = agent.thaw(state, entropy=bytes([generation]) * 32, restored=restored)
        first, _, second = value_of(again.answer(1, None))
        again.message(kind=DeliveryKind.RESTORE)
        drawn.append((first, second))
    assert drawn[0][0] == drawn[1][0]
    assert drawn[0][1] != drawn[1][1]


def test_numbers_are_spread_over_all_that_lies_between_0_and_1(js: Interpreter) -> None:
    """
    Evenly, as far as ten thousand of them can tell.
    """
    living = js.load("""
    export const run = () => {
      const counts = new Array(10).fill(0);
      for (let i = 0; i < 10000; i++) counts[Math.floor(Math.random() * 10)]++;
      return counts;
    };
    """).instance()
    assert all(900 < count < 1100 for count in living.message())


def test_a_failed_delivery_leaves_the_agent_as_it_was(js: Interpreter) -> None:
    """
    One that fails by the agent's own error keeps what it did.
    """
    living = js.load("""
    let n = 0;
    export const run = (how) => {
      n++;
      if (how === "throw") throw new Error("x");
      while (how === "spin");
      return n;
    };
    """).instance()
    assert living.message() == 1
    with pytest.raises(Exception, match="Error: x"):
        living.message("throw")
    assert living.message() == 3
    before = living.machine.digest()
    with pytest.raises(Exception, match="fuel"):
        living.message("spin")
    assert living.machine.digest() == before
    assert living.message() == 4


def test_nothing_is_kept_of_the_load(js: Interpreter) -> None:
    """
    Numbers of deliveries and calls begin again with each instance.
    """
    agent = js.load('export const run = () => host.tool.call("x");')
    for _ in range(2):
        living = agent.instance()
        assert living.message(None, lambda call: call.number) == 1
        assert living.message(None, lambda call: call.number) == 2


def test_an_agents_memory_is_the_same_on_every_machine(js: Interpreter, engine_js: bytes) -> None:
    """
    As far as wasmtime's portable interpreter can stand for another processor.
    """
    here, there = js.load(MAPS).instance(), Interpreter(engine_js, target="pulley64").load(MAPS).instance()
    assert [here.message(n) for n in range(20)] == [there.message(n) for n in range(20)]
    assert here.machine.digest() == there.machine.digest()


def test_circles_are_collected(js: Interpreter) -> None:
    """
    Also such as refer to what the image holds; memory does not grow.
    """
    living = js.load("""
    const helper = (x) => x;
    class Node {
      self = this;
      f = () => helper(this);
      list = [this, helper];
    }
    export const run = () => {
      let last;
      for (let i = 0; i < 5000; i++) last = new Node();
      return last.f() === last && last.list[1](7);
    };
    """).instance()
    for _ in range(30):
        assert living.message() == 7
    assert living.machine.memory_bytes < 16 * 1024 * 1024
