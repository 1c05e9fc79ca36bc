;; Does seven things one after the other: five calls of a tool, with a question to the model and a note in
;; between. Replies with how many answers it has had, over its whole life. It is what `runner crashtest` likes
;; best: each of its effects must happen once, whatever happens to the process.

(module
  (import "llm" "chat" (func $chat (param $ptr i32) (param $len i32) (result i32)))
  (import "memory" "save" (func $save (param $ptr i32) (param $len i32) (result i32)))
  (import "tool" "call" (func $tool (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  ;; 0: answers in its life. 4: steps in this delivery. 8: the delivery. 16: the reply. 32: null.
  (data (i32.const 32) "\f6")
  ;; {"name": "deliver", "arguments": {"parcel": 0}}; the number stands at 64 + 32.
  (data (i32.const 64) "\a2\64name\67deliver\69arguments\a1\66parcel\00")
  ;; {"messages": [{"role": "user", "content": "where to?"}]}
  (data (i32.const 128) "\a1\68messages\81\a2\64role\64user\67content\69where to?")
  ;; {"title": "log", "content": "half way"}
  (data (i32.const 192) "\a2\65title\63log\67content\68half way")

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (if (i32.ne (local.get $kind) (i32.const 1))
      (then
        (drop (call $reply (local.get $delivery) (i32.const 32) (i32.const 1)))
        (return)))
    (i32.store (i32.const 8) (local.get $delivery))
    (i32.store (i32.const 4) (i32.const 0))
    (call $next))

  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (i32.const 1)))
    (call $next))

  (func $next (local $step i32)
    (local.set $step (i32.load (i32.const 4)))
    (if (i32.eq (local.get $step) (i32.const 7))
      (then
        ;; Up to 255 as CBOR: 18 and a byte, or the byte alone.
        (i32.store8 (i32.const 16) (i32.const 0x18))
        (i32.store8 (i32.const 17) (i32.load (i32.const 0)))
        (if (i32.lt_u (i32.load (i32.const 0)) (i32.const 24))
          (then (drop (call $reply (i32.load (i32.const 8)) (i32.const 17) (i32.const 1))))
          (else (drop (call $reply (i32.load (i32.const 8)) (i32.const 16) (i32.const 2)))))
        (return)))
    (if (i32.eq (local.get $step) (i32.const 2))
      (then (drop (call $chat (i32.const 128) (i32.const 40))) (return)))
    (if (i32.eq (local.get $step) (i32.const 4))
      (then (drop (call $save (i32.const 192) (i32.const 28))) (return)))
    (i32.store8 (i32.const 96) (local.get $step))
    (drop (call $tool (i32.const 64) (i32.const 33)))))
