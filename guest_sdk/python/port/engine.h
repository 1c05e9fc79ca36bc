/* The parts of the Python engine, and what they offer each other. */

#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "py/obj.h"

/* heap.c: the heap, and when it is swept.

   Nothing is collected while C code is at work: in WebAssembly its locals can't be looked at, so what they hold
   would be taken for garbage. `heap_tidy` is called where the C stack holds no object. */
void heap_start(void);
void heap_tidy(void);
void heap_collect(void);
void heap_settle(bool is_image);
size_t heap_used_bytes(void);

/* payload_in.c and payload_out.c: CBOR. Both raise Python exceptions. */
mp_obj_t payload_read(const uint8_t *bytes, size_t size);
mp_obj_t payload_take(uint32_t size);
void payload_write(vstr_t *out, mp_obj_t value);

/* output.c: what is printed, line by line, to the operator's log. */
void output_flush(void);
void output_log(int32_t level, const char *text, size_t size);

/* chance.c: randomness. */
void chance_renew(void);
void chance_fix(void);
void chance_fill(uint8_t *bytes, size_t size);

/* sources.c, made by the build: Python modules that the engine carries. */
typedef struct source {
  const char *name; /* dotted */
  const char *text;
  uint32_t size;
  bool is_package;
} source;
extern const source engine_prelude[];
extern const size_t engine_prelude_count;
extern const source engine_library[];
extern const size_t engine_library_count;

/* modules.c: functions of module `_host` that make modules. */
void module_run_prelude(void);
extern const mp_obj_fun_builtin_fixed_t module_importer_obj, module_new_obj, module_built_in_obj, module_library_obj, module_run_library_obj;
extern const mp_obj_fun_builtin_var_t module_run_obj;

/* extras.c */
extern const mp_obj_fun_builtin_fixed_t host_extend_obj;

/* Whether an agent is being loaded, and how many more steps it may take; 0 is without end. */
extern bool engine_loading;

/* Whether what this slice leaves is an image. */
extern bool engine_image;
extern uint32_t engine_steps_left;

/* The open delivery, or 0. */
extern int32_t engine_delivery;

#endif
