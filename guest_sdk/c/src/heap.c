/* The heap: blocks with a header each, free ones in lists by size.

   A block is 8 bytes of header and its payload, 16 * n bytes in all, so that payloads lie on 16. Each
   header knows the size of the block before it, so a freed block finds and joins both neighbours at once.
   A used block of no payload ends each stretch of memory. */

#include <stdint.h>

#include "runner_memory.h"

#define PAGE 65536u
#define HEADER 8u
#define USED 1u
#define LISTS 16

typedef struct block {
  uint32_t before; /* size of the block that lies before this one; 0 at the start of a stretch */
  uint32_t size;   /* its own, header included; USED beside it */
  /* Only in free blocks: */
  struct block *next, *previous;
} block;

extern unsigned char __heap_base;

static block *lists[LISTS];
static uint32_t heap_end;

static uint32_t size_of(const block *at) { return at->size & ~USED; }
static block *after(const block *at) { return (block *)((uint8_t *)at + size_of(at)); }

/* List n holds sizes from 16 << n to below 32 << n; the last one everything beyond. */
static uint32_t list_of(uint32_t size) {
  uint32_t list = 27 - (uint32_t)__builtin_clz(size);
  return list < LISTS ? list : LISTS - 1;
}

static void set_size(block *at, uint32_t size, uint32_t used) {
  at->size = size | used;
  after(at)->before = size;
}

static void link(block *at) {
  block **list = &lists[list_of(at->size)];
  at->previous = 0;
  at->next = *list;
  if (*list) (*list)->previous = at;
  *list = at;
}

static void unlink(block *at) {
  if (at->next) at->next->previous = at->previous;
  if (at->previous) at->previous->next = at->next;
  else lists[list_of(at->size)] = at->next;
}

/* Makes a block free and joins it with free neighbours. */
static void release(block *at) {
  uint32_t size = size_of(at);
  block *neighbour = after(at);
  at->size = size;
  if (!(neighbour->size & USED)) {
    unlink(neighbour);
    size += neighbour->size;
  }
  if (at->before) {
    neighbour = (block *)((uint8_t *)at - at->before);
    if (!(neighbour->size & USED)) {
      unlink(neighbour);
      size += neighbour->size;
      at = neighbour;
    }
  }
  set_size(at, size, 0);
  link(at);
}

/* Gives back what a used block has beyond `size`. */
static void trim(block *at, uint32_t size) {
  uint32_t rest = size_of(at) - size;
  if (!rest) return;
  set_size(at, size, USED);
  block *tail = after(at);
  set_size(tail, rest, USED);
  release(tail);
}

static void end_stretch(uint32_t end) {
  heap_end = end;
  ((block *)(uintptr_t)(end - HEADER))->size = USED;
}

/* Turns fresh memory into a free block: a stretch of its own, or more of the last one. */
static void add_memory(uint32_t start, uint32_t end) {
  block *at;
  if (end - start < 64) return; /* the data ends with the page */
  if (heap_end && start == heap_end) {
    at = (block *)(uintptr_t)(start - HEADER);
  } else {
    at = (block *)(uintptr_t)(((start + 15) & ~15u) + HEADER);
    at->before = 0;
  }
  end_stretch(end);
  set_size(at, end - HEADER - (uint32_t)(uintptr_t)at, USED);
  release(at);
}

/* A free block of at least `size`, taken off its list; NULL when none fits. */
static block *find(uint32_t size) {
  for (uint32_t list = list_of(size); list < LISTS; list++)
    for (block *at = lists[list]; at; at = at->next)
      if (at->size >= size) {
        unlink(at);
        return at;
      }
  return 0;
}

static int grow(uint32_t size) {
  uint32_t have = (uint32_t)__builtin_wasm_memory_size(0);
  /* A new stretch needs room for its alignment and its two ends. */
  uint32_t pages = (size + 3 * HEADER + PAGE + 15) / PAGE;
  if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return 0;
  add_memory(have * PAGE, (have + pages) * PAGE);
  return 1;
}

/* Room for the header, rounded; 0 when that is more than a memory holds. */
static uint32_t block_size(size_t size) {
  return size < 1u << 30 ? ((uint32_t)size + HEADER + 15) & ~15u : 0;
}

/* The block of a payload; traps when it is none, or was freed, or its neighbour was written over. */
static block *block_of(void *payload) {
  block *at = (block *)((uint8_t *)payload - HEADER);
  if ((uintptr_t)payload % 16 || !(at->size & USED) || after(at)->before != size_of(at)) __builtin_trap();
  return at;
}

void *malloc(size_t size) {
  uint32_t needed = block_size(size);
  if (!needed) return 0;
  if (!heap_end) add_memory((uint32_t)(uintptr_t)&__heap_base, (uint32_t)__builtin_wasm_memory_size(0) * PAGE);
  block *at = find(needed);
  if (!at && grow(needed)) at = find(needed);
  if (!at) return 0;
  at->size |= USED;
  trim(at, needed);
  return (uint8_t *)at + HEADER;
}

void *calloc(size_t count, size_t size) {
  size_t total;
  void *payload = __builtin_mul_overflow(count, size, &total) ? 0 : malloc(total);
  return payload ? memset(payload, 0, total) : 0;
}

void free(void *payload) {
  if (payload) release(block_of(payload));
}

void *realloc(void *payload, size_t size) {
  if (!payload) return malloc(size);
  block *at = block_of(payload);
  uint32_t needed = block_size(size), had = size_of(at);
  if (!needed) return 0;
  block *neighbour = after(at);
  if (needed > had && !(neighbour->size & USED) && had + neighbour->size >= needed) {
    unlink(neighbour);
    set_size(at, had + neighbour->size, USED);
  }
  if (needed <= size_of(at)) {
    trim(at, needed);
    return payload;
  }
  void *moved = malloc(size);
  if (!moved) return 0;
  memcpy(moved, payload, had - HEADER);
  free(payload);
  return moved;
}
