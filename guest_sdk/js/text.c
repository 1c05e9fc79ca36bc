/* Text between JavaScript, whose strings are UTF-16 and may hold halves of characters, and UTF-8. */

#include "engine.h"

#include <string.h>

/* A lone surrogate, as the interpreter writes it: ED, then A0 or above, then one more. */
static bool is_surrogate(const uint8_t *at, const uint8_t *end) {
  return end - at >= 3 && at[0] == 0xed && at[1] >= 0xa0;
}

const char *engine_text(JSContext *context, size_t *size, JSValueConst value) {
  const char *text = JS_ToCStringLen(context, size, value);
  if (!text) return NULL;
  /* The text is a copy of the string's whenever it holds anything but ASCII. */
  uint8_t *at = (uint8_t *)text, *end = at + *size;
  for (; (at = memchr(at, 0xed, (size_t)(end - at))); at++)
    if (is_surrogate(at, end)) memcpy(at, "\xef\xbf\xbd", 3);
  return text;
}

void engine_free_text(JSContext *context, const char *text) { JS_FreeCString(context, text); }

/* How many bytes from `at` belong together, and whether they are a character. As the WHATWG encoding
   standard counts, so that each of them becomes one U+FFFD. */
static uint32_t sequence(const uint8_t *at, const uint8_t *end, bool *good) {
  uint8_t first = *at;
  uint32_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  *good = first < 0x80;
  if (*good || first < 0xc2 || first > 0xf4) return 1;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (uint32_t i = 1; i <= more; i++, low = 0x80, high = 0xbf)
    if (at + i >= end || at[i] < low || at[i] > high) return i;
  *good = true;
  return more + 1;
}

static bool is_utf8(const uint8_t *at, const uint8_t *end) {
  bool good = true;
  while (at < end && good) at += sequence(at, end, &good);
  return good;
}

/* At most three bytes for each one. */
static uint8_t *repaired(JSContext *context, const uint8_t *at, const uint8_t *end, size_t *size) {
  size_t room = (size_t)(end - at) * 3;
  uint8_t *made = js_malloc(context, room), *out = made;
  while (made && at < end) {
    bool good;
    uint32_t length = sequence(at, end, &good);
    memcpy(out, good ? at : (const uint8_t *)"\xef\xbf\xbd", good ? length : 3);
    out += good ? length : 3;
    at += length;
  }
  *size = (size_t)(out - made);
  return made;
}

JSValue engine_string(JSContext *context, const uint8_t *bytes, size_t size, bool strict) {
  if (is_utf8(bytes, bytes + size)) return JS_NewStringLen(context, (const char *)bytes, size);
  if (strict) return JS_UNDEFINED;
  uint8_t *good = repaired(context, bytes, bytes + size, &size);
  if (!good) return JS_EXCEPTION;
  JSValue string = JS_NewStringLen(context, (const char *)good, size);
  js_free(context, good);
  return string;
}
