/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * An access list as text.
 *
 * Oracle: a list that is accepted, printed and parsed again is the same list.
 * An error points into the text.
 */

#include "target.h"

#include <latchkey/acl.h>

static bool same_bytes(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void check_same_list(const lk_acls *a, const lk_acls *b)
{
  must(a->count == b->count && a->count > 0);
  for (size_t i = 0; i < a->count; i++)
    must(a->entries[i].perms == b->entries[i].perms &&
         same_bytes(a->entries[i].scheme, b->entries[i].scheme) &&
         same_bytes(a->entries[i].id, b->entries[i].id));
}

static void print_and_parse(const lk_acls *acl)
{
  size_t len = lk_acl_print(NULL, 0, acl);
  char *text = malloc(len + 1);
  lk_acls *again;

  must(text != NULL && lk_acl_print(text, len + 1, acl) == len);
  must(strlen(text) == len);
  must(lk_acl_parse(&again, text, NULL, NULL) == 0);
  check_same_list(acl, again);
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
    print_and_parse(acl);
  else
    must(err == LK_ERR_BAD_ARGUMENT && wrong >= text &&
         wrong <= text + strlen(text));
  lk_acl_free(acl, NULL);
  free(text);
  return 0;
}
