#include <runner.h>

/* The model's answer, in a later slice. What must outlive `on_message` travels in `user`. */
static void on_answer(const runner_answer *answer, void *user) {
  int32_t delivery = (int32_t)(intptr_t)user;
  if (answer->status < 0) {
    runner_fail_with(delivery, answer);
    return;
  }
  runner_writer reply = {0};
  runner_put_value(&reply, runner_get(answer->payload, "text"));
  runner_reply(delivery, &reply);
}

/* One message: asks the model what it was given. */
void on_message(const runner_delivery *delivery) {
  if (runner_type_of(delivery->payload) != RUNNER_TYPE_TEXT) {
    runner_fail(delivery->number, "expected a text");
    return;
  }
  runner_writer request = {0};
  runner_map_begin(&request);
  runner_put_key(&request, "messages");
  runner_array_begin(&request);
  runner_map_begin(&request);
  runner_put_key(&request, "role");
  runner_put_text(&request, "user");
  runner_put_key(&request, "content");
  runner_put_value(&request, delivery->payload);
  runner_map_end(&request);
  runner_array_end(&request);
  runner_map_end(&request);

  int32_t call = runner_call(runner_llm_chat, &request, on_answer, (void *)(intptr_t)delivery->number);
  if (call < 0) runner_fail(delivery->number, "the model can't be asked");
}
