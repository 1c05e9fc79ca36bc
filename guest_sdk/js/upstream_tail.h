/* Stands at the end of the interpreter's own source, and knows what only that knows: how its small blocks lie in
   arenas of one size each. */

void engine_tidy(JSRuntime *rt);

/* Blocks that `engine_tidy` looks at, at most: a heap with more free ones is no small agent's. */
#define TIDY_BLOCKS 16384u

/* The free blocks of an arena as bits, and whether their list is in order. */
static uint32_t tidy_survey(JSArena *arena, uint32_t *bits, bool *in_order) {
    unsigned block_size = arena_block_sizes[arena->block_size_idx], index = arena->first_free_block;
    uint32_t count = 0;
    *in_order = true;
    while (index != JS_ARENA_FREE_NIL) {
        JSMallocBlockHeader *block = arena_get_block(arena, index, block_size);
        bits[index / 32] |= 1u << index % 32;
        if (block->u.free_next < index) *in_order = false;
        index = block->u.free_next;
        count++;
    }
    return count;
}

static void tidy_rewrite(JSArena *arena, const uint32_t *bits) {
    unsigned block_size = arena_block_sizes[arena->block_size_idx], next = JS_ARENA_FREE_NIL;
    for (unsigned index = arena->n_blocks; index-- > 0;) {
        if (!(bits[index / 32] >> index % 32 & 1)) continue;
        JSMallocBlockHeader *block = arena_get_block(arena, index, block_size);
        if (block->u.free_next != next) block->u.free_next = next;
        next = index;
    }
    if (arena->first_free_block != next) arena->first_free_block = next;
}

/* Arenas lowest first, so that what lives long lies low, and close together. */
static void tidy_order(struct list_head *head) {
    struct list_head *at = head->next;
    while (at != head) {
        struct list_head *next = at->next, *place = at->prev;
        while (place != head && place > at) place = place->prev;
        if (place != at->prev) {
            list_del(at);
            list_add(at, place);
        }
        at = next;
    }
}

/* Puts the lists of free blocks in order of their addresses. What a delivery takes and gives back is then again as it
   was, so that it leaves no trace in memory but what it means to leave; in whichever order things were freed. */
void engine_tidy(JSRuntime *rt) {
    uint32_t looked = 0;
    for (int size = 0; size < JS_ARENA_BLOCK_SIZE_COUNT && looked < TIDY_BLOCKS; size++) {
        struct list_head *head = &rt->arena_state.free_arena_list[size], *el;
        tidy_order(head);
        list_for_each(el, head) {
            JSArena *arena = list_entry(el, JSArena, free_link);
            uint32_t bits[(JS_ARENA_SIZE / 16 + 31) / 32] = {0};
            bool in_order;
            looked += tidy_survey(arena, bits, &in_order) + 1;
            if (!in_order) tidy_rewrite(arena, bits);
        }
    }
}

void engine_keep(JSRuntime *rt, bool data);

static void keep_arena(JSArena *arena) {
    uint32_t bits[(JS_ARENA_SIZE / 16 + 31) / 32] = {0};
    unsigned block_size = arena_block_sizes[arena->block_size_idx];
    bool in_order;
    tidy_survey(arena, bits, &in_order);
    for (unsigned index = 0; index < arena->n_blocks; index++) {
        if (bits[index / 32] >> index % 32 & 1) continue;
        /* What is no object has a count that nobody reads. */
        JSMallocBlockHeader *block = arena_get_block(arena, index, block_size);
        block->ref_count = ENGINE_KEPT;
    }
}

/* Functions, and what describes them and objects: an agent has its own for good. What is data may grow, and be dropped
   for other data. */
static bool is_program(const JSGCObjectHeader *header) {
    switch (JS_GC_TYPE(header)) {
    case JS_GC_OBJ_TYPE_FUNCTION_BYTECODE:
    case JS_GC_OBJ_TYPE_SHAPE:
        return true;
    case JS_GC_OBJ_TYPE_JS_OBJECT:
        return js_class_has_bytecode(((const JSObject *)header)->class_id);
    default:
        return false;
    }
}

/* From now on, all that there is stays, or only what is no data: see `upstream_head.h`. Nothing may be held that is to
   be freed. */
void engine_keep(JSRuntime *rt, bool data) {
    struct list_head *el;
    for (int size = 0; data && size < JS_ARENA_BLOCK_SIZE_COUNT; size++)
        list_for_each(el, &rt->arena_state.arena_list[size])
            keep_arena(list_entry(el, JSArena, link));
    /* Large ones lie outside of arenas. */
    list_for_each(el, &rt->gc_obj_list) {
        JSGCObjectHeader *header = list_entry(el, JSGCObjectHeader, link);
        if (data || is_program(header)) JS_REF_COUNT(header) = ENGINE_KEPT;
    }
    for (int i = 0; i < rt->atom_size; i++)
        if (!atom_is_free(rt->atom_array[i])) JS_REF_COUNT(rt->atom_array[i]) = ENGINE_KEPT;
}
