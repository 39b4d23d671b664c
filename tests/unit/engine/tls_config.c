/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The options of TLS, which a client copies for its transport. */

#include "support/suite.h"

#include <latchkey/client.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "proto/engine/tls_config.h"

static const char secret[] = "-----BEGIN PRIVATE KEY-----";
static char logged[512]; /* "LEVEL ERROR TEXT\n" for each message */
static size_t blocks;    /* blocks of memory that are not freed yet */

static int64_t now = 5000;

static int64_t on_now(void *arg)
{
  (void)arg;
  return now;
}

static void on_random(void *arg, void *out, size_t len)
{
  (void)arg;
  memset(out, 0x5a, len);
}

static void on_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

static const lk_hooks hooks = {
    .size = sizeof hooks, .now = on_now, .random = on_random, .wake = on_wake};

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  size_t len = strlen(logged);

  (void)arg;
  snprintf(logged + len, sizeof logged - len, "%d %d %s\n", level, err, text);
}

/* An allocator whose blocks have their length in front, padded to the size of
   two. A block must not contain the secret when it is freed. */
static void *on_resize(void *arg, void *p, size_t size)
{
  size_t *head = p == NULL ? NULL : (size_t *)p - 2;

  (void)arg;
  if (size == 0) {
    if (head == NULL)
      return NULL;
    for (size_t i = 0; i + sizeof secret <= head[0]; i++)
      ck_assert_int_ne(memcmp((char *)p + i, secret, sizeof secret - 1), 0);
    free(head);
    blocks--;
    return NULL;
  }
  if (head == NULL)
    blocks++;
  head = realloc(head, 2 * sizeof *head + size);
  ck_assert_ptr_nonnull(head);
  head[0] = size;
  return head + 2;
}

static const lk_mem mem = {on_resize, NULL};

static int new_client(lk_client **out, const char *hosts,
                      const lk_tls_config *tls)
{
  const lk_client_config config = {.size = sizeof config,
                                   .hosts = hosts,
                                   .mem = &mem,
                                   .log = on_log,
                                   .tls = tls};

  logged[0] = '\0';
  return lk_client_new(out, &config, &hooks);
}

START_TEST(connect_string_alone_selects_tls_with_defaults)
{
  lk_client *c;
  const lk_tls_config *tls;

  ck_assert_int_eq(new_client(&c, "tls://a", NULL), 0);
  tls = lk_client_tls(c);
  ck_assert_ptr_nonnull(tls);
  ck_assert_ptr_null(tls->ca_file);
  ck_assert(!tls->any_name && !tls->any_certificate);
  lk_client_free(c);
  ck_assert_int_eq(new_client(&c, "a", NULL), 0);
  ck_assert_ptr_null(lk_client_tls(c));
  lk_client_free(c);
}
END_TEST

START_TEST(options_alone_select_tls)
{
  const lk_tls_config tls = {.size = sizeof tls};
  lk_client *c;
  lk_want want;

  ck_assert_int_eq(new_client(&c, "a", &tls), 0);
  ck_assert_ptr_nonnull(lk_client_tls(c));
  want = *lk_client_want(c);
  ck_assert_uint_eq(want.port, 2281);
  lk_client_free(c);
  ck_assert_int_eq(new_client(&c, NULL, &tls), 0);
  want = *lk_client_want(c);
  ck_assert_uint_eq(want.port, 2281);
  lk_client_free(c);
}
END_TEST

START_TEST(options_are_copied_and_wiped)
{
  char ca[] = "ca", name[] = "zk.test";
  char pem[sizeof secret];
  lk_tls_config tls = {.size = sizeof tls,
                       .ca_file = ca,
                       .cert_pem = lk_text("cert"),
                       .key_pem = lk_bytes_of(pem, sizeof pem),
                       .server_name = name,
                       .any_name = true};
  lk_client *c;

  memcpy(pem, secret, sizeof pem);
  ck_assert_int_eq(new_client(&c, "tls://a", &tls), 0);
  memset(ca, 'x', 1);
  memset(name, 'x', 1);
  memset(pem, 'x', sizeof pem);
  tls.any_name = false;
  const lk_tls_config *kept = lk_client_tls(c);

  ck_assert_str_eq(kept->ca_file, "ca");
  ck_assert_str_eq(kept->server_name, "zk.test");
  ck_assert_uint_eq(kept->key_pem.len, sizeof secret);
  ck_assert_int_eq(memcmp(kept->key_pem.at, secret, sizeof secret), 0);
  ck_assert_ptr_null(kept->cert_file);
  ck_assert_ptr_null(kept->ca_pem.at);
  ck_assert(kept->any_name);
  lk_client_free(c);
  ck_assert_uint_eq(blocks, 0);
}
END_TEST

static void expect_refusal(const lk_tls_config *tls, const char *why)
{
  lk_client *c;

  ck_assert_int_eq(new_client(&c, "a", tls), LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(c);
  ck_assert_msg(strstr(logged, why) != NULL, "%s", logged);
  ck_assert_uint_eq(blocks, 0);
}

START_TEST(options_without_size_are_refused)
{
  const lk_tls_config tls = {.size = 0};

  expect_refusal(&tls, "lk_tls_config.size is not set");
}
END_TEST

START_TEST(options_that_contradict_each_other_are_refused)
{
  static const struct {
    lk_tls_config tls; /* without its size */
    const char *why;
  } bad[] = {
      {{.cert_file = "c", .cert_pem = {"c", 1}}, "both cert_file and cert_pem"},
      {{.cert_file = "c", .key_file = "k", .key_pem = {"k", 1}},
       "both key_file and key_pem"},
      {{.key_file = "k"}, "a key without a certificate"},
      {{.key_pem = {"k", 1}}, "a key without a certificate"},
      {{.server_name = ""}, "server_name is empty"},
  };

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lk_tls_config tls = bad[i].tls;

    tls.size = sizeof tls;
    expect_refusal(&tls, bad[i].why);
  }
}
END_TEST

