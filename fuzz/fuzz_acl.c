/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * An access list as text. What was understood of it is written in its plainest
 * form and must be understood the same; of what was not, the place is told.
 */

#include <latchkey/acl.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
  if (!is_so)
    abort();
}

static bool same(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void compare(const lk_acls *a, const lk_acls *b)
{
  must(a->count == b->count && a->count > 0);
  for (size_t i = 0; i < a->count; i++)
    must(a->entries[i].perms == b->entries[i].perms &&
         same(a->entries[i].scheme, b->entries[i].scheme) &&
         same(a->entries[i].id, b->entries[i].id));
}

static void write_and_read(const lk_acls *acl)
{
  size_t len = lk_acl_print(NULL, 0, acl);
  char *text = malloc(len + 1);
  lk_acls *again;

  must(text != NULL && lk_acl_print(text, len + 1, acl) == len);
  must(strlen(text) == len);
  must(lk_acl_parse(&again, text, NULL, NULL) == 0);
  compare(acl, again);
  lk_acl_free(again, NULL);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size + 1);
  const char *wrong;
  lk_acls *acl;

  must(text != NULL);
  if (size > 0)
    memcpy(text, data, size);
  text[size] = '\0';
  int err = lk_acl_parse(&acl, text, NULL, &wrong);

  must((err == 0) == (acl != NULL) && (err == 0) == (wrong == NULL));
  if (err == 0)
    write_and_read(acl);
  else
    must(err == LK_ERR_BAD_ARGUMENT && wrong >= text &&
         wrong <= text + strlen(text));
  lk_acl_free(acl, NULL);
  free(text);
  return 0;
}
