;; Takes memory page by page, writes to all of it, and replies with how many pages it holds in the end.
(module
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (loop $more
      (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (memory.fill (i32.const 0) (i32.const 0xaa) (i32.shl (memory.size) (i32.const 16)))
    (drop (call $reply (local.get $delivery) (i32.const 0) (call $encode (memory.size)))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))

  ;; Writes a number below 65536 to 0 as CBOR, in the shortest of its forms, and returns the size.
  (func $encode (param $number i32) (result i32)
    (i32.store8 (i32.const 0) (local.get $number))
    (if (i32.lt_u (local.get $number) (i32.const 24)) (then (return (i32.const 1))))
    (i32.store8 (i32.const 0) (i32.const 0x18))
    (i32.store8 (i32.const 1) (local.get $number))
    (if (i32.lt_u (local.get $number) (i32.const 256)) (then (return (i32.const 2))))
    (i32.store8 (i32.const 0) (i32.const 0x19))
    (i32.store8 (i32.const 1) (i32.shr_u (local.get $number) (i32.const 8)))
    (i32.store8 (i32.const 2) (local.get $number))
    (i32.const 3)))
