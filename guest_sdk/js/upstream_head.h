/* Stands where the interpreter has said how it counts references, and changes that.

   The engine's own objects are kept for ever, and so are the functions of an agent: references to them are not counted
   once they are in an image. Counting them would write to nearly every page of it, for all instances use the same
   functions and shapes, and each would have a copy of its own. */

#define ENGINE_KEPT 0x40000000

static inline void engine_hold(const void *p) {
    int *count = &JS_REF_COUNT(p);
    if (*count < ENGINE_KEPT) ++*count;
}

/* Returns what is left. */
static inline int engine_release(const void *p) {
    int *count = &JS_REF_COUNT(p);
    return *count < ENGINE_KEPT ? --*count : ENGINE_KEPT;
}
