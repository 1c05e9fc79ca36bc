/* Keeps what it was told last, hands that over, and takes over what another version kept: text only. Replies
   with it, or with how its last snapshot went when it is told nothing. */

#include <runner.h>

static char kept[64];

static bool keep(runner_value value) {
  uint32_t size;
  const char *text = runner_as_text(value, &size);
  if (!text || size >= sizeof kept) return false;
  memcpy(kept, text, size);
  kept[size] = 0;
  return true;
}

void on_message(const runner_delivery *delivery) {
  if (runner_type_of(delivery->payload) == RUNNER_TYPE_NULL) {
    runner_value known = runner_last_snapshot();
    runner_writer reply = {0};
    runner_put_value(&reply, known);
    runner_reply(delivery->number, &reply);
    free((void *)known.data);
    return;
  }
  keep(delivery->payload);
  runner_reply_text(delivery->number, kept);
}

static void hand_over(const runner_delivery *delivery) { runner_reply_text(delivery->number, kept); }

static void take_over(const runner_delivery *delivery) {
  if (keep(runner_get(delivery->payload, "state"))) runner_reply_null(delivery->number);
  else runner_fail(delivery->number, "that was no text");
}

RUNNER_UPGRADES(hand_over, take_over)
