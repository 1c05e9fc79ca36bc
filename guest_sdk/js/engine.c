/* The JavaScript engine as a guest: its exports, and what happens in a slice. */

#include "engine.h"
#include "engine_wasi.h"

#include <string.h>

/* Of the C stack. The interpreter stops with a range error where this much is used, and what it still has to do
   then, such as to write down where it was, needs some more. */
#define STACK_BYTES (ENGINE_STACK_BYTES - 48 * 1024)

/* Garbage that an instance may make before the cycle collector looks at its whole heap, and so dirties it. */
#define GARBAGE_BYTES (1024 * 1024)

/* How often the interpreter may look up from a load, which it does every ten thousand calls and turns of loops; and
   how many promises may be settled in it. A load that takes longer would end by the host's fuel, and nobody would
   know in which line. */
#define LOAD_POLLS 400
#define LOAD_JOBS 50000

enum engine_phase engine_phase;
JSRuntime *engine_runtime;
JSContext *engine_context;
int32_t engine_open_delivery;
uint32_t engine_calls_in_flight;
bool engine_hands_over;

int64_t engine_now_ms(void) { return engine_phase == ENGINE_LOADED ? runner_agent_now() : 0; }

static uint32_t polls, jobs;

static int poll(JSRuntime *runtime, void *unused) {
  (void)runtime, (void)unused;
  return engine_phase == ENGINE_LOADING && ++polls > LOAD_POLLS;
}

static bool job_is_too_many(void) { return engine_phase == ENGINE_LOADING && ++jobs > LOAD_JOBS; }

bool engine_overran(void) { return polls > LOAD_POLLS || jobs > LOAD_JOBS; }

/* --- Failing without the prelude --------------------------------------------------------------------- */

/* For when even the prelude can't run: memory or stack ran out in it. */
static void fail_plainly(void) {
  JSValue error = JS_GetException(engine_context);
  /* What the interpreter throws when it has no memory for an error is null. */
  const char *text = JS_IsObject(error) ? JS_ToCString(engine_context, error) : NULL;
  runner_writer failure = {0};
  runner_map_begin(&failure);
  runner_put_key(&failure, "message");
  runner_put_text(&failure, text ? text : "InternalError: out of memory");
  runner_map_end(&failure);
  static const uint8_t least[] = "\xa1\x67message\x6dout of memory";
  bool sound = runner_writer_status(&failure) == RUNNER_STATUS_OK;
  if (engine_open_delivery)
    runner_agent_fail(engine_open_delivery, sound ? failure.data : least, sound ? failure.size : sizeof least - 1);
  engine_open_delivery = 0;
  engine_drop(&failure);
  JS_FreeCString(engine_context, text);
  JS_FreeValue(engine_context, JS_GetException(engine_context));
  JS_FreeValue(engine_context, error);
}

static void call_prelude(enum prelude_function which, int count, JSValueConst *arguments) {
  JSValue result = engine_call_prelude(engine_context, which, count, arguments);
  if (JS_IsException(result)) fail_plainly();
  JS_FreeValue(engine_context, result);
}

/* --- Slices --------------------------------------------------------------------------------------------- */

/* A job that fails is a promise's, which has been rejected. What is left is a lack of memory or stack. */
static void run_jobs(void) {
  JSContext *context;
  int status;
  while (!job_is_too_many() && (status = JS_ExecutePendingJob(engine_runtime, &context)))
    if (status < 0) JS_FreeValue(context, JS_GetException(context));
}

/* One zero timer; whether there was one. */
static bool turn(void) {
  JSValue more = engine_call_prelude(engine_context, PRELUDE_TURN, 0, NULL);
  if (JS_IsException(more)) fail_plainly();
  return JS_IsBool(more) && JS_VALUE_GET_BOOL(more);
}

void engine_drain(void) {
  do run_jobs();
  while (!engine_overran() && turn());
}

static void begin_slice(void) {
  engine_feed();
  engine_begin_slice();
}

