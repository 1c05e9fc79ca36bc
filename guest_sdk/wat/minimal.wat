;; The smallest agent: it answers everything that it is handed with null.
;;
;;   runner run guest_sdk/wat/minimal.wat "anything"

(module
  ;; An import is a wish for power, granted or not by whoever runs the agent. Its module name is the
  ;; capability, its field name the operation. `agent` is every instance's own and needs no grant.
  ;; This one answers a delivery: its number, and where in the memory the answer's CBOR lies.
  (import "agent" "reply" (func $reply (param $delivery i32) (param $ptr i32) (param $len i32) (result i32)))

  ;; All that the agent knows lies in here: one page of 64 KiB, frozen and thawed as a whole. The host reads
  ;; and writes it through this export, and only where the agent said so.
  (memory (export "memory") 1)

  ;; The answer, laid at address 0: in CBOR, null is the one byte f6.
  (data (i32.const 0) "\f6")

  ;; Says which version of the ABI the module speaks. The name alone counts; nobody calls it.
  (func (export "runner_abi_v1"))

  ;; Called once, before the agent's image is frozen. There is nothing to prepare.
  (func (export "agent_start"))

  ;; Called for every delivery. `kind` says why: 1 is a message. `size` bytes of payload wait to be fetched with
  ;; `agent.take`; this agent leaves them where they are.
  (func (export "agent_deliver") (param $delivery i32) (param $kind i32) (param $size i32)
    ;; Reply with the one byte at address 0. The result says whether the host took it; nothing can go
    ;; wrong with this one.
    (drop (call $reply (local.get $delivery) (i32.const 0) (i32.const 1))))

  ;; Called with the answer to a call that the agent made. This one makes none, so nobody calls it, but every
  ;; agent must have it.
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)))
