/* Deterministic CBOR: what crosses the boundary, and nothing else. */

#ifndef RUNNER_CBOR_H
#define RUNNER_CBOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Containers inside containers; the host refuses more. */
#define RUNNER_MAX_DEPTH 64

/* --- Reading ------------------------------------------------------------------------------------ */

/* A view of one item inside bytes that someone else owns. Functions take a missing value where one is
   expected and give a missing value back, so that look-ups can be chained and tested once. */
typedef struct runner_value {
  const uint8_t *data; /* NULL when missing */
  uint32_t size;
} runner_value;

enum runner_type {
  RUNNER_TYPE_MISSING,
  RUNNER_TYPE_NULL,
  RUNNER_TYPE_BOOL,
  RUNNER_TYPE_INT, /* from -2^64 to 2^64 - 1 */
  RUNNER_TYPE_FLOAT,
  RUNNER_TYPE_TEXT,
  RUNNER_TYPE_BYTES,
  RUNNER_TYPE_ARRAY,
  RUNNER_TYPE_MAP,
};

/* The item that the bytes encode; missing unless they are exactly one item in deterministic encoding, with
   text for map keys and no tags. The functions below expect values that came from here. */
runner_value runner_parse(const void *data, size_t size);

enum runner_type runner_type_of(runner_value value);

/* Each returns false, and leaves `out` alone, when the value is of another type or does not fit. */
bool runner_as_bool(runner_value value, bool *out);
bool runner_as_int(runner_value value, int64_t *out);
bool runner_as_uint(runner_value value, uint64_t *out);
bool runner_as_double(runner_value value, double *out); /* takes integers too */

/* Text (UTF-8, no end mark) or bytes, not copied; NULL when it is neither. */
const char *runner_as_text(runner_value value, uint32_t *size);
const uint8_t *runner_as_bytes(runner_value value, uint32_t *size);

/* Whether the value is this text. */
bool runner_is_text(runner_value value, const char *text);

/* The value under a key of a map; missing when there is none, or no map. */
runner_value runner_get(runner_value map, const char *key);

/* Items of an array, or pairs of a map; 0 for anything else. */
uint32_t runner_count(runner_value container);

/* Walks an array or a map in order; a map's `key` is text, an array's is missing.

       runner_items items = runner_items_of(value);
       while (runner_next(&items)) use(items.key, items.value); */
typedef struct runner_items {
  const uint8_t *next, *end;
  uint32_t left;
  bool keyed;
  runner_value key, value;
} runner_items;

runner_items runner_items_of(runner_value container);
bool runner_next(runner_items *items);

/* --- Writing ------------------------------------------------------------------------------------ */

/* Builds one item. Start from `runner_writer request = {0};`. The first mistake or lack of memory sticks:
   later calls do nothing, and whoever sends the writer reports it, so that only the end needs a test.

       runner_map_begin(&w);
       runner_put_key(&w, "title");
       runner_put_text(&w, "shopping");
       runner_map_end(&w);

   Maps may be written in any order: they are sorted. Keys that come in order cost nothing extra. */
typedef struct runner_writer {
  uint8_t *data;
  uint32_t size, capacity;
  int32_t status; /* RUNNER_STATUS_OK, or what went wrong first */
  uint32_t depth;
  struct runner_level *levels;
} runner_writer;

void runner_put_null(runner_writer *writer);
void runner_put_bool(runner_writer *writer, bool value);
void runner_put_int(runner_writer *writer, int64_t value);
void runner_put_uint(runner_writer *writer, uint64_t value);
void runner_put_double(runner_writer *writer, double value); /* always as a float */
void runner_put_text(runner_writer *writer, const char *text);
void runner_put_text_of(runner_writer *writer, const char *text, size_t size); /* must be UTF-8 */
void runner_put_bytes(runner_writer *writer, const void *bytes, size_t size);
void runner_put_value(runner_writer *writer, runner_value value); /* a copy; a missing one is a mistake */

/* Keys are text; any `runner_put_text...` does in their place. */
#define runner_put_key runner_put_text

void runner_array_begin(runner_writer *writer);
void runner_array_end(runner_writer *writer);
void runner_map_begin(runner_writer *writer);
void runner_map_end(runner_writer *writer);

/* RUNNER_STATUS_OK when `data` and `size` hold exactly one whole item; RUNNER_STATUS_LIMIT when memory ran
   out; else RUNNER_STATUS_INVALID. */
int32_t runner_writer_status(const runner_writer *writer);

/* Frees what the writer holds, and makes it fit for use again. */
void runner_writer_reset(runner_writer *writer);

#endif
