/* Takes a list of byte strings. Replies for each with null when the SDK finds that it is no payload, else with what
   the SDK's writer makes of the value that the SDK's reader saw. Maps are written backwards, so that the
   writer has to sort them. */

#include <runner.h>

static void copy(runner_writer *to, runner_value value);

static void copy_map(runner_writer *to, runner_value map) {
  uint32_t count = runner_count(map);
  runner_items *pairs = calloc(count, sizeof *pairs);
  runner_items items = runner_items_of(map);
  for (uint32_t i = 0; i < count; i++) {
    runner_next(&items);
    pairs[i] = items;
  }
  runner_map_begin(to);
  for (uint32_t i = count; i-- > 0;) {
    copy(to, pairs[i].key);
    copy(to, pairs[i].value);
  }
  runner_map_end(to);
  free(pairs);
}

static void copy_array(runner_writer *to, runner_value array) {
  runner_items items = runner_items_of(array);
  runner_array_begin(to);
  while (runner_next(&items)) copy(to, items.value);
  runner_array_end(to);
}

static void copy_int(runner_writer *to, runner_value value) {
  int64_t number;
  uint64_t large;
  if (runner_as_int(value, &number)) runner_put_int(to, number);
  else if (runner_as_uint(value, &large)) runner_put_uint(to, large);
  else runner_put_value(to, value); /* below -2^63 */
}

static void copy(runner_writer *to, runner_value value) {
  uint32_t size;
  bool truth;
  double number;
  switch (runner_type_of(value)) {
    case RUNNER_TYPE_NULL: runner_put_null(to); return;
    case RUNNER_TYPE_BOOL:
      runner_as_bool(value, &truth);
      runner_put_bool(to, truth);
      return;
    case RUNNER_TYPE_INT: copy_int(to, value); return;
    case RUNNER_TYPE_FLOAT:
      runner_as_double(value, &number);
      runner_put_double(to, number);
      return;
    case RUNNER_TYPE_TEXT: {
      const char *text = runner_as_text(value, &size);
      runner_put_text_of(to, text, size);
      return;
    }
    case RUNNER_TYPE_BYTES: {
      const uint8_t *bytes = runner_as_bytes(value, &size);
      runner_put_bytes(to, bytes, size);
      return;
    }
    case RUNNER_TYPE_ARRAY: copy_array(to, value); return;
    case RUNNER_TYPE_MAP: copy_map(to, value); return;
    case RUNNER_TYPE_MISSING: __builtin_trap();
  }
}

void on_message(const runner_delivery *delivery) {
  runner_writer reply = {0};
  runner_array_begin(&reply);
  runner_items items = runner_items_of(delivery->payload);
  while (runner_next(&items)) {
    uint32_t size;
    const uint8_t *bytes = runner_as_bytes(items.value, &size);
    runner_value value = runner_parse(bytes, size);
    if (!value.data) {
      runner_put_null(&reply);
      continue;
    }
    runner_writer again = {0};
    copy(&again, value);
    if (runner_writer_status(&again)) __builtin_trap();
    runner_put_bytes(&reply, again.data, again.size);
    runner_writer_reset(&again);
  }
  runner_array_end(&reply);
  runner_reply(delivery->number, &reply);
}
