/* Asks the model, then asks it to shorten its answer, and replies with both. Each `runner_await` returns when the
   answer is there; while it waits there is no stack, and the agent can be frozen between the two. */

#include <runner.h>

/* One question to the model. The answer may be read until the handler returns. */
static runner_answer ask(const char *instruction, runner_value content) {
  runner_writer request = {0};
  runner_map_begin(&request);
  if (instruction) {
    runner_put_key(&request, "system");
    runner_put_text(&request, instruction);
  }
  runner_put_key(&request, "messages");
  runner_array_begin(&request);
  runner_map_begin(&request);
  runner_put_key(&request, "role");
  runner_put_text(&request, "user");
  runner_put_key(&request, "content");
  runner_put_value(&request, content);
  runner_map_end(&request);
  runner_array_end(&request);
  runner_map_end(&request);
  return runner_await(runner_llm_chat, &request);
}

void on_message(const runner_delivery *delivery) {
  runner_answer answer = ask(0, delivery->payload);
  runner_value first = runner_get(answer.payload, "text");
  if (answer.status == RUNNER_STATUS_OK) answer = ask("Say it shorter.", first);
  if (answer.status != RUNNER_STATUS_OK) {
    runner_fail_with(delivery->number, &answer);
    return;
  }
  runner_writer reply = {0};
  runner_map_begin(&reply);
  runner_put_key(&reply, "long");
  runner_put_value(&reply, first);
  runner_put_key(&reply, "short");
  runner_put_value(&reply, runner_get(answer.payload, "text"));
  runner_map_end(&reply);
  runner_reply(delivery->number, &reply);
}
