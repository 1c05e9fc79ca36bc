/* Takes the name of a mistake, makes it, and replies with the status that the writer then has. */

#include <runner.h>

static void make(runner_writer *w, runner_value mistake) {
  if (runner_is_text(mistake, "nothing written")) {
  } else if (runner_is_text(mistake, "two items")) {
    runner_put_null(w);
    runner_put_null(w);
  } else if (runner_is_text(mistake, "not ended")) {
    runner_array_begin(w);
  } else if (runner_is_text(mistake, "not begun")) {
    runner_array_end(w);
  } else if (runner_is_text(mistake, "ended as another")) {
    runner_array_begin(w);
    runner_map_end(w);
  } else if (runner_is_text(mistake, "key without value")) {
    runner_map_begin(w);
    runner_put_key(w, "a");
    runner_map_end(w);
  } else if (runner_is_text(mistake, "key is a number")) {
    runner_map_begin(w);
    runner_put_int(w, 1);
    runner_put_int(w, 1);
    runner_map_end(w);
  } else if (runner_is_text(mistake, "one key twice")) {
    runner_map_begin(w);
    for (int i = 0; i < 3; i++) {
      runner_put_key(w, i == 1 ? "b" : "a");
      runner_put_int(w, i);
    }
    runner_map_end(w);
  } else if (runner_is_text(mistake, "missing value")) {
    runner_put_value(w, (runner_value){0, 0});
  } else if (runner_is_text(mistake, "65 deep")) {
    for (int i = 0; i < 65; i++) runner_array_begin(w);
    for (int i = 0; i < 65; i++) runner_array_end(w);
  } else if (runner_is_text(mistake, "more than memory")) {
    runner_array_begin(w);
    for (int i = 0; i < 1024; i++) runner_put_bytes(w, "", 0);
    runner_put_bytes(w, 0, 64 << 20);
    runner_array_end(w);
  } else if (runner_is_text(mistake, "more than any memory")) {
    runner_put_bytes(w, 0, (size_t)-1);
  } else { /* none */
    for (int i = 0; i < 64; i++) runner_array_begin(w);
    for (int i = 0; i < 64; i++) runner_array_end(w);
  }
}

void on_message(const runner_delivery *delivery) {
  runner_writer broken = {0}, reply = {0};
  make(&broken, delivery->payload);
  runner_put_int(&reply, runner_writer_status(&broken));
  runner_writer_reset(&broken);
  runner_reply(delivery->number, &reply);
}
