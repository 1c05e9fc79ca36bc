/* Exports, calls in flight, replies. */

#include "dispatch.h"

typedef struct runner_pending {
  struct runner_pending *next;
  int32_t call;
  runner_callback *callback;
  void *user;
} pending;

static pending *calls;

void runner_abi_v1(void) {}

/* --- Handlers that an agent leaves out ---------------------------------------------------------- */

__attribute__((weak)) void on_start(void) {}

__attribute__((weak)) void on_message(const runner_delivery *delivery) {
  runner_fail(delivery->number, "this agent takes no messages");
}

__attribute__((weak)) void on_event(const runner_delivery *delivery) {
  runner_fail(delivery->number, "this agent takes no events");
}

__attribute__((weak)) void on_tick(const runner_delivery *delivery) {
  runner_fail(delivery->number, "this agent has no timer");
}

__attribute__((weak)) void on_restore(const runner_delivery *delivery) {
  runner_reply_null(delivery->number);
}

/* --- Exports ------------------------------------------------------------------------------------ */

void agent_start(void) { on_start(); }

void runner_handle(const runner_delivery *delivery) {
  switch (delivery->kind) {
    case RUNNER_KIND_MESSAGE: on_message(delivery); return;
    case RUNNER_KIND_EVENT: on_event(delivery); return;
    case RUNNER_KIND_TICK: on_tick(delivery); return;
    case RUNNER_KIND_RESTORE: on_restore(delivery); return;
    case RUNNER_KIND_HAND_OVER: case RUNNER_KIND_UPGRADE: break;
  }
  runner_fail(delivery->number, "this agent does not know this kind of delivery");
}

/* The payload's bytes, or NULL when the delivery has failed for want of them. */
static uint8_t *receive(runner_delivery *delivery, uint32_t size) {
  uint8_t *bytes = runner_take_all(size);
  delivery->payload = runner_parse(bytes, bytes ? size : 0);
  if (delivery->payload.data) return bytes;
  runner_fail(delivery->number,
              bytes ? "the payload is not deterministic CBOR" : "the payload does not fit in memory");
  free(bytes);
  return 0;
}

void agent_deliver(int32_t number, int32_t kind, uint32_t size) {
  runner_delivery delivery = {.number = number, .kind = (enum runner_kind)kind};
  uint8_t *bytes = receive(&delivery, size);
  if (!bytes) return;
#ifdef RUNNER_UNWIND
  runner_fiber_start(&delivery, bytes);
#else
  runner_handle(&delivery);
  free(bytes);
#endif
}

void runner_upgrade(int32_t number, int32_t kind, uint32_t size, runner_handler *handler) {
  runner_delivery delivery = {.number = number, .kind = (enum runner_kind)kind};
  uint8_t *bytes = receive(&delivery, size);
  if (!bytes) return;
  handler(&delivery);
  free(bytes);
}

void agent_wake(int32_t call, int32_t status, uint32_t size) {
  uint8_t *bytes = runner_take_all(size);
  runner_answer answer = {call, status, runner_parse(bytes, bytes ? size : 0)};
  /* An answer that is lost must not look like one that came. */
  if (!answer.payload.data && status >= 0) answer.status = RUNNER_STATUS_LIMIT;
#ifdef RUNNER_UNWIND
  if (runner_fiber_wake(&answer, bytes)) return;
#endif
  pending **at = &calls;
  while (*at && (*at)->call != call) at = &(*at)->next;
  pending *found = *at;
  if (found) {
    runner_callback *callback = found->callback;
    void *user = found->user;
    if (status != RUNNER_STATUS_PART) {
      *at = found->next;
      free(found);
    }
    callback(&answer, user);
  }
  free(bytes);
}

uint8_t *runner_take_all(uint32_t size) {
  uint8_t *bytes = malloc(size);
  uint32_t taken = 0;
  while (bytes && taken < size) {
    int32_t step = runner_agent_take(bytes + taken, size - taken);
    if (step <= 0) break;
    taken += (uint32_t)step;
  }
  if (bytes && taken < size) {
    free(bytes);
    return 0;
  }
  return bytes;
}

/* --- Calls -------------------------------------------------------------------------------------- */

