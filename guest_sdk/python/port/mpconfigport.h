/* MicroPython, configured for an agent: all of the language, and nothing of the world.

   No file, no socket, no process, no clock of its own, no thread. What an agent may reach comes from `host.c`;
   modules come from `sources.c` and from the agent itself. */

#ifndef ENGINE_MPCONFIGPORT_H
#define ENGINE_MPCONFIGPORT_H

#include <alloca.h>
#include <stddef.h>
#include <stdint.h>

#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EVERYTHING)

/* Types of wasm32. */
typedef int mp_int_t;
typedef unsigned mp_uint_t;
typedef long mp_off_t;
#define MP_SSIZE_MAX (0x7fffffff)
#define UINT_FMT "%u"
#define INT_FMT "%d"
#define MICROPY_LONGINT_IMPL (MICROPY_LONGINT_IMPL_MPZ)
#define MICROPY_FLOAT_IMPL (MICROPY_FLOAT_IMPL_DOUBLE)

/* Names that upstream wants of every port. */
#define MICROPY_HW_BOARD_NAME "agent"
#define MICROPY_HW_MCU_NAME "wasm32"
#define MICROPY_PY_SYS_PLATFORM "agent"
#define MICROPY_ALLOC_PATH_MAX (256)
#define MP_STATE_PORT MP_STATE_VM

/* Exceptions are unwound by the engine's own setjmp (jump.c). */
#define MICROPY_NLR_SETJMP (1)
#define MICROPY_ENABLE_SCHEDULER (0)
#define MICROPY_KBD_EXCEPTION (0)
#define MICROPY_STACK_CHECK (1)
#define MICROPY_ENABLE_VM_ABORT (0)

/* The heap grows area by area (heap.c). Objects have no finalisers: there is nothing outside to release, and
   `__del__` would run at a moment that an author can't predict. */
#define MICROPY_ENABLE_GC (1)
#define MICROPY_GC_SPLIT_HEAP (1)
#define MICROPY_GC_SPLIT_HEAP_AUTO (1)
#define MICROPY_GC_ALLOC_THRESHOLD (1)
#define MICROPY_ENABLE_FINALISER (0)
#define MICROPY_PY_GC (0)
#define MICROPY_ALLOC_GC_STACK_SIZE (128)
void *engine_heap_more(size_t *size, size_t needed);
/* `needed` is the caller's: the least that will do. */
#define MP_PLAT_ALLOC_HEAP(size) engine_heap_more(&(size), needed)
/* An area is kept for ever. Upstream takes one for empty whose last used block has the number 0, which it also
   has when the first block alone is in use; and memory can't be given back to the host anyway. */
#define MP_PLAT_FREE_HEAP(area) { NEXT_AREA(prev_area) = (area); prev_area = (area); continue; }

/* Loading has a budget of steps, so that a module that loops for ever is refused with its name and line. */
extern uint32_t engine_steps_left;
void engine_out_of_steps(void);
#define MICROPY_VM_HOOK_LOOP if (engine_steps_left != 0 && --engine_steps_left == 0) engine_out_of_steps();

/* The compiler. */
#define MICROPY_ENABLE_COMPILER (1)
#define MICROPY_ENABLE_SOURCE_LINE (1)
#define MICROPY_ENABLE_DOC_STRING (0)
#define MICROPY_COMP_ALLOW_TOP_LEVEL_AWAIT (0)
#define MICROPY_PERSISTENT_CODE_LOAD (0)
#define MICROPY_PERSISTENT_CODE_SAVE (0)
#define MICROPY_EMIT_INLINE_THUMB (0)
#define MICROPY_ERROR_REPORTING (MICROPY_ERROR_REPORTING_DETAILED)
#define MICROPY_WARNINGS (0)
#define MICROPY_CPYTHON_COMPAT (1)
#define MICROPY_USE_INTERNAL_ERRNO (1)
#define MICROPY_USE_INTERNAL_PRINTF (0)

/* Imports are answered by the importer of the prelude. */
#define MICROPY_ENABLE_EXTERNAL_IMPORT (0)
#define MICROPY_CAN_OVERRIDE_BUILTINS (1)
#define MICROPY_MODULE_WEAK_LINKS (0)
#define MICROPY_VFS (0)
#define MICROPY_READER_VFS (0)
#define MICROPY_READER_POSIX (0)

