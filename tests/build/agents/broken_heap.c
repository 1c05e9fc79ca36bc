/* Takes the name of a crime against the heap, and commits it. Replies null if nobody minds. */

#include <runner.h>

void on_message(const runner_delivery *delivery) {
  uint8_t *first = malloc(24), *second = malloc(24), *third = malloc(24);
  if (runner_is_text(delivery->payload, "free twice")) {
    free(second);
    free(second);
  } else if (runner_is_text(delivery->payload, "free twice after joining")) {
    free(first);
    free(second);
    free(second);
  } else if (runner_is_text(delivery->payload, "write past the end")) {
    memset(first, 0xff, 32);
    free(first);
  } else if (runner_is_text(delivery->payload, "free the middle")) {
    free(first + 8);
  } else if (runner_is_text(delivery->payload, "realloc what was freed")) {
    free(third);
    third = realloc(third, 100);
  }
  runner_reply_null(delivery->number);
}
