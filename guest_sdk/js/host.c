/* The module `runner:host`: what the prelude, and nobody else, may ask of C. */

#include "engine.h"
#include "engine_wasi.h"

#include <string.h>

#define ARGUMENTS JSContext *context, JSValueConst self, int count, JSValueConst *arguments
#define UNUSED (void)self, (void)count

/* --- Calls ------------------------------------------------------------------------------------------ */

/* Nothing that an agent has asked for may be part of its image, and nobody would hear the answers to one that hands
   over. */
static int32_t ask(int operation, const void *request, uint32_t size) {
  if (engine_phase != ENGINE_LOADED || engine_hands_over) return RUNNER_STATUS_UNSUPPORTED;
  switch (operation) {
#define OPERATION(number, name) case number: return name(request, size);
#include "operations.h"
#undef OPERATION
    default: return RUNNER_STATUS_UNSUPPORTED;
  }
}

/* Returns the call's number, or a negative status. */
static JSValue call(ARGUMENTS) {
  UNUSED;
  int32_t operation;
  runner_writer request = {0};
  if (JS_ToInt32(context, &operation, arguments[0])) return JS_EXCEPTION;
  int failed = engine_encode(context, &request, arguments[1]);
  int32_t status = failed ? 0 : ask(operation, request.data, request.size);
  engine_drop(&request);
  if (status > 0) engine_calls_in_flight++;
  return failed ? JS_EXCEPTION : JS_NewInt32(context, status);
}

static JSValue cancel(ARGUMENTS) {
  UNUSED;
  int32_t number;
  if (JS_ToInt32(context, &number, arguments[0])) return JS_EXCEPTION;
  int32_t status = runner_agent_cancel(number);
  if (status == RUNNER_STATUS_OK) engine_calls_in_flight--;
  return JS_NewInt32(context, status);
}

/* --- Ends of deliveries -------------------------------------------------------------------------------- */

typedef int32_t ending(int32_t delivery, const void *payload, uint32_t size);

static JSValue end_delivery(JSContext *context, JSValueConst value, ending *end) {
  runner_writer payload = {0};
  if (engine_encode(context, &payload, value)) {
    engine_drop(&payload);
    return JS_EXCEPTION;
  }
  int32_t status = end(engine_open_delivery, payload.data, payload.size);
  engine_drop(&payload);
  if (status == RUNNER_STATUS_OK) engine_open_delivery = 0;
  return JS_NewInt32(context, status);
}

/* Both return a status. */
static JSValue reply(ARGUMENTS) {
  UNUSED;
  return end_delivery(context, arguments[0], runner_agent_reply);
}

static JSValue fail(ARGUMENTS) {
  UNUSED;
  return end_delivery(context, arguments[0], runner_agent_fail);
}

/* --- The instance's own affairs -------------------------------------------------------------------------- */

static JSValue write_log(ARGUMENTS) {
  UNUSED;
  int32_t level;
  runner_writer line = {0};
  if (JS_ToInt32(context, &level, arguments[0])) return JS_EXCEPTION;
  int failed = engine_encode(context, &line, arguments[1]);
  int32_t status = failed ? 0 : runner_agent_log(level, line.data, line.size);
  engine_drop(&line);
  return failed ? JS_EXCEPTION : JS_NewInt32(context, status);
}

static JSValue snapshot(ARGUMENTS) {
  UNUSED;
  runner_writer reason = {0};
  if (engine_phase != ENGINE_LOADED) return JS_NewInt32(context, 0);
  int failed = !JS_IsUndefined(arguments[0]) && engine_encode(context, &reason, arguments[0]);
  int32_t status = failed ? 0 : runner_agent_snapshot(reason.size ? (void *)reason.data : "", reason.size);
  engine_drop(&reason);
  return failed ? JS_EXCEPTION : JS_NewInt32(context, status);
}

static JSValue restored(ARGUMENTS) {
  UNUSED, (void)arguments;
  uint8_t told[128];
  if (engine_phase != ENGINE_LOADED) return JS_NULL;
  int32_t size = runner_agent_restored(told, sizeof told);
  return size > 0 ? engine_decode(context, told, (uint32_t)size) : JS_NULL;
}

/* Room for the reason, too, for which there is no snapshot. */
static JSValue last_snapshot(ARGUMENTS) {
  UNUSED, (void)arguments;
  uint8_t told[4096];
  if (engine_phase != ENGINE_LOADED) return JS_NULL;
  int32_t size = runner_agent_last_snapshot(told, sizeof told);
  return size > 0 ? engine_decode(context, told, (uint32_t)size) : JS_NULL;
}

static JSValue now(ARGUMENTS) {
  UNUSED, (void)arguments;
  return JS_NewInt64(context, engine_now_ms());
}

