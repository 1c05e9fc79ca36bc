/* From JavaScript values to payloads, as `JSON.stringify` would have them, with bytes and large integers.

   Input: the agent's. Getters, proxies and `toJSON` run its code in the midst of it, so nothing here keeps a
   pointer into an object over one of them. What can't be said is an exception, never a guess. */

#include "engine.h"
#include "head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 65536u
#define SAFE_MAX 9007199254740991.0

typedef struct sink {
  JSContext *context;
  runner_writer *out;
  uint32_t items, depth;
} sink;

typedef struct key {
  JSAtom atom;
  const char *text;
  size_t size;
} key;

static int put(sink *to, JSValueConst value);

/* --- What has no form --------------------------------------------------------------------------- */

static int refuse(sink *to, const char *what, const char *remedy) {
  JS_ThrowTypeError(to->context, "%s can't leave the agent%s", what, remedy);
  return -1;
}

static int count(sink *to) {
  if (to->items++ < MAX_ITEMS) return 0;
  JS_ThrowRangeError(to->context, "a value of more than %u items can't leave the agent", MAX_ITEMS);
  return -1;
}

static int go_deeper(sink *to) {
  if (to->depth++ < RUNNER_MAX_DEPTH) return 0;
  JS_ThrowRangeError(to->context, "a value that contains itself, or is more than %u levels deep, "
                     "can't leave the agent", RUNNER_MAX_DEPTH);
  return -1;
}

/* JSON leaves these out of objects. */
static bool is_nothing(JSContext *context, JSValueConst value) {
  return JS_IsUndefined(value) || JS_IsSymbol(value) || JS_IsFunction(context, value);
}

static int check_class(sink *to, JSValueConst value) {
  if (JS_IsPromise(value)) return refuse(to, "a promise", ": await it first");
  if (JS_IsMap(value)) return refuse(to, "a Map", ": Object.fromEntries(map) can");
  if (JS_IsSet(value)) return refuse(to, "a Set", ": [...set] can");
  return 0;
}

/* --- Scalars -------------------------------------------------------------------------------------- */

static int put_number(sink *to, double value) {
  if (value == floor(value) && fabs(value) <= SAFE_MAX) runner_put_int(to->out, (int64_t)value);
  else runner_put_double(to->out, value);
  return 0;
}

static int put_text(sink *to, JSValueConst value) {
  size_t size;
  const char *text = engine_text(to->context, &size, value);
  if (!text) return -1;
  runner_put_text_of(to->out, text, size);
  engine_free_text(to->context, text);
  return 0;
}

/* By its digits: from -2^64 to 2^64 - 1, of which neither 64-bit type holds all. */
static int put_bigint(sink *to, JSValueConst value) {
  const char *digits = JS_ToCString(to->context, value);
  if (!digits) return -1;
  bool negative = *digits == '-', fits = true;
  uint64_t size = 0;
  for (const char *at = digits + negative; *at && fits; at++) {
    uint32_t digit = (uint32_t)(*at - '0');
    /* One less than the size is what a negative integer is written as: 2^64 itself still fits. */
    if (negative && !at[1]) digit--;
    fits = !__builtin_mul_overflow(size, 10u, &size) &&
           !(digit == UINT32_MAX ? __builtin_sub_overflow(size, 1u, &size) : __builtin_add_overflow(size, digit, &size));
  }
  JS_FreeCString(to->context, digits);
  if (!fits) {
    JS_ThrowRangeError(to->context, "an integer of more than 64 bits can't leave the agent");
    return -1;
  }
  uint8_t head[HEAD_MAX];
  uint32_t head_size = head_write(head, negative ? NEGATIVE : UNSIGNED, size);
  runner_put_value(to->out, (runner_value){head, head_size});
  return 0;
}

/* --- Bytes ----------------------------------------------------------------------------------------- */

static bool is_bytes(JSValueConst value) {
  int type = JS_GetTypedArrayType(value);
  return type == JS_TYPED_ARRAY_UINT8 || type == JS_TYPED_ARRAY_UINT8C || JS_IsArrayBuffer(value);
}

static int put_bytes(sink *to, JSValueConst value) {
  size_t size = 0, offset = 0, length = 0;
  JSValue buffer = JS_DupValue(to->context, value);
  if (!JS_IsArrayBuffer(value)) {
    JS_FreeValue(to->context, buffer);
    buffer = JS_GetTypedArrayBuffer(to->context, value, &offset, &length, NULL);
    if (JS_IsException(buffer)) return -1;
  }
  uint8_t *bytes = JS_GetArrayBuffer(to->context, &size, buffer);
  if (JS_IsArrayBuffer(value)) length = size;
  /* An empty buffer may have no memory at all. */
  if (bytes) runner_put_bytes(to->out, bytes + offset, length);
  else if (!JS_HasException(to->context)) runner_put_bytes(to->out, "", 0);
  JS_FreeValue(to->context, buffer);
  return JS_HasException(to->context) ? -1 : 0;
}

/* --- Containers ------------------------------------------------------------------------------------- */

/* What `toJSON` makes of an object, or the value itself. Frees the value given. */
static JSValue presented(JSContext *context, JSValue value) {
  if (!JS_IsObject(value) || JS_IsFunction(context, value)) return value;
  JSValue method = JS_GetPropertyStr(context, value, "toJSON"), made;
  if (JS_IsException(method) || !JS_IsFunction(context, method)) {
    made = JS_IsException(method) ? JS_EXCEPTION : JS_DupValue(context, value);
  } else {
    made = JS_Call(context, method, value, 0, NULL);
  }
  JS_FreeValue(context, method);
  JS_FreeValue(context, value);
  return made;
}

