/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/session/connection_failures.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

/* Records failed attempts, each with its error and its line of the log. Checks
 * the message about all of them, and the advice. */
static void expect_message(const char *hosts, const int *errs,
                           const char *const *lines, const char *message,
                           const char *advice)
{
  cli_connection_failures failures;
  cli_text t = {0};
  const cli_tls_options tls = {0};

  cli_connection_failures_init(&failures, &tls, hosts);
  for (size_t i = 0; lines[i] != NULL; i++)
    cli_connection_failures_record(&failures, errs[i], LK_TLS_OTHER, lines[i]);
  cli_connection_failures_say(&failures, "a:2181", 1.5, &t);
  expect_text(&t, message);
  ck_assert_str_eq(cli_connection_failures_advice(&failures), advice);
  cli_connection_failures_free(&failures);
}

#define LINES(...) ((const char *[]){__VA_ARGS__, NULL})
#define ERRS(...)  ((const int[]){__VA_ARGS__})

START_TEST(message_names_each_server_and_the_likely_cause)
{
  expect_message("a/x", ERRS(0), LINES("a:2181: not ended"),
                 "cannot connect to a:2181: no reply within 1.5 s",
                 "the name service does not reply, the host is down, the "
                 "server hangs, or a firewall drops packets");
  expect_message("10.0.0.1:1,[::1]:1", ERRS(0), LINES("x:1: not ended"),
                 "cannot connect to any server: 10.0.0.1:1: not tried yet, "
                 "[::1]:1: not tried yet",
                 "the host is down, the server hangs, or a firewall drops "
                 "packets");
  expect_message("[::1]:7", ERRS(LK_ERR_CONNECT),
                 LINES("[::1]:7: connect to [::1]:7: Connection refused"),
                 "cannot connect to [::1]:7: Connection refused",
                 "nothing listens there: start ZooKeeper, or correct -z");
  expect_message("a:1", ERRS(LK_ERR_CONNECT),
                 LINES("a:1: connect to 10.0.0.1:1: No route to host"),
                 "cannot connect to a:1 at 10.0.0.1:1: No route to host",
                 "the host is down, the server hangs, or a firewall drops "
                 "packets");
  expect_message("a:1", ERRS(LK_ERR_RESOLVE),
                 LINES("a:1: resolve a: not found"),
                 "cannot connect to a:1: the name cannot be resolved: not "
                 "found",
                 "correct the name in -z, or the name service");
  expect_message("a:1", ERRS(LK_ERR_REFUSED), LINES("a:1: hung up\x1b"),
                 "cannot connect to a:1: hung up\\x1b",
                 "it has no quorum, or has reached maxClientCnxns, or expects "
                 "TLS (--tls)");
  expect_message("a:1", ERRS(LK_ERR_PROTOCOL), LINES("a:1: what?"),
                 "cannot connect to a:1: what?",
                 "that is not the client port of a ZooKeeper server, or it "
                 "expects TLS (--tls)");
}
END_TEST

START_TEST(tls_failure_names_a_remedy_for_each_cause)
{
  static const struct {
    lk_tls_cause cause;
    const char *remedy; /* a part of the advice */
  } rows[] = {{LK_TLS_NAME, "--tls-name"},
              {LK_TLS_ISSUER, "--cacert"},
              {LK_TLS_EXPIRED, "renew the certificate"},
              {LK_TLS_NOT_YET_VALID, "clock"},
              {LK_TLS_REVOKED, "its CA has revoked it"},
              {LK_TLS_CRL, "--crl"},
              {LK_TLS_WANTS_CERTIFICATE, "--cert"},
              {LK_TLS_REFUSES_CERTIFICATE, "trust store"},
              {LK_TLS_NOT_TLS, "secureClientPort"},
              {LK_TLS_FILES, "correct the file"},
              {LK_TLS_OTHER, "the server's log"}};
  const cli_tls_options tls = {.selected = true};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cli_connection_failures failures;
    cli_text t = {0};

    /* A server that is down does not hide the failure of TLS. The default port
     * is that of TLS. */
    cli_connection_failures_init(&failures, &tls, "a,b:1/x");
    cli_connection_failures_record(&failures, LK_ERR_CONNECT, LK_TLS_OTHER,
                                   "b:1: connect to b:1: Connection refused");
    cli_connection_failures_record(&failures, LK_ERR_TLS, rows[i].cause,
                                   "a:2281: TLS: why");
    cli_connection_failures_say(&failures, "", 1, &t);
    expect_text(&t, "cannot connect to any server: a:2281: TLS: why, b:1: "
                    "Connection refused");
    ck_assert_ptr_nonnull(
        strstr(cli_connection_failures_advice(&failures), rows[i].remedy));
    cli_connection_failures_free(&failures);
  }
}
END_TEST

START_TEST(failures_of_several_servers_have_one_advice)
{
  expect_message(
      "a:1,a:11,b", ERRS(LK_ERR_CONNECT, LK_ERR_REFUSED, LK_ERR_CONNECT),
      LINES("a:1: connect to a:1: Connection refused", "a:1: hung up",
            "a:11: connect to a:11: timed out"),
      "cannot connect to any server: a:1: hung up, a:11: timed "
      "out, b:2181: not tried yet",
      "probably there is no quorum: start a majority of the servers");
  expect_message(
      "a:1,b:1", ERRS(LK_ERR_CONNECT, LK_ERR_REFUSED),
      LINES("a:1: connect to a:1: Connection refused", "b:1: hung up"),
      "cannot connect to any server: a:1: Connection refused, b:1: "
      "hung up",
      "probably there is no quorum: start a majority of the servers");
  expect_message("a:1,b:1", ERRS(LK_ERR_CONNECT, LK_ERR_RESOLVE),
                 LINES("a:1: connect to a:1: Connection refused",
                       "b:1: resolve b: not found"),
                 "cannot connect to any server: a:1: Connection refused, b:1: "
                 "the name cannot be resolved: not found",
                 "start the servers, or correct -z");
  expect_message("a,b,c,d,e,f,g", ERRS(0), LINES("x:1: what?"),
                 "cannot connect to any server: a:2181: no reply within 1.5 "
                 "s, b:2181: not tried yet, c:2181: not tried yet, d:2181: "
                 "not tried yet, e:2181: not tried yet, and 2 more",
                 "the name service does not reply, the host is down, the "
                 "server hangs, or a firewall drops packets");
}
END_TEST

SUITE("connection_failures", message_names_each_server_and_the_likely_cause,
      tls_failure_names_a_remedy_for_each_cause,
      failures_of_several_servers_have_one_advice)
