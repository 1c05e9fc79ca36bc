/* The heap: it grows by areas, and is swept where no C code holds an object. */

#include "engine.h"

#include <string.h>

#include "py/gc.h"
#include "py/mpstate.h"

enum {
  WASM_PAGE_BYTES = 65536,
  FIRST_AREA_BYTES = 3 * WASM_PAGE_BYTES / 2,
  /* What instances share or have of their own, and what a snapshot stores. */
  PAGE_BYTES = 4096,
  /* Of the first area behind an image: its table is a kilobyte, so that there is room beside it on the same page. */
  OWN_AREA_BYTES = WASM_PAGE_BYTES,
  /* Sweeping rewrites the allocation table and makes old blocks be used anew, so it pays only after a while. */
  TIDY_AFTER_BYTES = 128 * 1024,
  /* A heap of which no more is in use is swept at the end of every slice. */
  SMALL_BYTES = 1024 * 1024,
  /* They double in size, so there are no more. */
  MAX_AREAS = 32,
  BLOCKS_PER_TABLE_BYTE = 4,
  TABLE_BITS = 2,
  TABLE_MASK = 3,
  FREE = 0,
};

extern uint8_t __heap_base;

/* End of what was handed out; memory between it and the end of the linear memory is untouched. */
static uint8_t *heap_end;

/* What every slice changes. Behind an image it lies beside new objects: see `found_image`. */
typedef struct hot {
  size_t kept_blocks; /* in use after the last sweep */
} hot;
static hot first_hot, *own = &first_hot;

static bool reserve(size_t size) {
  uint64_t end = (uint64_t)(uintptr_t)heap_end + size;
  uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE_BYTES;
  if (end <= have) return true;
  uint64_t pages = (end - have + WASM_PAGE_BYTES - 1) / WASM_PAGE_BYTES;
  return pages < 65536 && __builtin_wasm_memory_grow(0, (size_t)pages) != (size_t)-1;
}

static void *hand_out(size_t size) {
  void *start = heap_end;
  heap_end += size;
  return start;
}

/* Memory for another area: as much as asked for if the host gives it, else less, but no less than `needed`. */
void *engine_heap_more(size_t *size, size_t needed) {
  for (size_t wanted = *size;; wanted = wanted / 2 > needed ? wanted / 2 : needed) {
    wanted = (wanted + MICROPY_BYTES_PER_GC_BLOCK - 1) & ~(size_t)(MICROPY_BYTES_PER_GC_BLOCK - 1);
    if (reserve(wanted)) {
      *size = wanted;
      return hand_out(wanted);
    }
    if (wanted <= needed + MICROPY_BYTES_PER_GC_BLOCK) return NULL;
  }
}

/* How much more there may be is the host's secret; `engine_heap_more` finds out. */
size_t gc_get_max_new_split(void) { return (size_t)1 << 30; }

void heap_start(void) {
  uintptr_t base = ((uintptr_t)&__heap_base + MICROPY_BYTES_PER_GC_BLOCK - 1) & ~(uintptr_t)(MICROPY_BYTES_PER_GC_BLOCK - 1);
  heap_end = (uint8_t *)base;
  if (!reserve(FIRST_AREA_BYTES)) __builtin_trap();
  uint8_t *start = hand_out(FIRST_AREA_BYTES);
  gc_init(start, heap_end);
}

/* How many areas hold an image. They are full, as it were: see `found_image`. */
static size_t image_areas;

static void search_from(size_t full_areas) {
  size_t count = 0;
  MP_STATE_MEM(gc_last_free_area) = &MP_STATE_MEM(area);
  for (mp_state_mem_area_t *area = &MP_STATE_MEM(area); area != NULL; area = area->next, count++) {
    area->gc_last_free_atb_index = count < full_areas ? area->gc_alloc_table_byte_len : 0;
    if (count == full_areas) MP_STATE_MEM(gc_last_free_area) = area;
  }
}

/* Called by the allocator when it has found nothing. The C stack holds objects then, so nothing is swept: what was left
   aside is searched too, and then the heap grows. */
void gc_collect(void) { search_from(0); }

/* What is in use now is the image, shared by all instances that are made of it. New objects go behind it, into an area
   that begins on a page of its own together with its table: so they change neither the pages of the image's objects nor
   that of its table, and what every slice changes is side by side. */
