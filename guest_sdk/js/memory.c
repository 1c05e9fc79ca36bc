/* The interpreter's memory: the heap's, and what follows when the host gives no more.

   The interpreter collects cycles when it has made a good deal of garbage, which near the limit may be never: it
   throws an error instead. So a refusal makes it collect before it makes its next object. And the error needs memory
   itself, which is kept in reserve until then. */

#include "engine.h"
#include "page_heap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE_BYTES (64 * 1024)

/* Of the blocks in an arena; a last one may be missing in it. */
#define SMALL_MAX 512

static bool starved;
static void *reserve;

static void *checked(void *block) {
  if (block || !engine_runtime) return block;
  starved = true;
  free(reserve);
  reserve = NULL;
  JS_SetGCThreshold(engine_runtime, 0);
  return NULL;
}

static void *get_zeros(void *unused, size_t count, size_t size) {
  (void)unused;
  return checked(calloc(count, size));
}

static void *get(void *unused, size_t size) {
  (void)unused;
  /* An arena of small blocks has a page of its own: what is written to it then touches that page alone. */
  bool is_arena = size <= PAGE_BLOCK_BYTES && size > PAGE_BLOCK_BYTES - SMALL_MAX;
  return checked(is_arena ? page_block() : malloc(size));
}

/* Nothing is left of what was freed: see `engine_clear_stack`. */
static void give_back(void *unused, void *block) {
  (void)unused;
  if (block) memset(block, 0, malloc_usable_size(block));
  free(block);
}

static void *resize(void *unused, void *block, size_t size) {
  (void)unused;
  return checked(realloc(block, size));
}

static size_t size_of_block(const void *block) { return malloc_usable_size((void *)(uintptr_t)block); }

static const JSMallocFunctions functions = {get_zeros, get, give_back, resize, size_of_block};

JSRuntime *engine_new_runtime(void) {
  reserve = malloc(RESERVE_BYTES);
  return JS_NewRuntime2(&functions, NULL);
}

void engine_drop(runner_writer *writer) {
  if (writer->data) memset(writer->data, 0, writer->capacity);
  runner_writer_reset(writer);
}

bool engine_is_starved(void) { return starved; }

void engine_feed(void) {
  if (!starved) return;
  starved = false;
  JS_RunGC(engine_runtime);
  if (!reserve) reserve = malloc(RESERVE_BYTES);
}
