;; Two functions that call each other through a table, without end.
(module
  (type $step (func (param i64) (result i64)))
  (table funcref (elem $even $odd))
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (drop (call $even (i64.const 1))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))
  (func $even (type $step)
    (i64.add (local.get 0) (call_indirect (type $step) (local.get 0) (i32.const 1))))
  (func $odd (type $step)
    (i64.mul (local.get 0) (call_indirect (type $step) (local.get 0) (i32.const 0)))))
