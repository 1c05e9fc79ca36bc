/* Maps that keep their order, in place of upstream's hash tables: a `dict` gives its items in the order in which
   they were put in, as every author expects.

   Entries stand in the table in that order; one that was taken out leaves a gap. What walks a map skips gaps
   already. A larger table has an index behind it, in the same allocation: an open hash table of positions. Its
   entries are hints: the key at the position decides. So one that has become stale does no harm, and a table that
   was copied without its index (`dict.copy` does) only has to be indexed again. */

#include <string.h>

#include "engine.h"
#include "py/runtime.h"

enum {
  /* Up to here looking at every key is as fast. */
  MAX_PLAIN = 8,
  FIRST_ALLOC = 2,
  /* Above it a table grows by half. */
  DOUBLES_UNTIL = 64,
  /* More positions than 16 bits can tell. */
  WIDE_FROM = 65535,
};

typedef struct index_head {
  uint32_t end;    /* positions of the table in use, gaps included */
  uint32_t filled; /* of the index, stale ones included */
} index_head;

typedef struct position_index {
  index_head *head;
  void *slots;
  size_t mask;
  bool wide;
} position_index;

static size_t slots_for(size_t alloc) {
  size_t slots = 2 * MAX_PLAIN;
  while (slots < alloc + alloc / 2) slots *= 2;
  return slots;
}

static position_index index_of(const mp_map_t *map) {
  index_head *head = (index_head *)(map->table + map->alloc);
  return (position_index){head, head + 1, slots_for(map->alloc) - 1, map->alloc >= WIDE_FROM};
}

/* A position plus one; 0 is empty. */
static size_t slot_get(const position_index *index, size_t slot) {
  return index->wide ? ((uint32_t *)index->slots)[slot] : ((uint16_t *)index->slots)[slot];
}

static void slot_set(const position_index *index, size_t slot, size_t value) {
  if (index->wide) ((uint32_t *)index->slots)[slot] = (uint32_t)value;
  else ((uint16_t *)index->slots)[slot] = (uint16_t)value;
}

static size_t index_bytes(size_t alloc) {
  if (alloc <= MAX_PLAIN) return 0;
  return sizeof(index_head) + slots_for(alloc) * (alloc >= WIDE_FROM ? sizeof(uint32_t) : sizeof(uint16_t));
}

static mp_map_elem_t *new_table(size_t alloc) {
  return (mp_map_elem_t *)m_new0(uint8_t, alloc * sizeof(mp_map_elem_t) + index_bytes(alloc));
}

static size_t hash_of(mp_obj_t key) {
  if (mp_obj_is_qstr(key)) return qstr_hash(MP_OBJ_QSTR_VALUE(key));
  return (size_t)MP_OBJ_SMALL_INT_VALUE(mp_unary_op(MP_UNARY_OP_HASH, key));
}

/* Hashes of small integers and of names differ in their low bits only, or not at all there. */
static size_t spread(size_t hash) { return hash ^ hash >> 7; }

static void index_add(const position_index *index, mp_obj_t key, size_t position) {
  size_t slot = spread(hash_of(key)) & index->mask;
  while (slot_get(index, slot) != 0) slot = (slot + 1) & index->mask;
  slot_set(index, slot, position + 1);
  index->head->filled++;
}

/* Positions in use, where no index says so. */
static size_t count_positions(const mp_map_t *map) {
  size_t end = map->alloc;
  while (end > 0 && map->table[end - 1].key == MP_OBJ_NULL) end--;
  return end;
}

static void index_again(const mp_map_t *map, size_t end) {
  position_index index = index_of(map);
  memset(index.head, 0, index_bytes(map->alloc));
  for (size_t i = 0; i < end; i++) {
    if (mp_map_slot_is_filled(map, i)) index_add(&index, map->table[i].key, i);
  }
  index.head->end = (uint32_t)end;
}

static size_t end_of(const mp_map_t *map) {
  if (map->alloc <= MAX_PLAIN) return count_positions(map);
  position_index index = index_of(map);
  if (index.head->end == 0 && map->used != 0) index_again(map, count_positions(map));
  return index.head->end;
}

/* Copies what is there, without the gaps, to the beginning of a table. */
static void close_gaps(const mp_map_t *map, mp_map_elem_t *to) {
  size_t kept = 0;
  for (size_t i = 0; i < map->alloc; i++) {
    if (mp_map_slot_is_filled(map, i)) to[kept++] = map->table[i];
  }
  if (to == map->table) memset(to + kept, 0, (map->alloc - kept) * sizeof *to);
}

/* Makes room for one more. */
static void make_room(mp_map_t *map) {
  size_t alloc = map->alloc;
  if (map->used >= alloc - alloc / 4) {
    size_t grown = alloc < FIRST_ALLOC ? FIRST_ALLOC : alloc < DOUBLES_UNTIL ? alloc * 2 : alloc + alloc / 2;
    mp_map_elem_t *old = map->table, *table = new_table(grown);
    close_gaps(map, table);
    map->table = table;
    map->alloc = grown;
    m_del(mp_map_elem_t, old, alloc);
  } else {
    close_gaps(map, map->table);
  }
  if (map->alloc > MAX_PLAIN) index_again(map, map->used);
}

static bool matches(mp_obj_t found, mp_obj_t key, bool by_identity) {
  return found == key || (!by_identity && found != MP_OBJ_NULL && found != MP_OBJ_SENTINEL && mp_obj_equal(found, key));
}

