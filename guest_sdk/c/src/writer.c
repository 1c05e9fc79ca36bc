#include "head.h"
#include "runner_abi.h"
#include "runner_memory.h"

/* One open container. Offsets, not pointers: the buffer moves when it grows. */
typedef struct runner_level {
  uint32_t start;    /* of the head, one byte until the container ends */
  uint32_t items;    /* written so far, keys included */
  uint32_t entry;    /* of the pair being written */
  uint32_t greatest; /* of the pair with the greatest key */
  bool keyed;
} runner_level;

static void mistake(runner_writer *writer) {
  if (!writer->status) writer->status = RUNNER_STATUS_INVALID;
}

/* Room for `more` bytes, or NULL and the writer fails. */
static uint8_t *reserve(runner_writer *writer, size_t more) {
  size_t needed = writer->size + more;
  if (needed < more || needed > INT32_MAX) needed = 0;
  if (needed > writer->capacity) {
    size_t capacity = needed > writer->capacity * 2u ? needed : writer->capacity * 2u;
    uint8_t *data = realloc(writer->data, capacity < 64 ? 64 : capacity);
    if (!data) needed = 0;
    else {
      writer->data = data;
      writer->capacity = (uint32_t)(capacity < 64 ? 64 : capacity);
    }
  }
  if (!needed) {
    writer->status = RUNNER_STATUS_LIMIT;
    return 0;
  }
  return writer->data + writer->size;
}

static runner_level *innermost(runner_writer *writer) {
  return writer->depth ? &writer->levels[writer->depth - 1] : 0;
}

/* Whether an item may begin here: one alone at the top, and text where a map wants a key. */
static bool may_begin(runner_writer *writer, enum major major) {
  runner_level *level = innermost(writer);
  if (writer->status) return false;
  bool wants_key = level && level->keyed && level->items % 2 == 0;
  if ((!level && writer->size) || (wants_key && major != TEXT)) {
    mistake(writer);
    return false;
  }
  if (wants_key) level->entry = writer->size;
  return true;
}

static void reverse(uint8_t *from, uint8_t *to) {
  while (from < to) {
    uint8_t kept = *from;
    *from++ = *--to;
    *to = kept;
  }
}

/* Order of two encoded keys; their heads carry their sizes, so the shorter one comes first. */
static int compare(const uint8_t *left, const uint8_t *right, const uint8_t *end) {
  size_t left_size = (size_t)(item_end(left, end) - left), right_size = (size_t)(item_end(right, end) - right);
  return memcmp(left, right, left_size < right_size ? left_size : right_size);
}

/* Moves the last pair of a map to its place among the sorted ones before it. */
static void sort_in(runner_writer *writer, runner_level *level) {
  uint8_t *data = writer->data, *end = data + writer->size, *entry = data + level->entry;
  int order = level->items == 2 ? 1 : compare(entry, data + level->greatest, end);
  if (order > 0) {
    level->greatest = level->entry;
    return;
  }
  uint8_t *at = data + level->start + 1;
  while ((order = compare(entry, at, end)) > 0) at = (uint8_t *)item_end(item_end(at, end), end);
  if (!order) {
    mistake(writer);
    return;
  }
  level->greatest += (uint32_t)(end - entry);
  reverse(at, entry);
  reverse(entry, end);
  reverse(at, end);
}

static void item_done(runner_writer *writer) {
  runner_level *level = innermost(writer);
  if (!level) return;
  level->items++;
  if (level->keyed && level->items % 2 == 0) sort_in(writer, level);
}

/* An item of a head and, for strings, the bytes after it. */
static void put(runner_writer *writer, const uint8_t *head, uint32_t head_size, const void *rest,
                size_t rest_size) {
  if (!may_begin(writer, head[0] >> 5)) return;
  uint8_t *out = rest_size > INT32_MAX ? reserve(writer, SIZE_MAX) : reserve(writer, head_size + rest_size);
  if (!out) return;
  memcpy(out, head, head_size);
  memcpy(out + head_size, rest, rest_size);
  writer->size += head_size + (uint32_t)rest_size;
  item_done(writer);
}

