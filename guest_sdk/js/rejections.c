/* Promises that were rejected while nobody looked. The prelude logs what is left of them at a slice's end. */

#include "engine.h"

#include <stdlib.h>

typedef struct rejection {
  struct rejection *next;
  JSValue promise, reason;
} rejection;

static rejection *first;

static void drop(JSContext *context, rejection **link) {
  rejection *found = *link;
  *link = found->next;
  JS_FreeValue(context, found->promise);
  JS_FreeValue(context, found->reason);
  js_free(context, found);
}

static rejection **find(JSContext *context, JSValueConst promise) {
  rejection **link = &first;
  while (*link && !JS_IsStrictEqual(context, (*link)->promise, promise)) link = &(*link)->next;
  return link;
}

static void track(JSContext *context, JSValueConst promise, JSValueConst reason, bool handled, void *unused) {
  (void)unused;
  if (handled) {
    rejection **link = find(context, promise);
    if (*link) drop(context, link);
    return;
  }
  rejection *found = js_malloc_rt(engine_runtime, sizeof *found);
  if (!found) return; /* one line less in the log */
  *found = (rejection){first, JS_DupValue(context, promise), JS_DupValue(context, reason)};
  first = found;
}

void engine_watch_rejections(JSRuntime *runtime) { JS_SetHostPromiseRejectionTracker(runtime, track, NULL); }

JSValue engine_take_rejections(JSContext *context) {
  if (!first) return JS_UNDEFINED;
  JSValue reasons = JS_NewArray(context);
  for (uint32_t i = 0; first; i++) {
    if (!JS_IsException(reasons))
      JS_DefinePropertyValueUint32(context, reasons, i, JS_DupValue(context, first->reason), JS_PROP_C_W_E);
    drop(context, &first);
  }
  return reasons;
}
