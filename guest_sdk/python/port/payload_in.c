/* CBOR to Python objects.

   Input: what the host has checked to be deterministic CBOR within its bounds, so that only the form is
   read here; a byte that can't be there is a `ValueError`. */

#include <string.h>

#include "engine.h"
#include "py/objint.h"
#include "py/runtime.h"
#include "runner_abi.h"

enum {
  MAX_DEPTH = 64,
  UNSIGNED = 0,
  NEGATIVE = 1,
  BYTES = 2,
  TEXT = 3,
  ARRAY = 4,
  MAP = 5,
  SIMPLE = 7,
  FALSE = 20,
  TRUE = 21,
  NOTHING = 22,
  HALF = 25,
  SINGLE = 26,
  DOUBLE = 27,
  DIRECT = 24,
  SMALL_PAYLOAD_BYTES = 512,
};

typedef struct reader {
  const uint8_t *at, *end;
} reader;

static NORETURN void malformed(void) { mp_raise_ValueError(MP_ERROR_TEXT("the payload is not CBOR")); }

static const uint8_t *take_bytes(reader *r, uint64_t size) {
  if (size > (uint64_t)(r->end - r->at)) malformed();
  const uint8_t *start = r->at;
  r->at += size;
  return start;
}

static uint64_t read_argument(reader *r, unsigned info) {
  if (info < DIRECT) return info;
  if (info > DOUBLE) malformed();
  unsigned size = 1u << (info - DIRECT);
  const uint8_t *bytes = take_bytes(r, size);
  uint64_t value = 0;
  for (unsigned i = 0; i < size; i++) value = value << 8 | bytes[i];
  return value;
}

static double from_half(unsigned bits) {
  double fraction = bits & 0x3ff;
  unsigned exponent = bits >> 10 & 31;
  double size = exponent == 0    ? fraction * 0x1p-24
                : exponent == 31 ? (fraction == 0 ? __builtin_inf() : __builtin_nan(""))
                                 : (fraction + 1024) * __builtin_ldexp(1, (int)exponent - 25);
  return bits & 0x8000 ? -size : size;
}

static mp_obj_t read_simple(reader *r, unsigned info) {
  if (info == FALSE || info == TRUE) return mp_obj_new_bool(info == TRUE);
  if (info == NOTHING) return mp_const_none;
  uint64_t bits = read_argument(r, info);
  if (info == HALF) return mp_obj_new_float(from_half((unsigned)bits));
  if (info == SINGLE) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    return mp_obj_new_float(value);
  }
  if (info != DOUBLE) malformed();
  double value;
  memcpy(&value, &bits, sizeof value);
  return mp_obj_new_float(value);
}

static mp_obj_t read_item(reader *r, unsigned depth);

static mp_obj_t read_array(reader *r, uint64_t count, unsigned depth) {
  if (count > (uint64_t)(r->end - r->at)) malformed();
  mp_obj_t list = mp_obj_new_list((size_t)count, NULL);
  for (uint64_t i = 0; i < count; i++) {
    mp_obj_list_store(list, MP_OBJ_NEW_SMALL_INT(i), read_item(r, depth + 1));
  }
  return list;
}

static mp_obj_t read_map(reader *r, uint64_t count, unsigned depth) {
  if (count > (uint64_t)(r->end - r->at)) malformed();
  mp_obj_t dict = mp_obj_new_dict((size_t)count);
  for (uint64_t i = 0; i < count; i++) {
    mp_obj_t key = read_item(r, depth + 1);
    mp_obj_dict_store(dict, key, read_item(r, depth + 1));
  }
  return dict;
}

static mp_obj_t read_item(reader *r, unsigned depth) {
  /* A map's key stands as deep as its values, so one more than containers may nest. */
  if (depth > MAX_DEPTH + 1) malformed();
  uint8_t head = *take_bytes(r, 1);
  unsigned info = head & 31;
  if (head >> 5 == SIMPLE) return read_simple(r, info);
  uint64_t value = read_argument(r, info);
  switch (head >> 5) {
    case UNSIGNED: return mp_obj_new_int_from_ull(value);
    case NEGATIVE: return mp_unary_op(MP_UNARY_OP_INVERT, mp_obj_new_int_from_ull(value));
    case BYTES: return mp_obj_new_bytes(take_bytes(r, value), (size_t)value);
    case TEXT: return mp_obj_new_str((const char *)take_bytes(r, value), (size_t)value);
    case ARRAY: return read_array(r, value, depth);
    case MAP: return read_map(r, value, depth);
    default: malformed();
  }
}

mp_obj_t payload_read(const uint8_t *bytes, size_t size) {
  reader r = {bytes, bytes + size};
  mp_obj_t value = read_item(&r, 0);
  if (r.at != r.end) malformed();
  return value;
}

/* The payload of this slice. */
mp_obj_t payload_take(uint32_t size) {
  uint8_t small[SMALL_PAYLOAD_BYTES];
  uint8_t *bytes = size <= sizeof small ? small : m_new(uint8_t, size);
  int32_t taken = runner_agent_take(bytes, size);
  if (taken < 0 || (uint32_t)taken != size) malformed();
  mp_obj_t value = payload_read(bytes, size);
  if (bytes != small) m_del(uint8_t, bytes, size);
  return value;
}
