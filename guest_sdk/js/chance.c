/* Randomness: a small generator of the engine's own, seeded from the instance's recorded stream.

   Each number from the host would cost a call into it. While an agent loads there is nothing to draw from,
   and its image must not depend on chance, so it gets a fixed stream then. */

#include "engine.h"

#include <string.h>

static uint64_t state[4];
static bool seeded, looked;
static uint8_t known_life[64];
static int32_t known_life_size;

static uint64_t turned(uint64_t value, int by) { return value << by | value >> (64 - by); }

/* xoshiro256**, of Blackman and Vigna. */
static uint64_t next(void) {
  uint64_t result = turned(state[1] * 5, 7) * 9, shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = turned(state[3], 45);
  return result;
}

static void seed(void) {
  static const uint64_t fixed[4] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x2545f4914f6cdd1d};
  memcpy(state, fixed, sizeof state);
  if (engine_phase == ENGINE_LOADED) runner_agent_random(state, sizeof state);
  /* All zeros is the one state that the generator never leaves. */
  if (!(state[0] | state[1] | state[2] | state[3])) state[0] = 1;
  seeded = true;
}

/* Two instances that were restored from one snapshot must not draw the same numbers, and the first slice after
   a restore need not be its delivery: an answer may come before it. */
static void look_for_restore(void) {
  uint8_t life[sizeof known_life];
  int32_t size = runner_agent_restored(life, sizeof life);
  looked = true;
  if (size == known_life_size && (size <= 0 || !memcmp(life, known_life, (size_t)size))) return;
  if (size > 0) memcpy(known_life, life, (size_t)size);
  known_life_size = size;
  seeded = false;
}

static uint64_t draw(void) {
  if (!looked && engine_phase == ENGINE_LOADED) look_for_restore();
  if (!seeded) seed();
  return next();
}

void engine_forget_seed(void) { seeded = false; }

void engine_begin_slice(void) {
  /* Written only when it changes: a store would make the page differ from the image. */
  if (looked) looked = false;
}

int32_t engine_random_bytes(void *out, uint32_t size) {
  if (engine_phase == ENGINE_LOADED) return runner_agent_random(out, size);
  for (uint8_t *at = out; size > 0; size--) *at++ = (uint8_t)draw();
  return RUNNER_STATUS_OK;
}

static JSValue random(JSContext *context, JSValueConst self, int count, JSValueConst *arguments) {
  (void)self, (void)count, (void)arguments;
  /* 53 bits: all that lie between 0 and 1 with equal steps. */
  return JS_NewFloat64(context, (double)(draw() >> 11) * 0x1p-53);
}

int engine_install_random(JSContext *context) {
  JSValue global = JS_GetGlobalObject(context), math = JS_GetPropertyStr(context, global, "Math");
  JSValue function = JS_NewCFunction(context, random, "random", 0);
  int status = JS_DefinePropertyValueStr(context, math, "random", function, JS_PROP_C_W_E & ~JS_PROP_ENUMERABLE);
  JS_FreeValue(context, math);
  JS_FreeValue(context, global);
  return status;
}
