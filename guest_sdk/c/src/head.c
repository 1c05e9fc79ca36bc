#include "head.h"

#include "runner_memory.h"

#define NAN_HALF 0x7e00

bool head_read(const uint8_t *at, const uint8_t *end, head *out) {
  if (at >= end) return false;
  out->major = *at >> 5;
  out->info = *at & 31;
  out->argument = out->info;
  out->rest = at + 1;
  if (out->major == TAG) return false;
  if (out->major == SIMPLE && (out->info < FALSE || out->info == 23 || out->info == 24)) return false;
  if (out->info < 24) return true;
  if (out->info > DOUBLE) return false;
  uint32_t width = 1u << (out->info - 24);
  if ((size_t)(end - out->rest) < width) return false;
  out->argument = 0;
  for (uint32_t i = 0; i < width; i++) out->argument = out->argument << 8 | *out->rest++;
  if (out->major == SIMPLE) return true;
  uint64_t smallest = width == 1 ? 24 : 1ull << (width * 4);
  return out->argument >= smallest;
}

static uint32_t put_argument(uint8_t *out, enum major major, uint32_t width_log2, uint64_t argument) {
  uint32_t width = 1u << width_log2;
  out[0] = (uint8_t)(major << 5 | (24 + width_log2));
  for (uint32_t i = width; i > 0; i--, argument >>= 8) out[i] = (uint8_t)argument;
  return 1 + width;
}

uint32_t head_write(uint8_t *out, enum major major, uint64_t argument) {
  if (argument < 24) {
    out[0] = (uint8_t)(major << 5 | argument);
    return 1;
  }
  uint32_t width_log2 = argument >> 32 ? 3 : argument >> 16 ? 2 : argument >> 8 ? 1 : 0;
  return put_argument(out, major, width_log2, argument);
}

/* Whether a float of single precision is one of half precision. */
static bool half_of(uint32_t single, uint32_t *half) {
  uint32_t sign = single >> 16 & 0x8000;
  int32_t exponent = (int32_t)(single >> 23 & 0xff) - 127;
  uint32_t fraction = single & 0x7fffff;
  if (!(single & 0x7fffffff)) {
    *half = sign;
    return true;
  }
  if (exponent == 128) {
    *half = sign | 0x7c00; /* infinity; what is no number was dealt with */
    return true;
  }
  if (exponent < -24 || exponent > 15) return false;
  uint32_t dropped = exponent >= -14 ? 13 : (uint32_t)(-1 - exponent);
  if (exponent < -14) fraction |= 0x800000;
  if (fraction & ((1u << dropped) - 1)) return false;
  *half = sign | (exponent >= -14 ? (uint32_t)(exponent + 15) << 10 : 0) | fraction >> dropped;
  return true;
}

uint32_t head_write_double(uint8_t *out, double value) {
  uint64_t bits;
  uint32_t single_bits, half;
  float single = (float)value;
  memcpy(&bits, &value, sizeof bits);
  memcpy(&single_bits, &single, sizeof single_bits);
  if (value != value) return put_argument(out, SIMPLE, 1, NAN_HALF);
  if ((double)single != value) return put_argument(out, SIMPLE, 3, bits);
  if (!half_of(single_bits, &half)) return put_argument(out, SIMPLE, 2, single_bits);
  return put_argument(out, SIMPLE, 1, half);
}

double head_double(const head *from) {
  double value;
  uint64_t bits = from->argument;
  if (from->info == DOUBLE) {
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  uint32_t single_bits = (uint32_t)bits;
  if (from->info == HALF) {
    uint32_t exponent = single_bits >> 10 & 31, fraction = single_bits & 0x3ff;
    uint32_t sign = (single_bits & 0x8000) << 16;
    if (exponent == 0) {
      value = (double)fraction / (1 << 24);
      return sign ? -value : value;
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    single_bits = sign | exponent << 23 | fraction << 13;
  }
  float single;
  memcpy(&single, &single_bits, sizeof single);
  return single;
}

const uint8_t *item_end(const uint8_t *at, const uint8_t *end) {
  head item;
  for (uint64_t left = 1; left > 0; left--) {
    if (!head_read(at, end, &item)) return end;
    at = item.rest;
    if (item.major == BYTES || item.major == TEXT) at += item.argument;
    if (item.major == ARRAY) left += item.argument;
    if (item.major == MAP) left += item.argument * 2;
  }
  return at;
}
