/* What a C compiler expects of its environment. */

#include <stdint.h>

#include "runner_memory.h"

/* As instructions, not loops: a compiler would turn a loop back into a call of the function it is in. */

void *memcpy(void *restrict to, const void *restrict from, size_t size) { return memmove(to, from, size); }

void *memmove(void *to, const void *from, size_t size) {
  __asm__ volatile("local.get %0\nlocal.get %1\nlocal.get %2\nmemory.copy 0, 0"
                   :
                   : "r"(to), "r"(from), "r"(size)
                   : "memory");
  return to;
}

void *memset(void *to, int value, size_t size) {
  __asm__ volatile("local.get %0\nlocal.get %1\nlocal.get %2\nmemory.fill 0"
                   :
                   : "r"(to), "r"(value), "r"(size)
                   : "memory");
  return to;
}

int memcmp(const void *left, const void *right, size_t size) {
  const uint8_t *a = left, *b = right;
  for (; size > 0; size--, a++, b++)
    if (*a != *b) return *a - *b;
  return 0;
}

/* The volatile read keeps the loop a loop. */
size_t strlen(const char *text) {
  const volatile char *end = text;
  while (*end) end++;
  return (size_t)((const char *)end - text);
}
