;; Has a memory that another thread could change.
(module
  (memory (export "memory") 1 2 shared)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
