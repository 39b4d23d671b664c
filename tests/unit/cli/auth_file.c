/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/acl_spec.h"
#include "cli/session/auth_file.h"
#include "support/suite.h"

#include <stdlib.h>
#include <unistd.h>

START_TEST(auth_file_allows_comments_and_colons_in_passwords)
{
  lk_bytes text = lk_text("# no\n\n  digest:u:p:w \r\nbad\nx509:\nip:a");
  lk_bytes scheme, auth;

  /* The comment and the empty line are skipped. */
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, strlen("digest"));
  ck_assert_uint_eq(auth.len, 6);
  ck_assert_mem_eq(auth.at, "u:p:w ", 6);
  /* "bad" has no colon, so the scheme is empty. */
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, 0);
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, 4);
  ck_assert_uint_eq(auth.len, 0);
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(auth.len, 1);
  ck_assert(!cli_auth_file_next_line(&text, &scheme, &auth));
}
END_TEST

/* Writes a file of identities with this content, reads and removes it. */
static bool read_identities(cli_auth_file *file, const char *text,
                            cli_text *complaint)
{
  char name[] = "/tmp/check_cli.XXXXXX";
  int fd = mkstemp(name);

  memset(file, 0, sizeof *file);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  bool ok = cli_auth_file_read(file, name, NULL, complaint);

  unlink(name);
  file->name = NULL; /* `name` ends with this function */
  return ok;
}

START_TEST(a_line_of_sasl_is_a_user_and_a_password)
{
  cli_text complaint = {0};
  cli_auth_file file;
  char out[LK_SASL_PASSWORD_MAX];

  ck_assert(read_identities(&file, "digest:a:b\n", &complaint));
  ck_assert_ptr_null(cli_auth_file_sasl(&file));
  cli_auth_file_free(&file);
  if (lk_sasl_digest_md5() == NULL)
    return; /* built without SASL */
  ck_assert(
      read_identities(&file, "digest:a:b\n sasl:bob:se:cret\r\n", &complaint));
  const lk_sasl_config *sasl = cli_auth_file_sasl(&file);

  ck_assert_ptr_nonnull(sasl);
  ck_assert_str_eq(sasl->user, "bob");
  ck_assert_int_eq(sasl->password(out, sizeof out, sasl->password_arg), 7);
  ck_assert_mem_eq(out, "se:cret", 7);
  const size_t too_small = strlen("se:cret") - 1;

  ck_assert_int_eq(sasl->password(out, too_small, sasl->password_arg),
                   LK_ERR_TOO_BIG);
  cli_auth_file_free(&file);
  ck_assert_ptr_null(cli_auth_file_sasl(&file));
  ck_assert_ptr_null(file.at);
}
END_TEST

START_TEST(other_lines_of_sasl_are_refused_without_the_password)
{
  static const char *const bad[] = {"sasl:secret",
                                    "sasl:", "sasl:bob:", "sasl::secret",
                                    "sasl:bob:secret\nsasl:bob:secret"};

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    cli_text complaint = {0};
    cli_auth_file file;

    ck_assert_msg(!read_identities(&file, bad[k], &complaint), "%s", bad[k]);
    ck_assert_ptr_nonnull(strstr(cli_text_end(&complaint), "--auth-file: "));
    ck_assert_ptr_null(strstr(complaint.at, "secret"));
    cli_text_free(&complaint);
    cli_auth_file_free(&file);
  }
}
END_TEST

SUITE("auth_file", auth_file_allows_comments_and_colons_in_passwords,
      a_line_of_sasl_is_a_user_and_a_password,
      other_lines_of_sasl_are_refused_without_the_password)
