/* Sequential code: `runner_await`.

   Binaryen's asyncify pass turns every function that can reach `suspend` into one that can leave in the
   middle, storing its locals, and come back to the same place. The pass gives meaning to the imports below;
   none of them is left in the module. Functions that call them are not transformed themselves, so none of
   them may be inlined into one that must be.

   A handler runs as a fiber with a C stack of its own: what it left there must stay untouched by whatever
   runs until its answer comes. */

#ifdef RUNNER_UNWIND

#include "dispatch.h"

#define UNWIND_BYTES (RUNNER_STACK_BYTES / 2)
#define GUARD 0x5afe57acu

/* What the pass reads and writes: where the next frame goes, and where there is no more room. */
typedef struct area {
  uint8_t *at, *end;
} area;

RUNNER_IMPORT(asyncify, start_unwind) void asyncify_start_unwind(area *to);
RUNNER_IMPORT(asyncify, stop_unwind) void asyncify_stop_unwind(void);
RUNNER_IMPORT(asyncify, start_rewind) void asyncify_start_rewind(area *from);
RUNNER_IMPORT(asyncify, stop_rewind) void asyncify_stop_rewind(void);

/* Payloads that a handler may read until it returns. */
typedef struct held {
  struct held *next;
  uint8_t *bytes;
} held;

typedef struct fiber {
  struct fiber *next;
  runner_delivery delivery;
  uint8_t *payload;
  held *answers;
  int32_t call; /* the one it waits for, or 0 */
  runner_answer answer;
  void *stack_pointer;
  area frames;
  uint8_t unwound[UNWIND_BYTES];
  uint32_t guard; /* below the stack: an overflow changes it */
  _Alignas(16) uint8_t stack[RUNNER_STACK_BYTES];
} fiber;

static fiber *fibers, *running;
static bool resuming;

__asm__(".globaltype __stack_pointer, i32");

static inline void *stack_pointer(void) {
  void *value;
  __asm__ volatile("global.get __stack_pointer\nlocal.set %0" : "=r"(value));
  return value;
}

static inline void set_stack_pointer(void *value) {
  __asm__ volatile("local.get %0\nglobal.set __stack_pointer" : : "r"(value) : "memory");
}

/* Transformed: first function of every fiber. */
__attribute__((noinline)) static void enter(fiber *self) { runner_handle(&self->delivery); }

static void finish(fiber *self) {
  fiber **at = &fibers;
  while (*at != self) at = &(*at)->next;
  *at = self->next;
  while (self->answers) {
    held *answer = self->answers;
    self->answers = answer->next;
    free(answer->bytes);
    free(answer);
  }
  free(self->payload);
  free(self);
}

/* Runs a fiber until it returns or waits. */
__attribute__((noinline)) static void run(fiber *self, bool again) {
  void *outer = stack_pointer();
  running = self;
  set_stack_pointer(self->stack_pointer);
  resuming = again;
  if (again) asyncify_start_rewind(&self->frames);
  enter(self);
  self->stack_pointer = stack_pointer();
  if (self->call) asyncify_stop_unwind();
  set_stack_pointer(outer);
  running = 0;
  if (self->guard != GUARD) __builtin_trap();
  if (!self->call) finish(self);
}

/* Leaves the fiber here; in a later slice, comes back to here. */
__attribute__((noinline)) static void suspend(fiber *self) {
  if (resuming) {
    resuming = false;
    asyncify_stop_rewind();
    return;
  }
  self->frames = (area){self->unwound, self->unwound + UNWIND_BYTES};
  asyncify_start_unwind(&self->frames);
}

void runner_fiber_start(const runner_delivery *delivery, uint8_t *bytes) {
  fiber *self = malloc(sizeof *self);
  if (!self) {
    free(bytes);
    runner_fail(delivery->number, "out of memory");
    return;
  }
  self->next = fibers;
  self->delivery = *delivery;
  self->payload = bytes;
  self->answers = 0;
  self->call = 0;
  self->stack_pointer = self->stack + RUNNER_STACK_BYTES;
  self->guard = GUARD;
  fibers = self;
  run(self, false);
}

bool runner_fiber_wake(const runner_answer *answer, uint8_t *bytes) {
  fiber *self = fibers;
  while (self && self->call != answer->call) self = self->next;
  if (!self) return false;
  if (answer->status == RUNNER_STATUS_PART) {
    free(bytes);
    return true;
  }
  self->call = 0;
  self->answer = *answer;
  held *kept = malloc(sizeof *kept);
  if (kept) {
    *kept = (held){self->answers, bytes};
    self->answers = kept;
  } else {
    self->answer = (runner_answer){answer->call, RUNNER_STATUS_LIMIT, {0, 0}};
    free(bytes);
  }
  run(self, true);
  return true;
}

int32_t runner_await_begin(runner_writer *request) {
  return running ? runner_writer_status(request) : RUNNER_STATUS_UNSUPPORTED;
}

runner_answer runner_await_made(int32_t call, runner_writer *request) {
  runner_writer_reset(request);
  if (call <= 0) return (runner_answer){0, call, {0, 0}};
  fiber *self = running;
  self->call = call;
  suspend(self);
  return self->answer;
}

#endif
