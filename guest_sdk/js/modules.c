/* Modules: the prelude's, and the agent's own, whose names the host has resolved. */

#include "engine.h"

#include <string.h>

#define INTERNAL "runner:"

typedef struct module {
  const char *name; /* path inside the agent's folder */
  JSValue text;     /* undefined once it is compiled */
  JSValue imports;  /* names by specifier, or undefined */
  JSModuleDef *compiled;
} module;

static module *modules;
static uint32_t module_count;
static bool checking;
static JSValue seen; /* specifiers, while checking */

const char *engine_failure_kind = "load";
JSValue engine_failure_name = JS_UNDEFINED;

/* --- Failures ------------------------------------------------------------------------------------------ */

static void blame(JSContext *context, const char *kind, const char *name) {
  engine_failure_kind = kind;
  JS_FreeValue(context, engine_failure_name);
  engine_failure_name = name ? JS_NewString(context, name) : JS_UNDEFINED;
}

/* --- Names --------------------------------------------------------------------------------------------- */

static module *find(const char *name) {
  for (uint32_t i = 0; i < module_count; i++)
    if (!strcmp(modules[i].name, name)) return &modules[i];
  return NULL;
}

static bool is_internal(const char *name) { return !strncmp(name, INTERNAL, sizeof INTERNAL - 1); }

static bool is_prelude(const char *name) {
  size_t size;
  return engine_prelude_source(name, &size) != NULL;
}

/* What the host resolved it to; NULL when it did not, or with an exception. */
static char *resolved(JSContext *context, const module *from, const char *specifier) {
  if (!from || !JS_IsObject(from->imports)) return NULL;
  JSPropertyDescriptor own;
  JSAtom key = JS_NewAtom(context, specifier);
  int found = JS_GetOwnProperty(context, &own, from->imports, key);
  JS_FreeAtom(context, key);
  if (found <= 0) return NULL;
  const char *name = JS_ToCString(context, own.value);
  char *copy = name ? js_strdup(context, name) : NULL;
  JS_FreeCString(context, name);
  JS_FreeValue(context, own.value);
  JS_FreeValue(context, own.getter);
  JS_FreeValue(context, own.setter);
  return copy;
}

/* A path that begins with `./` or `../`, beside the module that has it: for `import()`, which the host does not
   see. The result lies inside the agent's folder or is none of its modules. */
static char *beside(JSContext *context, const char *from, const char *specifier) {
  if (strncmp(specifier, "./", 2) && strncmp(specifier, "../", 3)) return NULL;
  const char *slash = strrchr(from, '/');
  size_t size = slash ? (size_t)(slash - from) : 0;
  char *path = js_malloc(context, size + strlen(specifier) + 2);
  if (!path) return NULL;
  memcpy(path, from, size);
  for (const char *at = specifier, *end; *at; at = *end ? end + 1 : end) {
    end = strchr(at, '/');
    if (!end) end = at + strlen(at);
    size_t length = (size_t)(end - at);
    if (length == 2 && !memcmp(at, "..", 2)) {
      while (size && path[--size] != '/') continue;
    } else if (length && !(length == 1 && *at == '.')) {
      if (size) path[size++] = '/';
      memcpy(path + size, at, length);
      size += length;
    }
  }
  path[size] = 0;
  if (find(path)) return path;
  js_free(context, path);
  return NULL;
}

/* Each once: the compiler asks once for each statement that imports. */
static char *record_specifier(JSContext *context, const char *specifier) {
  int64_t count;
  if (JS_GetLength(context, seen, &count) < 0) return NULL;
  JS_DefinePropertyValueUint32(context, seen, (uint32_t)count, JS_NewString(context, specifier), JS_PROP_C_W_E);
  return js_strdup(context, specifier);
}

static char *normalize(JSContext *context, const char *from, const char *specifier, void *unused) {
  (void)unused;
  if (checking) return record_specifier(context, specifier);
  if (is_internal(from) || (is_prelude(from) && !find(from))) return js_strdup(context, specifier);
  char *name = resolved(context, find(from), specifier);
  if (!name && !JS_HasException(context)) name = beside(context, from, specifier);
  if (!name && !JS_HasException(context) && !is_internal(specifier) && is_prelude(specifier))
    name = js_strdup(context, specifier);
  if (!name && !JS_HasException(context)) {
    blame(context, "import", from);
    JS_ThrowReferenceError(context, "module '%s' is not available to an agent", specifier);
  }
  return name;
}

