"""
Agents in text that the tests of this folder freeze in the middle.
"""

from __future__ import annotations

from typing import Final

# Asks the model, freezes itself while it answers, and replies with the answer as it came.
FREEZES_WHILE_ASKING: Final = r"""(module
  (import "llm" "chat" (func $chat (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "snapshot" (func $snapshot (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a1\68messages\81\a2\64role\64user\67content\62hi")
  (data (i32.const 100) "\f6")
  (global $delivery (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then (drop (call $reply (local.get $n) (i32.const 100) (i32.const 1))) (return)))
    (drop (call $chat (i32.const 0) (i32.const 33)))
    (drop (call $snapshot (i32.const 0) (i32.const 0))))
  (func (export "agent_wake") (param i32 i32 i32)
    (drop (call $reply (global.get $delivery) (i32.const 1000)
      (call $take (i32.const 1000) (i32.const 5000))))))"""

# Saves two notes at once and freezes itself when the first answer comes; replies with the second.
FREEZES_BETWEEN_ANSWERS: Final = r"""(module
  (import "memory" "save" (func $save (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "snapshot" (func $snapshot (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a2\65title\61t\67content\61c")
  (data (i32.const 100) "\f6")
  (global $delivery (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then (drop (call $reply (local.get $n) (i32.const 100) (i32.const 1))) (return)))
    (drop (call $save (i32.const 0) (i32.const 19)))
    (drop (call $save (i32.const 0) (i32.const 19))))
  (func (export "agent_wake") (param i32 i32 i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (if (i32.eq (global.get $count) (i32.const 1))
      (then (drop (call $snapshot (i32.const 0) (i32.const 0))))
      (else (drop (call $reply (global.get $delivery) (i32.const 1000)
        (call $take (i32.const 1000) (i32.const 5000))))))))"""

# Asks twice, replies when the first answer comes, and is busy for a while when the second does.
BUSY_AFTERWARDS: Final = r"""(module
  (import "memory" "list" (func $list (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a0\f6")
  (global $delivery (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then (drop (call $reply (local.get $n) (i32.const 1) (i32.const 1))) (return)))
    (drop (call $list (i32.const 0) (i32.const 1)))
    (drop (call $list (i32.const 0) (i32.const 1))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (if (i32.eq (local.get $call) (i32.const 1))
      (then (drop (call $reply (global.get $delivery) (i32.const 1) (i32.const 1))) (return)))
    (loop $busy
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (i32.store (i32.const 64) (global.get $count))
      (br_if $busy (i32.lt_u (global.get $count) (i32.const 30000000))))))"""
