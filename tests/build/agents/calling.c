/* Calls with callbacks: takes a number of calls to make at once, and replies with the answers in the order in which they
   came. A negative number cancels the first of them. Restores reply with what is known of them; events and
   ticks are left to the SDK. */

#include <runner.h>

typedef struct gathering {
  int32_t delivery;
  int64_t open;
  runner_writer reply;
} gathering;

static void on_answer(const runner_answer *answer, void *user) {
  gathering *all = user;
  runner_array_begin(&all->reply);
  runner_put_int(&all->reply, answer->call);
  runner_put_int(&all->reply, answer->status);
  if (answer->payload.data) runner_put_value(&all->reply, answer->payload);
  runner_array_end(&all->reply);
  if (answer->status == RUNNER_STATUS_PART || --all->open) return;
  runner_array_end(&all->reply);
  runner_reply(all->delivery, &all->reply);
  free(all);
}

void on_message(const runner_delivery *delivery) {
  int64_t count = 0;
  runner_as_int(delivery->payload, &count);
  bool cancels = count < 0;
  gathering *all = calloc(1, sizeof *all);
  all->delivery = delivery->number;
  all->open = cancels ? -count : count;
  runner_array_begin(&all->reply);
  int32_t first = 0;
  for (int64_t i = all->open; i > 0; i--) {
    runner_writer request = {0};
    runner_map_begin(&request);
    runner_put_key(&request, "number");
    runner_put_int(&request, i);
    runner_map_end(&request);
    int32_t call = runner_call(runner_memory_list, &request, on_answer, all);
    if (call < 0) {
      runner_fail_with(delivery->number, &(runner_answer){.status = call});
      return;
    }
    if (!first) first = call;
  }
  if (cancels) {
    if (runner_cancel(first) != RUNNER_STATUS_OK) __builtin_trap();
    if (runner_cancel(first) != RUNNER_STATUS_NOT_FOUND) __builtin_trap();
    all->open--;
  }
  runner_log(RUNNER_LOG_WARNING, "asked");
}

void on_restore(const runner_delivery *delivery) {
  runner_writer reply = {0};
  runner_value known = runner_restored();
  runner_put_value(&reply, known);
  free((void *)known.data);
  runner_reply(delivery->number, &reply);
}
