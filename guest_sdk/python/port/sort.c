/* Sorting that keeps equal items in their order, as Python promises; upstream's does not. */

#include <string.h>

#include "engine.h"
#include "py/nlr.h"
#include "py/objlist.h"
#include "py/runtime.h"

typedef struct item {
  mp_obj_t key, value;
} item;

/* Whether `later` must stand before `earlier`, which came first. */
static bool belongs_before(const item *later, const item *earlier, bool reverse) {
  mp_obj_t less = reverse ? mp_binary_op(MP_BINARY_OP_LESS, earlier->key, later->key)
                          : mp_binary_op(MP_BINARY_OP_LESS, later->key, earlier->key);
  return mp_obj_is_true(less);
}

static void merge(const item *from, item *to, size_t start, size_t middle, size_t end, bool reverse) {
  size_t left = start, right = middle;
  for (size_t i = start; i < end; i++) {
    bool take_right = left == middle || (right < end && belongs_before(&from[right], &from[left], reverse));
    to[i] = from[take_right ? right++ : left++];
  }
}

/* Runs of one, two, four … items; gives whichever of the two arrays the result is in. */
static item *merge_sort(item *items, item *spare, size_t count, bool reverse) {
  for (size_t run = 1; run < count; run *= 2) {
    for (size_t start = 0; start < count; start += 2 * run) {
      size_t middle = start + run < count ? start + run : count;
      size_t end = middle + run < count ? middle + run : count;
      merge(items, spare, start, middle, end, reverse);
    }
    item *sorted = spare;
    spare = items;
    items = sorted;
  }
  return items;
}

static void sort_items(mp_obj_t *values, size_t count, mp_obj_t key, bool reverse) {
  item *items = m_new(item, count), *spare = m_new(item, count);
  for (size_t i = 0; i < count; i++) {
    items[i].value = values[i];
    items[i].key = key == MP_OBJ_NULL ? values[i] : mp_call_function_1(key, values[i]);
  }
  const item *sorted = merge_sort(items, spare, count, reverse);
  for (size_t i = 0; i < count; i++) values[i] = sorted[i].value;
  m_del(item, items, count);
  m_del(item, spare, count);
}

/* Sorts a list of more than one item. It is empty meanwhile, so that no key function and no comparison can change
   what is being sorted. */
void engine_sort(void *list, void *key, bool reverse) {
  mp_obj_list_t *self = list;
  size_t count = self->len, alloc = self->alloc;
  mp_obj_t *values = self->items;
  self->items = m_new0(mp_obj_t, 1);
  self->len = 0;
  self->alloc = 1;
  nlr_buf_t nlr;
  void *error = NULL;
  if (nlr_push(&nlr) == 0) {
    sort_items(values, count, key, reverse);
    nlr_pop();
  } else {
    error = nlr.ret_val;
  }
  bool changed = self->len != 0;
  self->items = values;
  self->len = count;
  self->alloc = alloc;
  if (error != NULL) nlr_jump(error);
  if (changed) mp_raise_ValueError(MP_ERROR_TEXT("list modified during sort"));
}
