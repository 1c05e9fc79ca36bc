/* The C SDK: what an agent's source includes.

   An agent defines `on_message`, and what else it wants to hear of:

       #include <runner.h>

       void on_message(const runner_delivery *delivery) {
         runner_reply_text(delivery->number, "hello");
       }

   Everything here is freestanding: no libc, no WASI, no state outside the linear memory. */

#ifndef RUNNER_H
#define RUNNER_H

#include "runner_abi.h"
#include "runner_cbor.h"
#include "runner_memory.h"

/* --- What the agent defines ------------------------------------------------------------------- */

/* One event handed to the agent. `payload` may be read until the handler returns. */
typedef struct runner_delivery {
  int32_t number; /* what `runner_reply` and `runner_fail` take, in this slice or a later one */
  enum runner_kind kind;
  runner_value payload;
} runner_delivery;

/* Called once, before the agent's image is frozen: build tables here. It may log, and nothing else. */
void on_start(void);

/* One per kind. A delivery ends when the agent replies or fails, also later, from a callback; one that
   returns without either and with nothing in flight is an error. Left undefined, `on_restore` replies
   null and the others fail. */
void on_message(const runner_delivery *delivery);
void on_event(const runner_delivery *delivery);
void on_tick(const runner_delivery *delivery);
void on_restore(const runner_delivery *delivery);

/* What an agent writes once, at file level, that can be upgraded:

       RUNNER_UPGRADES(hand_over, take_over)

   `hand_over` replies with all that another version of the agent shall know. `take_over` is that other
   version's: it finds that under `state` of its payload, and replies null when it has taken it in, or fails,
   and the old version lives on. Both end in their slice: neither may wait for an answer. */
#define RUNNER_UPGRADES(hand_over, take_over)                                                      \
  void agent_upgrade(int32_t number, int32_t kind, uint32_t size) {                                \
    runner_upgrade(number, kind, size, kind == RUNNER_KIND_HAND_OVER ? (hand_over) : (take_over)); \
  }

/* --- Replies ---------------------------------------------------------------------------------- */

/* Each returns `enum runner_status`. A writer that failed is not sent: RUNNER_STATUS_LIMIT when memory
   ran out, RUNNER_STATUS_INVALID when it was used wrongly. All of them empty the writer. */
int32_t runner_reply(int32_t delivery, runner_writer *reply);
int32_t runner_reply_null(int32_t delivery);
int32_t runner_reply_text(int32_t delivery, const char *text);

/* `message` is text for people. */
int32_t runner_fail(int32_t delivery, const char *message);

/* --- Calls ------------------------------------------------------------------------------------ */

/* An import that makes a call: `runner_llm_chat`, `runner_memory_save`, ... Only what is named in the
   source is imported, so the module asks its operator for nothing else. */
typedef int32_t runner_operation(const void *ptr, uint32_t len);

/* The answer to a call, or one part of a streamed one. */
typedef struct runner_answer {
  int32_t call;
  int32_t status;       /* enum runner_status: OK, PART, or why there is no answer */
  runner_value payload; /* the answer; for a negative status the error, or missing */
} runner_answer;

/* Called when an answer arrives; `answer` may be read until it returns. After RUNNER_STATUS_PART more
   follow. */
typedef void runner_callback(const runner_answer *answer, void *user);

/* Sends `request`, and empties it; `callback` gets the answer in a later slice.
   Returns the call's number, or a negative status when it was refused on the spot: then the callback is
   never called. */
static inline int32_t runner_call(runner_operation *operation, runner_writer *request,
                                  runner_callback *callback, void *user);

/* Gives up a call: its callback is never called. The effect may happen all the same. */
int32_t runner_cancel(int32_t call);

/* Fails the delivery with the message of the answer's error. */
int32_t runner_fail_with(int32_t delivery, const runner_answer *answer);

#ifdef RUNNER_UNWIND
/* Sequential code: needs `unwind = true` under [build] of agent.toml.

   Sends `request`, and returns when the answer is there, as if it blocked. In truth the stack is laid
   away in memory and the export returns, so an agent can be frozen while it waits. Parts of a streamed
   answer are dropped. Only the `on_...` handlers of deliveries may wait; elsewhere the status is
   RUNNER_STATUS_UNSUPPORTED. The payload may be read until the handler returns.

   A handler that waits has its own stack of RUNNER_STACK_BYTES ([build] stack). */
static inline runner_answer runner_await(runner_operation *operation, runner_writer *request);
#endif

/* --- Small things ------------------------------------------------------------------------------ */

/* Writes one line to the operator's log. */
int32_t runner_log(enum runner_log level, const char *message);

/* The rest of this slice's payload in memory of its own, for `free`; NULL when memory ran out. The SDK
   has taken it already when a handler or callback runs. */
uint8_t *runner_take_all(uint32_t size);

/* What this agent knows of its last restore, in memory of its own that `free` takes back by
   `value.data`; missing when memory ran out, null when it was never restored. */
runner_value runner_restored(void);

/* How the last snapshot of it went that was tried, likewise; null before any. */
runner_value runner_last_snapshot(void);

/* --- How the inline ones work ------------------------------------------------------------------- */

typedef void runner_handler(const runner_delivery *delivery);
void runner_upgrade(int32_t number, int32_t kind, uint32_t size, runner_handler *handler);

struct runner_pending;
struct runner_pending *runner_call_begin(runner_callback *callback, void *user);
int32_t runner_call_made(struct runner_pending *pending, int32_t call, runner_writer *request);

/* Inline, so that an operation becomes a direct call of the import, and only that is imported. */
__attribute__((always_inline)) static inline int32_t runner_call(runner_operation *operation,
                                                                 runner_writer *request,
                                                                 runner_callback *callback, void *user) {
  int32_t status = runner_writer_status(request);
  struct runner_pending *pending = 0;
  if (status == RUNNER_STATUS_OK) {
    pending = runner_call_begin(callback, user);
    status = pending ? operation(request->data, request->size) : RUNNER_STATUS_LIMIT;
  }
  return runner_call_made(pending, status, request);
}

#ifdef RUNNER_UNWIND
int32_t runner_await_begin(runner_writer *request);
runner_answer runner_await_made(int32_t call, runner_writer *request);

__attribute__((always_inline)) static inline runner_answer runner_await(runner_operation *operation,
                                                                        runner_writer *request) {
  int32_t status = runner_await_begin(request);
  return runner_await_made(status == RUNNER_STATUS_OK ? operation(request->data, request->size) : status,
                           request);
}
#endif

#endif
