;; Exports an entry point with parameters of its own choosing.
(module
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i64))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
