/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/access.h"
#include "recipes/memory.h"

static lk_bytes put(char **at, lk_bytes b)
{
  lk_bytes copy = {b.at == NULL ? NULL : *at, b.len};

  if (b.len > 0)
    memcpy(*at, b.at, b.len);
  *at += b.len;
  return copy;
}

lk_acls *lk__access_copy(const lk_mem *mem, const lk_acls *from)
{
  size_t size = sizeof *from + sizeof *from->entries;

  for (size_t i = 0; i < from->count; i++)
    size += sizeof *from->entries + from->entries[i].scheme.len +
            from->entries[i].id.len;
  lk_acls *acls = lk__take(mem, size);

  if (acls == NULL)
    return NULL;
  lk_acl *entries = (lk_acl *)(void *)(acls + 1);
  char *at = (char *)(entries + from->count);

  for (size_t i = 0; i < from->count; i++) {
    entries[i].perms = from->entries[i].perms;
    entries[i].scheme = put(&at, from->entries[i].scheme);
    entries[i].id = put(&at, from->entries[i].id);
  }
  acls->entries = entries;
  acls->count = from->count;
  return acls;
}
