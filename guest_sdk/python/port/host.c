/* Module `_host`: what the prelude builds on. Agents use module `agent`, which the prelude makes of it.

   Functions that ask the host return what the import returned; a negative number is a status. */

#include <string.h>

#include "engine.h"
#include "py/objexcept.h"
#include "py/objgenerator.h"
#include "py/objint.h"
#include "py/objstr.h"
#include "py/runtime.h"
#include "runner_abi.h"

bool engine_loading, engine_image;
int32_t engine_delivery;
uint32_t engine_steps_left;

enum { RESTORED_BYTES = 64, MAX_SNAPSHOT_BYTES = 4096, BITS_PER_BYTE = 8, MAX_RANDOM_BYTES = 65536, REFILL_STEPS = 1000 };

/* Calls and replies ------------------------------------------------------------------------------------------ */

typedef int32_t (*operation)(const void *ptr, uint32_t len);

static const struct {
  const char *name;
  operation call;
} operations[] = {
  {"llm.chat", runner_llm_chat},           {"llm.complete", runner_llm_complete},
  {"llm.usage", runner_llm_usage},         {"llm.providers", runner_llm_providers},
  {"tool.call", runner_tool_call},         {"tool.list", runner_tool_list},
  {"memory.save", runner_memory_save},     {"memory.read", runner_memory_read},
  {"memory.list", runner_memory_list},     {"memory.search", runner_memory_search},
  {"memory.forget", runner_memory_forget}, {"agent.after", runner_agent_after},
  {"agent.every", runner_agent_every},
};

/* `call(operation, request)`: its number, or a negative status. */
static mp_obj_t host_call(mp_obj_t name, mp_obj_t request) {
  const char *wanted = mp_obj_str_get_str(name);
  for (size_t i = 0; i < MP_ARRAY_SIZE(operations); i++) {
    if (strcmp(operations[i].name, wanted) != 0) continue;
    vstr_t out;
    vstr_init(&out, 64);
    payload_write(&out, request);
    int32_t result = operations[i].call(out.buf, out.len);
    vstr_clear(&out);
    return mp_obj_new_int(result);
  }
  mp_raise_msg_varg(&mp_type_ValueError, MP_ERROR_TEXT("no operation %s"), wanted);
}
static MP_DEFINE_CONST_FUN_OBJ_2(host_call_obj, host_call);

static mp_obj_t host_cancel(mp_obj_t call) { return mp_obj_new_int(runner_agent_cancel(mp_obj_get_int(call))); }
static MP_DEFINE_CONST_FUN_OBJ_1(host_cancel_obj, host_cancel);

static mp_obj_t settle(mp_obj_t delivery, mp_obj_t value, int32_t (*how)(int32_t, const void *, uint32_t)) {
  vstr_t out;
  vstr_init(&out, 64);
  payload_write(&out, value);
  int32_t number = mp_obj_get_int(delivery);
  int32_t result = how(number, out.buf, out.len);
  vstr_clear(&out);
  if (result == 0 && number == engine_delivery) engine_delivery = 0;
  return mp_obj_new_int(result);
}

/* `reply(delivery, value)` and `fail(delivery, {message, data})`. */
static mp_obj_t host_reply(mp_obj_t delivery, mp_obj_t value) { return settle(delivery, value, runner_agent_reply); }
static MP_DEFINE_CONST_FUN_OBJ_2(host_reply_obj, host_reply);
static mp_obj_t host_fail(mp_obj_t delivery, mp_obj_t error) { return settle(delivery, error, runner_agent_fail); }
static MP_DEFINE_CONST_FUN_OBJ_2(host_fail_obj, host_fail);

/* An instance's own affairs ---------------------------------------------------------------------------------- */

