;; Hands a text to the model and replies with the model's answer.
;;
;; Nothing here blocks. Asking returns at once; the answer arrives later, in `agent_wake`. In between there is
;; no stack and no thread, only the memory, so the agent can be frozen while the model thinks.

(module
  (import "llm" "chat" (func $chat (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "take" (func $take (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))
  (import "agent" "fail" (func $fail (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  (memory (export "memory") 1)

  ;; --- The memory ---------------------------------------------------------------------------------
  ;;
  ;;     0  names that answers are searched for, and errors of our own
  ;;   128  the request, up to where the message's content begins
  ;;   158  whatever is fetched: the message, which so completes the request, and later the answer
  ;;
  ;; All of it is CBOR (RFC 8949). The first byte of an item says what it is and, up to 23, how long:
  ;; 60 + n begins a text of n bytes, 80 + n a list of n items, a0 + n a map of n pairs. The keys of a map are
  ;; sorted, shorter ones first: `role` before `content`.

  (data (i32.const 0) "\64text")
  (global $text_key i32 (i32.const 0))
  (data (i32.const 8) "\67message")
  (global $message_key i32 (i32.const 8))

  ;; {"message": "the model can't be asked"}
  (data (i32.const 16) "\a1\67message\78\18the model can't be asked")
  (global $refused i32 (i32.const 16))
  (global $refused_size i32 (i32.const 35))
  ;; {"message": "out of memory"}
  (data (i32.const 64) "\a1\67message\6dout of memory")
  (global $no_memory i32 (i32.const 64))
  (global $no_memory_size i32 (i32.const 23))

  (data (i32.const 96) "\f6")
  (global $null i32 (i32.const 96))

  ;; {"messages": [{"role": "user", "content":
  (data (i32.const 128) "\a1\68messages\81\a2\64role\64user\67content")
  (global $request i32 (i32.const 128))
  (global $request_size i32 (i32.const 30))
  (global $fetched i32 (i32.const 158))

  ;; The delivery that waits for the model. State may live in globals too: they are frozen with the memory.
  (global $delivery (mut i32) (i32.const 0))

  ;; --- What the host calls ------------------------------------------------------------------------

  (func (export "runner_abi_v1"))
  (func (export "agent_start"))

  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $delivery))
    ;; 1 is a message; being told of its restore, say, is nothing to ask the model about.
    (if (i32.ne (local.get $kind) (i32.const 1))
      (then
        (drop (call $reply (local.get $delivery) (global.get $null) (i32.const 1)))
        (return)))
    (if (i32.eqz (call $fetch (local.get $size)))
      (then
        (call $fail_with (global.get $no_memory) (global.get $no_memory_size))
        (return)))
    ;; Whatever was delivered is the content as it is. If it is no text, the answer will be an error.
    (if (i32.lt_s
          (call $chat (global.get $request) (i32.add (global.get $request_size) (local.get $size)))
          (i32.const 0))
      (then (call $fail_with (global.get $refused) (global.get $refused_size)))))

  ;; One call was made, so this is its answer: {"text": ..., "stop": ..., ...}, or with a negative status
  ;; {"kind": ..., "message": ...}.
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (local $found i32)
    (if (i32.eqz (call $fetch (local.get $size)))
      (then
        (call $fail_with (global.get $no_memory) (global.get $no_memory_size))
        (return)))
    (if (i32.lt_s (local.get $status) (i32.const 0))
      (then
        (call $fail_with_message (call $find (global.get $message_key)))
        (return)))
    (local.set $found (call $find (global.get $text_key)))
    (drop
      (call $reply
        (global.get $delivery)
        (local.get $found)
        (i32.sub (call $item_end (local.get $found)) (local.get $found)))))

  ;; --- Ending a delivery --------------------------------------------------------------------------

  (func $fail_with (param $ptr i32) (param $len i32)
    (drop (call $fail (global.get $delivery) (local.get $ptr) (local.get $len))))

  ;; Fails with {"message": text}, given the text inside the answer. The key stands right before it, so one byte
  ;; before that, the head of a map of one pair, makes the error whole.
  (func $fail_with_message (param $text i32)
    (local $start i32)
    (local.set $start (i32.sub (local.get $text) (i32.const 9)))
    (i32.store8 (local.get $start) (i32.const 0xa1))
    (call $fail_with
      (local.get $start)
      (i32.sub (call $item_end (local.get $text)) (local.get $start))))

  ;; --- Fetching -----------------------------------------------------------------------------------

  ;; Copies the `size` bytes that wait to $fetched, in a memory grown as needed; 0 when it could not grow.
  (func $fetch (param $size i32) (result i32)
    (local $missing_pages i32)
    (local.set $missing_pages
      (i32.sub
        (i32.shr_u (i32.add (i32.add (global.get $fetched) (local.get $size)) (i32.const 65535)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $missing_pages) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (local.get $missing_pages)) (i32.const -1))
          (then (return (i32.const 0))))))
    (i32.eq (call $take (global.get $fetched) (local.get $size)) (local.get $size)))

  ;; --- Reading CBOR -------------------------------------------------------------------------------
  ;;
  ;; The host only hands over well-formed items, so nothing here checks that again.

  ;; Where the value lies that the answer, a map, has under a key. The key must be there; `key` is where it lies
  ;; as CBOR, shorter than 24 bytes.
  (func $find (param $key i32) (result i32)
    (local $at i32)
    (local.set $at (call $head_end (global.get $fetched)))
    (block $found
      (loop $pairs
        (br_if $found (call $equal (local.get $at) (local.get $key)))
        ;; Behind the key, then behind its value.
        (local.set $at (call $item_end (call $item_end (local.get $at))))
        (br $pairs)))
    (call $item_end (local.get $at)))

  ;; Whether the same short text lies at both places. The head carries the size, so it is compared first.
  (func $equal (param $left i32) (param $right i32) (result i32)
    (local $left_over i32)
    (local.set $left_over (i32.sub (i32.load8_u (local.get $right)) (i32.const 0x5f)))
    (loop $bytes
      (if (i32.ne (i32.load8_u (local.get $left)) (i32.load8_u (local.get $right)))
        (then (return (i32.const 0))))
      (local.set $left (i32.add (local.get $left) (i32.const 1)))
      (local.set $right (i32.add (local.get $right) (i32.const 1)))
      (local.set $left_over (i32.sub (local.get $left_over) (i32.const 1)))
      (br_if $bytes (local.get $left_over)))
    (i32.const 1))

  ;; Where the item at `at` ends, with all that it contains.
  (func $item_end (param $at i32) (result i32)
    (local $items i32) (local $major i32) (local $argument i32)
    (local.set $items (i32.const 1))
    (loop $each
      (local.set $major (i32.shr_u (i32.load8_u (local.get $at)) (i32.const 5)))
      (local.set $argument (call $argument (local.get $at)))
      (local.set $at (call $head_end (local.get $at)))
      (local.set $items (i32.sub (local.get $items) (i32.const 1)))
      ;; 2 and 3 are bytes and text: their content follows.
      (if (i32.eq (i32.and (local.get $major) (i32.const 6)) (i32.const 2))
        (then (local.set $at (i32.add (local.get $at) (local.get $argument)))))
      ;; 4 is a list of items, 5 a map of twice as many.
      (if (i32.eq (i32.and (local.get $major) (i32.const 6)) (i32.const 4))
        (then
          (local.set $items
            (i32.add
              (local.get $items)
              (i32.shl (local.get $argument) (i32.and (local.get $major) (i32.const 1)))))))
      (br_if $each (local.get $items)))
    (local.get $at))

  ;; The number in an item's head: the low five bits of its first byte, or from 24 on the 1, 2, 4 or 8 bytes
  ;; after it. Of 8 bytes the lower half: nothing here is longer than the memory.
  (func $argument (param $at i32) (result i32)
    (local $left i32) (local $value i32)
    (local.set $left (call $argument_size (local.get $at)))
    (if (i32.eqz (local.get $left))
      (then (return (i32.and (i32.load8_u (local.get $at)) (i32.const 31)))))
    (loop $bytes
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (local.set $value
        (i32.or (i32.shl (local.get $value) (i32.const 8)) (i32.load8_u (local.get $at))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $bytes (local.get $left)))
    (local.get $value))

  (func $head_end (param $at i32) (result i32)
    (i32.add (i32.add (local.get $at) (i32.const 1)) (call $argument_size (local.get $at))))

  ;; How many bytes of number follow the first byte: 0, 1, 2, 4 or 8.
  (func $argument_size (param $at i32) (result i32)
    (local $form i32)
    (local.set $form (i32.sub (i32.and (i32.load8_u (local.get $at)) (i32.const 31)) (i32.const 24)))
    (if (result i32) (i32.lt_s (local.get $form) (i32.const 0))
      (then (i32.const 0))
      (else (i32.shl (i32.const 1) (local.get $form))))))
