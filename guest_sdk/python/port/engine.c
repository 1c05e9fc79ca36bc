/* The engine's entry points: one slice each.

   Python code of the prelude does the work, in steps: it is called from here, where the C stack holds no object, so
   that the heap can be swept between two steps, and an error that leaves a step finds memory to be reported. */

#include "engine.h"

#include <string.h>

#include "py/compile.h"
#include "py/cstack.h"
#include "py/gc.h"
#include "py/mpprint.h"
#include "py/runtime.h"
#include "runner_abi.h"

enum {
  /* Python's recursion ends when C has used this much of its own stack; the host's stack for WebAssembly, 1 MiB, must
     not be used up before. */
  STACK_BYTES = ENGINE_STACK_BYTES - 64 * 1024,
};

enum { DELIVER, WAKE, STEP, BROKEN };

/* An error on its way from a failed step to its report: the sweep between them must find it. */
MP_REGISTER_ROOT_POINTER(mp_obj_t engine_error);

NORETURN void nlr_jump_fail(void *value) {
  (void)value;
  __builtin_trap();
}

static bool call_hook(unsigned hook, size_t count, const mp_obj_t *args, mp_obj_t *result) {
  nlr_buf_t nlr;
  if (nlr_push(&nlr) == 0) {
    *result = mp_call_function_n_kw(MP_STATE_VM(engine_hooks)[hook], count, 0, args);
    nlr_pop();
    return true;
  }
  MP_STATE_VM(engine_error) = MP_OBJ_FROM_PTR(nlr.ret_val);
  return false;
}

/* The last resort, without memory: {"message": "MemoryError: no memory to report an error"}. */
static void fail_plainly(void) {
  static const char failure[] = "\xa1\x67message\x78\x29MemoryError: no memory to report an error";
  if (engine_delivery == 0) return;
  runner_agent_fail(engine_delivery, failure, sizeof failure - 1);
  engine_delivery = 0;
}

static void report_error(void) {
  mp_obj_t error, result;
  heap_collect();
  error = MP_STATE_VM(engine_error);
  if (!call_hook(BROKEN, 1, &error, &result)) {
    fail_plainly();
    mp_obj_print_exception(&mp_plat_print, MP_STATE_VM(engine_error));
    output_flush();
  }
  MP_STATE_VM(engine_error) = MP_OBJ_NULL;
}

/* Steps until there is nothing to do. */
static void work(void) {
  for (;;) {
    heap_tidy();
    mp_obj_t more;
    if (!call_hook(STEP, 0, NULL, &more)) report_error();
    else if (more == mp_const_false) break;
  }
  output_flush();
}

/* `first` and `second` are the hook's first arguments, and the payload is its third. */
__attribute__((noinline)) static void slice(unsigned hook, int32_t first, int32_t second, uint32_t size) {
  mp_cstack_init_with_sp_here(STACK_BYTES);
  heap_tidy();
  nlr_buf_t nlr;
  if (nlr_push(&nlr) == 0) {
    mp_obj_t args[3] = {mp_obj_new_int(first), mp_obj_new_int(second), mp_const_none};
    /* A wake must reach who waits for it, also when there is no room for its payload. */
    nlr_buf_t inner;
    if (nlr_push(&inner) == 0) {
      args[2] = payload_take(size);
      nlr_pop();
    } else {
      args[2] = MP_OBJ_FROM_PTR(inner.ret_val);
    }
    mp_call_function_n_kw(MP_STATE_VM(engine_hooks)[hook], 3, 0, args);
    nlr_pop();
  } else {
    MP_STATE_VM(engine_error) = MP_OBJ_FROM_PTR(nlr.ret_val);
    report_error();
  }
  work();
}

/* What calls have left on the C stack, below the frame of an export that returns, down to where nothing ever was: it
   would make pages differ that mean the same. */
__attribute__((noinline)) static void clear_stack(void) {
  enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / sizeof(uint64_t) };
  uintptr_t end = (uintptr_t)__builtin_frame_address(0), start = end & ~(uintptr_t)(PAGE_BYTES - 1);
  memset((void *)start, 0, end - start);
  bool used = true;
  while (used && start > PAGE_BYTES) {
    start -= PAGE_BYTES;
    uint64_t *words = (uint64_t *)start;
    used = false;
    for (size_t i = 0; i < PAGE_WORDS; i++) {
      if (words[i] == 0) continue;
      words[i] = 0;
      used = true;
    }
  }
}

static void leave_no_trace(void) {
  bool is_image = engine_image;
  engine_image = false;
  heap_settle(is_image);
  clear_stack();
}

__attribute__((noinline)) static void start(void) {
  mp_cstack_init_with_sp_here(STACK_BYTES);
  heap_start();
  mp_init();
  nlr_buf_t nlr;
  if (nlr_push(&nlr) == 0) {
    module_run_prelude();
    nlr_pop();
  } else {
    mp_obj_print_exception(&mp_plat_print, MP_OBJ_FROM_PTR(nlr.ret_val));
    __builtin_trap();
  }
}

void runner_abi_v1(void) {}

void agent_start(void) {
  start();
  engine_image = true;
  leave_no_trace();
}

void agent_deliver(int32_t delivery, int32_t kind, uint32_t size) {
  engine_delivery = delivery;
  slice(DELIVER, delivery, kind, size);
  leave_no_trace();
}

void agent_wake(int32_t call, int32_t status, uint32_t size) {
  slice(WAKE, call, status, size);
  leave_no_trace();
}

/* The prelude tells an upgrade from a delivery by its kind. */
void agent_upgrade(int32_t delivery, int32_t kind, uint32_t size) { agent_deliver(delivery, kind, size); }
