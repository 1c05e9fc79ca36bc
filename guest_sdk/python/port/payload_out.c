/* Python objects to CBOR, in the one encoding that the ABI takes: shortest forms, keys sorted, within bounds. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "py/objint.h"
#include "py/objlist.h"
#include "py/objstr.h"
#include "py/objtype.h"
#include "py/runtime.h"

enum {
  MAX_DEPTH = 64,
  MAX_ITEMS = 65536,
  UNSIGNED = 0,
  NEGATIVE = 1,
  BYTES = 2,
  TEXT = 3,
  ARRAY = 4,
  MAP = 5,
};

typedef struct writer {
  vstr_t *out;
  size_t items;
} writer;

static void put_big_endian(vstr_t *out, uint8_t first, uint64_t value, unsigned size) {
  char bytes[9] = {(char)first};
  for (unsigned i = 0; i < size; i++) bytes[1 + i] = (char)(value >> 8 * (size - 1 - i));
  vstr_add_strn(out, bytes, 1 + size);
}

static void put_head(vstr_t *out, unsigned major, uint64_t value) {
  unsigned top = major << 5;
  if (value < 24) vstr_add_byte(out, (byte)(top | value));
  else if (value <= 0xff) put_big_endian(out, (uint8_t)(top | 24), value, 1);
  else if (value <= 0xffff) put_big_endian(out, (uint8_t)(top | 25), value, 2);
  else if (value <= 0xffffffff) put_big_endian(out, (uint8_t)(top | 26), value, 4);
  else put_big_endian(out, (uint8_t)(top | 27), value, 8);
}

/* Half precision's bits of a value that it can hold, or -1. */
static int32_t to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, fraction = bits & 0x7fffff;
  int exponent = (int)(bits >> 23 & 0xff) - 127;
  if (exponent == 128) return fraction == 0 ? (int32_t)(sign | 0x7c00) : -1;
  if (exponent == -127) return fraction == 0 ? (int32_t)sign : -1;
  if (exponent >= -14 && exponent <= 15) {
    return fraction & 0x1fff ? -1 : (int32_t)(sign | (uint32_t)(exponent + 15) << 10 | fraction >> 13);
  }
  if (exponent < -24 || exponent > 15) return -1;
  unsigned drop = (unsigned)(-1 - exponent); /* below the normal numbers there is no hidden bit */
  uint32_t whole = fraction | 0x800000;
  return whole & ((1u << drop) - 1) ? -1 : (int32_t)(sign | whole >> drop);
}

static void put_float(vstr_t *out, double value) {
  if (isnan(value)) {
    put_big_endian(out, 0xf9, 0x7e00, 2);
    return;
  }
  float narrow = (float)value;
  if ((double)narrow == value) {
    int32_t half = to_half(narrow);
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (half >= 0) put_big_endian(out, 0xf9, (uint32_t)half, 2);
    else put_big_endian(out, 0xfa, bits, 4);
    return;
  }
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_big_endian(out, 0xfb, bits, 8);
}

static void put_int(vstr_t *out, mp_obj_t value) {
  if (mp_obj_is_small_int(value)) {
    mp_int_t small = MP_OBJ_SMALL_INT_VALUE(value);
    if (small < 0) put_head(out, NEGATIVE, (uint64_t)(-1 - (int64_t)small));
    else put_head(out, UNSIGNED, (uint64_t)small);
    return;
  }
  bool negative = mp_obj_int_sign(value) < 0;
  if (negative) value = mp_unary_op(MP_UNARY_OP_INVERT, value);
  uint64_t size = 0;
  if (mp_obj_is_small_int(value)) {
    size = (uint64_t)MP_OBJ_SMALL_INT_VALUE(value);
  } else {
    byte bytes[8];
    const mp_obj_int_t *big = MP_OBJ_TO_PTR(value);
    if (mpz_max_num_bits(&big->mpz) > 64 + MPZ_DIG_SIZE || !mpz_as_bytes(&big->mpz, true, false, 8, bytes)) {
      mp_raise_msg(&mp_type_OverflowError, MP_ERROR_TEXT("an int beyond 64 bits and a sign can't leave the agent"));
    }
    for (unsigned i = 0; i < 8; i++) size = size << 8 | bytes[i];
  }
  put_head(out, negative ? NEGATIVE : UNSIGNED, size);
}

/* A `str` may hold half of a surrogate pair, which is no text. */
static bool has_surrogate(const char *text, size_t size) {
  for (size_t i = 0; i + 1 < size; i++) {
    if ((uint8_t)text[i] == 0xed && (uint8_t)text[i + 1] >= 0xa0) return true;
  }
  return false;
}

static void put_text(vstr_t *out, mp_obj_t value) {
  size_t size;
  const char *text = mp_obj_str_get_data(value, &size);
  if (has_surrogate(text, size)) mp_raise_ValueError(MP_ERROR_TEXT("half of a surrogate pair can't leave the agent"));
  put_head(out, TEXT, size);
  vstr_add_strn(out, text, size);
}

