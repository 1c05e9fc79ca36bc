;; Hands the host what is not what it claims to be, notes what the host says to each, and replies with the
;; list. A second message replies with what was said to replies that came too late.

(module
  (import "memory" "list" (func $list (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "take" (func $take (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "fail" (func $fail (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "cancel" (func $cancel (param $call i32) (result i32)))
  (import "agent" "log" (func $log (param $level i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "random" (func $random (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "snapshot" (func $snapshot (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "restored" (func $restored (param $ptr i32) (param $len i32) (result i32)))

  ;; Three pages: addresses from 196608 on are outside.
  (memory (export "memory") 3)

  ;; Not CBOR, or not deterministic.
  (data (i32.const 1024) "\f6\f6")                          ;; two items
  (data (i32.const 1040) "\62x")                            ;; a text that ends early
  (data (i32.const 1056) "\9f\ff")                          ;; a list without a length
  (data (i32.const 1072) "\c0\60")                          ;; a tag
  (data (i32.const 1088) "\a2\61a\01\61a\02")               ;; one key twice
  (data (i32.const 1104) "\a2\61b\01\61a\02")               ;; keys out of order
  (data (i32.const 1120) "\a1\01\02")                       ;; a key that is a number
  (data (i32.const 1136) "\18\01")                          ;; 1, longer than it must be
  (data (i32.const 1152) "\fb\3f\f0\00\00\00\00\00\00")     ;; 1.0, longer than it must be
  (data (i32.const 1168) "\61\ff")                          ;; a text that is not UTF-8
  (data (i32.const 1184) "\9b\ff\ff\ff\ff\ff\ff\ff\ff")     ;; a list of 2^64 - 1 items
  (data (i32.const 1200) "\5b\ff\ff\ff\ff\ff\ff\ff\ff")     ;; 2^64 - 1 bytes
  (data (i32.const 1216) "\bb\80\00\00\00\00\00\00\00")     ;; a map of 2^63 pairs
  (data (i32.const 1232) "\f7")                             ;; undefined
  (data (i32.const 1248) "\f8\ff")                          ;; a simple value that means nothing
  ;; CBOR, but not of the shape asked for.
  (data (i32.const 1280) "\f6")                             ;; null
  (data (i32.const 1296) "\a1\67message\01")                ;; {"message": 1}
  (data (i32.const 1312) "\a2\64more\f6\67message\60")      ;; {"more": null, "message": ""}

  (global $noted (mut i32) (i32.const 0))
  (global $first (mut i32) (i32.const 0))
  (global $late (mut i32) (i32.const 0))

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (global.set $noted (i32.const 0))
    (if (global.get $first)
      (then
        (call $note (global.get $late))
        ;; The one before this, which was answered.
        (call $note (call $reply (global.get $first) (i32.const 1280) (i32.const 1)))
        (call $send (local.get $delivery))
        (return)))
    (call $pointers (local.get $delivery))
    (call $not_cbor (local.get $delivery))
    (call $bombs (local.get $delivery))
    (call $not_of_the_shape (local.get $delivery))
    (call $strangers (local.get $delivery))
    (call $send (local.get $delivery))
    (global.set $first (local.get $delivery))
    (global.set $late (call $reply (local.get $delivery) (i32.const 1280) (i32.const 1))))

  ;; Places that are not in the memory, or only partly.
  (func $pointers (param $delivery i32)
    (call $note (call $take (i32.const -1) (i32.const 16)))
    ;; More room than there is, but one byte waits and one byte fits.
    (call $note (call $take (i32.const 196607) (i32.const 16)))
    (call $note (call $reply (local.get $delivery) (i32.const -1) (i32.const 1)))
    (call $note (call $reply (local.get $delivery) (i32.const 196608) (i32.const 1)))
    (call $note (call $reply (local.get $delivery) (i32.const 196600) (i32.const 9)))
    (call $note (call $reply (local.get $delivery) (i32.const 1280) (i32.const -1)))
    (call $note (call $reply (local.get $delivery) (i32.const 1280) (i32.const 0)))
    (call $note (call $list (i32.const -1) (i32.const 1)))
    (call $note (call $list (i32.const 0) (i32.const -1)))
    (call $note (call $log (i32.const 1) (i32.const -1) (i32.const 1)))
    (call $note (call $random (i32.const -1) (i32.const 16)))
    (call $note (call $random (i32.const 0) (i32.const -1)))
    (call $note (call $snapshot (i32.const -1) (i32.const 4)))
    (call $note (call $restored (i32.const -1) (i32.const 64)))
    (call $note (call $restored (i32.const 0) (i32.const 0))))

  (func $not_cbor (param $delivery i32)
    (call $note (call $reply (local.get $delivery) (i32.const 1024) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1040) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1056) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1072) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1088) (i32.const 7)))
    (call $note (call $reply (local.get $delivery) (i32.const 1104) (i32.const 7)))
    (call $note (call $reply (local.get $delivery) (i32.const 1120) (i32.const 3)))
    (call $note (call $reply (local.get $delivery) (i32.const 1136) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1152) (i32.const 9)))
    (call $note (call $reply (local.get $delivery) (i32.const 1168) (i32.const 2)))
    (call $note (call $reply (local.get $delivery) (i32.const 1232) (i32.const 1)))
    (call $note (call $reply (local.get $delivery) (i32.const 1248) (i32.const 2))))

  ;; Little that would become much.
  (func $bombs (param $delivery i32)
    (call $note (call $reply (local.get $delivery) (i32.const 1184) (i32.const 9)))
    (call $note (call $reply (local.get $delivery) (i32.const 1200) (i32.const 9)))
    (call $note (call $reply (local.get $delivery) (i32.const 1216) (i32.const 9)))
    ;; Lists of one list, 65 deep, around null; then 60000 deep.
    (memory.fill (i32.const 65536) (i32.const 0x81) (i32.const 60000))
    (i32.store8 (i32.const 65601) (i32.const 0xf6))
    (call $note (call $reply (local.get $delivery) (i32.const 65536) (i32.const 66)))
    (i32.store8 (i32.const 65601) (i32.const 0x81))
    (i32.store8 (i32.const 125535) (i32.const 0xf6))
    (call $note (call $reply (local.get $delivery) (i32.const 65536) (i32.const 60000)))
    ;; A list of 65536 nulls: one item more than there may be.
    (memory.fill (i32.const 65541) (i32.const 0xf6) (i32.const 65536))
    (i32.store (i32.const 65536) (i32.const 0x0001009a))
    (i32.store8 (i32.const 65540) (i32.const 0))
    (call $note (call $reply (local.get $delivery) (i32.const 65536) (i32.const 65541))))

  (func $not_of_the_shape (param $delivery i32)
    (call $note (call $list (i32.const 1280) (i32.const 1)))
    (call $note (call $fail (local.get $delivery) (i32.const 1280) (i32.const 1)))
    (call $note (call $fail (local.get $delivery) (i32.const 1296) (i32.const 10)))
    (call $note (call $fail (local.get $delivery) (i32.const 1312) (i32.const 16)))
    (call $note (call $log (i32.const 1) (i32.const 1280) (i32.const 1)))
    (call $note (call $log (i32.const 1) (i32.const 1296) (i32.const 10)))
    (call $note (call $log (i32.const 1) (i32.const 0) (i32.const 60000)))
    (call $note (call $snapshot (i32.const 1280) (i32.const 1))))

  ;; Numbers that name nothing of this agent's.
  (func $strangers (param $delivery i32)
    (call $note (call $reply (i32.const 0) (i32.const 1280) (i32.const 1)))
    (call $note (call $reply (i32.const -1) (i32.const 1280) (i32.const 1)))
    (call $note (call $reply (i32.add (local.get $delivery) (i32.const 1)) (i32.const 1280) (i32.const 1)))
    (call $note (call $cancel (i32.const 0)))
    (call $note (call $cancel (i32.const -1)))
    (call $note (call $cancel (i32.const 12345))))

  ;; --- The list -----------------------------------------------------------------------------------

  ;; Appends a number from -24 to 23, each one byte of CBOR: from 20 on the negative ones.
  (func $note (param $status i32)
    (i32.store8
      (i32.add (i32.const 2) (global.get $noted))
      (select
        (i32.sub (i32.const 0x1f) (local.get $status))
        (local.get $status)
        (i32.lt_s (local.get $status) (i32.const 0))))
    (global.set $noted (i32.add (global.get $noted) (i32.const 1))))

  ;; Replies with the list: 98 and its length, or below 24 one byte for both.
  (func $send (param $delivery i32)
    (i32.store8 (i32.const 0) (i32.const 0x98))
    (i32.store8 (i32.const 1) (global.get $noted))
    (if (i32.ge_u (global.get $noted) (i32.const 24))
      (then
        (drop
          (call $reply
            (local.get $delivery) (i32.const 0) (i32.add (global.get $noted) (i32.const 2))))
        (return)))
    (i32.store8 (i32.const 1) (i32.or (i32.const 0x80) (global.get $noted)))
    (drop
      (call $reply (local.get $delivery) (i32.const 1) (i32.add (global.get $noted) (i32.const 1))))))
