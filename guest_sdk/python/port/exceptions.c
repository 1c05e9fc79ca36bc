/* Attributes and texts of built-in exceptions, as CPython has them. */

#include "engine.h"
#include "py/objexcept.h"
#include "py/objtuple.h"
#include "py/runtime.h"

void upstream_exception_attr(mp_obj_t self_in, qstr attr, mp_obj_t *dest);

static void store(mp_obj_exception_t *self, qstr attr, mp_obj_t *dest) {
  if (attr == MP_QSTR_args || attr == MP_QSTR___traceback__) return;
  if (self->attributes == NULL) self->attributes = MP_OBJ_TO_PTR(mp_obj_new_dict(1));
  if (dest[1] == MP_OBJ_NULL) mp_obj_dict_delete(MP_OBJ_FROM_PTR(self->attributes), MP_OBJ_NEW_QSTR(attr));
  else mp_obj_dict_store(MP_OBJ_FROM_PTR(self->attributes), MP_OBJ_NEW_QSTR(attr), dest[1]);
  dest[0] = MP_OBJ_NULL; /* done */
}

/* Exceptions are given causes, notes and whatever else a program likes. */
void mp_obj_exception_attr(mp_obj_t self_in, qstr attr, mp_obj_t *dest) {
  mp_obj_exception_t *self = MP_OBJ_TO_PTR(self_in);
  if (dest[0] != MP_OBJ_NULL) {
    upstream_exception_attr(self_in, attr, dest);
    if (dest[0] != MP_OBJ_NULL) store(self, attr, dest);
    return;
  }
  if (self->attributes != NULL) {
    mp_map_elem_t *found = mp_map_lookup(&self->attributes->map, MP_OBJ_NEW_QSTR(attr), MP_MAP_LOOKUP);
    if (found != NULL) {
      dest[0] = found->value;
      return;
    }
  }
  if (attr == MP_QSTR___cause__ || attr == MP_QSTR___context__ || attr == MP_QSTR___traceback__) {
    dest[0] = mp_const_none;
  } else if (attr == MP_QSTR___suppress_context__) {
    dest[0] = mp_const_false;
  } else {
    upstream_exception_attr(self_in, attr, dest);
  }
}

static void print_arguments(const mp_print_t *print, const mp_obj_tuple_t *args) {
  mp_print_str(print, "(");
  for (size_t i = 0; i < args->len; i++) {
    if (i > 0) mp_print_str(print, ", ");
    mp_obj_print_helper(print, args->items[i], PRINT_REPR);
  }
  mp_print_str(print, ")");
}

void mp_obj_exception_print(const mp_print_t *print, mp_obj_t self_in, mp_print_kind_t kind) {
  const mp_obj_exception_t *self = MP_OBJ_TO_PTR(self_in);
  mp_print_kind_t plain = kind & ~PRINT_EXC_SUBCLASS;
  if (!(kind & PRINT_EXC_SUBCLASS) && plain != PRINT_STR) mp_print_str(print, qstr_str(self->base.type->name));
  if (plain == PRINT_REPR) {
    print_arguments(print, self->args);
    return;
  }
  if (plain == PRINT_EXC && self->args->len > 0) mp_print_str(print, ": ");
  if (self->args->len > 1) {
    print_arguments(print, self->args);
  } else if (self->args->len == 1) {
    /* A key that is missing is shown as one would write it. */
    bool is_key = self->base.type == &mp_type_KeyError;
    mp_obj_print_helper(print, self->args->items[0], is_key ? PRINT_REPR : PRINT_STR);
  }
}