static int by_encoding(const void *one, const void *other) {
  size_t size, other_size;
  const char *text = mp_obj_str_get_data((*(const mp_map_elem_t *const *)one)->key, &size);
  const char *other_text = mp_obj_str_get_data((*(const mp_map_elem_t *const *)other)->key, &other_size);
  if (size != other_size) return size < other_size ? -1 : 1;
  return memcmp(text, other_text, size);
}

static NORETURN void bad_key(mp_obj_t key) {
  mp_raise_msg_varg(&mp_type_TypeError, MP_ERROR_TEXT("a dict that leaves the agent has str keys only, not %s"),
                    mp_obj_get_type_str(key));
}

static void put(writer *w, mp_obj_t value, unsigned depth);

static void put_dict(writer *w, mp_obj_t value, unsigned depth) {
  mp_map_t *map = mp_obj_dict_get_map(value);
  size_t count = map->used, found = 0;
  put_head(w->out, MAP, count);
  if (count == 0) return;
  const mp_map_elem_t **sorted = m_new(const mp_map_elem_t *, count);
  for (size_t i = 0; i < map->alloc && found < count; i++) {
    if (!mp_map_slot_is_filled(map, i)) continue;
    if (!mp_obj_is_str(map->table[i].key)) bad_key(map->table[i].key);
    sorted[found++] = &map->table[i];
  }
  qsort(sorted, found, sizeof *sorted, by_encoding);
  for (size_t i = 0; i < found; i++) {
    w->items++;
    put_text(w->out, sorted[i]->key);
    put(w, sorted[i]->value, depth + 1);
  }
  m_del(const mp_map_elem_t *, sorted, count);
}

static void put_array(writer *w, mp_obj_t value, unsigned depth) {
  size_t count;
  mp_obj_t *items;
  if (mp_obj_is_type(value, &mp_type_list)) mp_obj_list_get(value, &count, &items);
  else mp_obj_tuple_get(value, &count, &items);
  put_head(w->out, ARRAY, count);
  for (size_t i = 0; i < count; i++) put(w, items[i], depth + 1);
}

/* What an instance of a class of the agent's is by birth: a subclass of `int` crosses as an int. */
static mp_obj_t native(mp_obj_t value) {
  static const mp_obj_type_t *const kinds[] = {
    &mp_type_dict, &mp_type_list, &mp_type_tuple, &mp_type_str, &mp_type_int, &mp_type_float, &mp_type_bytes,
  };
  if (!mp_obj_is_instance_type(mp_obj_get_type(value))) return value;
  for (size_t i = 0; i < MP_ARRAY_SIZE(kinds); i++) {
    mp_obj_t base = mp_obj_cast_to_native_base(value, MP_OBJ_FROM_PTR(kinds[i]));
    if (base != MP_OBJ_NULL) return base;
  }
  return value;
}

/* A named tuple's class is made at run time, on top of `tuple`. */
static bool is_named_tuple(mp_obj_t value) {
  return mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(mp_obj_get_type(value)), MP_OBJ_FROM_PTR(&mp_type_tuple));
}

static bool is_container(mp_obj_t value) {
  return mp_obj_is_dict_or_ordereddict(value) || mp_obj_is_type(value, &mp_type_list) || is_named_tuple(value);
}

static void put_container(writer *w, mp_obj_t value, unsigned depth) {
  if (depth >= MAX_DEPTH) mp_raise_ValueError(MP_ERROR_TEXT("containers in more than 64 others can't leave the agent"));
  if (mp_obj_is_dict_or_ordereddict(value)) put_dict(w, value, depth);
  else put_array(w, value, depth);
}

static void put_other(writer *w, mp_obj_t value) {
  mp_buffer_info_t buffer;
  if (!mp_get_buffer(value, &buffer, MP_BUFFER_READ)) {
    mp_raise_msg_varg(&mp_type_TypeError, MP_ERROR_TEXT("%s can't leave the agent"), mp_obj_get_type_str(value));
  }
  put_head(w->out, BYTES, buffer.len);
  vstr_add_strn(w->out, buffer.buf, buffer.len);
}

static void put(writer *w, mp_obj_t value, unsigned depth) {
  if (++w->items > MAX_ITEMS) mp_raise_ValueError(MP_ERROR_TEXT("more than 65536 items can't leave the agent at once"));
  value = native(value);
  if (value == mp_const_none) vstr_add_byte(w->out, 0xf6);
  else if (value == mp_const_true) vstr_add_byte(w->out, 0xf5);
  else if (value == mp_const_false) vstr_add_byte(w->out, 0xf4);
  else if (mp_obj_is_int(value)) put_int(w->out, value);
  else if (mp_obj_is_float(value)) put_float(w->out, mp_obj_get_float(value));
  else if (mp_obj_is_str(value)) put_text(w->out, value);
  else if (is_container(value)) put_container(w, value, depth);
  else put_other(w, value);
}

void payload_write(vstr_t *out, mp_obj_t value) {
  writer w = {out, 0};
  put(&w, value, 0);
}
