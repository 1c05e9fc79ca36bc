/* WASI, defined away.

   A C library for wasm32-wasi declares each import as a C function of this name. A definition in our own
   object satisfies the reference when the module is linked, so that no import is left: there is no file, no
   environment, no argument, and the clock is the slice's. What a program writes to its standard streams
   is lost: a guest has a log. */

#include "engine_wasi.h"

#include <stddef.h>
#include <stdint.h>

#define WASI(name) __imported_wasi_snapshot_preview1_##name
#define IGNORED __attribute__((unused))

enum { SUCCESS = 0, BAD_DESCRIPTOR = 8, NOT_SUPPORTED = 52 };

typedef struct piece {
  uint32_t data, size;
} piece;

static void *at(int32_t address) { return (void *)(uintptr_t)(uint32_t)address; }

int32_t WASI(clock_time_get)(IGNORED int32_t clock, IGNORED int64_t precision, int32_t out) {
  *(uint64_t *)at(out) = (uint64_t)engine_now_ms() * 1000000;
  return SUCCESS;
}

int32_t WASI(clock_res_get)(IGNORED int32_t clock, int32_t out) {
  *(uint64_t *)at(out) = 1000000;
  return SUCCESS;
}

int32_t WASI(fd_write)(IGNORED int32_t descriptor, int32_t pieces, int32_t count, int32_t out) {
  uint32_t size = 0;
  for (int32_t i = 0; i < count; i++) size += ((piece *)at(pieces))[i].size;
  *(uint32_t *)at(out) = size;
  return SUCCESS;
}

int32_t WASI(fd_read)(IGNORED int32_t descriptor, IGNORED int32_t pieces, IGNORED int32_t count,
                      IGNORED int32_t out) {
  return BAD_DESCRIPTOR;
}

int32_t WASI(fd_seek)(IGNORED int32_t descriptor, IGNORED int64_t offset, IGNORED int32_t whence,
                      IGNORED int32_t out) {
  return BAD_DESCRIPTOR;
}

int32_t WASI(fd_close)(IGNORED int32_t descriptor) { return BAD_DESCRIPTOR; }

int32_t WASI(fd_fdstat_get)(IGNORED int32_t descriptor, IGNORED int32_t out) { return BAD_DESCRIPTOR; }

int32_t WASI(fd_fdstat_set_flags)(IGNORED int32_t descriptor, IGNORED int32_t flags) {
  return BAD_DESCRIPTOR;
}

int32_t WASI(fd_prestat_get)(IGNORED int32_t descriptor, IGNORED int32_t out) { return BAD_DESCRIPTOR; }

int32_t WASI(fd_prestat_dir_name)(IGNORED int32_t descriptor, IGNORED int32_t path, IGNORED int32_t size) {
  return BAD_DESCRIPTOR;
}

int32_t WASI(environ_sizes_get)(int32_t count, int32_t size) {
  *(uint32_t *)at(count) = *(uint32_t *)at(size) = 0;
  return SUCCESS;
}

int32_t WASI(environ_get)(IGNORED int32_t list, IGNORED int32_t text) { return SUCCESS; }

int32_t WASI(args_sizes_get)(int32_t count, int32_t size) {
  *(uint32_t *)at(count) = *(uint32_t *)at(size) = 0;
  return SUCCESS;
}

int32_t WASI(args_get)(IGNORED int32_t list, IGNORED int32_t text) { return SUCCESS; }

/* An engine has a generator of its own, seeded by `agent.random`. */
int32_t WASI(random_get)(IGNORED int32_t out, IGNORED int32_t size) { return NOT_SUPPORTED; }

int32_t WASI(poll_oneoff)(IGNORED int32_t in, IGNORED int32_t out, IGNORED int32_t count,
                          IGNORED int32_t ready) {
  return NOT_SUPPORTED;
}

int32_t WASI(sched_yield)(void) { return SUCCESS; }

_Noreturn void WASI(proc_exit)(IGNORED int32_t code) { __builtin_trap(); }

/* The C library's own `close` imports the descriptor's function by another name. */
int close(IGNORED int descriptor) { return -1; }
