/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "support/suite.h"

#include <string.h>

static bool bytes_are(lk_bytes bytes, const char *text)
{
  return bytes.len == strlen(text) && memcmp(bytes.at, text, bytes.len) == 0;
}

START_TEST(predefined_access_lists_have_their_entries)
{
  const lk_acl *open = lk_acl_open()->entries;
  const lk_acl *creator = lk_acl_creator()->entries;
  const lk_acl *readers = lk_acl_read()->entries;

  ck_assert_uint_eq(lk_acl_open()->count, 1);
  ck_assert_int_eq(open->perms, LK_PERM_ALL);
  ck_assert(bytes_are(open->scheme, "world") && bytes_are(open->id, "anyone"));
  ck_assert_uint_eq(lk_acl_creator()->count, 1);
  ck_assert_int_eq(creator->perms, LK_PERM_ALL);
  ck_assert(bytes_are(creator->scheme, "auth") && bytes_are(creator->id, ""));
  ck_assert_ptr_nonnull(creator->id.at);
  ck_assert_uint_eq(lk_acl_read()->count, 1);
  ck_assert_int_eq(readers->perms, LK_PERM_READ);
  ck_assert(bytes_are(readers->scheme, "world") &&
            bytes_are(readers->id, "anyone"));
}
END_TEST

SUITE("acl", predefined_access_lists_have_their_entries)