START_TEST(new_list_of_servers_neither_ends_nor_begins_tls)
{
  lk_client *c;
  lk_want want;

  ck_assert_int_eq(new_client(&c, "tls://a", NULL), 0);
  ck_assert_int_eq(lk_client_set_hosts(c, "b"), 0);
  ck_assert_ptr_nonnull(lk_client_tls(c));
  want = *lk_client_want(c);
  ck_assert_uint_eq(want.port, 2281);
  ck_assert_int_eq(lk_client_set_hosts(c, "tls://c,d"), 0);
  lk_client_free(c);
  ck_assert_int_eq(new_client(&c, "a", NULL), 0);
  ck_assert_int_eq(lk_client_set_hosts(c, "tls://b"), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_client_set_hosts(c, "b"), 0);
  lk_client_free(c);
}
END_TEST

/* Do the driver's part: connect twice, and lose each connection. */
static void connect_twice(const lk_tls_config *tls)
{
  lk_client *c;
  lk_want want;

  ck_assert_int_eq(new_client(&c, "a:1", tls), 0);
  lk_client_tick(c);
  for (int i = 0; i < 2; i++) {
    want = *lk_client_want(c);
    ck_assert_uint_ne(want.attempt, 0);
    lk_client_connected(c, want.attempt);
    lk_client_failed(c, want.attempt, 0, NULL);
    now += 60000;
    lk_client_tick(c);
  }
  lk_client_free(c);
}

static size_t count_in_log(const char *text)
{
  size_t n = 0;

  for (const char *at = logged; (at = strstr(at, text)) != NULL; at++)
    n++;
  return n;
}

START_TEST(missing_verification_is_logged_at_each_connection)
{
  lk_tls_config tls = {.size = sizeof tls};

  connect_twice(&tls);
  ck_assert_uint_eq(count_in_log("not verified"), 0);
  tls.any_name = true;
  connect_twice(&tls);
  ck_assert_uint_eq(count_in_log("TLS: the server's name is not verified"), 2);
  tls.any_certificate = true;
  connect_twice(&tls);
  ck_assert_uint_eq(
      count_in_log("TLS: the server's certificate is not verified"), 2);
  ck_assert_uint_eq(count_in_log("name is not verified"), 0);
  ck_assert_uint_eq(count_in_log("2 0 "), 2); /* warnings, and no errors */
}
END_TEST

/* The client's TLS error at the time when the failed attempt is logged. */
static lk_tls_cause cause_in_log;
static lk_client *client_in_log;

static void log_cause(void *arg, lk_log_level level, int err, const char *text)
{
  (void)arg;
  (void)level;
  (void)text;
  if (err == LK_ERR_TLS)
    cause_in_log = lk_client_tls_cause(client_in_log);
}

START_TEST(cause_of_a_failed_handshake_is_known_until_the_next_failure)
{
  const lk_tls_config tls = {.size = sizeof tls};
  const lk_client_config config = {
      .size = sizeof config, .hosts = "a,b", .log = log_cause, .tls = &tls};
  lk_client *c;
  lk_want want;
  const char *why;

  ck_assert_int_eq(lk_client_new(&c, &config, &hooks), 0);
  client_in_log = c;
  cause_in_log = LK_TLS_OTHER;
  ck_assert_int_eq(lk_client_tls_cause(c), LK_TLS_OTHER);
  lk_client_tick(c);
  want = *lk_client_want(c);
  /* The client ignores a failure of another attempt. */
  lk_client_failed_tls(c, want.attempt + 1, LK_TLS_EXPIRED, "TLS: late");
  ck_assert_int_eq(lk_client_tls_cause(c), LK_TLS_OTHER);
  lk_client_failed_tls(c, want.attempt, LK_TLS_NAME, "TLS: name");
  ck_assert_int_eq(lk_client_last_error(c, &why), LK_ERR_TLS);
  ck_assert_ptr_nonnull(strstr(why, ": TLS: name"));
  ck_assert_int_eq(lk_client_tls_cause(c), LK_TLS_NAME);
  ck_assert_int_eq(cause_in_log, LK_TLS_NAME);
  want = *lk_client_want(c);
  lk_client_failed(c, want.attempt, LK_ERR_CONNECT, "refused");
  ck_assert_int_eq(lk_client_tls_cause(c), LK_TLS_OTHER);
  now += 60000;
  lk_client_tick(c);
  want = *lk_client_want(c);
  lk_client_failed(c, want.attempt, LK_ERR_TLS, "by another transport");
  ck_assert_int_eq(lk_client_last_error(c, &why), LK_ERR_TLS);
  ck_assert_int_eq(lk_client_tls_cause(c), LK_TLS_OTHER);
  lk_client_free(c);
}
END_TEST

SUITE("tls_config", connect_string_alone_selects_tls_with_defaults,
      options_alone_select_tls, options_are_copied_and_wiped,
      options_without_size_are_refused,
      options_that_contradict_each_other_are_refused,
      new_list_of_servers_neither_ends_nor_begins_tls,
      missing_verification_is_logged_at_each_connection,
      cause_of_a_failed_handshake_is_known_until_the_next_failure)
