/* What is printed: collected to lines, each of which is a line of the operator's log. */

#include <string.h>

#include "engine.h"
#include "py/mphal.h"
#include "runner_abi.h"

enum {
  /* Below the host's default bound of 4 KiB, its CBOR head included. */
  LINE_BYTES = 4000,
  INFO = 1,
};

static char line[LINE_BYTES];
static uint32_t line_used;

/* A cut in the middle of a character would not be text. */
static size_t cut(const char *text, size_t size) {
  if (size <= LINE_BYTES) return size;
  size = LINE_BYTES;
  while (size > 0 && ((uint8_t)text[size] & 0xc0) == 0x80) size--;
  return size;
}

/* The text is written again with a CBOR head before it, on the stack: no memory may be left when this is called. */
void output_log(int32_t level, const char *text, size_t size) {
  uint8_t request[LINE_BYTES + 3];
  size = cut(text, size);
  uint32_t head = size < 24 ? 1 : size < 256 ? 2 : 3;
  if (head == 1) request[0] = (uint8_t)(0x60 | size);
  else if (head == 2) request[0] = 0x78, request[1] = (uint8_t)size;
  else request[0] = 0x79, request[1] = (uint8_t)(size >> 8), request[2] = (uint8_t)size;
  memcpy(request + head, text, size);
  runner_agent_log(level, request, head + (uint32_t)size);
}

void output_flush(void) {
  if (line_used == 0) return;
  output_log(INFO, line, line_used);
  memset(line, 0, line_used);
  line_used = 0;
}

static void put(char c) {
  if (c == '\n') {
    if (line_used == 0) output_log(INFO, "", 0);
    output_flush();
    return;
  }
  /* A line that is too long goes on in the next; never inside a character. */
  if (line_used > LINE_BYTES - 4 && ((uint8_t)c & 0xc0) != 0x80) output_flush();
  line[line_used++] = c;
}

mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) put(text[i]);
  return size;
}

void mp_hal_stdout_tx_strn_cooked(const char *text, size_t size) { mp_hal_stdout_tx_strn(text, size); }