/* `log(level, line)`: a text, or a dict of which "message" is the text. */
static mp_obj_t host_log(mp_obj_t level, mp_obj_t line) {
  output_flush();
  if (mp_obj_is_str(line)) {
    size_t size;
    const char *text = mp_obj_str_get_data(line, &size);
    output_log(mp_obj_get_int(level), text, size);
    return mp_const_none;
  }
  vstr_t out;
  vstr_init(&out, 64);
  payload_write(&out, line);
  runner_agent_log(mp_obj_get_int(level), out.buf, out.len);
  vstr_clear(&out);
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(host_log_obj, host_log);

static mp_obj_t host_now_ms(void) { return mp_obj_new_int_from_ll(engine_loading ? 0 : runner_agent_now()); }
static MP_DEFINE_CONST_FUN_OBJ_0(host_now_ms_obj, host_now_ms);

static mp_obj_t host_random_bits(mp_obj_t count) {
  mp_int_t bits = mp_obj_get_int(count);
  if (bits < 0 || bits > MAX_RANDOM_BYTES * BITS_PER_BYTE) mp_raise_ValueError(MP_ERROR_TEXT("number of bits out of range"));
  size_t size = ((size_t)bits + BITS_PER_BYTE - 1) / BITS_PER_BYTE;
  vstr_t out;
  vstr_init_len(&out, size);
  chance_fill((uint8_t *)out.buf, size);
  if (bits % BITS_PER_BYTE != 0) out.buf[size - 1] &= (char)((1 << bits % BITS_PER_BYTE) - 1);
  mp_obj_t value = mp_obj_int_from_bytes_impl(false, size, (const byte *)out.buf);
  vstr_clear(&out);
  return value;
}
static MP_DEFINE_CONST_FUN_OBJ_1(host_random_bits_obj, host_random_bits);

/* Straight from the recorded stream: for what nobody may guess. */
static mp_obj_t host_random_bytes(mp_obj_t count) {
  mp_int_t size = mp_obj_get_int(count);
  if (size < 0 || size > MAX_RANDOM_BYTES) mp_raise_ValueError(MP_ERROR_TEXT("at most 65536 random bytes at once"));
  if (engine_loading) mp_raise_msg(&mp_type_RuntimeError, MP_ERROR_TEXT("nothing is random while an agent loads"));
  vstr_t out;
  vstr_init_len(&out, (size_t)size);
  int32_t status = runner_agent_random(out.buf, (uint32_t)size);
  if (status != 0) mp_raise_msg(&mp_type_RuntimeError, MP_ERROR_TEXT("the host gives no more randomness"));
  return mp_obj_new_bytes_from_vstr(&out);
}
static MP_DEFINE_CONST_FUN_OBJ_1(host_random_bytes_obj, host_random_bytes);

static mp_obj_t host_restored(void) {
  uint8_t bytes[RESTORED_BYTES];
  int32_t size = runner_agent_restored(bytes, sizeof bytes);
  return size > 0 ? payload_read(bytes, (size_t)size) : mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(host_restored_obj, host_restored);

static mp_obj_t host_last_snapshot(void) {
  uint8_t bytes[MAX_SNAPSHOT_BYTES];
  int32_t size = runner_agent_last_snapshot(bytes, sizeof bytes);
  return size > 0 ? payload_read(bytes, (size_t)size) : mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(host_last_snapshot_obj, host_last_snapshot);

static mp_obj_t host_snapshot(mp_obj_t reason) {
  if (reason == mp_const_none) return mp_obj_new_int(runner_agent_snapshot(NULL, 0));
  vstr_t out;
  vstr_init(&out, 64);
  payload_write(&out, reason);
  int32_t result = runner_agent_snapshot(out.buf, out.len);
  vstr_clear(&out);
  return mp_obj_new_int(result);
}
static MP_DEFINE_CONST_FUN_OBJ_1(host_snapshot_obj, host_snapshot);

/* The engine itself ------------------------------------------------------------------------------------------ */

/* `traceback(error)`: file, line and function of each frame, innermost first, all in one list. */
static mp_obj_t host_traceback(mp_obj_t error) {
  size_t count, *entries;
  mp_obj_exception_get_traceback(error, &count, &entries);
  mp_obj_t list = mp_obj_new_list(0, NULL);
  for (size_t i = 0; i + 2 < count; i += 3) {
    mp_obj_t frame[3] = {MP_OBJ_NEW_QSTR(entries[i]), mp_obj_new_int(entries[i + 1]),
                         entries[i + 2] == MP_QSTRnull ? mp_const_none : MP_OBJ_NEW_QSTR(entries[i + 2])};
    mp_obj_list_append(list, mp_obj_new_tuple(3, frame));
  }
  return list;
}
static MP_DEFINE_CONST_FUN_OBJ_1(host_traceback_obj, host_traceback);

void engine_out_of_steps(void) {
  /* Whoever catches this meets it again soon. */
  engine_steps_left = REFILL_STEPS;
  mp_raise_msg(&mp_type_RuntimeError, MP_ERROR_TEXT("does not finish loading"));
}

/* `load_begins(steps)`: host calls are refused, and the clock and all chance stand still, until `load_ends()`. */
static mp_obj_t host_load_begins(mp_obj_t steps) {
  engine_loading = true;
  engine_steps_left = (uint32_t)mp_obj_get_int(steps);
  chance_fix();
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(host_load_begins_obj, host_load_begins);

static mp_obj_t host_load_ends(void) {
  engine_image = true;
  engine_loading = false;
  engine_steps_left = 0;
  chance_renew();
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(host_load_ends_obj, host_load_ends);

static mp_obj_t host_is_coroutine(mp_obj_t value) { return mp_obj_new_bool(mp_obj_is_type(value, &mp_type_gen_instance)); }
static MP_DEFINE_CONST_FUN_OBJ_1(host_is_coroutine_obj, host_is_coroutine);

/* `resume(coroutine, error)`: how its next turn ended, and with what: 0 and its result, 1 and what it waits for, or 2 and
   the error that left it. Nothing is raised for it: to catch costs more, also of the host's memory. */
static mp_obj_t host_resume(mp_obj_t coroutine, mp_obj_t error) {
  mp_obj_t value, thrown = error == mp_const_none ? MP_OBJ_NULL : error;
  mp_vm_return_kind_t kind = mp_obj_gen_resume(coroutine, mp_const_none, thrown, &value);
  if (value == MP_OBJ_NULL || value == MP_OBJ_STOP_ITERATION) value = mp_const_none;
  mp_obj_t turn[2] = {MP_OBJ_NEW_SMALL_INT(kind), value};
  return mp_obj_new_tuple(2, turn);
}
static MP_DEFINE_CONST_FUN_OBJ_2(host_resume_obj, host_resume);

/* `install(deliver, wake, step, broken)`: what engine.c calls. */
static mp_obj_t host_install(size_t count, const mp_obj_t *hooks) {
  memcpy(MP_STATE_VM(engine_hooks), hooks, count * sizeof *hooks);
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(host_install_obj, 4, 4, host_install);

static const mp_rom_map_elem_t host_table[] = {
  {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR__host)},
  {MP_ROM_QSTR(MP_QSTR_call), MP_ROM_PTR(&host_call_obj)},
  {MP_ROM_QSTR(MP_QSTR_cancel), MP_ROM_PTR(&host_cancel_obj)},
  {MP_ROM_QSTR(MP_QSTR_reply), MP_ROM_PTR(&host_reply_obj)},
  {MP_ROM_QSTR(MP_QSTR_fail), MP_ROM_PTR(&host_fail_obj)},
  {MP_ROM_QSTR(MP_QSTR_log), MP_ROM_PTR(&host_log_obj)},
  {MP_ROM_QSTR(MP_QSTR_now_ms), MP_ROM_PTR(&host_now_ms_obj)},
  {MP_ROM_QSTR(MP_QSTR_random_bits), MP_ROM_PTR(&host_random_bits_obj)},
  {MP_ROM_QSTR(MP_QSTR_random_bytes), MP_ROM_PTR(&host_random_bytes_obj)},
  {MP_ROM_QSTR(MP_QSTR_restored), MP_ROM_PTR(&host_restored_obj)},
  {MP_ROM_QSTR(MP_QSTR_last_snapshot), MP_ROM_PTR(&host_last_snapshot_obj)},
  {MP_ROM_QSTR(MP_QSTR_snapshot), MP_ROM_PTR(&host_snapshot_obj)},
  {MP_ROM_QSTR(MP_QSTR_traceback), MP_ROM_PTR(&host_traceback_obj)},
  {MP_ROM_QSTR(MP_QSTR_load_begins), MP_ROM_PTR(&host_load_begins_obj)},
  {MP_ROM_QSTR(MP_QSTR_load_ends), MP_ROM_PTR(&host_load_ends_obj)},
  {MP_ROM_QSTR(MP_QSTR_is_coroutine), MP_ROM_PTR(&host_is_coroutine_obj)},
  {MP_ROM_QSTR(MP_QSTR_resume), MP_ROM_PTR(&host_resume_obj)},
  {MP_ROM_QSTR(MP_QSTR_install), MP_ROM_PTR(&host_install_obj)},
  {MP_ROM_QSTR(MP_QSTR_extend), MP_ROM_PTR(&host_extend_obj)},
  {MP_ROM_QSTR(MP_QSTR_importer), MP_ROM_PTR(&module_importer_obj)},
  {MP_ROM_QSTR(MP_QSTR_module), MP_ROM_PTR(&module_new_obj)},
  {MP_ROM_QSTR(MP_QSTR_run), MP_ROM_PTR(&module_run_obj)},
  {MP_ROM_QSTR(MP_QSTR_built_in), MP_ROM_PTR(&module_built_in_obj)},
  {MP_ROM_QSTR(MP_QSTR_library), MP_ROM_PTR(&module_library_obj)},
  {MP_ROM_QSTR(MP_QSTR_run_library), MP_ROM_PTR(&module_run_library_obj)},
};
static MP_DEFINE_CONST_DICT(host_dict, host_table);
const mp_obj_module_t engine_host_module = {.base = {&mp_type_module}, .globals = (mp_obj_dict_t *)&host_dict};
MP_REGISTER_MODULE(MP_QSTR__host, engine_host_module);

MP_REGISTER_ROOT_POINTER(mp_obj_t engine_hooks[4]);
