/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"
#include "cli/output/print.h"
#include "support/suite.h"

#include <unistd.h>

START_TEST(long_message_is_cut_to_one_line)
{
  char longer[6000], line[8000];
  int ends[2], saved = dup(STDERR_FILENO);

  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  ck_assert_int_eq(pipe(ends), 0);
  dup2(ends[1], STDERR_FILENO);
  cli_notice("%s", longer);
  dup2(saved, STDERR_FILENO);
  ssize_t n = read(ends[0], line, sizeof line);

  ck_assert_int_gt(n, 4000);
  ck_assert_int_lt(n, 4097);
  ck_assert_mem_eq(line, "latchkey: x", 11);
  ck_assert_mem_eq(line + n - 2, "x\n", 2);
  ck_assert_ptr_null(memchr(line, '\0', (size_t)n));
  close(saved);
  close(ends[0]);
  close(ends[1]);
}
END_TEST

START_TEST(temporary_errors_have_the_hint_to_retry)
{
  static const int errs[] = {LK_ERR_DEADLINE, LK_ERR_CONNECTION_LOSS,
                             LK_ERR_NOT_SENT, LK_ERR_THROTTLED,
                             LK_ERR_SESSION_EXPIRED};

  for (size_t i = 0; i < sizeof errs / sizeof errs[0]; i++)
    ck_assert_str_eq(cli_error_advice(errs[i]), "; try again");
}
END_TEST

START_TEST(error_of_a_newer_server_is_a_number)
{
  ck_assert_str_eq(cli_error_reason(-999),
                   "error -999, which latchkey does not know");
  ck_assert_str_eq(cli_error_reason(LK_ERR_NO_NODE), "no such node");
}
END_TEST

START_TEST(hints_name_the_options_of_tls)
{
  static const int not_zookeeper[] = {LK_ERR_PROTOCOL, LK_ERR_MARSHALLING,
                                      LK_ERR_REFUSED};

  for (size_t i = 0; i < sizeof not_zookeeper / sizeof not_zookeeper[0]; i++)
    ck_assert_ptr_nonnull(
        strstr(cli_error_advice(not_zookeeper[i]), "expects TLS (--tls)"));
  ck_assert_ptr_nonnull(
      strstr(cli_error_advice(LK_ERR_NO_AUTH), "--auth-file or --cert gives"));
  ck_assert_ptr_nonnull(
      strstr(cli_error_advice(LK_ERR_INVALID_ACL), "ssl.clientAuth=none"));
}
END_TEST

SUITE("error_report", error_of_a_newer_server_is_a_number,
      long_message_is_cut_to_one_line, temporary_errors_have_the_hint_to_retry,
      hints_name_the_options_of_tls)
