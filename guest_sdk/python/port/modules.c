/* Modules: those of the engine, made from texts that the build put into `sources.c`, and those of an agent. */

#include <string.h>

#include "engine.h"
#include "py/builtin.h"
#include "py/compile.h"
#include "py/objmodule.h"
#include "py/runtime.h"

/* `module(name)`: a new, empty module; it is in `sys.modules` from now on. */
static mp_obj_t module_new(mp_obj_t name) { return mp_obj_new_module(mp_obj_str_get_qstr(name)); }
MP_DEFINE_CONST_FUN_OBJ_1(module_new_obj, module_new);

static void run(const char *text, size_t size, qstr file, mp_obj_t module) {
  mp_obj_dict_t *globals = mp_obj_module_get_globals(module);
  mp_lexer_t *lexer = mp_lexer_new_from_str_len(file, text, size, 0);
  mp_parse_compile_execute(lexer, MP_PARSE_FILE_INPUT, globals, globals);
}

/* `run(module, text, file)`: compiles a text and runs it as the module's. */
static mp_obj_t module_run(size_t count, const mp_obj_t *args) {
  (void)count;
  size_t size;
  const char *text = mp_obj_str_get_data(args[1], &size);
  run(text, size, mp_obj_str_get_qstr(args[2]), args[0]);
  return mp_const_none;
}
MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(module_run_obj, 3, 3, module_run);

/* `built_in(name)`: a module that is written in C, or `None`. */
static mp_obj_t module_built_in(mp_obj_t name) {
  qstr wanted = mp_obj_str_get_qstr(name);
  mp_obj_t module = mp_module_get_builtin(wanted, false);
  if (module == MP_OBJ_NULL) module = mp_module_get_builtin(wanted, true);
  return module == MP_OBJ_NULL ? mp_const_none : module;
}
MP_DEFINE_CONST_FUN_OBJ_1(module_built_in_obj, module_built_in);

MP_REGISTER_ROOT_POINTER(mp_obj_t engine_importer);

static mp_obj_t global_text(qstr name) {
  mp_map_elem_t *found = mp_map_lookup(&mp_globals_get()->map, MP_OBJ_NEW_QSTR(name), MP_MAP_LOOKUP);
  return found != NULL && mp_obj_is_str(found->value) ? found->value : MP_OBJ_NULL;
}

/* The package that a module is in, or is. */
static mp_obj_t package_of(mp_obj_t name) {
  if (mp_map_lookup(&mp_globals_get()->map, MP_OBJ_NEW_QSTR(MP_QSTR___path__), MP_MAP_LOOKUP) != NULL) return name;
  size_t size;
  const char *text = mp_obj_str_get_data(name, &size);
  while (size > 0 && text[size - 1] != '.') size--;
  return mp_obj_new_str(text, size > 0 ? size - 1 : 0);
}

/* `__import__(name, globals, locals, fromlist, level)`. Only C sees who imports: in a Python function these globals
   would be that function's own. */
static mp_obj_t import(size_t count, const mp_obj_t *args) {
  mp_obj_t caller = global_text(MP_QSTR___name__);
  if (caller == MP_OBJ_NULL) caller = MP_OBJ_NEW_QSTR(MP_QSTR_);
  mp_obj_t passed[5] = {args[0], package_of(caller), caller, count > 3 ? args[3] : mp_const_none,
                        count > 4 ? args[4] : MP_OBJ_NEW_SMALL_INT(0)};
  return mp_call_function_n_kw(MP_STATE_VM(engine_importer), 5, 0, passed);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(import_obj, 1, 5, import);

/* `importer(function)`: who answers `import` from now on. */
static mp_obj_t module_importer(mp_obj_t function) {
  MP_STATE_VM(engine_importer) = function;
  mp_obj_t builtins = mp_module_get_builtin(MP_QSTR_builtins, false);
  mp_store_attr(builtins, MP_QSTR___import__, MP_OBJ_FROM_PTR(&import_obj));
  return mp_const_none;
}
MP_DEFINE_CONST_FUN_OBJ_1(module_importer_obj, module_importer);

static const source *find(const source *sources, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(sources[i].name, name) == 0) return &sources[i];
  }
  return NULL;
}

static const source *in_library(mp_obj_t name) {
  return find(engine_library, engine_library_count, mp_obj_str_get_str(name));
}

/* `library(name)`: whether a library module is a package; `None` if there is none of that name. */
static mp_obj_t module_library(mp_obj_t name) {
  const source *found = in_library(name);
  return found == NULL ? mp_const_none : mp_obj_new_bool(found->is_package);
}
MP_DEFINE_CONST_FUN_OBJ_1(module_library_obj, module_library);

/* A file name that no agent's module can have, so that tracebacks leave such frames out. */
static qstr file_of(const source *found) {
  vstr_t name;
  vstr_init(&name, 32);
  vstr_printf(&name, "<%s>", found->name);
  qstr file = qstr_from_strn(name.buf, name.len);
  vstr_clear(&name);
  return file;
}

/* `run_library(module, name)`: runs a library module's text, straight from read-only memory. */
static mp_obj_t module_run_library(mp_obj_t module, mp_obj_t name) {
  const source *found = in_library(name);
  run(found->text, found->size, file_of(found), module);
  return mp_const_none;
}
MP_DEFINE_CONST_FUN_OBJ_2(module_run_library_obj, module_run_library);

/* `open`, which upstream wants to be there. */
static mp_obj_t no_open(size_t count, const mp_obj_t *args, mp_map_t *keywords) {
  (void)count, (void)args, (void)keywords;
  mp_raise_msg(&mp_type_OSError, MP_ERROR_TEXT("files are not available to an agent"));
}
MP_DEFINE_CONST_FUN_OBJ_KW(mp_builtin_open_obj, 0, no_open);

/* The prelude's modules run in the build's order, before there is an importer: each finds those before it in
   `sys.modules`, where built-in `import` looks too. */
void module_run_prelude(void) {
  for (size_t i = 0; i < engine_prelude_count; i++) {
    const source *part = &engine_prelude[i];
    run(part->text, part->size, file_of(part), mp_obj_new_module(qstr_from_str(part->name)));
  }
}
