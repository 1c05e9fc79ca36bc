/* What a language engine is told in place of WASI: the clock of the slice, and nothing else. */

#ifndef ENGINE_WASI_H
#define ENGINE_WASI_H

#include <stdint.h>

/* Milliseconds since 1970. The engine defines it, because what the time is depends on what it does:
   nothing that goes into an image may depend on a clock. */
int64_t engine_now_ms(void);

#endif
