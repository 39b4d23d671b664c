/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The TLS transport while OpenSSL runs out of memory. */

#include "support/suite.h"

#include <latchkey/client.h>

#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/tls_server.h"

enum { STEPS = 2000 };

/* ---- the memory of OpenSSL ----------------------------------------------- */

static long allocations_left; /* before one fails */
static bool may_fail;         /* in calls of the client */
static bool has_failed;

static bool allocation_fails(void)
{
  if (!may_fail || allocations_left-- != 0)
    return false;
  has_failed = true;
  return true;
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
  (void)file;
  (void)line;
  return allocation_fails() ? NULL : malloc(size);
}

static void *openssl_realloc(void *at, size_t size, const char *file, int line)
{
  (void)file;
  (void)line;
  return allocation_fails() ? NULL : realloc(at, size);
}

static void openssl_free(void *at, const char *file, int line)
{
  (void)file;
  (void)line;
  free(at);
}

static bool is_taken;

/* OpenSSL permits it before its first allocation only. */
__attribute__((constructor)) static void take_memory_of_openssl(void)
{
  is_taken = CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc,
                                      openssl_free) == 1;
}

/* ---- connections --------------------------------------------------------- */

static const lk_transport_type *type;
static lk_transport *t;
static tls_server server;
static lk_tls_config config;

static int give_password(char *out, size_t size, void *arg)
{
  (void)arg;
  return snprintf(out, size, "secret");
}

/* Reads the certificates and runs a handshake. The server, which has the same
   OpenSSL, has memory. */
static lk_flow connect_client(void)
{
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = lk__address_len(&server.at),
                          .host = "zk.test",
                          .tls = &config};

  t = calloc(1, type->object_size);
  ck_assert_ptr_nonnull(t);
  t->fd = -1;
  may_fail = true;
  lk_flow flow = type->open(t, &to);

  may_fail = false;
  for (int i = 0; i < STEPS && (flow == LK_FLOW_READ || flow == LK_FLOW_WRITE);
       i++) {
    struct pollfd p = {.fd = t->fd, .events = POLLIN};

    tls_server_step(&server);
    (void)poll(&p, 1, 1);
    may_fail = true;
    flow = type->handshake(t);
    may_fail = false;
  }
  return flow;
}

static void free_client(void)
{
  type->close(t);
  type->end(t);
  free(t);
  tls_server_step(&server);
  tls_server_hang_up(&server);
}

static void expect_reported_failure(lk_flow flow)
{
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_msg(t->err == LK_ERR_NO_MEMORY || t->err == LK_ERR_TLS, "%s",
                t->why);
  ck_assert_str_ne(t->why, "");
}

/* ---- tests --------------------------------------------------------------- */

static tls_identity ca, own, alice;

static void setup(void)
{
  const tls_wish for_ca = {.ca = true}, for_client = {.names = NULL};
  const tls_wish for_server = {.names = "DNS:zk.test, IP:127.0.0.1"};

  signal(SIGPIPE, SIG_IGN); /* for the server */
  allocations_left = -1;
  type = lk_transport_tls();
  ca = tls_issue(NULL, "CA", &for_ca);
  own = tls_issue(&ca, "server", &for_server);
  alice = tls_issue(&ca, "alice", &for_client);
  config =
      (lk_tls_config){.size = sizeof config,
                      .ca_pem = lk_text(tls_pem_of_certificate(&ca)),
                      .cert_pem = lk_text(tls_pem_of_certificate(&alice)),
                      .key_pem = lk_text(tls_pem_of_key(&alice, "secret")),
                      .crl_pem = lk_text(tls_pem_of_crl(&ca, NULL, 0, false)),
                      .password = give_password};
  tls_server_open(&server, &own, &ca);
  /* The first handshake of a process makes what the others share. */
  ck_assert_int_eq(connect_client(), LK_FLOW_DONE);
  free_client();
}

static void teardown(void)
{
  allocations_left = -1;
  ck_assert_int_eq(connect_client(), LK_FLOW_DONE);
  free_client();
  tls_server_close(&server);
  tls_identity_free(&own);
  tls_identity_free(&alice);
  tls_identity_free(&ca);
  free((void *)(uintptr_t)config.ca_pem.at);
  free((void *)(uintptr_t)config.cert_pem.at);
  free((void *)(uintptr_t)config.key_pem.at);
  free((void *)(uintptr_t)config.crl_pem.at);
  signal(SIGPIPE, SIG_DFL);
}

/* A prime number, as reading the certificates and a handshake make thousands of
   allocations. */
enum { STRIDE = 97 };

START_TEST(failed_allocation_in_a_connection_attempt_is_reported)
{
  if (!is_taken)
    SKIP_TEST("OpenSSL has its memory already");
  setup();
  has_failed = true;
  for (long n = 0; has_failed; n += STRIDE) {
    has_failed = false;
    allocations_left = n;
    lk_flow flow = connect_client();

    if (flow != LK_FLOW_DONE)
      expect_reported_failure(flow);
    free_client();
  }
  teardown();
}
END_TEST

enum { DAYS = 30 }; /* that certificates are valid */

/* Checks its subject and how long it is valid. What could not be allocated may
   be missing, unless `days` is given. */
static void expect_certificate(const lk_tls_certificate *c, const char *subject,
                               int days)
{
  bool no_subject = days == 0 && c->subject[0] == '\0';
  bool no_time = days == 0 && (c->not_before_s == 0 || c->not_after_s == 0);

  if (!no_subject)
    ck_assert_str_eq(c->subject, subject);
  if (!no_time)
    ck_assert_int_eq(c->not_after_s - c->not_before_s, DAYS * 24L * 60 * 60);
}

START_TEST(failed_allocation_while_a_connection_is_described_leaves_a_part)
{
  lk_tls_connection c;

  if (!is_taken)
    SKIP_TEST("OpenSSL has its memory already");
  setup();
  ck_assert_int_eq(connect_client(), LK_FLOW_DONE);
  has_failed = true;
  for (long n = 0; has_failed; n++) {
    has_failed = false;
    allocations_left = n;
    may_fail = true;
    ck_assert_int_eq(lk_tls_inspect(t, &c, sizeof c), 0);
    may_fail = false;
    ck_assert_str_eq(c.version, SSL_get_version(server.ssl));
    expect_certificate(&c.server, "CN=server", 0);
    expect_certificate(&c.own, "CN=alice", 0);
  }
  expect_certificate(&c.server, "CN=server", DAYS);
  expect_certificate(&c.own, "CN=alice", DAYS);
  free_client();
  teardown();
}
END_TEST

SUITE("tls_memory", failed_allocation_in_a_connection_attempt_is_reported,
      failed_allocation_while_a_connection_is_described_leaves_a_part)
