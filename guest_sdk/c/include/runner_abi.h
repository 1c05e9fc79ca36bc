/* The guest ABI, version 1. Generated from runner/kernel/abi.py by
   `python -m runner.build.c_header --write`; docs/abi.md is the text for people.

   Every import is one capability: a module that calls `runner_llm_chat` asks its operator for `llm.chat`.
   All payloads are deterministic CBOR. */

#ifndef RUNNER_ABI_H
#define RUNNER_ABI_H

#include <stdint.h>

#define RUNNER_ABI_VERSION 1

#define RUNNER_IMPORT(module, name) __attribute__((import_module(#module), import_name(#name)))
#define RUNNER_EXPORT(name) __attribute__((export_name(#name)))

enum runner_status {
  /* wake only: one part of a streamed answer; the call stays in flight */
  RUNNER_STATUS_PART = 1,
  /* done */
  RUNNER_STATUS_OK = 0,
  /* `ptr` and `len` do not lie inside the memory; nothing was read or written */
  RUNNER_STATUS_FAULT = -1,
  /* the bytes are not deterministic CBOR, or not of the shape asked for */
  RUNNER_STATUS_INVALID = -2,
  /* the operator did not grant the operation */
  RUNNER_STATUS_DENIED = -3,
  /* a bound of this instance was met: size, calls, or log lines */
  RUNNER_STATUS_LIMIT = -4,
  /* this host, or this moment, does not offer it (timers without a resident host; operations inside
     `agent_start`) */
  RUNNER_STATUS_UNSUPPORTED = -5,
  /* no such delivery, call, tool or note */
  RUNNER_STATUS_NOT_FOUND = -6,
  /* the delivery was answered before */
  RUNNER_STATUS_SETTLED = -7,
  /* the answer is longer than `len`; nothing was written */
  RUNNER_STATUS_TOO_SMALL = -8,
  /* wake only: the effect failed outside; the payload says how */
  RUNNER_STATUS_FAILED = -9,
};

enum runner_kind {
  RUNNER_KIND_MESSAGE = 1,
  RUNNER_KIND_EVENT = 2,
  RUNNER_KIND_TICK = 3,
  RUNNER_KIND_RESTORE = 4,
  RUNNER_KIND_HAND_OVER = 5,
  RUNNER_KIND_UPGRADE = 6,
};

enum runner_log {
  RUNNER_LOG_DEBUG = 0,
  RUNNER_LOG_INFO = 1,
  RUNNER_LOG_WARNING = 2,
  RUNNER_LOG_ERROR = 3,
};

/* Shapes that the requests and answers below name (CDDL):

     message = { role: "system" / "user" / "assistant", content: tstr / [* content] }
     content = text / image / tool_call / tool_result / reasoning
     text = { type: "text", text: tstr }
     image = { type: "image", media_type: "image/png" / "image/jpeg" / "image/gif" / "image/webp",
       data: bstr }
     tool_call = { type: "tool_call", id: tstr, name: tstr, arguments: { * tstr => any }, ? seal:
       tstr }
     tool_result = { type: "tool_result", id: tstr, content: tstr / [* text / image], ? is_error:
       bool }
     reasoning = { type: "reasoning", made_by: tstr, data: tstr, ? text: tstr }
     effort = "none" / "minimal" / "low" / "medium" / "high" / "max"
     stop = "end" / "max_tokens" / "stop_sequence" / "tool_calls" / "refusal"
     usage = { calls: uint, input_tokens: uint / null, output_tokens: uint / null, ?
       cache_read_tokens: uint, ? cache_write_tokens: uint, ? reasoning_tokens: uint, ? cost_usd:
       float }
     note = { id: tstr, title: tstr, content: tstr }
     error = { kind: tstr, message: tstr } */

/* Exports: the SDK defines them. */

/* Says that the module speaks ABI version 1. Never called. */
RUNNER_EXPORT(runner_abi_v1)
void runner_abi_v1(void);

