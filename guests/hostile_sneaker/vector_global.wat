;; Keeps state in a global of 128 bits.
(module
  (global $kept (mut v128) (v128.const i64x2 0 0))
  (memory (export "memory") 1)
  (func $keep (global.set $kept (v128.const i64x2 1 1)))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