static void found_image(void) {
  uintptr_t start = ((uintptr_t)heap_end + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
  size_t size = start - (uintptr_t)heap_end + OWN_AREA_BYTES;
  if (!reserve(size)) return;
  hand_out(size);
  hot *hotter = (hot *)start;
  *hotter = *own;
  own = hotter;
  gc_add(hotter + 1, heap_end);
  image_areas = 0;
  for (const mp_state_mem_area_t *area = &MP_STATE_MEM(area); area->next != NULL; area = area->next) image_areas++;
}

void heap_collect(void) {
  gc_collect_start();
  gc_collect_end();
  search_from(image_areas);
  own->kept_blocks = heap_used_bytes() / MICROPY_BYTES_PER_GC_BLOCK;
}

/* Sweep if enough was allocated since the last time, measured by what is alive: a sweep costs as much as that. */
void heap_tidy(void) {
  size_t allocated = MP_STATE_MEM(gc_alloc_amount);
  if (allocated * MICROPY_BYTES_PER_GC_BLOCK < TIDY_AFTER_BYTES || allocated < own->kept_blocks / 2) return;
  heap_collect();
}

static unsigned kind_of(const mp_state_mem_area_t *area, size_t block) {
  uint8_t four = area->gc_alloc_table_start[block / BLOCKS_PER_TABLE_BYTE];
  return four >> (block % BLOCKS_PER_TABLE_BYTE * TABLE_BITS) & TABLE_MASK;
}

size_t heap_used_bytes(void) {
  size_t used = 0;
  for (const mp_state_mem_area_t *area = &MP_STATE_MEM(area); area != NULL; area = area->next) {
    for (size_t block = 0; block <= area->gc_last_used_block; block++) used += kind_of(area, block) != FREE;
  }
  return used * MICROPY_BYTES_PER_GC_BLOCK;
}

/* Zeroes what is free among the first blocks of an area. A block that is zero is not written: its page may still be
   shared with other instances. */
static void clear_free(const mp_state_mem_area_t *area, size_t blocks) {
  /* Upstream may take the block after the last one for used. */
  size_t all = area->gc_alloc_table_byte_len * BLOCKS_PER_TABLE_BYTE;
  for (size_t block = 0; block < blocks && block < all; block++) {
    if (kind_of(area, block) != FREE) continue;
    uint64_t *words = (uint64_t *)(area->gc_pool_start + block * MICROPY_BYTES_PER_GC_BLOCK);
    for (size_t i = 0; i < MICROPY_BYTES_PER_GC_BLOCK / sizeof *words; i++) {
      if (words[i] != 0) words[i] = 0;
    }
  }
}

/* Called when a slice ends: sweeps, so that memory holds what the agent keeps and no trace of how it came to it. Then
   the next slice uses the same pages again, and a snapshot is as small as what has changed. */
void heap_settle(bool is_image) {
  size_t allocated = MP_STATE_MEM(gc_alloc_amount);
  bool is_small = own->kept_blocks <= SMALL_BYTES / MICROPY_BYTES_PER_GC_BLOCK;
  if (!is_image && (allocated == 0 || (!is_small && allocated < own->kept_blocks / 2))) return;
  size_t used[MAX_AREAS], count = 0;
  mp_state_mem_area_t *area;
  for (area = &MP_STATE_MEM(area); area != NULL && count < MAX_AREAS; area = area->next) {
    used[count++] = area->gc_last_used_block + 1;
  }
  heap_collect();
  count = 0;
  for (area = &MP_STATE_MEM(area); area != NULL && count < MAX_AREAS; area = area->next) {
    clear_free(area, used[count++]);
  }
  /* What marking and looking up have left. */
  memset(MP_STATE_MEM(gc_block_stack), 0, sizeof MP_STATE_MEM(gc_block_stack));
  memset(MP_STATE_MEM(gc_area_stack), 0, sizeof MP_STATE_MEM(gc_area_stack));
  memset(MP_STATE_VM(map_lookup_cache), 0, sizeof MP_STATE_VM(map_lookup_cache));
  if (is_image) {
    found_image();
    search_from(image_areas);
  }
}
