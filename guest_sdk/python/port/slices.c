/* Slices with a step of texts, bytes, tuples and arrays: upstream has those of lists only. */

#include <string.h>

#include "engine.h"
#include "py/objstr.h"
#include "py/objtuple.h"
#include "py/runtime.h"
#include "py/unicode.h"

static mp_obj_t slice_text(mp_obj_t value, const mp_bound_slice_t *range) {
  size_t size;
  const byte *text = (const byte *)mp_obj_str_get_data(value, &size);
  size_t count = utf8_charlen(text, size);
  const byte **starts = m_new(const byte *, count + 1);
  const byte *at = text;
  for (size_t i = 0; i <= count; i++) {
    starts[i] = at;
    if (i < count) at = utf8_next_char(at);
  }
  vstr_t out;
  vstr_init(&out, 16);
  for (mp_int_t i = range->start; range->step > 0 ? i < range->stop : i > range->stop; i += range->step) {
    vstr_add_strn(&out, (const char *)starts[i], (size_t)(starts[i + 1] - starts[i]));
  }
  m_del(const byte *, starts, count + 1);
  return mp_obj_new_str_from_utf8_vstr(&out);
}

static mp_obj_t slice_items(mp_obj_t value, const mp_bound_slice_t *range) {
  mp_obj_t list = mp_obj_new_list(0, NULL);
  for (mp_int_t i = range->start; range->step > 0 ? i < range->stop : i > range->stop; i += range->step) {
    mp_obj_list_append(list, mp_obj_subscr(value, MP_OBJ_NEW_SMALL_INT(i), MP_OBJ_SENTINEL));
  }
  return list;
}

/* `value[slice]`, where the slice has a step other than 1. */
void *engine_slice(void *value, void *slice) {
  mp_bound_slice_t range;
  mp_int_t length = mp_obj_get_int(mp_obj_len(value));
  mp_obj_slice_indices(slice, length, &range);
  if (mp_obj_is_str(value)) return slice_text(value, &range);
  mp_obj_t items = slice_items(value, &range);
  const mp_obj_type_t *type = mp_obj_get_type(value);
  if (mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(type), MP_OBJ_FROM_PTR(&mp_type_tuple))) type = &mp_type_tuple;
  if (type == &mp_type_memoryview) type = &mp_type_bytes;
  return mp_call_function_1(MP_OBJ_FROM_PTR(type), items);
}