/* Whatever happens in a slice: one that leaves a delivery open with nothing to come would be lost. */
static void end_slice(void) {
  engine_drain();
  JSValue reasons = engine_take_rejections(engine_context);
  call_prelude(PRELUDE_END_SLICE, 1, &reasons);
  JS_FreeValue(engine_context, reasons);
  /* What the end of a slice does may have made jobs in turn: a failure that somebody waits for. */
  run_jobs();
  if (engine_open_delivery && !engine_calls_in_flight) fail_plainly();
}

/* The payload of this slice, or an exception. */
static JSValue take_payload(uint32_t size) {
  uint8_t *data = js_malloc(engine_context, size ? size : 1);
  if (!data) return JS_EXCEPTION;
  uint32_t taken = 0;
  for (int32_t more = 1; taken < size && more > 0; taken += more > 0 ? (uint32_t)more : 0)
    more = runner_agent_take(data + taken, size - taken);
  JSValue payload = engine_decode(engine_context, data, taken);
  js_free(engine_context, data);
  return payload;
}

/* What calls have left on the C stack, below the frame of an export that returns, down to where nothing ever was. It
   would make pages differ that hold the same: of two instances, and of one from snapshot to snapshot. */
__attribute__((noinline)) static void clear_stack(void) {
  enum { PAGE = 4096, WORDS = PAGE / sizeof(uint64_t) };
  uintptr_t end = (uintptr_t)__builtin_frame_address(0), start = end & ~(uintptr_t)(PAGE - 1);
  memset((void *)start, 0, end - start);
  for (bool used = true; used && start > PAGE;) {
    start -= PAGE;
    const uint64_t *page = (const uint64_t *)start;
    used = false;
    for (int i = 0; i < WORDS && !used; i++) used = page[i] != 0;
    if (used) memset((void *)start, 0, PAGE);
  }
}

/* --- Requests to the engine itself ------------------------------------------------------------------------ */

/* The error of a check or a load, told by the prelude. */
static void fail_to_load(void) {
  JSValue error = JS_GetException(engine_context);
  if (engine_overran()) {
    JSValue message = JS_NewString(engine_context, "does not finish loading");
    JS_DefinePropertyValueStr(engine_context, error, "message", message, JS_PROP_C_W_E & ~JS_PROP_ENUMERABLE);
  }
  JSValue kind = JS_NewString(engine_context, engine_failure_kind);
  JSValue arguments[] = {kind, JS_DupValue(engine_context, engine_failure_name), error};
  call_prelude(PRELUDE_FAILURE, 3, arguments);
  for (int i = 0; i < 3; i++) JS_FreeValue(engine_context, arguments[i]);
}

static void answer_request(JSValueConst answer) {
  runner_writer reply = {0};
  if (engine_encode(engine_context, &reply, answer)) fail_plainly();
  else runner_agent_reply(engine_open_delivery, reply.data, reply.size);
  engine_open_delivery = 0;
  engine_drop(&reply);
}

/* Makes an image of what there is, where no collection comes soon. */
static void become_image(bool with_data) {
  JSMemoryUsage use;
  JS_RunGC(engine_runtime);
  JS_ComputeMemoryUsage(engine_runtime, &use);
  JS_SetGCThreshold(engine_runtime, (size_t)use.malloc_size + GARBAGE_BYTES);
  engine_keep(engine_runtime, with_data);
}

/* Nothing may be held any more of the request. */
static void become_loaded(void) {
  become_image(false);
  engine_forget_seed();
  polls = jobs = 0;
  engine_phase = ENGINE_LOADED;
}

/* Whether an agent was loaded. */
static bool handle_request(JSValueConst request) {
  JSValue load = JS_GetPropertyStr(engine_context, request, "load");
  JSValue check = JS_GetPropertyStr(engine_context, request, "check");
  JSValue answer = JS_EXCEPTION;
  if (JS_IsObject(load)) {
    engine_phase = ENGINE_LOADING;
    answer = engine_load(engine_context, load);
  } else if (JS_IsObject(check)) {
    answer = engine_check(engine_context, check);
  } else {
    JS_ThrowTypeError(engine_context, "no agent is loaded");
  }
  if (JS_IsException(answer)) fail_to_load();
  else answer_request(answer);
  bool loaded = JS_IsObject(load) && !JS_IsException(answer);
  JS_FreeValue(engine_context, load);
  JS_FreeValue(engine_context, check);
  JS_FreeValue(engine_context, answer);
  return loaded;
}

