;; Imports from a module that is no capability.
(module
  (import "env" "system" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