static int put_array(sink *to, JSValueConst array) {
  int64_t length;
  if (go_deeper(to) || JS_GetLength(to->context, array, &length) < 0) return -1;
  runner_array_begin(to->out);
  for (int64_t i = 0; i < length; i++) {
    JSValue item = presented(to->context, JS_GetPropertyInt64(to->context, array, i));
    if (JS_IsException(item)) return -1;
    int status = put(to, is_nothing(to->context, item) ? JS_NULL : item);
    JS_FreeValue(to->context, item);
    if (status) return -1;
  }
  runner_array_end(to->out);
  to->depth--;
  return 0;
}

/* Shorter keys first, then by bytes: the order of their encodings. */
static int compare_keys(const void *left, const void *right) {
  const key *a = left, *b = right;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return memcmp(a->text, b->text, a->size);
}

static int put_pair(sink *to, JSValueConst object, const key *pair) {
  JSValue item = presented(to->context, JS_GetProperty(to->context, object, pair->atom));
  if (JS_IsException(item)) return -1;
  int status = 0;
  if (!is_nothing(to->context, item)) {
    runner_put_text_of(to->out, pair->text, pair->size);
    status = count(to) || put(to, item) ? -1 : 0;
  }
  JS_FreeValue(to->context, item);
  return status;
}

static int put_pairs(sink *to, JSValueConst object, const JSPropertyEnum *names, key *keys, uint32_t count_of) {
  uint32_t known = 0;
  int status = 0;
  for (; known < count_of && !status; known++) {
    JSValue name = JS_AtomToString(to->context, names[known].atom);
    keys[known].atom = names[known].atom;
    keys[known].text = engine_text(to->context, &keys[known].size, name);
    JS_FreeValue(to->context, name);
    if (!keys[known].text) break;
  }
  if (known < count_of) status = -1;
  else qsort(keys, known, sizeof *keys, compare_keys);
  for (uint32_t i = 0; i < known && !status; i++) status = put_pair(to, object, &keys[i]);
  for (uint32_t i = 0; i < known; i++) engine_free_text(to->context, keys[i].text);
  return status;
}

static int put_object(sink *to, JSValueConst object) {
  JSPropertyEnum *names;
  uint32_t length;
  if (check_class(to, object) || go_deeper(to)) return -1;
  if (JS_GetOwnPropertyNames(to->context, &names, &length, object, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY) < 0)
    return -1;
  key *keys = js_malloc(to->context, (length + 1) * sizeof *keys);
  int status = -1;
  if (keys) {
    runner_map_begin(to->out);
    status = put_pairs(to, object, names, keys, length);
    if (!status) runner_map_end(to->out);
    js_free(to->context, keys);
  }
  JS_FreePropertyEnum(to->context, names, length);
  to->depth--;
  return status;
}

/* --- Any value ---------------------------------------------------------------------------------------- */

static int put_scalar(sink *to, JSValueConst value) {
  double number;
  switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_NULL:
    case JS_TAG_UNDEFINED: runner_put_null(to->out); return 0;
    case JS_TAG_BOOL: runner_put_bool(to->out, JS_VALUE_GET_BOOL(value)); return 0;
    case JS_TAG_INT:
    case JS_TAG_FLOAT64:
      if (JS_ToFloat64(to->context, &number, value)) return -1;
      return put_number(to, number);
    case JS_TAG_BIG_INT:
    case JS_TAG_SHORT_BIG_INT: return put_bigint(to, value);
    case JS_TAG_SYMBOL: return refuse(to, "a symbol", "");
    default: return put_text(to, value);
  }
}

/* 1, 0, or -1 with an exception; what a proxy stands for counts. */
static int is_array(sink *to, JSValueConst value) {
  JSValue at = JS_DupValue(to->context, value);
  while (JS_IsProxy(at)) {
    JSValue target = JS_GetProxyTarget(to->context, at);
    JS_FreeValue(to->context, at);
    at = target;
  }
  if (JS_IsException(at)) return -1;
  bool found = JS_IsArray(at) || JS_GetTypedArrayType(at) >= 0;
  JS_FreeValue(to->context, at);
  return found;
}

static int put(sink *to, JSValueConst value) {
  if (count(to)) return -1;
  if (!JS_IsObject(value)) return put_scalar(to, value);
  if (JS_IsFunction(to->context, value)) return refuse(to, "a function", "");
  if (is_bytes(value)) return put_bytes(to, value);
  int array = is_array(to, value);
  if (array < 0) return -1;
  return array ? put_array(to, value) : put_object(to, value);
}

int engine_encode(JSContext *context, runner_writer *out, JSValueConst value) {
  sink to = {context, out, 0, 0};
  JSValue top = presented(context, JS_DupValue(context, value));
  int status = JS_IsException(top) ? -1 : put(&to, top);
  JS_FreeValue(context, top);
  if (status || out->status == RUNNER_STATUS_OK) return status;
  if (out->status == RUNNER_STATUS_LIMIT) JS_ThrowOutOfMemory(context);
  else JS_ThrowTypeError(context, "two keys of an object have the same text");
  return -1;
}