/* --- Loading ------------------------------------------------------------------------------------------- */

static JSModuleDef *compile(JSContext *context, const char *name, const char *text, size_t size) {
  /* What it imports is compiled in the course of it, and may be to blame instead. */
  blame(context, "syntax", name);
  JSValue made = JS_Eval(context, text, size, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
  if (JS_IsException(made)) return NULL;
  /* The context keeps it; the value is one more reference. */
  JSModuleDef *found = JS_VALUE_GET_PTR(made);
  JS_FreeValue(context, made);
  return found;
}

static JSModuleDef *compile_own(JSContext *context, module *own) {
  size_t size;
  const char *text = JS_ToCStringLen(context, &size, own->text);
  if (!text) return NULL;
  own->compiled = compile(context, own->name, text, size);
  JS_FreeCString(context, text);
  JS_FreeValue(context, own->text);
  own->text = JS_UNDEFINED;
  return own->compiled;
}

static int nothing(JSContext *context, JSModuleDef *found) {
  (void)context, (void)found;
  return 0;
}

static JSModuleDef *loader(JSContext *context, const char *name, void *unused) {
  (void)unused;
  size_t size;
  if (checking) return JS_NewCModule(context, name, nothing);
  module *own = find(name);
  if (own && JS_IsString(own->text)) return compile_own(context, own);
  if (!strcmp(name, INTERNAL "host")) return engine_host_module(context, name);
  const char *text = engine_prelude_source(name, &size);
  if (text) return compile(context, name, text, size);
  JS_ThrowReferenceError(context, "module '%s' is not available to an agent", name);
  return NULL;
}

void engine_install_loader(JSRuntime *runtime) { JS_SetModuleLoaderFunc(runtime, normalize, loader, NULL); }

/* --- Evaluating ----------------------------------------------------------------------------------------- */

/* Evaluates a module and what it imports, to the end; 0, or -1 with an exception. */
static int evaluate(JSContext *context, JSModuleDef *found) {
  JSValue promise = JS_EvalFunction(context, JS_DupValue(context, JS_MKPTR(JS_TAG_MODULE, found)));
  if (JS_IsException(promise)) {
    /* Names that modules don't export show when modules are linked; then nothing has run. */
    engine_failure_kind = "import";
    return -1;
  }
  engine_drain();
  JSPromiseStateEnum state = JS_PromiseState(context, promise);
  bool done = state == JS_PROMISE_FULFILLED && !engine_overran();
  if (state == JS_PROMISE_REJECTED) {
    JS_PromiseMarkAsHandled(context, promise);
    JS_Throw(context, JS_PromiseResult(context, promise));
  } else if (!done) {
    JS_ThrowPlainError(context, "the agent waits for something that will never come");
  }
  JS_FreeValue(context, promise);
  return done ? 0 : -1;
}

JSValue engine_prelude_namespace(JSContext *context, const char *name) {
  size_t size;
  const char *text = engine_prelude_source(name, &size);
  JSModuleDef *found = compile(context, name, text, size);
  if (!found || evaluate(context, found)) return JS_EXCEPTION;
  return JS_GetModuleNamespace(context, found);
}

static JSValue own_namespace(JSContext *context, const char *name) {
  module *own = find(name);
  if (!own) {
    blame(context, "import", name);
    return JS_ThrowReferenceError(context, "the agent has no module '%s'", name);
  }
  if (!own->compiled && !compile_own(context, own)) return JS_EXCEPTION;
  blame(context, "load", name);
  if (evaluate(context, own->compiled)) return JS_EXCEPTION;
  return JS_GetModuleNamespace(context, own->compiled);
}

/* --- Requests ------------------------------------------------------------------------------------------- */

static char *text_of(JSContext *context, JSValueConst object, const char *key) {
  JSValue value = JS_GetPropertyStr(context, object, key);
  const char *text = JS_ToCString(context, value);
  char *copy = text ? js_strdup(context, text) : NULL;
  JS_FreeCString(context, text);
  JS_FreeValue(context, value);
  return copy;
}

static int register_modules(JSContext *context, JSValueConst list) {
  int64_t count;
  if (JS_GetLength(context, list, &count) < 0) return -1;
  modules = js_mallocz(context, ((size_t)count + 1) * sizeof *modules);
  if (!modules) return -1;
  for (uint32_t i = 0; i < (uint32_t)count; i++) {
    JSValue record = JS_GetPropertyUint32(context, list, i);
    modules[i].name = text_of(context, record, "name");
    modules[i].text = JS_GetPropertyStr(context, record, "text");
    modules[i].imports = JS_GetPropertyStr(context, record, "imports");
    JS_FreeValue(context, record);
    if (!modules[i].name) return -1;
    module_count = i + 1;
  }
  return 0;
}

/* The namespaces of the modules that a list names. */
static JSValue namespaces(JSContext *context, JSValueConst names) {
  int64_t count;
  if (JS_GetLength(context, names, &count) < 0) return JS_EXCEPTION;
  JSValue found = JS_NewArray(context);
  for (uint32_t i = 0; i < (uint32_t)count; i++) {
    JSValue name = JS_GetPropertyUint32(context, names, i);
    const char *text = JS_ToCString(context, name);
    JSValue namespace = text ? own_namespace(context, text) : JS_EXCEPTION;
    JS_FreeCString(context, text);
    JS_FreeValue(context, name);
    if (JS_IsException(namespace)) {
      JS_FreeValue(context, found);
      return JS_EXCEPTION;
    }
    JS_DefinePropertyValueUint32(context, found, i, namespace, JS_PROP_C_W_E);
  }
  return found;
}

static JSValue evaluate_entry(JSContext *context, JSValueConst request) {
  char *entry = text_of(context, request, "entry");
  JSValue namespace = entry ? own_namespace(context, entry) : JS_EXCEPTION;
  js_free(context, entry);
  return namespace;
}

JSValue engine_load(JSContext *context, JSValueConst request) {
  JSValue list = JS_GetPropertyStr(context, request, "modules");
  int failed = register_modules(context, list);
  JS_FreeValue(context, list);
  if (failed) return JS_EXCEPTION;
  JSValue arguments[3] = {evaluate_entry(context, request), JS_GetPropertyStr(context, request, "suites"), JS_UNDEFINED};
  if (JS_IsArray(arguments[1]) && !JS_IsException(arguments[0])) arguments[2] = namespaces(context, arguments[1]);
  JSValue answer = JS_EXCEPTION;
  if (!JS_IsException(arguments[0]) && !JS_IsException(arguments[2])) {
    engine_failure_kind = "entry";
    answer = engine_call_prelude(context, PRELUDE_LOADED, 3, arguments);
  }
  for (int i = 0; i < 3; i++) JS_FreeValue(context, arguments[i]);
  return answer;
}

/* A context for compiling, and no more. */
static JSContext *new_context(JSRuntime *runtime) {
  JSContext *made = JS_NewContextRaw(runtime);
  if (!made) return NULL;
  if (!JS_AddIntrinsicBaseObjects(made) && !JS_AddIntrinsicEval(made)) {
    JS_AddIntrinsicRegExpCompiler(made);
    return made;
  }
  JS_FreeContext(made);
  return NULL;
}

/* In a context of its own, so that no module of it is left. */
JSValue engine_check(JSContext *context, JSValueConst request) {
  char *name = text_of(context, request, "name");
  JSValue text = JS_GetPropertyStr(context, request, "text");
  size_t size;
  const char *source = JS_ToCStringLen(context, &size, text);
  JSContext *own = new_context(engine_runtime);
  JSValue answer = JS_EXCEPTION;
  seen = JS_NewArray(context);
  checking = true;
  if (own && name && source && compile(own, name, source, size)) {
    answer = JS_NewObject(context);
    JS_DefinePropertyValueStr(context, answer, "imports", JS_DupValue(context, seen), JS_PROP_C_W_E);
  }
  checking = false;
  JS_FreeValue(context, seen);
  if (own) JS_FreeContext(own);
  JS_FreeCString(context, source);
  JS_FreeValue(context, text);
  js_free(context, name);
  return answer;
}