/* Boots the guest, once, before the image is frozen. It may log, and nothing else: no clock, no
   randomness, no operations, so that every instance starts from the same image. */
RUNNER_EXPORT(agent_start)
void agent_start(void);

/* Receives one delivery; `size` bytes of payload wait for `agent.take`. The delivery ends when the
   guest calls `agent.reply` or `agent.fail`, in this slice or a later one.
     request: any */
RUNNER_EXPORT(agent_deliver)
void agent_deliver(int32_t delivery, int32_t kind, uint32_t size);

/* Receives the answer to a call, or a part of it; `size` bytes of payload wait for `agent.take`. A
   negative status comes with an `error` payload.
     request: any / error */
RUNNER_EXPORT(agent_wake)
void agent_wake(int32_t call, int32_t status, uint32_t size);

/* Optional. Receives the delivery of kind `HAND_OVER` when another module is to take over, and
   replies with all that this one shall know; or, being that other module, the delivery of kind
   `UPGRADE`, and replies once it has taken that in. Each ends in this slice.
     request: { to_agent: tstr, to_version: tstr, to_code: bstr, to_image: bstr } / { from_agent:
       tstr, from_version: tstr, from_code: bstr, from_image: bstr, state: any } */
RUNNER_EXPORT(agent_upgrade)
void agent_upgrade(int32_t delivery, int32_t kind, uint32_t size);

/* Imports. */

/* Asks the model, runs the tools it calls, and answers with its final text.
     request: { messages: [+ message], ? system: tstr, ? provider: tstr, ? model: tstr, ?
       max_tokens: uint, ? tools: [* tstr], ? response_schema: { * tstr => any }, ? effort: effort,
       ? max_turns: uint, ? stream: bool }
     answer: { text: tstr, stop: stop / "max_turns", model: tstr, usage: usage }
     part: { text: tstr }
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED, PART */
RUNNER_IMPORT(llm, chat)
int32_t runner_llm_chat(const void *ptr, uint32_t len);

/* Asks the model for one turn; tool calls in it are the guest's to make.
     request: { messages: [+ message], ? system: tstr, ? provider: tstr, ? model: tstr, ?
       max_tokens: uint, ? tools: [* tstr], ? response_schema: { * tstr => any }, ? effort: effort,
       ? stream: bool }
     answer: { content: [* content], stop: stop, model: tstr, usage: usage }
     part: { text: tstr }
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED, PART */
RUNNER_IMPORT(llm, complete)
int32_t runner_llm_complete(const void *ptr, uint32_t len);

/* What this instance has used so far.
     request: {}
     answer: usage
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(llm, usage)
int32_t runner_llm_usage(const void *ptr, uint32_t len);

/* The providers that this instance may name.
     request: {}
     answer: [* { id: tstr, name: tstr, ? model: tstr }]
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(llm, providers)
int32_t runner_llm_providers(const void *ptr, uint32_t len);

/* Calls one tool by name.
     request: { name: tstr, ? arguments: { * tstr => any } }
     answer: any
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED, NOT_FOUND */
RUNNER_IMPORT(tool, call)
int32_t runner_tool_call(const void *ptr, uint32_t len);

/* The tools granted to this instance.
     request: {}
     answer: [* { name: tstr, description: tstr, input_schema: { * tstr => any } }]
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(tool, list)
int32_t runner_tool_list(const void *ptr, uint32_t len);

/* Keeps a note.
     request: { title: tstr, content: tstr }
     answer: { id: tstr }
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(memory, save)
int32_t runner_memory_save(const void *ptr, uint32_t len);

/* One note whole, or null.
     request: { id: tstr }
     answer: note / null
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(memory, read)
int32_t runner_memory_read(const void *ptr, uint32_t len);

/* All notes without their content.
     request: {}
     answer: [* { id: tstr, title: tstr }]
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(memory, list)
int32_t runner_memory_list(const void *ptr, uint32_t len);

/* Notes that match a query, best first.
     request: { query: tstr, ? limit: uint }
     answer: [* { id: tstr, title: tstr, content: tstr, score: float }]
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(memory, search)
int32_t runner_memory_search(const void *ptr, uint32_t len);

/* Removes a note; false if there was none.
     request: { id: tstr }
     answer: bool
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(memory, forget)
int32_t runner_memory_forget(const void *ptr, uint32_t len);

/* Answers once, when the delay is over. Needs a resident host.
     request: { delay_ms: uint, ? payload: any }
     answer: any
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED */
RUNNER_IMPORT(agent, after)
int32_t runner_agent_after(const void *ptr, uint32_t len);

