/* The first bytes of a CBOR item; shared by the reader and the writer. */

#ifndef RUNNER_HEAD_H
#define RUNNER_HEAD_H

#include "runner_cbor.h"

enum major { UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE };

enum { FALSE = 20, TRUE = 21, NUL = 22, HALF = 25, SINGLE = 26, DOUBLE = 27 };

typedef struct head {
  uint8_t major, info;
  uint64_t argument;
  const uint8_t *rest; /* what follows the head */
} head;

/* Longest head: one byte and a 64-bit argument. */
#define HEAD_MAX 9

/* False when the head is cut short, or is none that a deterministic payload may hold. Floats are checked
   by the caller. */
bool head_read(const uint8_t *at, const uint8_t *end, head *out);

/* The shortest head; returns its size. */
uint32_t head_write(uint8_t *out, enum major major, uint64_t argument);

/* The shortest head of a float that loses nothing; returns its size. */
uint32_t head_write_double(uint8_t *out, double value);

/* The float that a HALF, SINGLE or DOUBLE head carries. */
double head_double(const head *from);

/* Where the item at `at` ends; only for items that are known to be sound. */
const uint8_t *item_end(const uint8_t *at, const uint8_t *end);

#endif
