;; Logs without end while it boots.
(module
  (import "agent" "log" (func $log (param $level i32) (param $ptr i32) (param $len i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\64spam")
  (func (export "runner_abi_v1"))
  (func (export "agent_start")
    (loop $for_ever
      (drop (call $log (i32.const 3) (i32.const 0) (i32.const 5)))
      (br $for_ever)))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
