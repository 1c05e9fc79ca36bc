/* Input: from the host, but nothing here trusts that. */

#include "head.h"
#include "runner_memory.h"

static const runner_value missing = {0, 0};

typedef struct level {
  const uint8_t *key; /* the last one, or NULL */
  uint32_t left;
  bool keyed;
} level;

static bool is_utf8(const uint8_t *at, const uint8_t *end) {
  while (at < end) {
    uint8_t first = *at++;
    if (first < 0x80) continue;
    uint32_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || (size_t)(end - at) < more) return false;
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF show in the second byte. */
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (*at < low || *at > high) return false;
    while (more-- > 0)
      if ((*at++ & 0xc0) != 0x80) return false;
  }
  return true;
}

static bool is_shortest_float(const uint8_t *at, const head *item) {
  uint8_t again[HEAD_MAX];
  uint32_t size = (uint32_t)(item->rest - at);
  return head_write_double(again, head_double(item)) == size && !memcmp(again, at, size);
}

/* Keys sort by their encoded bytes; the head carries the size, so a shorter key comes first. */
static bool keys_in_order(const uint8_t *left, const uint8_t *right, const uint8_t *right_end) {
  return !left || memcmp(left, right, (size_t)(right_end - right)) < 0;
}

/* One item without its children: checks it, and says how many children it has. */
static const uint8_t *check(const uint8_t *at, const uint8_t *end, head *item, uint32_t *children) {
  *children = 0;
  if (!head_read(at, end, item)) return 0;
  size_t room = (size_t)(end - item->rest);
  switch (item->major) {
    case BYTES:
    case TEXT:
      if (item->argument > room) return 0;
      end = item->rest + item->argument;
      return item->major == BYTES || is_utf8(item->rest, end) ? end : 0;
    case ARRAY:
    case MAP:
      /* Each child takes a byte at least, so a count beyond the rest is a lie. */
      if (item->argument > room / (item->major == MAP ? 2 : 1)) return 0;
      *children = (uint32_t)item->argument * (item->major == MAP ? 2 : 1);
      return item->rest;
    case SIMPLE:
      return item->info < HALF || is_shortest_float(at, item) ? item->rest : 0;
    default:
      return item->rest;
  }
}

runner_value runner_parse(const void *data, size_t size) {
  level levels[RUNNER_MAX_DEPTH + 1];
  level *top = levels;
  const uint8_t *at = data, *end = at + size;
  *top = (level){0, 1, false};
  for (;;) {
    for (; !top->left; top--)
      if (top == levels) return at == end ? (runner_value){data, (uint32_t)size} : missing;
    head item;
    uint32_t children;
    bool is_key = top->keyed && top->left % 2 == 0;
    const uint8_t *rest = check(at, end, &item, &children);
    top->left--;
    if (!rest) return missing;
    if (is_key) {
      if (item.major != TEXT || !keys_in_order(top->key, at, rest)) return missing;
      top->key = at;
    }
    at = rest;
    if (item.major == ARRAY || item.major == MAP) {
      if (top == levels + RUNNER_MAX_DEPTH) return missing;
      *++top = (level){0, children, item.major == MAP};
    }
  }
}

static bool open(runner_value value, head *item) {
  return value.data && head_read(value.data, value.data + value.size, item);
}

enum runner_type runner_type_of(runner_value value) {
  static const uint8_t types[] = {RUNNER_TYPE_INT,  RUNNER_TYPE_INT,   RUNNER_TYPE_BYTES,
                                  RUNNER_TYPE_TEXT, RUNNER_TYPE_ARRAY, RUNNER_TYPE_MAP};
  head item;
  if (!open(value, &item)) return RUNNER_TYPE_MISSING;
  if (item.major < TAG) return types[item.major];
  if (item.info >= HALF) return RUNNER_TYPE_FLOAT;
  return item.info == NUL ? RUNNER_TYPE_NULL : RUNNER_TYPE_BOOL;
}

bool runner_as_bool(runner_value value, bool *out) {
  head item;
  if (!open(value, &item) || item.major != SIMPLE || item.info > TRUE) return false;
  *out = item.info == TRUE;
  return true;
}

bool runner_as_uint(runner_value value, uint64_t *out) {
  head item;
  if (!open(value, &item) || item.major != UNSIGNED) return false;
  *out = item.argument;
  return true;
}

bool runner_as_int(runner_value value, int64_t *out) {
  head item;
  if (!open(value, &item) || item.major > NEGATIVE || item.argument > INT64_MAX) return false;
  *out = item.major == NEGATIVE ? -1 - (int64_t)item.argument : (int64_t)item.argument;
  return true;
}

bool runner_as_double(runner_value value, double *out) {
  head item;
  if (!open(value, &item)) return false;
  if (item.major == UNSIGNED) *out = (double)item.argument;
  else if (item.major == NEGATIVE) *out = -1 - (double)item.argument;
  else if (item.major == SIMPLE && item.info >= HALF) *out = head_double(&item);
  else return false;
  return true;
}

static const uint8_t *string(runner_value value, enum major major, uint32_t *size) {
  head item;
  if (!open(value, &item) || item.major != major) return 0;
  *size = (uint32_t)item.argument;
  return item.rest;
}

const char *runner_as_text(runner_value value, uint32_t *size) {
  return (const char *)string(value, TEXT, size);
}

const uint8_t *runner_as_bytes(runner_value value, uint32_t *size) {
  return string(value, BYTES, size);
}

bool runner_is_text(runner_value value, const char *text) {
  uint32_t size;
  const char *found = runner_as_text(value, &size);
  return found && size == strlen(text) && !memcmp(found, text, size);
}

runner_value runner_get(runner_value map, const char *key) {
  runner_items items = runner_items_of(map);
  while (items.keyed && runner_next(&items))
    if (runner_is_text(items.key, key)) return items.value;
  return missing;
}

uint32_t runner_count(runner_value container) { return runner_items_of(container).left; }

runner_items runner_items_of(runner_value container) {
  runner_items items = {0};
  head item;
  if (open(container, &item) && (item.major == ARRAY || item.major == MAP)) {
    items.next = item.rest;
    items.end = container.data + container.size;
    items.left = (uint32_t)item.argument;
    items.keyed = item.major == MAP;
  }
  return items;
}

static runner_value step(runner_items *items) {
  const uint8_t *from = items->next;
  items->next = item_end(from, items->end);
  return (runner_value){from, (uint32_t)(items->next - from)};
}

bool runner_next(runner_items *items) {
  if (!items->left) return false;
  items->left--;
  items->key = items->keyed ? step(items) : missing;
  items->value = step(items);
  return true;
}