static mp_map_elem_t *find_plain(const mp_map_t *map, size_t end, mp_obj_t key, bool by_identity) {
  for (size_t i = 0; i < end; i++) {
    if (matches(map->table[i].key, key, by_identity)) return &map->table[i];
  }
  return NULL;
}

static mp_map_elem_t *find_indexed(const mp_map_t *map, mp_obj_t key, bool by_identity) {
  size_t end = end_of(map), slot = spread(hash_of(key));
  position_index index = index_of(map);
  for (;; slot++) {
    size_t position = slot_get(&index, slot & index.mask);
    if (position == 0) return NULL;
    if (position <= end && matches(map->table[position - 1].key, key, by_identity)) return &map->table[position - 1];
  }
}

static mp_map_elem_t *find(const mp_map_t *map, mp_obj_t key, bool by_identity) {
  if (map->is_fixed) return find_plain(map, map->used, key, by_identity);
  if (map->alloc <= MAX_PLAIN) return find_plain(map, map->alloc, key, by_identity);
  return find_indexed(map, key, by_identity);
}

static mp_map_elem_t *add(mp_map_t *map, mp_obj_t key) {
  /* A key without a hash must not get in, however small the map. */
  if (!mp_obj_is_qstr(key)) hash_of(key);
  size_t end = end_of(map);
  if (end == map->alloc) {
    make_room(map);
    end = map->used;
  }
  if (map->alloc > MAX_PLAIN) {
    position_index index = index_of(map);
    /* Stale entries count too: a search must meet an empty one. */
    if (index.head->filled + 1 > (index.mask + 1) / 4 * 3) {
      index_again(map, end);
      index = index_of(map);
    }
    index_add(&index, key, end);
    index.head->end = (uint32_t)end + 1;
  }
  mp_map_elem_t *entry = &map->table[end];
  entry->key = key;
  entry->value = MP_OBJ_NULL;
  map->used++;
  if (!mp_obj_is_qstr(key)) map->all_keys_are_qstrs = 0;
  return entry;
}

#if MICROPY_OPT_MAP_LOOKUP_CACHE
/* Where each key was found last, in whichever map: it often is at the same place of the next. */
static uint8_t *cached(mp_obj_t key) {
  return &MP_STATE_VM(map_lookup_cache)[(uintptr_t)key / 4 % MICROPY_OPT_MAP_LOOKUP_CACHE_SIZE];
}
#endif

mp_map_elem_t *mp_map_lookup(mp_map_t *map, mp_obj_t key, mp_map_lookup_kind_t kind) {
#if MICROPY_OPT_MAP_LOOKUP_CACHE
  if (kind != MP_MAP_LOOKUP_REMOVE_IF_FOUND && map->alloc != 0) {
    mp_map_elem_t *entry = &map->table[*cached(key) % map->alloc];
    if (entry->key == key) return entry;
  }
#endif
  bool by_identity = map->all_keys_are_qstrs;
  if (by_identity && !mp_obj_is_qstr(key)) {
    /* Only a text that is no name yet can be equal to a name. */
    if (mp_obj_is_exact_type(key, &mp_type_str)) by_identity = false;
    else if (kind != MP_MAP_LOOKUP_ADD_IF_NOT_FOUND) return NULL;
  }
  mp_map_elem_t *entry = map->used == 0 ? NULL : find(map, key, by_identity);
  if (entry == NULL) return kind == MP_MAP_LOOKUP_ADD_IF_NOT_FOUND ? add(map, key) : NULL;
  if (kind == MP_MAP_LOOKUP_REMOVE_IF_FOUND) {
    /* The value stays for the caller to take. */
    entry->key = MP_OBJ_SENTINEL;
    map->used--;
    if (map->used == 0 && map->alloc <= MAX_PLAIN) {
      /* An empty map is as if nothing had ever been in it. */
      for (size_t i = 0; i < map->alloc; i++) map->table[i].key = MP_OBJ_NULL;
    }
  }
#if MICROPY_OPT_MAP_LOOKUP_CACHE
  else *cached(key) = (uint8_t)(entry - map->table);
#endif
  return entry;
}

/* The position of the last entry of a map that has any. */
size_t engine_map_last(const mp_map_t *map) {
  size_t last = end_of(map) - 1;
  while (!mp_map_slot_is_filled(map, last)) last--;
  return last;
}

void mp_map_init(mp_map_t *map, size_t n) {
  memset(map, 0, sizeof *map);
  map->all_keys_are_qstrs = 1;
  map->alloc = n;
  map->table = n == 0 ? NULL : new_table(n);
}

void mp_map_init_fixed_table(mp_map_t *map, size_t n, const mp_obj_t *table) {
  memset(map, 0, sizeof *map);
  map->all_keys_are_qstrs = 1;
  map->is_fixed = 1;
  map->is_ordered = 1;
  map->used = map->alloc = n;
  map->table = (mp_map_elem_t *)table;
}

void mp_map_deinit(mp_map_t *map) {
  if (!map->is_fixed) m_del(mp_map_elem_t, map->table, map->alloc);
  map->used = map->alloc = 0;
}

void mp_map_clear(mp_map_t *map) {
  mp_map_deinit(map);
  map->table = NULL;
  map->all_keys_are_qstrs = 1;
  map->is_fixed = 0;
}
