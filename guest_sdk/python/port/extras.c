/* Attributes that upstream's built-in types lack: the prelude's library fills them in. */

#include "engine.h"
#include "py/objtype.h"
#include "py/runtime.h"

/* Pairs of a type and a dict of what it has in addition. */
MP_REGISTER_ROOT_POINTER(mp_obj_t engine_extras);

void upstream_load_method_maybe(mp_obj_t obj, qstr attr, mp_obj_t *dest);

/* `extend(type, {name: function})`: `value.name` finds the function where `value` is of that type, or of a class on top
   of it, and has nothing else of that name. */
static mp_obj_t host_extend(mp_obj_t type, mp_obj_t table) {
  if (MP_STATE_VM(engine_extras) == MP_OBJ_NULL) MP_STATE_VM(engine_extras) = mp_obj_new_list(0, NULL);
  mp_obj_t pair[2] = {type, table};
  mp_obj_list_append(MP_STATE_VM(engine_extras), mp_obj_new_tuple(2, pair));
  return mp_const_none;
}
MP_DEFINE_CONST_FUN_OBJ_2(host_extend_obj, host_extend);

static bool find_extra(mp_obj_t obj, const mp_obj_type_t *type, qstr attr, mp_obj_t *dest) {
  size_t count;
  mp_obj_t *pairs;
  mp_obj_get_array(MP_STATE_VM(engine_extras), &count, &pairs);
  for (size_t i = 0; i < count; i++) {
    mp_obj_t *pair;
    mp_obj_get_array_fixed_n(pairs[i], 2, &pair);
    mp_map_elem_t *found = mp_map_lookup(mp_obj_dict_get_map(pair[1]), MP_OBJ_NEW_QSTR(attr), MP_MAP_LOOKUP);
    if (found == NULL || !mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(type), pair[0])) continue;
    if (obj != MP_OBJ_NULL && mp_obj_is_type(found->value, &mp_type_property)) {
      dest[0] = mp_call_function_1(mp_obj_property_get(found->value)[0], obj);
    } else {
      mp_convert_member_lookup(obj, type, found->value, dest);
    }
    return true;
  }
  return false;
}

void mp_load_method_maybe(mp_obj_t obj, qstr attr, mp_obj_t *dest) {
  upstream_load_method_maybe(obj, attr, dest);
  if (dest[0] != MP_OBJ_NULL || MP_STATE_VM(engine_extras) == MP_OBJ_NULL) return;
  if (find_extra(obj, mp_obj_get_type(obj), attr, dest)) return;
  if (mp_obj_is_type(obj, &mp_type_type)) find_extra(MP_OBJ_NULL, MP_OBJ_TO_PTR(obj), attr, dest);
}
