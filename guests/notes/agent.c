/* Keeps notes for whoever writes to it. A message is a map of one pair: what to do, and with what. The reply
   is what the host's memory answered. */

#include <runner.h>

static void on_answer(const runner_answer *answer, void *user) {
  int32_t delivery = (int32_t)(intptr_t)user;
  if (answer->status < 0) {
    runner_fail_with(delivery, answer);
    return;
  }
  runner_writer reply = {0};
  runner_put_value(&reply, answer->payload);
  runner_reply(delivery, &reply);
}

/* A request of one field, such as {"query": value}. */
static runner_writer request_of(const char *field, runner_value value) {
  runner_writer request = {0};
  runner_map_begin(&request);
  if (field) {
    runner_put_key(&request, field);
    runner_put_value(&request, value);
  }
  runner_map_end(&request);
  return request;
}

void on_message(const runner_delivery *delivery) {
  void *user = (void *)(intptr_t)delivery->number;
  runner_items wishes = runner_items_of(delivery->payload);
  if (!wishes.keyed || wishes.left != 1) {
    runner_fail(delivery->number, "expected a map of one pair, such as {\"search\": \"milk\"}");
    return;
  }
  runner_next(&wishes);
  runner_writer request = {0};
  int32_t call;
  if (runner_is_text(wishes.key, "save")) {
    runner_put_value(&request, wishes.value);
    call = runner_call(runner_memory_save, &request, on_answer, user);
  } else if (runner_is_text(wishes.key, "search")) {
    request = request_of("query", wishes.value);
    call = runner_call(runner_memory_search, &request, on_answer, user);
  } else if (runner_is_text(wishes.key, "read")) {
    request = request_of("id", wishes.value);
    call = runner_call(runner_memory_read, &request, on_answer, user);
  } else if (runner_is_text(wishes.key, "forget")) {
    request = request_of("id", wishes.value);
    call = runner_call(runner_memory_forget, &request, on_answer, user);
  } else if (runner_is_text(wishes.key, "list")) {
    request = request_of(0, wishes.value);
    call = runner_call(runner_memory_list, &request, on_answer, user);
  } else {
    runner_fail(delivery->number, "expected save, search, read, forget or list");
    return;
  }
  if (call < 0) {
    runner_answer refused = {.status = call};
    runner_fail_with(delivery->number, &refused);
  }
}
