/* Randomness: a generator of our own (xoshiro128**), seeded from the instance's recorded stream.

   While an agent is loaded the stream is fixed, so that its image is the same each time. Afterwards the generator
   is seeded when it is first used, and again when the instance was restored: two that come of one snapshot
   must not draw the same numbers. */

#include <string.h>

#include "engine.h"
#include "runner_abi.h"

enum { RESTORED_BYTES = 64 };

static uint32_t state[4];
static bool seeded;

/* What `agent.restored` said when the generator was seeded. */
static uint8_t seeded_for[RESTORED_BYTES];

static uint32_t rotate(uint32_t value, unsigned by) { return value << by | value >> (32 - by); }

static uint32_t next(void) {
  uint32_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 9;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = rotate(state[3], 11);
  return result;
}

/* The stream while an agent is loaded. */
void chance_fix(void) {
  static const uint32_t fixed[4] = {0x9e3779b9, 0x243f6a88, 0xb7e15162, 0x8aed2a6a};
  memcpy(state, fixed, sizeof state);
  seeded = true;
}

/* Whatever the stream was, the next draw seeds it. */
void chance_renew(void) {
  memset(state, 0, sizeof state);
  seeded = false;
}

static void seed(void) {
  uint8_t restored[RESTORED_BYTES] = {0};
  runner_agent_restored(restored, sizeof restored);
  if (seeded && memcmp(restored, seeded_for, sizeof restored) == 0) return;
  memcpy(seeded_for, restored, sizeof restored);
  runner_agent_random(state, sizeof state);
  /* The generator's one fixed point. */
  state[0] |= (state[0] | state[1] | state[2] | state[3]) == 0;
  seeded = true;
}

/* Fills the buffer. */
void chance_fill(uint8_t *bytes, size_t size) {
  if (!engine_loading) seed();
  for (size_t i = 0; i < size; i += 4) {
    uint32_t word = next();
    memcpy(bytes + i, &word, size - i < 4 ? size - i : 4);
  }
}