struct runner_pending *runner_call_begin(runner_callback *callback, void *user) {
  pending *made = malloc(sizeof *made);
  if (made) *made = (pending){0, 0, callback, user};
  return made;
}

int32_t runner_call_made(struct runner_pending *made, int32_t call, runner_writer *request) {
  runner_writer_reset(request);
  if (call > 0) {
    made->call = call;
    made->next = calls;
    calls = made;
  } else {
    free(made);
  }
  return call;
}

int32_t runner_cancel(int32_t call) {
  for (pending **at = &calls; *at; at = &(*at)->next) {
    if ((*at)->call != call) continue;
    pending *found = *at;
    *at = found->next;
    free(found);
    break;
  }
  return runner_agent_cancel(call);
}

/* --- Replies ------------------------------------------------------------------------------------ */

int32_t runner_reply(int32_t delivery, runner_writer *reply) {
  int32_t status = runner_writer_status(reply);
  if (!status) status = runner_agent_reply(delivery, reply->data, reply->size);
  runner_writer_reset(reply);
  return status;
}

int32_t runner_reply_null(int32_t delivery) {
  static const uint8_t null[] = {0xf6};
  return runner_agent_reply(delivery, null, sizeof null);
}

int32_t runner_reply_text(int32_t delivery, const char *text) {
  runner_writer reply = {0};
  runner_put_text(&reply, text);
  return runner_reply(delivery, &reply);
}

static int32_t fail(int32_t delivery, const char *message, size_t size) {
  /* Said without the heap, so that an agent that has run out of memory can still say so. */
  static const uint8_t out_of_memory[] = "\xa1\x67message\x6dout of memory";
  runner_writer error = {0};
  runner_map_begin(&error);
  runner_put_key(&error, "message");
  runner_put_text_of(&error, message, size);
  runner_map_end(&error);
  int32_t status = runner_writer_status(&error);
  if (!status) status = runner_agent_fail(delivery, error.data, error.size);
  else if (status == RUNNER_STATUS_LIMIT)
    status = runner_agent_fail(delivery, out_of_memory, sizeof out_of_memory - 1);
  runner_writer_reset(&error);
  return status;
}

int32_t runner_fail(int32_t delivery, const char *message) { return fail(delivery, message, strlen(message)); }

static const char *meaning(int32_t status) {
  switch (status) {
    case RUNNER_STATUS_FAULT: return "the request lies outside the memory";
    case RUNNER_STATUS_INVALID: return "the request is not of the shape asked for";
    case RUNNER_STATUS_DENIED: return "the operation is not granted";
    case RUNNER_STATUS_LIMIT: return "a limit of this instance was met";
    case RUNNER_STATUS_UNSUPPORTED: return "this host does not offer the operation";
    case RUNNER_STATUS_NOT_FOUND: return "there is no such thing";
    default: return "the call failed";
  }
}

int32_t runner_fail_with(int32_t delivery, const runner_answer *answer) {
  uint32_t size;
  const char *message = runner_as_text(runner_get(answer->payload, "message"), &size);
  if (message && answer->status < 0) return fail(delivery, message, size);
  return runner_fail(delivery, meaning(answer->status));
}

/* --- Small things ------------------------------------------------------------------------------- */

int32_t runner_log(enum runner_log level, const char *message) {
  runner_writer line = {0};
  runner_put_text(&line, message);
  int32_t status = runner_writer_status(&line);
  if (!status) status = runner_agent_log((int32_t)level, line.data, line.size);
  runner_writer_reset(&line);
  return status;
}

/* What an import writes that answers on the spot, in memory that fits it. */
static runner_value told(int32_t (*tell)(void *ptr, uint32_t len)) {
  uint32_t room = 64;
  int32_t size;
  uint8_t *bytes = malloc(room);
  while (bytes && (size = tell(bytes, room)) < 0) {
    free(bytes);
    room *= 2;
    bytes = size == RUNNER_STATUS_TOO_SMALL ? malloc(room) : 0;
  }
  return runner_parse(bytes, bytes ? (size_t)size : 0);
}

runner_value runner_restored(void) { return told(runner_agent_restored); }

runner_value runner_last_snapshot(void) { return told(runner_agent_last_snapshot); }
