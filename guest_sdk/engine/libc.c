/* What a C library's users expect of a heap beside the four functions of `heap.c`. */

#include <stddef.h>
#include <stdint.h>

#include "runner_memory.h"

/* A block's header stands before it: its size, and a bit. */
size_t malloc_usable_size(void *block) {
  if (!block) return 0;
  return (((uint32_t *)block)[-1] & ~1u) - 8;
}
