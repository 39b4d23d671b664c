/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/acl_spec.h"
#include "support/suite.h"

START_TEST(access_lists_are_read)
{
  cli_text wrong = {0};
  cli_acl acl;

  ck_assert(cli_acl_read(&acl, "--acl", "open", &wrong));
  ck_assert_ptr_eq(acl.list.entries, lk_acl_open()->entries);
  ck_assert(cli_acl_read(&acl, "--acl", "creator", &wrong));
  ck_assert_ptr_eq(acl.list.entries, lk_acl_creator()->entries);
  ck_assert(cli_acl_read(&acl, "--acl",
                         "digest:u:fyVmFCwVbTJYrznoSu1koqYEYF0=:cdrwa,ip:::1:r,"
                         "auth::w",
                         &wrong));
  ck_assert_uint_eq(acl.list.count, 3);
  ck_assert_int_eq(acl.list.entries[0].perms, LK_PERM_ALL);
  ck_assert_mem_eq(acl.list.entries[0].scheme.at, "digest", 6);
  ck_assert_uint_eq(acl.list.entries[0].id.len, 30);
  ck_assert_mem_eq(acl.list.entries[0].id.at,
                   "u:fyVmFCwVbTJYrznoSu1koqYEYF0=", 30);
  ck_assert_int_eq(acl.list.entries[1].perms, LK_PERM_READ);
  ck_assert_uint_eq(acl.list.entries[1].id.len, 3);
  ck_assert_uint_eq(acl.list.entries[2].id.len, 0);
  cli_acl_free(&acl);
  ck_assert_uint_eq(wrong.len, 0);
}
END_TEST

START_TEST(a_wrong_access_list_is_refused_and_named)
{
  static const char *const bad[] = {
      "",     "closed",     "world",     "world:anyone", "world:anyone:",
      ":a:r", "world:a:rx", "open,open", "world:a:r,",   "a:r"};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(!cli_acl_read(&acl, "--acl", bad[i], &wrong), "%s", bad[i]);
    ck_assert_uint_gt(wrong.len, 0);
    cli_text_free(&wrong);
  }
  cli_text wrong = {0};
  cli_acl acl;

  ck_assert(!cli_acl_read(&acl, "--acl", "world:a:r,bad,closed", &wrong));
  ck_assert_ptr_nonnull(strstr(cli_text_end(&wrong), "--acl: \"bad\" is"));
  cli_text_free(&wrong);
}
END_TEST

START_TEST(digest_with_a_password_in_clear_is_refused)
{
  static const char *const bad[] = {
      "digest:bob:secret:r", "world:anyone:r,digest:bob:secret:r",
      "digest:bob:card", "digest:bob::r",
      /* These have: no user, no padding, a digit for the padding, a bit after
         the hash, a byte that is not base64, and too much padding. */
      "digest::fyVmFCwVbTJYrznoSu1koqYEYF0=:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYFAA:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF1=:r",
      "digest:bob:fyVmFCwVbTJYrz-oSu1koqYEYF0=:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYE====:r",
      /* a bit after a hash of 64 bytes */
      ("digest:u:JuOwXdmk4f1omXNJj7k4ILDOHOlc+"
       "8PMyEaxl9nrWl6OmV83jKYivSqJWsp5PsMTda6BtnipueoU1r5DtBd7CB==:r")};
  /* hashes of 20, 32 and 64 bytes */
  static const char *const good[] = {
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0=:r",
      "digest:u:/Y8xRBngpX5duYn15uUqIRaIaCviy5TEwSk419hCwuA=:r",
      ("digest:u:JuOwXdmk4f1omXNJj7k4ILDOHOlc+"
       "8PMyEaxl9nrWl6OmV83jKYivSqJWsp5PsMTda6BtnipueoU1r5DtBd7CA==:r")};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(!cli_acl_read(&acl, "--acl", bad[i], &wrong), "%s", bad[i]);
    ck_assert_ptr_nonnull(strstr(cli_text_end(&wrong), "--auth-file"));
    ck_assert_ptr_null(strstr(wrong.at, "secret"));
    cli_text_free(&wrong);
  }
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(cli_acl_read(&acl, "--acl", good[i], &wrong), "%s", good[i]);
    cli_acl_free(&acl);
  }
}
END_TEST

SUITE("acl_spec", access_lists_are_read,
      a_wrong_access_list_is_refused_and_named,
      digest_with_a_password_in_clear_is_refused)
