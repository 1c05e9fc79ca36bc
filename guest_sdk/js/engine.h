/* The parts of the JavaScript engine, as they know one another. */

#ifndef JS_ENGINE_H
#define JS_ENGINE_H

#include <quickjs.h>

#include "runner_abi.h"
#include "runner_cbor.h"

/* What the engine is doing decides what an agent may learn: nothing that goes into an image may depend on
   a clock, on chance or on a host. */
enum engine_phase { ENGINE_UNLOADED, ENGINE_LOADING, ENGINE_LOADED };

extern enum engine_phase engine_phase;
extern JSRuntime *engine_runtime;
extern JSContext *engine_context;

/* --- engine.c ----------------------------------------------------------------------------------- */

/* Runs promise jobs and zero timers until there are none. */
void engine_drain(void);

/* Whether a load has taken more steps than it may. */
bool engine_overran(void);

/* The delivery that waits for its reply, or 0. */
extern int32_t engine_open_delivery;

/* Whether this slice hands the agent's state over to a successor. */
extern bool engine_hands_over;

/* How many calls wait for their answer. */
extern uint32_t engine_calls_in_flight;

/* --- upstream_tail.h ---------------------------------------------------------------------------------- */

void engine_tidy(JSRuntime *runtime);
void engine_keep(JSRuntime *runtime, bool data);

/* --- memory.c ------------------------------------------------------------------------------------ */

JSRuntime *engine_new_runtime(void);

/* As `runner_writer_reset`, and nothing is left of what was written. */
void engine_drop(runner_writer *writer);

/* Whether memory ran out in this slice, and making good for it before the next. */
bool engine_is_starved(void);
void engine_feed(void);

/* --- value_in.c, value_out.c --------------------------------------------------------------------- */

/* The value of a payload; an exception when memory runs out. */
JSValue engine_decode(JSContext *context, const uint8_t *data, uint32_t size);

/* Writes a value; returns -1 with an exception when it has no form as a payload. Runs the agent's own code:
   getters, proxies, `toJSON`. */
int engine_encode(JSContext *context, runner_writer *out, JSValueConst value);

/* --- text.c -------------------------------------------------------------------------------------- */

/* The UTF-8 of a string, each lone surrogate replaced by U+FFFD; NULL with an exception. Given back with
   `engine_free_text`. */
const char *engine_text(JSContext *context, size_t *size, JSValueConst value);
void engine_free_text(JSContext *context, const char *text);

/* The string of UTF-8 bytes that may be anything: what is no UTF-8 becomes U+FFFD, or undefined if `strict`. */
JSValue engine_string(JSContext *context, const uint8_t *bytes, size_t size, bool strict);

/* --- host.c ---------------------------------------------------------------------------------------- */

/* The module `runner:host`: all that the prelude asks of C. */
JSModuleDef *engine_host_module(JSContext *context, const char *name);

/* --- chance.c --------------------------------------------------------------------------------------- */

/* Fills a buffer from `agent.random`, or from a fixed stream while there is nothing to draw from.
   Returns a status. */
int32_t engine_random_bytes(void *out, uint32_t size);

/* Replaces `Math.random`. */
int engine_install_random(JSContext *context);

/* The generator has to be seeded anew before its next use: at a load's end, and when an instance is
   restored. A slice begins: a restore may have come before it. */
void engine_forget_seed(void);
void engine_begin_slice(void);

/* --- modules.c ------------------------------------------------------------------------------------- */

void engine_install_loader(JSRuntime *runtime);

/* A module that stands in the prelude, evaluated; its namespace, or an exception. */
JSValue engine_prelude_namespace(JSContext *context, const char *name);

/* The answer to `{"check": ...}` and `{"load": ...}`; an exception, and `engine_failure_kind` and
   `engine_failure_name` say of which kind it is and which module it concerns. */
JSValue engine_check(JSContext *context, JSValueConst request);
JSValue engine_load(JSContext *context, JSValueConst request);

extern const char *engine_failure_kind;
extern JSValue engine_failure_name;

/* --- prelude.c ------------------------------------------------------------------------------------- */

/* The source of a module of the prelude, ending in a NUL, or NULL. */
const char *engine_prelude_source(const char *name, size_t *size);

/* Calls one of the functions that the prelude's main module exports. */
enum prelude_function {
  PRELUDE_DELIVER,
  PRELUDE_WAKE,
  PRELUDE_TURN,
  PRELUDE_END_SLICE,
  PRELUDE_LOADED,
  PRELUDE_FAILURE,
  PRELUDE_FUNCTIONS,
};

int engine_start_prelude(JSContext *context);
JSValue engine_call_prelude(JSContext *context, enum prelude_function which, int count, JSValueConst *arguments);

/* --- rejections.c ----------------------------------------------------------------------------------- */

/* Keeps promises that were rejected while nobody looked. */
void engine_watch_rejections(JSRuntime *runtime);

/* The reasons of those that nobody has looked at until now, as an array; forgets them. */
JSValue engine_take_rejections(JSContext *context);

#endif
