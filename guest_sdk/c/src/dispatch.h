/* Between dispatch.c and unwind.c. */

#ifndef RUNNER_DISPATCH_H
#define RUNNER_DISPATCH_H

#include "runner.h"

/* Calls the agent's handler for the delivery's kind. */
void runner_handle(const runner_delivery *delivery);

#ifdef RUNNER_UNWIND
/* Runs a handler on a stack of its own until it returns or waits; takes `bytes`, the payload, over. */
void runner_fiber_start(const runner_delivery *delivery, uint8_t *bytes);

/* Goes on with the handler that waits for this answer, and takes `bytes` over; false if none does. */
bool runner_fiber_wake(const runner_answer *answer, uint8_t *bytes);
#endif

#endif