/* What does not exist here. */
#define MICROPY_PY_ASYNCIO (0)
#define MICROPY_PY_BLUETOOTH (0)
#define MICROPY_PY_BTREE (0)
#define MICROPY_PY_BUILTINS_EXECFILE (0)
#define MICROPY_PY_BUILTINS_HELP (0)
#define MICROPY_PY_BUILTINS_HELP_MODULES (0)
#define MICROPY_PY_BUILTINS_INPUT (0)
#define MICROPY_PY_CRYPTOLIB (0)
#define MICROPY_PY_DEFLATE (0)
#define MICROPY_PY_FRAMEBUF (0)
#define MICROPY_PY_IO_BUFFEREDWRITER (0)
#define MICROPY_PY_MACHINE (0)
#define MICROPY_PY_MARSHAL (0)
#define MICROPY_PY_MICROPYTHON (0)
#define MICROPY_PY_MICROPYTHON_MEM_INFO (0)
#define MICROPY_PY_MICROPYTHON_RINGIO (0)
#define MICROPY_PY_ONEWIRE (0)
#define MICROPY_PY_OS (0)
#define MICROPY_PY_PLATFORM (0)
#define MICROPY_PY_RANDOM (0)
#define MICROPY_PY_RE_DEBUG (0)
#define MICROPY_PY_SELECT (0)
#define MICROPY_PY_SSL (0)
#define MICROPY_PY_SYS_PATH (0)
#define MICROPY_PY_SYS_PS1_PS2 (0)
#define MICROPY_PY_SYS_SETTRACE (0)
#define MICROPY_PY_SYS_STDFILES (0)
#define MICROPY_PY_SYS_STDIO_BUFFER (0)
#define MICROPY_PY_SYS_TRACEBACKLIMIT (0)
#define MICROPY_PY_SYS_ATEXIT (0)
#define MICROPY_PY_SYS_EXC_INFO (1)
#define MICROPY_PY_THREAD (0)
#define MICROPY_PY_TIME (0)
#define MICROPY_PY_UCTYPES (0)
#define MICROPY_PY_VFS (0)
#define MICROPY_PY_WEBSOCKET (0)
#define MICROPY_PY_WEBREPL (0)
#define MICROPY_HELPER_REPL (0)
#define MICROPY_REPL_EMACS_KEYS (0)

/* Code objects show the memory of the interpreter. */
#define MICROPY_PY_FUNCTION_ATTRS_CODE (0)

/* What agents compute with. */
#define MICROPY_PY_BINASCII (1)
#define MICROPY_PY_COLLECTIONS_DEQUE (1)
#define MICROPY_PY_ERRNO (0)
#define MICROPY_PY_HASHLIB (1)
#define MICROPY_PY_HASHLIB_MD5 (0)
#define MICROPY_PY_HASHLIB_SHA1 (0)
#define MICROPY_PY_HASHLIB_SHA256 (1)
/* The library has its own. */
#define MICROPY_PY_JSON (0)
#define MICROPY_PY_RE (0)

/* Where upstream looks at how deep the C stack is, by an edit of the recipe. In WebAssembly a frame may have no part of
   the memory's stack, and only that is measured: this gives it one, in proportion to what it takes of the host's. */
#define ENGINE_CHECK_STACK(frame_bytes) \
  char engine_frame[frame_bytes]; \
  __asm__ volatile("" : : "r"(engine_frame)); \
  mp_cstack_check()

/* The size of `count` things, or one that can't be had. */
static inline size_t engine_times(size_t size, size_t count) {
  size_t total;
  return __builtin_mul_overflow(size, count, &total) ? (size_t)-1 / 2 : total;
}

/* What takes the place of upstream's own, by the edits of the recipe. An object is a `void *`. */
enum { ENGINE_REPR = -2 };
int engine_float_repr(double value, char *out, size_t size, char format, int precision, char sign);
double engine_round(double value, int digits);
void engine_sort(void *list, void *key, _Bool reverse);
void *engine_slice(void *value, void *slice);
struct _mp_map_t;
size_t engine_map_last(const struct _mp_map_t *map);

#endif