/* --- Exports ------------------------------------------------------------------------------------------------ */

void runner_abi_v1(void) {}

/* The build shows it: there is no image, and no instance, without a prelude. */
static void log_boot_failure(void) {
  JSValue error = JS_GetException(engine_context), stack = JS_GetPropertyStr(engine_context, error, "stack");
  const char *text = JS_ToCString(engine_context, error), *where = JS_ToCString(engine_context, stack);
  const char *const lines[] = {text ? text : "the engine does not start", where ? where : ""};
  for (int i = 0; i < 2; i++) {
    runner_writer line = {0};
    runner_put_text(&line, lines[i]);
    runner_agent_log(RUNNER_LOG_ERROR, line.data, line.size);
    engine_drop(&line);
  }
}

__attribute__((noinline)) static void start(void) {
  engine_runtime = engine_new_runtime();
  if (!engine_runtime) __builtin_trap();
  JS_SetMaxStackSize(engine_runtime, STACK_BYTES);
  engine_install_loader(engine_runtime);
  engine_watch_rejections(engine_runtime);
  JS_SetInterruptHandler(engine_runtime, poll, NULL);
  engine_context = JS_NewContext(engine_runtime);
  if (!engine_context || JS_AddIntrinsicDOMException(engine_context)) __builtin_trap();
  if (engine_install_random(engine_context) < 0 || engine_start_prelude(engine_context)) {
    log_boot_failure();
    __builtin_trap();
  }
  become_image(true);
}

__attribute__((noinline)) static void deliver(int32_t delivery, int32_t kind, uint32_t size) {
  engine_open_delivery = delivery;
  begin_slice();
  JSValue payload = take_payload(size);
  if (JS_IsException(payload)) {
    fail_plainly();
    return;
  }
  if (engine_phase != ENGINE_LOADED) {
    bool loaded = handle_request(payload);
    JS_FreeValue(engine_context, payload);
    if (loaded) become_loaded();
    return;
  }
  JSValue arguments[] = {JS_NewInt32(engine_context, kind), payload};
  call_prelude(PRELUDE_DELIVER, 2, arguments);
  JS_FreeValue(engine_context, payload);
  end_slice();
}

__attribute__((noinline)) static void wake(int32_t call, int32_t status, uint32_t size) {
  begin_slice();
  if (status != RUNNER_STATUS_PART) engine_calls_in_flight--;
  JSValue payload = take_payload(size);
  if (JS_IsException(payload)) {
    /* The answer is lost, and its call over: it fails as if the host had met a limit. */
    JS_FreeValue(engine_context, JS_GetException(engine_context));
    payload = JS_NULL;
    status = RUNNER_STATUS_LIMIT;
  }
  JSValue arguments[] = {JS_NewInt32(engine_context, call), JS_NewInt32(engine_context, status), payload};
  call_prelude(PRELUDE_WAKE, 3, arguments);
  JS_FreeValue(engine_context, payload);
  end_slice();
}

/* But what the slice means to leave. */
static void leave_no_trace(void) {
  engine_tidy(engine_runtime);
  clear_stack();
}

void agent_start(void) {
  start();
  leave_no_trace();
}

void agent_deliver(int32_t delivery, int32_t kind, uint32_t size) {
  deliver(delivery, kind, size);
  leave_no_trace();
}

void agent_upgrade(int32_t delivery, int32_t kind, uint32_t size) {
  engine_hands_over = kind == RUNNER_KIND_HAND_OVER;
  deliver(delivery, kind, size);
  engine_hands_over = false;
  leave_no_trace();
}

void agent_wake(int32_t call, int32_t status, uint32_t size) {
  wake(call, status, size);
  leave_no_trace();
}
