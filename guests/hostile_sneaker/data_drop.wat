;; Keeps state in whether a data segment is still there.
(module
  (memory (export "memory") 1)
  (data $d "x")
  (func $keep
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))
    (data.drop $d))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
