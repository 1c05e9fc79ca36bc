/* Takes a list of [what, slot, size] and does each with the heap: 0 malloc, 1 calloc, 2 realloc, 3 free. What is in
   a block is checked whenever it is touched. In the end everything is freed, and the reply is the list of
   [refused, pages]: how many wishes the heap refused, and how large the memory is. */

#include <runner.h>

#define SLOTS 16

static struct {
  uint8_t *block;
  uint32_t size;
  uint8_t mark;
} slots[SLOTS];

static uint8_t next_mark;

static void must(bool holds) {
  if (!holds) __builtin_trap();
}

static void check(int slot, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) must(slots[slot].block[i] == (uint8_t)(slots[slot].mark + i));
}

static void fill(int slot, uint8_t *block, uint32_t size) {
  must((uintptr_t)block % 16 == 0);
  must((uintptr_t)block + size <= __builtin_wasm_memory_size(0) << 16);
  slots[slot].block = block;
  slots[slot].size = size;
  slots[slot].mark = next_mark += 37;
  for (uint32_t i = 0; i < size; i++) block[i] = (uint8_t)(slots[slot].mark + i);
}

static void drop(int slot) {
  check(slot, slots[slot].size);
  free(slots[slot].block);
  slots[slot].block = 0;
  slots[slot].size = 0;
}

/* Whether the heap did it. */
static bool perform(int64_t what, int slot, uint32_t size) {
  uint8_t *block;
  if (what == 3) {
    drop(slot);
    return true;
  }
  if (what == 2) {
    uint32_t kept = slots[slot].size < size ? slots[slot].size : size;
    check(slot, slots[slot].size);
    block = realloc(slots[slot].block, size);
    if (!block) {
      check(slot, slots[slot].size);
      return false;
    }
    slots[slot].block = block;
    check(slot, kept);
    fill(slot, block, size);
    return true;
  }
  drop(slot);
  block = what == 1 ? calloc(1, size) : malloc(size);
  if (!block) return false;
  for (uint32_t i = 0; what == 1 && i < size; i++) must(block[i] == 0);
  fill(slot, block, size);
  return true;
}

void on_message(const runner_delivery *delivery) {
  runner_items wishes = runner_items_of(delivery->payload);
  int64_t refused = 0;
  while (runner_next(&wishes)) {
    int64_t numbers[3] = {0};
    runner_items parts = runner_items_of(wishes.value);
    for (int i = 0; i < 3 && runner_next(&parts); i++) runner_as_int(parts.value, &numbers[i]);
    if (!perform(numbers[0], (int)numbers[1], (uint32_t)numbers[2])) refused++;
  }
  for (int slot = 0; slot < SLOTS; slot++) drop(slot);
  runner_writer reply = {0};
  runner_array_begin(&reply);
  runner_put_int(&reply, refused);
  runner_put_int(&reply, (int64_t)__builtin_wasm_memory_size(0));
  runner_array_end(&reply);
  runner_reply(delivery->number, &reply);
}
