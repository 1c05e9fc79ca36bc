;; Asks for all 4 GiB at once; replies with what `memory.grow` said, which is -1 for a refusal.
(module
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    ;; In CBOR -1 is the byte 20, and a small number from 0 on is itself.
    (i32.store8 (i32.const 0)
      (select
        (i32.const 0x20)
        (i32.const 1)
        (i32.eq (memory.grow (i32.const 65535)) (i32.const -1))))
    (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 1))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