static void put_head(runner_writer *writer, enum major major, uint64_t argument, const void *rest,
                     size_t rest_size) {
  uint8_t head[HEAD_MAX];
  put(writer, head, head_write(head, major, argument), rest, rest_size);
}

void runner_put_null(runner_writer *writer) { put_head(writer, SIMPLE, NUL, "", 0); }

void runner_put_bool(runner_writer *writer, bool value) {
  put_head(writer, SIMPLE, value ? TRUE : FALSE, "", 0);
}

void runner_put_int(runner_writer *writer, int64_t value) {
  put_head(writer, value < 0 ? NEGATIVE : UNSIGNED, (uint64_t)(value < 0 ? -1 - value : value), "", 0);
}

void runner_put_uint(runner_writer *writer, uint64_t value) { put_head(writer, UNSIGNED, value, "", 0); }

void runner_put_double(runner_writer *writer, double value) {
  uint8_t head[HEAD_MAX];
  put(writer, head, head_write_double(head, value), "", 0);
}

void runner_put_text(runner_writer *writer, const char *text) {
  runner_put_text_of(writer, text, strlen(text));
}

void runner_put_text_of(runner_writer *writer, const char *text, size_t size) {
  put_head(writer, TEXT, size, text, size);
}

void runner_put_bytes(runner_writer *writer, const void *bytes, size_t size) {
  put_head(writer, BYTES, size, bytes, size);
}

void runner_put_value(runner_writer *writer, runner_value value) {
  if (value.data) put(writer, value.data, 1, value.data + 1, value.size - 1);
  else mistake(writer);
}

static void begin(runner_writer *writer, bool keyed) {
  if (!may_begin(writer, keyed ? MAP : ARRAY)) return;
  if (writer->depth == RUNNER_MAX_DEPTH) {
    mistake(writer);
    return;
  }
  /* Room grows when the depth reaches a power of two. */
  if (!(writer->depth & (writer->depth - 1))) {
    size_t room = writer->depth ? writer->depth * 2 : 1;
    runner_level *levels = realloc(writer->levels, room * sizeof *levels);
    if (!levels) {
      writer->status = RUNNER_STATUS_LIMIT;
      return;
    }
    writer->levels = levels;
  }
  if (!reserve(writer, 1)) return;
  writer->levels[writer->depth++] = (runner_level){.start = writer->size++, .keyed = keyed};
}

static void end(runner_writer *writer, bool keyed) {
  if (writer->status) return;
  runner_level *level = innermost(writer);
  if (!level || level->keyed != keyed || (keyed && level->items % 2)) {
    mistake(writer);
    return;
  }
  uint8_t head[HEAD_MAX];
  uint32_t size = head_write(head, keyed ? MAP : ARRAY, keyed ? level->items / 2 : level->items);
  if (!reserve(writer, size - 1)) return;
  uint8_t *start = writer->data + level->start;
  memmove(start + size, start + 1, writer->size - level->start - 1);
  memcpy(start, head, size);
  writer->size += size - 1;
  writer->depth--;
  item_done(writer);
}

void runner_array_begin(runner_writer *writer) { begin(writer, false); }
void runner_array_end(runner_writer *writer) { end(writer, false); }
void runner_map_begin(runner_writer *writer) { begin(writer, true); }
void runner_map_end(runner_writer *writer) { end(writer, true); }

int32_t runner_writer_status(const runner_writer *writer) {
  if (writer->status) return writer->status;
  return writer->size && !writer->depth ? RUNNER_STATUS_OK : RUNNER_STATUS_INVALID;
}

void runner_writer_reset(runner_writer *writer) {
  free(writer->data);
  free(writer->levels);
  *writer = (runner_writer){0};
}
