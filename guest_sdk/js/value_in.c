/* From payloads to JavaScript values. Input: from the host, checked all the same. */

#include "engine.h"
#include "head.h"

typedef struct source {
  JSContext *context;
  const uint8_t *at, *end;
} source;

static JSValue decode(source *from);

/* Beyond 2^53 a number would lose digits. */
#define SAFE_MAX 9007199254740991u

static JSValue unsigned_number(JSContext *context, uint64_t value) {
  return value <= SAFE_MAX ? JS_NewInt64(context, (int64_t)value) : JS_NewBigUint64(context, value);
}

/* -1 - value; what 64 bits can't hold is reached by way of the next one up. */
static JSValue negative_number(JSContext *context, uint64_t value) {
  if (value < SAFE_MAX) return JS_NewInt64(context, -1 - (int64_t)value);
  if (value <= INT64_MAX) return JS_NewBigInt64(context, -1 - (int64_t)value);
  char digits[24], *at = digits + sizeof digits;
  bool carry = value == UINT64_MAX;
  uint64_t size = carry ? value : value + 1;
  *--at = 0;
  /* 2^64 ends in 6, one more than what the 64 bits hold. */
  for (bool first = carry; size; size /= 10, first = false) *--at = (char)('0' + size % 10 + first);
  *--at = '-';
  JSValue global = JS_GetGlobalObject(context), bigint = JS_GetPropertyStr(context, global, "BigInt");
  JSValue text = JS_NewString(context, at);
  JSValue number = JS_Call(context, bigint, JS_UNDEFINED, 1, &text);
  JS_FreeValue(context, text);
  JS_FreeValue(context, bigint);
  JS_FreeValue(context, global);
  return number;
}

static JSValue decode_array(source *from, uint64_t count) {
  JSContext *context = from->context;
  JSValue array = JS_NewArray(context);
  for (uint32_t i = 0; i < count && !JS_IsException(array); i++) {
    JSValue item = decode(from);
    if (JS_IsException(item) || JS_DefinePropertyValueUint32(context, array, i, item, JS_PROP_C_W_E) < 0) {
      JS_FreeValue(context, array);
      array = JS_EXCEPTION;
    }
  }
  return array;
}

static JSAtom decode_key(source *from) {
  head item;
  if (!head_read(from->at, from->end, &item)) return JS_ATOM_NULL;
  from->at = item.rest + item.argument;
  return JS_NewAtomLen(from->context, (const char *)item.rest, (size_t)item.argument);
}

/* Keys are defined, not set: `__proto__` is a key as any other. */
static JSValue decode_map(source *from, uint64_t count) {
  JSContext *context = from->context;
  JSValue object = JS_NewObject(context);
  for (uint64_t i = 0; i < count && !JS_IsException(object); i++) {
    JSAtom key = decode_key(from);
    JSValue item = key == JS_ATOM_NULL ? JS_EXCEPTION : decode(from);
    if (JS_IsException(item) || JS_DefinePropertyValue(context, object, key, item, JS_PROP_C_W_E) < 0) {
      JS_FreeValue(context, object);
      object = JS_EXCEPTION;
    }
    JS_FreeAtom(context, key);
  }
  return object;
}

static JSValue decode_simple(JSContext *context, const head *item) {
  if (item->info >= HALF) return JS_NewFloat64(context, head_double(item));
  return item->info == NUL ? JS_NULL : JS_NewBool(context, item->info == TRUE);
}

/* The bounds of a payload bound the recursion: it was checked before. */
static JSValue decode(source *from) {
  head item;
  if (!head_read(from->at, from->end, &item)) return JS_ThrowInternalError(from->context, "no payload");
  const uint8_t *bytes = from->at = item.rest;
  switch (item.major) {
    case UNSIGNED: return unsigned_number(from->context, item.argument);
    case NEGATIVE: return negative_number(from->context, item.argument);
    case BYTES:
    case TEXT:
      from->at += item.argument;
      if (item.major == BYTES) return JS_NewUint8ArrayCopy(from->context, bytes, (size_t)item.argument);
      return JS_NewStringLen(from->context, (const char *)bytes, (size_t)item.argument);
    case ARRAY: return decode_array(from, item.argument);
    case MAP: return decode_map(from, item.argument);
    default: return decode_simple(from->context, &item);
  }
}

JSValue engine_decode(JSContext *context, const uint8_t *data, uint32_t size) {
  if (!runner_parse(data, size).data) return JS_ThrowInternalError(context, "the host sent no payload");
  source from = {context, data, data + size};
  return decode(&from);
}
