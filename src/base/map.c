/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The macros of uthash use these. Each function that uses such a macro must
 * have a variable `m`, its map, and if it adds nodes a variable `added`. The
 * hash is a function, since the macro would be expanded in several places. */
#define HASH_FUNCTION(key, len, hash) \
  ((hash) = map_key_hash((key), (unsigned)(len)))
#define HASH_NONFATAL_OOM         1
#define uthash_malloc(size)       lk__mem_resize(m->mem, NULL, (size))
#define uthash_free(p, size)      lk__mem_free(m->mem, (p))
#define uthash_nonfatal_oom(node) (added = false)
#include "base/map.h"

#include <limits.h>

/* A client without watches has an empty table. 32 buckets would be 0.5 KB. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS      8U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 3U

static unsigned map_key_hash(const void *key, unsigned len)
{
  unsigned hash;

  HASH_JEN(key, len, hash);
  return hash;
}

static bool add_to_table(lk_map *m, lk_map_node *n)
{
  bool added = true;

  HASH_ADD_KEYPTR(hh, m->head, n->key, n->len, n);
  return added;
}

bool lk__map_init(lk_map *m, const lk_mem *mem)
{
  memset(m, 0, sizeof *m);
  m->mem = mem;
  /* uthash would free the table of an empty map, so the anchor stays in it. */
  m->anchor.key = "";
  return add_to_table(m, &m->anchor);
}

/* The empty key is that of the anchor, and uthash keeps a length in an unsigned
 * int. */
static bool is_valid_key_len(size_t len)
{
  return len > 0 && len <= UINT_MAX;
}

lk_map_node *lk__map_find(const lk_map *m, const char *key, size_t len)
{
  lk_map_node *n = NULL;

  if (is_valid_key_len(len))
    HASH_FIND(hh, m->head, key, len, n);
  return n;
}

bool lk__map_add(lk_map *m, lk_map_node *n, const char *key, size_t len)
{
  if (!is_valid_key_len(len))
    return false;
  n->key = key;
  n->len = len;
  return add_to_table(m, n);
}

void lk__map_remove(lk_map *m, lk_map_node *n)
{
  HASH_DELETE(hh, m->head, n);
}

lk_map_node *lk__map_first(const lk_map *m)
{
  /* The anchor was added first. */
  return lk__map_next(&m->anchor);
}

lk_map_node *lk__map_next(const lk_map_node *n)
{
  return n->hh.next;
}

size_t lk__map_count(const lk_map *m)
{
  return m->head == NULL ? 0 : HASH_COUNT(m->head) - 1; /* without the anchor */
}

void lk__map_trim(lk_map *m, size_t max_buckets)
{
  lk_map fresh = {.mem = m->mem};

  if (m->head == NULL || lk__map_count(m) > 0 ||
      m->head->hh.tbl->num_buckets <= max_buckets ||
      !lk__map_init(&fresh, m->mem))
    return;
  HASH_CLEAR(hh, m->head);
  /* The table must not refer to the anchor of a local variable. m->anchor
   * replaces it, which needs no memory, since the table exists already. */
  add_to_table(&fresh, &m->anchor);
  lk__map_remove(&fresh, &fresh.anchor);
  m->head = fresh.head;
}

void lk__map_free(lk_map *m)
{
  if (m->head != NULL)
    HASH_CLEAR(hh, m->head);
  memset(&m->anchor, 0, sizeof m->anchor);
}
