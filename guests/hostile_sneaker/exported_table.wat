;; Exports its table, for others to change. Nobody sees that export: the host keeps only the exports that it
;; calls, and nothing inside can change a table, so there is nothing to lose.
(module
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (table (export "table") 2 funcref)
  (memory (export "memory") 1)
  (data (i32.const 0) "\f6")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 1))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
