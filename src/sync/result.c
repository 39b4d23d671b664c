/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/result.h"

/* The longest number of a sequential node: a minus and ten digits. */
enum { MAX_NUMBER_LEN = 11 };

/* The allocation of a result. What the result points to is in `room`: arrays
   first, text behind them. */
typedef struct block {
  lk_mem mem;
  size_t size; /* of `room`, in bytes */
  lk_sync_result result;
  max_align_t room[];
} block;

static block *block_of(lk_sync_result *r)
{
  return (block *)(void *)((char *)r - offsetof(block, result));
}

lk_sync_result *lk__result_new(const lk_mem *mem, size_t size)
{
  if (size > SIZE_MAX - sizeof(block))
    return NULL;
  block *b = lk__mem_new(mem, sizeof *b + size);

  if (b == NULL)
    return NULL;
  b->mem = *mem;
  b->size = size;
  return &b->result;
}

void lk_sync_result_free(lk_sync_result *r)
{
  if (r == NULL)
    return;
  lk_mem mem = block_of(r)->mem;

  lk__mem_free(&mem, block_of(r));
}

bool lk__result_fits(const lk_sync_result *r, size_t size)
{
  const block *b =
      (const block *)(const void *)((const char *)r - offsetof(block, result));

  return size <= b->size;
}

/* How many bytes append_copy() writes. */
static size_t copy_size(lk_bytes from)
{
  return from.len + 1;
}

/* Copy `from` to `*at`, with a NUL behind it, and move `*at` behind the NUL. */
static lk_bytes append_copy(char **at, lk_bytes from)
{
  lk_bytes copy = {from.at == NULL ? NULL : *at, from.len};

  if (from.len > 0)
    memcpy(*at, from.at, from.len);
  (*at)[from.len] = '\0';
  *at += copy_size(from);
  return copy;
}

/* ---- create and get ------------------------------------------------------ */

size_t lk__result_path_size(const char *path)
{
  return copy_size(lk_text(path));
}

void lk__result_set_path(lk_sync_result *r, const char *path,
                         const lk_stat *stat)
{
  char *at = (char *)block_of(r)->room;

  r->path = append_copy(&at, lk_text(path)).at;
  r->stat = *stat;
}

size_t lk__result_data_size(const lk_bytes *data)
{
  return copy_size(*data);
}

void lk__result_set_data(lk_sync_result *r, const lk_bytes *data,
                         const lk_stat *stat)
{
  char *at = (char *)block_of(r)->room;

  r->data = append_copy(&at, *data);
  r->stat = *stat;
}

/* ---- children ------------------------------------------------------------ */

size_t lk__result_names_size(const lk_bytes *names, size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += sizeof *names + copy_size(names[i]);
  return size;
}

void lk__result_set_names(lk_sync_result *r, const lk_bytes *names,
                          size_t count, const lk_stat *stat)
{
  lk_bytes *copies = (lk_bytes *)(void *)block_of(r)->room;
  char *at = (char *)(copies + count);

  for (size_t i = 0; i < count; i++)
    copies[i] = append_copy(&at, names[i]);
  r->names = copies;
  r->count = count;
  if (stat != NULL)
    r->stat = *stat;
}

/* ---- access lists, identities -------------------------------------------- */

size_t lk__result_acl_size(const lk_acls *acl)
{
  size_t size = sizeof *acl;

  for (size_t i = 0; i < acl->count; i++)
    size += sizeof *acl->entries + copy_size(acl->entries[i].scheme) +
            copy_size(acl->entries[i].id);
  return size;
}

void lk__result_set_acl(lk_sync_result *r, const lk_acls *acl,
                        const lk_stat *stat)
{
  lk_acls *copy = (lk_acls *)(void *)block_of(r)->room;
  lk_acl *entries = (lk_acl *)(void *)(copy + 1);
  char *at = (char *)(entries + acl->count);

  for (size_t i = 0; i < acl->count; i++) {
    entries[i].perms = acl->entries[i].perms;
    entries[i].scheme = append_copy(&at, acl->entries[i].scheme);
    entries[i].id = append_copy(&at, acl->entries[i].id);
  }
  *copy = (lk_acls){entries, acl->count};
  r->acl = copy;
  r->stat = *stat;
}

size_t lk__result_ids_size(const lk_identity *ids, size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += sizeof *ids + copy_size(ids[i].scheme) + copy_size(ids[i].user);
  return size;
}

