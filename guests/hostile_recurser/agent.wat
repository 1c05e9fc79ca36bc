;; Calls itself without end.
(module
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (drop (call $deeper (i64.const 1))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))
  ;; The sum after the call keeps a frame alive that a clever compiler might drop.
  (func $deeper (param $depth i64) (result i64)
    (i64.add
      (local.get $depth)
      (call $deeper (i64.add (local.get $depth) (i64.const 1))))))
