"""
A cache of the tests' own, shared by them; and what named instances need around them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.wiring import Options

GUESTS = Path(__file__).parents[2] / "guests"

# Asks the model as often as it is told, one question after the other; replies with how often it has asked.
ASKER = r"""(module
  (import "llm" "chat" (func $chat (param i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; {"messages": [{"role": "user", "content": "next?"}]}
  (data (i32.const 32) "\a1\68messages\81\a2\64role\64user\67content\65next?")
  (global $delivery (mut i32) (i32.const 0))
  (global $left (mut i32) (i32.const 0))
  (global $asked (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func $go
    (if (global.get $left)
      (then (drop (call $chat (i32.const 32) (i32.const 36))))
      (else
        (i32.store8 (i32.const 0) (global.get $asked))
        (drop (call $reply (global.get $delivery) (i32.const 0) (i32.const 1))))))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (global.set $left (i32.const 0))
    (if (i32.eq (local.get $kind) (i32.const 1))
      (then
        ;; A number up to 23 is its own CBOR.
        (drop (call $take (i32.const 8) (i32.const 1)))
        (global.set $left (i32.load8_u (i32.const 8)))))
    (call $go))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (global.set $left (i32.sub (global.get $left) (i32.const 1)))
    (global.set $asked (i32.add (global.get $asked) (i32.const 1)))
    (call $go)))"""

OptionsFor = Callable[..., Options]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled code is kept."""
    return tmp_path_factory.mktemp("wiring") / "cache"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where named instances live."""
    return tmp_path / "state"


@pytest.fixture
def options(cache: Path, state: Path) -> OptionsFor:
    """Choices for a command, in this test's directories."""

    def make(**changes: object) -> Options:
        return Options(**{"cache": cache, "state": state} | changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def asker(tmp_path: Path) -> Path:
    """An agent that asks as often as it is told."""
    path = tmp_path / "asker.wat"
    path.write_text(ASKER)
    return path
