;; Keeps its state in a global that has no export, and in another under a name that looks like one of the host's.
;; Replies with both: how many deliveries it has had, and twice that.
(module
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (global $hidden (mut i64) (i64.const 0))
  (global $doubled (export "runner_global_0") (mut i32) (i32.const 0))
  (memory (export "memory") 1)
  ;; A list of two small numbers.
  (data (i32.const 0) "\82")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (global.set $hidden (i64.add (global.get $hidden) (i64.const 1)))
    (global.set $doubled (i32.add (global.get $doubled) (i32.const 2)))
    (i64.store8 (i32.const 1) (global.get $hidden))
    (i32.store8 (i32.const 2) (global.get $doubled))
    (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 3))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
