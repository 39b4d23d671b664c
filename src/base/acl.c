/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"

#include "base/mem.h"

static const lk_acl everybody = {LK_PERM_ALL, {"world", 5}, {"anyone", 6}};
static const lk_acl creator = {LK_PERM_ALL, {"auth", 4}, {"", 0}};
static const lk_acl readers = {LK_PERM_READ, {"world", 5}, {"anyone", 6}};

const lk_acls *lk_acl_open(void)
{
  static const lk_acls list = {&everybody, 1};

  return &list;
}

const lk_acls *lk_acl_creator(void)
{
  static const lk_acls list = {&creator, 1};

  return &list;
}

const lk_acls *lk_acl_read(void)
{
  static const lk_acls list = {&readers, 1};

  return &list;
}

/* Copy the bytes to `*at`, which moves behind the copy. */
static lk_bytes copy_bytes(char **at, lk_bytes b)
{
  lk_bytes copy = {b.at == NULL ? NULL : *at, b.len};

  if (b.len > 0)
    memcpy(*at, b.at, b.len);
  *at += b.len;
  return copy;
}

size_t lk__acls_size(const lk_acls *acls)
{
  /* One entry more, so that `entries` points into the block even if the list
   * is empty. */
  size_t size = sizeof *acls + (acls->count + 1) * sizeof *acls->entries;

  for (size_t i = 0; i < acls->count; i++)
    size += acls->entries[i].scheme.len + acls->entries[i].id.len;
  return size;
}

lk_acls *lk__acls_copy(const lk_mem *mem, const lk_acls *from)
{
  lk_acls *acls = lk__mem_new(mem, lk__acls_size(from));

  if (acls == NULL)
    return NULL;
  lk_acl *entries = (lk_acl *)(void *)(acls + 1);
  char *at = (char *)(entries + from->count);

  for (size_t i = 0; i < from->count; i++) {
    entries[i].perms = from->entries[i].perms;
    entries[i].scheme = copy_bytes(&at, from->entries[i].scheme);
    entries[i].id = copy_bytes(&at, from->entries[i].id);
  }
  acls->entries = entries;
  acls->count = from->count;
  return acls;
}