/* Answers with a part at each interval, until cancelled. Needs a resident host.
     request: { interval_ms: uint, ? payload: any }
     answer: any
     part: any
     returns: call number, 1 or more
     status: FAULT, INVALID, DENIED, LIMIT, UNSUPPORTED
     wakes: OK, INVALID, DENIED, LIMIT, UNSUPPORTED, FAILED, PART */
RUNNER_IMPORT(agent, every)
int32_t runner_agent_every(const void *ptr, uint32_t len);

/* Copies the next bytes of this slice's payload to the guest, at most `len` of them.
     returns: bytes copied; 0 when none are left
     status: FAULT */
RUNNER_IMPORT(agent, take)
int32_t runner_agent_take(void *ptr, uint32_t len);

/* Answers the delivery.
     request: any
     status: OK, FAULT, INVALID, LIMIT, NOT_FOUND, SETTLED */
RUNNER_IMPORT(agent, reply)
int32_t runner_agent_reply(int32_t delivery, const void *ptr, uint32_t len);

/* Ends the delivery with an error of the guest's own; its state is kept.
     request: { message: tstr, ? data: any }
     status: OK, FAULT, INVALID, LIMIT, NOT_FOUND, SETTLED */
RUNNER_IMPORT(agent, fail)
int32_t runner_agent_fail(int32_t delivery, const void *ptr, uint32_t len);

/* Gives up a call in flight; no wake for it follows. The effect may happen all the same.
     status: OK, NOT_FOUND */
RUNNER_IMPORT(agent, cancel)
int32_t runner_agent_cancel(int32_t call);

/* Writes one line to the operator's log.
     request: tstr / { message: tstr, * tstr => any }
     status: OK, FAULT, INVALID, LIMIT */
RUNNER_IMPORT(agent, log)
int32_t runner_agent_log(int32_t level, const void *ptr, uint32_t len);

/* The time of this slice. It stands still while the slice runs.
     returns: milliseconds since 1970-01-01T00:00:00Z; 0 inside `agent_start` */
RUNNER_IMPORT(agent, now)
int64_t runner_agent_now(void);

/* Fills the buffer with random bytes from the instance's own recorded stream.
     status: OK, FAULT, LIMIT, UNSUPPORTED */
RUNNER_IMPORT(agent, random)
int32_t runner_agent_random(void *ptr, uint32_t len);

/* Asks the host to take a snapshot once this slice has ended; `len` 0 gives no reason.
     request: tstr
     returns: 1 if it will be taken, 0 if this host keeps none
     status: FAULT, INVALID */
RUNNER_IMPORT(agent, snapshot)
int32_t runner_agent_snapshot(const void *ptr, uint32_t len);

/* Writes what is known of this instance's last restore.
     answer: null / { count: uint, generation: uint, at_ms: uint }
     returns: bytes written
     status: FAULT, TOO_SMALL */
RUNNER_IMPORT(agent, restored)
int32_t runner_agent_restored(void *ptr, uint32_t len);

/* Writes how the last snapshot went that the host tried to take of this instance.
     answer: null / { ok: bool, bytes: uint, at_ms: uint, error: tstr / null }
     returns: bytes written
     status: FAULT, TOO_SMALL */
RUNNER_IMPORT(agent, last_snapshot)
int32_t runner_agent_last_snapshot(void *ptr, uint32_t len);

#endif