static JSValue is_loading(ARGUMENTS) {
  UNUSED, (void)arguments;
  return JS_NewBool(context, engine_phase != ENGINE_LOADED);
}

/* Fills a Uint8Array; returns a status. */
static JSValue random_bytes(ARGUMENTS) {
  UNUSED;
  size_t size;
  uint8_t *bytes = JS_GetUint8Array(context, &size, arguments[0]);
  if (!bytes) return JS_HasException(context) ? JS_EXCEPTION : JS_NewInt32(context, RUNNER_STATUS_OK);
  return JS_NewInt32(context, engine_random_bytes(bytes, (uint32_t)size));
}

/* --- What JavaScript itself can't do --------------------------------------------------------------------- */

static JSValue encode_text(ARGUMENTS) {
  UNUSED;
  size_t size;
  const char *text = engine_text(context, &size, arguments[0]);
  if (!text) return JS_EXCEPTION;
  JSValue bytes = JS_NewUint8ArrayCopy(context, (const uint8_t *)text, size);
  engine_free_text(context, text);
  return bytes;
}

/* The text of a Uint8Array; undefined when it is no UTF-8 and the second argument is true. */
static JSValue decode_text(ARGUMENTS) {
  UNUSED;
  size_t size;
  const uint8_t *bytes = JS_GetUint8Array(context, &size, arguments[0]);
  if (!bytes && JS_HasException(context)) return JS_EXCEPTION;
  bool strict = JS_ToBool(context, arguments[1]) > 0;
  return engine_string(context, bytes ? bytes : (const uint8_t *)"", bytes ? size : 0, strict);
}

/* Also one of another realm: a check has one of its own. */
static JSValue is_error(ARGUMENTS) {
  UNUSED;
  return JS_NewBool(context, JS_IsError(arguments[0]));
}

static JSValue is_promise(ARGUMENTS) {
  UNUSED;
  return JS_NewBool(context, JS_IsPromise(arguments[0]));
}

static JSValue is_starved(ARGUMENTS) {
  UNUSED, (void)arguments;
  return JS_NewBool(context, engine_is_starved());
}

/* "pending", "fulfilled" or "rejected", and the value, for a promise; else undefined. */
static JSValue look_into_promise(ARGUMENTS) {
  UNUSED;
  static const char *const states[] = {"pending", "fulfilled", "rejected"};
  if (!JS_IsPromise(arguments[0])) return JS_UNDEFINED;
  JSPromiseStateEnum state = JS_PromiseState(context, arguments[0]);
  JSValue pair = JS_NewArray(context);
  JS_DefinePropertyValueUint32(context, pair, 0, JS_NewString(context, states[state]), JS_PROP_C_W_E);
  if (state != JS_PROMISE_PENDING)
    JS_DefinePropertyValueUint32(context, pair, 1, JS_PromiseResult(context, arguments[0]), JS_PROP_C_W_E);
  return pair;
}

static JSValue is_proxy(ARGUMENTS) {
  UNUSED;
  return JS_NewBool(context, JS_IsProxy(arguments[0]));
}

static const JSCFunctionListEntry functions[] = {
    JS_CFUNC_DEF("call", 2, call),
    JS_CFUNC_DEF("cancel", 1, cancel),
    JS_CFUNC_DEF("reply", 1, reply),
    JS_CFUNC_DEF("fail", 1, fail),
    JS_CFUNC_DEF("writeLog", 2, write_log),
    JS_CFUNC_DEF("snapshot", 1, snapshot),
    JS_CFUNC_DEF("restored", 0, restored),
    JS_CFUNC_DEF("lastSnapshot", 0, last_snapshot),
    JS_CFUNC_DEF("now", 0, now),
    JS_CFUNC_DEF("isLoading", 0, is_loading),
    JS_CFUNC_DEF("randomBytes", 1, random_bytes),
    JS_CFUNC_DEF("encodeText", 1, encode_text),
    JS_CFUNC_DEF("decodeText", 2, decode_text),
    JS_CFUNC_DEF("lookIntoPromise", 1, look_into_promise),
    JS_CFUNC_DEF("isError", 1, is_error),
    JS_CFUNC_DEF("isPromise", 1, is_promise),
    JS_CFUNC_DEF("isProxy", 1, is_proxy),
    JS_CFUNC_DEF("isStarved", 0, is_starved),
};

#define FUNCTIONS ((int)(sizeof functions / sizeof *functions))

static int fill(JSContext *context, JSModuleDef *module) {
  return JS_SetModuleExportList(context, module, functions, FUNCTIONS);
}

JSModuleDef *engine_host_module(JSContext *context, const char *name) {
  JSModuleDef *module = JS_NewCModule(context, name, fill);
  if (module && JS_AddModuleExportList(context, module, functions, FUNCTIONS) < 0) return NULL;
  return module;
}
