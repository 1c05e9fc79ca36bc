;; Logs a thousand lines in one slice; replies with how many were taken.
(module
  (import "agent" "log" (func $log (param $level i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (memory (export "memory") 1)
  ;; "spam". From 16 on the reply: 18, then the number in one byte, which is right from 24 to 255.
  (data (i32.const 0) "\64spam")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (local $left i32) (local $taken i32)
    (local.set $left (i32.const 1000))
    (loop $lines
      (local.set $taken
        (i32.add
          (local.get $taken)
          (i32.eqz (call $log (i32.const 1) (i32.const 0) (i32.const 5)))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $lines (local.get $left)))
    (i32.store8 (i32.const 16) (i32.const 0x18))
    (i32.store8 (i32.const 17) (local.get $taken))
    (drop (call $reply (local.get $delivery) (i32.const 16) (i32.const 2))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
