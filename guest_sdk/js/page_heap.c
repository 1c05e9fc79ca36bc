/* The heap, and blocks in it that are a page of memory each. */

/* Whose blocks are cut up here: one file with it, and not part of it, because only this engine wants them. */
#include "heap.c"

#include "page_heap.h"

#define OS_PAGE 4096u
#define LOOKS 64

/* How far into a free block the last header before a page's beginning is; more than `size` when there is no room for it
   and the page. */
static uint32_t front_of(const block *at) {
  uint32_t front = (OS_PAGE - ((uint32_t)(uintptr_t)at + HEADER) % OS_PAGE) % OS_PAGE;
  return front + OS_PAGE <= at->size ? front : UINT32_MAX;
}

/* The lowest of those looked at: what lives long shall lie together. */
static block *find_page(void) {
  block *lowest = 0;
  uint32_t looked = 0;
  for (uint32_t list = list_of(OS_PAGE); list < LISTS; list++)
    for (block *at = lists[list]; at && (!lowest || looked < LOOKS); at = at->next, looked++)
      if (front_of(at) != UINT32_MAX && (!lowest || at < lowest)) lowest = at;
  return lowest;
}

void *page_block(void) {
  block *at = find_page();
  if (!at && grow(2 * OS_PAGE)) at = find_page();
  if (!at) return 0;
  uint32_t front = front_of(at), size = at->size;
  unlink(at);
  at->size |= USED;
  if (front) {
    block *page = (block *)((uint8_t *)at + front);
    set_size(at, front, USED);
    set_size(page, size - front, USED);
    release(at);
    at = page;
  }
  trim(at, OS_PAGE);
  return (uint8_t *)at + HEADER;
}
