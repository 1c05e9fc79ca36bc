#ifndef JS_PAGE_HEAP_H
#define JS_PAGE_HEAP_H

#include "runner_memory.h"

/* What of a page is left when the header of the block after it lies in it. */
#define PAGE_BLOCK_BYTES 4088

/* A block of PAGE_BLOCK_BYTES that begins where a page does, for `free`; NULL when the instance's limit is met. */
void *page_block(void);

#endif