void lk__result_set_ids(lk_sync_result *r, const lk_identity *ids, size_t count)
{
  lk_identity *copies = (lk_identity *)(void *)block_of(r)->room;
  char *at = (char *)(copies + count);

  for (size_t i = 0; i < count; i++) {
    copies[i].scheme = append_copy(&at, ids[i].scheme);
    copies[i].user = append_copy(&at, ids[i].user);
  }
  r->ids = copies;
  r->count = count;
}

/* ---- multi-reads --------------------------------------------------------- */

static size_t count_names(const lk_read_result *reads, size_t count)
{
  size_t names = 0;

  for (size_t i = 0; i < count; i++)
    names += reads[i].count;
  return names;
}

size_t lk__result_reads_size(const lk_read_result *reads, size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += sizeof *reads + sizeof(lk_stat) + copy_size(reads[i].data) +
            lk__result_names_size(reads[i].names, reads[i].count);
  return size;
}

void lk__result_set_reads(lk_sync_result *r, const lk_read_result *reads,
                          size_t count)
{
  lk_read_result *copies = (lk_read_result *)(void *)block_of(r)->room;
  lk_stat *stats = (lk_stat *)(void *)(copies + count);
  lk_bytes *names = (lk_bytes *)(void *)(stats + count);
  char *at = (char *)(names + count_names(reads, count));

  for (size_t i = 0; i < count; i++) {
    copies[i] = reads[i]; /* the pointers are replaced below */
    copies[i].data = append_copy(&at, reads[i].data);
    if (reads[i].stat != NULL) {
      stats[i] = *reads[i].stat;
      copies[i].stat = &stats[i];
    }
    if (reads[i].names != NULL)
      copies[i].names = names;
    for (size_t k = 0; k < reads[i].count; k++)
      *names++ = append_copy(&at, reads[i].names[k]);
  }
  r->reads = copies;
  r->count = count;
}

/* ---- multi --------------------------------------------------------------- */

size_t lk__result_ops_size(const lk_op_result *results, size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += sizeof *results + sizeof(lk_stat) +
            (results[i].path == NULL ? 0 : copy_size(lk_text(results[i].path)));
  return size;
}

void lk__result_set_ops(lk_sync_result *r, const lk_op_result *results,
                        size_t count)
{
  lk_op_result *copies = (lk_op_result *)(void *)block_of(r)->room;
  lk_stat *stats = (lk_stat *)(void *)(copies + count);
  char *at = (char *)(stats + count);

  for (size_t i = 0; i < count; i++) {
    copies[i] = results[i]; /* the pointers are replaced below */
    if (results[i].path != NULL)
      copies[i].path = append_copy(&at, lk_text(results[i].path)).at;
    if (results[i].stat != NULL) {
      stats[i] = *results[i].stat;
      copies[i].stat = &stats[i];
    }
  }
  r->results = copies;
  r->count = count;
}

/* ---- rosters ------------------------------------------------------------- */

size_t lk__result_entries_size(const lk_roster_entry *entries, size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += sizeof *entries + sizeof(lk_stat) + copy_size(entries[i].name) +
            copy_size(entries[i].data);
  return size;
}

void lk__result_set_entries(lk_sync_result *r, const lk_roster_entry *entries,
                            size_t count)
{
  lk_roster_entry *copies = (lk_roster_entry *)(void *)block_of(r)->room;
  lk_stat *stats = (lk_stat *)(void *)(copies + count);
  char *at = (char *)(stats + count);

  for (size_t i = 0; i < count; i++) {
    copies[i] = entries[i]; /* the pointers are replaced below */
    copies[i].name = append_copy(&at, entries[i].name);
    copies[i].data = append_copy(&at, entries[i].data);
    if (entries[i].stat != NULL) {
      stats[i] = *entries[i].stat;
      copies[i].stat = &stats[i];
    }
  }
  r->entries = copies;
  r->count = count;
}

/* ---- room that is allocated before a write is sent ----------------------- */

size_t lk__result_create_room(const char *path)
{
  return path == NULL ? 0 : strlen(path) + MAX_NUMBER_LEN + 1;
}

size_t lk__result_multi_room(const lk_op *ops, size_t count)
{
  size_t room = 0;

  /* No memory holds so many results. With fewer, `room` does not overflow. */
  if (count > SIZE_MAX / 1024)
    return SIZE_MAX;
  for (size_t i = 0; i < count; i++)
    room += sizeof(lk_op_result) + sizeof(lk_stat) +
            lk__result_create_room(ops[i].path);
  return room;
}
