;; Replies with what it was given: the payload goes back as it came, without a look inside.
(module
  (import "agent" "take" (func $take (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "fail" (func $fail (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  ;; CBOR: a map of one pair, "message" and the 13 characters "out of memory".
  (data (i32.const 0) "\a1\67message\6dout of memory")
  (global $error_size i32 (i32.const 23))
  ;; Where payloads go: from here to the end of the memory.
  (global $buffer i32 (i32.const 64))

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (if (i32.eqz (call $make_room (local.get $size)))
      (then
        (drop (call $fail (local.get $delivery) (i32.const 0) (global.get $error_size)))
        (return)))
    ;; Asked for all of it, `take` copies all of it.
    (drop (call $take (global.get $buffer) (local.get $size)))
    (drop (call $reply (local.get $delivery) (global.get $buffer) (local.get $size))))

  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))

  ;; Whether `size` bytes fit from $buffer on, once the memory has grown if it must.
  (func $make_room (param $size i32) (result i32)
    (local $missing_pages i32)
    (local.set $missing_pages
      (i32.sub
        (i32.shr_u (i32.add (i32.add (global.get $buffer) (local.get $size)) (i32.const 65535)) (i32.const 16))
        (memory.size)))
    (if (i32.le_s (local.get $missing_pages) (i32.const 0)) (then (return (i32.const 1))))
    (i32.ne (memory.grow (local.get $missing_pages)) (i32.const -1))))
