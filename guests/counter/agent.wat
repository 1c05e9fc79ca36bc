;; Replies with how many deliveries it has had, from 1. The count lies in the memory, so it goes where the
;; memory goes: through a snapshot, into another process, onto another machine.

(module
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (import "agent" "fail" (func $fail (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  ;; 0: the count. 8: null. 16: the reply.
  (data (i32.const 8) "\f6")
  ;; 32: {"message": "there is no earlier version"}.
  (data (i32.const 32) "\a1\67message\78\1bthere is no earlier version")

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    ;; Being told of its restore is not something that the agent was asked.
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then
        (drop (call $reply (local.get $delivery) (i32.const 8) (i32.const 1)))
        (return)))
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (call $tell (local.get $delivery)))

  ;; Called when one version of an agent takes over from another, see guests/counter_v2. Kind 5 asks this one to
  ;; hand over what its successor shall know: the count. Being asked to take over itself, it fails.
  (func (export "agent_upgrade") (param $delivery i32) (param $kind i32) (param $size i32)
    (if (i32.eq (local.get $kind) (i32.const 5))
      (then
        (call $tell (local.get $delivery))
        (return)))
    (drop (call $fail (local.get $delivery) (i32.const 32) (i32.const 38))))

  ;; Replies with the count.
  (func $tell (param $delivery i32)
    (drop
      (call $reply
        (local.get $delivery)
        (i32.const 16)
        (call $encode (i32.load (i32.const 0))))))

  ;; Writes a whole number to 16 as CBOR, in the shortest of its forms, and returns the size: up to 23 the
  ;; byte itself; then 18, 19 or 1a and 1, 2 or 4 bytes, the highest first.
  (func $encode (param $number i32) (result i32)
    (local $bytes i32) (local $at i32)
    (if (i32.lt_u (local.get $number) (i32.const 24))
      (then
        (i32.store8 (i32.const 16) (local.get $number))
        (return (i32.const 1))))
    (i32.store8 (i32.const 16) (i32.const 0x1a))
    (local.set $bytes (i32.const 4))
    (if (i32.lt_u (local.get $number) (i32.const 0x10000))
      (then
        (i32.store8 (i32.const 16) (i32.const 0x19))
        (local.set $bytes (i32.const 2))))
    (if (i32.lt_u (local.get $number) (i32.const 0x100))
      (then
        (i32.store8 (i32.const 16) (i32.const 0x18))
        (local.set $bytes (i32.const 1))))
    (local.set $at (i32.add (i32.const 16) (local.get $bytes)))
    (loop $each
      (i32.store8 (local.get $at) (local.get $number))
      (local.set $number (i32.shr_u (local.get $number) (i32.const 8)))
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (br_if $each (i32.gt_u (local.get $at) (i32.const 16))))
    (i32.add (local.get $bytes) (i32.const 1))))
