;; Makes calls until one is refused, and replies with how many were not.
(module
  (import "memory" "list" (func $list (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (memory (export "memory") 1)
  ;; {}. From 16 on the reply: 18, then the number in one byte, which is right from 24 to 255.
  (data (i32.const 0) "\a0")
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (local $made i32)
    (block $refused
      (loop $calls
        (br_if $refused (i32.lt_s (call $list (i32.const 0) (i32.const 1)) (i32.const 0)))
        (local.set $made (i32.add (local.get $made) (i32.const 1)))
        (br $calls)))
    (i32.store8 (i32.const 16) (i32.const 0x18))
    (i32.store8 (i32.const 17) (local.get $made))
    (drop (call $reply (local.get $delivery) (i32.const 16) (i32.const 2))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
