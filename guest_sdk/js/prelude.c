/* The part of the engine that is written in JavaScript: its sources, and calling it. */

#include "engine.h"

#include <string.h>

typedef struct source {
  const char *name, *text;
  size_t size;
} source;

/* Each ends in a NUL, which the interpreter's parser wants. */
#define SOURCE(id) static const char id[] = {
#define END , 0};

SOURCE(agent)
#embed "prelude/agent.js"
END
SOURCE(agent_test)
#embed "prelude/agent_test.js"
END
SOURCE(calls)
#embed "prelude/calls.js"
END
SOURCE(clone)
#embed "prelude/clone.js"
END
SOURCE(console)
#embed "prelude/console.js"
END
SOURCE(crypto)
#embed "prelude/crypto.js"
END
SOURCE(encoding)
#embed "prelude/encoding.js"
END
SOURCE(errors)
#embed "prelude/errors.js"
END
SOURCE(events)
#embed "prelude/events.js"
END
SOURCE(globals)
#embed "prelude/globals.js"
END
SOURCE(inspect)
#embed "prelude/inspect.js"
END
SOURCE(kaoz_host)
#embed "prelude/kaoz_host.js"
END
SOURCE(kaoz_test)
#embed "prelude/kaoz_test.js"
END
SOURCE(kaoz_thread)
#embed "prelude/kaoz_thread.js"
END
SOURCE(llm)
#embed "prelude/llm.js"
END
SOURCE(engine_main)
#embed "prelude/main.js"
END
SOURCE(operations)
#embed "prelude/operations.js"
END
SOURCE(primordials)
#embed "prelude/primordials.js"
END
SOURCE(testing)
#embed "prelude/testing.js"
END
SOURCE(timers)
#embed "prelude/timers.js"
END
SOURCE(url)
#embed "prelude/url.js"
END
SOURCE(url_host)
#embed "prelude/url_host.js"
END
SOURCE(url_parts)
#embed "prelude/url_parts.js"
END
SOURCE(url_query)
#embed "prelude/url_query.js"
END

#define ENTRY(name, id) {name, id, sizeof id - 1}

static const source sources[] = {
    ENTRY("agent", agent),
    ENTRY("agent/test", agent_test),
    ENTRY("kaoz/host", kaoz_host),
    ENTRY("kaoz/test", kaoz_test),
    ENTRY("kaoz/thread", kaoz_thread),
    ENTRY("runner:calls", calls),
    ENTRY("runner:clone", clone),
    ENTRY("runner:console", console),
    ENTRY("runner:crypto", crypto),
    ENTRY("runner:encoding", encoding),
    ENTRY("runner:errors", errors),
    ENTRY("runner:events", events),
    ENTRY("runner:globals", globals),
    ENTRY("runner:inspect", inspect),
    ENTRY("runner:llm", llm),
    ENTRY("runner:main", engine_main),
    ENTRY("runner:operations", operations),
    ENTRY("runner:primordials", primordials),
    ENTRY("runner:testing", testing),
    ENTRY("runner:timers", timers),
    ENTRY("runner:url", url),
    ENTRY("runner:url_host", url_host),
    ENTRY("runner:url_parts", url_parts),
    ENTRY("runner:url_query", url_query),
};

static JSValue called[PRELUDE_FUNCTIONS];

const char *engine_prelude_source(const char *name, size_t *size) {
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    if (strcmp(sources[i].name, name)) continue;
    *size = sources[i].size;
    return sources[i].text;
  }
  return NULL;
}

int engine_start_prelude(JSContext *context) {
  static const char *const names[] = {
      [PRELUDE_DELIVER] = "deliver",      [PRELUDE_WAKE] = "wake",     [PRELUDE_TURN] = "turn",
      [PRELUDE_END_SLICE] = "endSlice", [PRELUDE_LOADED] = "loaded", [PRELUDE_FAILURE] = "failure"};
  JSValue namespace = engine_prelude_namespace(context, "runner:main");
  if (JS_IsException(namespace)) return -1;
  for (int i = 0; i < PRELUDE_FUNCTIONS; i++) called[i] = JS_GetPropertyStr(context, namespace, names[i]);
  JS_FreeValue(context, namespace);
  return 0;
}

JSValue engine_call_prelude(JSContext *context, enum prelude_function which, int count, JSValueConst *arguments) {
  return JS_Call(context, called[which], JS_UNDEFINED, count, arguments);
}
