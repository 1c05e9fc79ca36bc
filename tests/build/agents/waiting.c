/* Sequential code under strain: recursion, locals in memory, function pointers, and a handler that goes on after its
   reply. Takes a depth; asks `memory.list` at every level on the way down and up, and replies with a sum
   that only comes out right if every frame was kept. */

#include <runner.h>

static runner_answer ask(void) {
  runner_writer request = {0};
  runner_map_begin(&request);
  runner_map_end(&request);
  return runner_await(runner_memory_list, &request);
}

typedef int64_t descent(int64_t depth);
static descent descend;

/* Kept where the compiler can't see through it. */
static descent *volatile indirect = descend;

static int64_t answered(runner_answer answer) {
  int64_t number = 0;
  runner_as_int(answer.payload, &number);
  return answer.status ? -1000000 : number;
}

static int64_t descend(int64_t depth) {
  volatile int64_t local[4] = {depth, depth * 2, depth * 3, depth * 4};
  if (depth == 0) return answered(ask());
  int64_t sum = answered(ask());
  sum += indirect(depth - 1);
  sum += answered(ask());
  for (int i = 0; i < 4; i++) sum += local[i];
  return sum;
}

static int64_t after_reply;

void on_message(const runner_delivery *delivery) {
  int64_t depth = 0;
  runner_as_int(delivery->payload, &depth);
  runner_writer reply = {0};
  runner_array_begin(&reply);
  runner_put_int(&reply, descend(depth));
  runner_put_int(&reply, after_reply);
  runner_array_end(&reply);
  runner_reply(delivery->number, &reply);
  after_reply += answered(ask());
}

/* Not a handler: nobody may wait here. */
void on_start(void) {
  if (ask().status != RUNNER_STATUS_UNSUPPORTED) __builtin_trap();
}
