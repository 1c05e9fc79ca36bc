;; The second version of `counter`. It replies with two numbers, {"count": ..., "before": ...}, and keeps its count
;; elsewhere in the memory: so it could not go on in the memory of the first version. What it can do is take
;; over what that hands to it.
;;
;;   runner run guests/counter --as tally
;;   runner upgrade tally guests/counter_v2

(module
  (import "agent" "take" (func $take (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "fail" (func $fail (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  ;; 1024: how many deliveries its earlier version had. 1028: how many it had itself.
  ;; 0: null. 8: how the payload of an upgrade begins, up to the state: a map of five, whose shortest key comes first.
  (data (i32.const 0) "\f6")
  (data (i32.const 8) "\a5\65state")
  ;; 16: {"message": "that is no count"}.
  (data (i32.const 16) "\a1\67message\70that is no count")
  ;; 48 and 56: the keys of a reply.
  (data (i32.const 48) "\a2\65count")
  (data (i32.const 56) "\66before")

  ;; Where the reply is written next; it begins at 256. A payload is taken to 512.
  (global $at (mut i32) (i32.const 0))

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then
        (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 1)))
        (return)))
    (i32.store (i32.const 1028) (i32.add (i32.load (i32.const 1028)) (i32.const 1)))
    (global.set $at (i32.const 256))
    (call $put (i32.const 48) (i32.const 7))
    (call $put_number (i32.add (i32.load (i32.const 1024)) (i32.load (i32.const 1028))))
    (call $put (i32.const 56) (i32.const 7))
    (call $put_number (i32.load (i32.const 1024)))
    (call $send (local.get $delivery)))

  ;; Called when one version takes over from another: 5 asks this one to hand over, 6 hands it what the other did.
  ;; It replies in the same slice, or fails, and then nothing has happened.
  (func (export "agent_upgrade") (param $delivery i32) (param $kind i32) (param $size i32)
    (if (i32.eq (local.get $kind) (i32.const 5))
      (then
        (global.set $at (i32.const 256))
        (call $put_number (i32.add (i32.load (i32.const 1024)) (i32.load (i32.const 1028))))
        (call $send (local.get $delivery))
        (return)))
    (drop (call $take (i32.const 512) (i32.const 12)))
    (if (call $take_count)
      (then (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 1))))
      (else (drop (call $fail (local.get $delivery) (i32.const 16) (i32.const 26))))))

  ;; Whether the payload at 512 begins as it should and its state is a whole number of at most 32 bits; that is
  ;; then the count. Up to 23 such a number is its own byte; else 18, 19 or 1a come first, and 1, 2 or 4 bytes
  ;; follow, the highest first.
  (func $take_count (result i32)
    (local $head i32) (local $bytes i32) (local $from i32) (local $number i32)
    (if (i64.ne
          (i64.and (i64.load (i32.const 512)) (i64.const 0x00ffffffffffffff))
          (i64.and (i64.load (i32.const 8)) (i64.const 0x00ffffffffffffff)))
      (then (return (i32.const 0))))
    (local.set $head (i32.load8_u (i32.const 519)))
    (if (i32.gt_u (local.get $head) (i32.const 0x1a)) (then (return (i32.const 0))))
    (if (i32.lt_u (local.get $head) (i32.const 24))
      (then (local.set $number (local.get $head)))
      (else
        (local.set $bytes (i32.shl (i32.const 1) (i32.sub (local.get $head) (i32.const 24))))
        (local.set $from (i32.const 520))
        (loop $each
          (local.set $number
            (i32.or (i32.shl (local.get $number) (i32.const 8)) (i32.load8_u (local.get $from))))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
          (br_if $each (local.get $bytes)))))
    (i32.store (i32.const 1024) (local.get $number))
    (i32.const 1))

  (func $send (param $delivery i32)
    (drop
      (call $reply (local.get $delivery) (i32.const 256) (i32.sub (global.get $at) (i32.const 256)))))

  (func $put (param $from i32) (param $bytes i32)
    (memory.copy (global.get $at) (local.get $from) (local.get $bytes))
    (global.set $at (i32.add (global.get $at) (local.get $bytes))))

  (func $put_byte (param $byte i32)
    (i32.store8 (global.get $at) (local.get $byte))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))

  ;; A whole number in the shortest of its forms.
  (func $put_number (param $number i32)
    (if (i32.lt_u (local.get $number) (i32.const 24))
      (then
        (call $put_byte (local.get $number))
        (return)))
    (if (i32.lt_u (local.get $number) (i32.const 0x100))
      (then
        (call $put_byte (i32.const 0x18)))
      (else
        (if (i32.lt_u (local.get $number) (i32.const 0x10000))
          (then
            (call $put_byte (i32.const 0x19)))
          (else
            (call $put_byte (i32.const 0x1a))
            (call $put_byte (i32.shr_u (local.get $number) (i32.const 24)))
            (call $put_byte (i32.shr_u (local.get $number) (i32.const 16)))))
        (call $put_byte (i32.shr_u (local.get $number) (i32.const 8)))))
    (call $put_byte (local.get $number))))
