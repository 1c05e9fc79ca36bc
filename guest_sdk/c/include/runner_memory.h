/* Heap and the five functions that a C compiler expects of its environment. */

#ifndef RUNNER_MEMORY_H
#define RUNNER_MEMORY_H

#include <stddef.h>

/* Memory aligned to 16 bytes, or NULL when the instance's limit is met; 0 bytes give a block of their
   own. The heap grows page by page and never shrinks; freed blocks join their neighbours. A block that is
   freed twice or written past its end is found by `free` or `realloc`, which trap. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);
size_t strlen(const char *text);

#endif
