/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The TLS transport against a TLS server in the same thread: which
 * certificates it trusts, its error messages, and how it sends and
 * receive_count.
 */

#include "support/suite.h"

#include <latchkey/client.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/tls_server.h"

enum { STEPS = 2000 };

static const lk_transport_type *type;
static lk_transport *t;
static tls_identity ca, server_identity;
static char *ca_pem, *cert_pem, *key_pem;
static tls_server server;
static lk_tls_config config;

/* How many times recv() was called in this program; the function below takes
   the place of the C library's. */
static int receive_count;

ssize_t recv(int fd, void *room, size_t size, int flags)
{
  receive_count++;
  return recvfrom(fd, room, size, flags, NULL, NULL);
}

static const tls_wish for_server = {.names = "DNS:zk.test, IP:127.0.0.1",
                                    .serial = 7};

/* For arguments that are NULL. */
static const tls_identity *const signed_by_itself = NULL;
static const tls_identity *const no_certificate = NULL;
static const char *const no_password = NULL;

/* Start a server with a certificate that `issuer` has signed. Its clients need
   a certificate that `trust` has signed; NULL: they need none. */
static void setup_server_with_trust(const tls_wish *wish,
                                    const tls_identity *issuer,
                                    const tls_identity *trust)
{
  server_identity = tls_issue(issuer, "server", wish);
  tls_server_open(&server, &server_identity, trust);
}

static void setup_server(const tls_wish *wish, const tls_identity *issuer)
{
  setup_server_with_trust(wish, issuer, NULL);
}

static void setup_client(void)
{
  const tls_wish wish = {.ca = true};

  type = lk_transport_tls();
  ck_assert_ptr_nonnull(type);
  t = calloc(1, type->object_size);
  ck_assert_ptr_nonnull(t);
  t->fd = -1;
  ca = tls_issue(NULL, "latchkey test CA", &wish);
  ca_pem = tls_pem_of_certificate(&ca);
  config = (lk_tls_config){.size = sizeof config, .ca_pem = lk_text(ca_pem)};
}

static void teardown(void)
{
  type->close(t);
  type->end(t);
  free(t);
  if (server_identity.key != NULL) {
    tls_server_close(&server);
    tls_identity_free(&server_identity);
  }
  tls_identity_free(&ca);
  free(ca_pem);
  free(cert_pem);
  free(key_pem);
  ca_pem = cert_pem = key_pem = NULL;
}

static void setup_client_and_server(void)
{
  setup_client();
  setup_server(&for_server, &ca);
}

/* Sleep shortly, until the kernel has passed the bytes on. */
static void wait_shortly(void)
{
  struct pollfd p = {.fd = t->fd, .events = POLLIN};

  (void)poll(&p, 1, 1);
}

/* Connect the client; the server does its steps in between. Returns the last
   flow of the client. */
static lk_flow connect_to(const char *host)
{
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = lk__address_len(&server.at),
                          .host = host,
                          .tls = &config};
  lk_flow flow = type->open(t, &to);

  for (int i = 0; i < STEPS; i++) {
    if (flow != LK_FLOW_READ && flow != LK_FLOW_WRITE)
      return flow;
    tls_server_step(&server);
    wait_shortly();
    flow = type->handshake(t);
  }
  return flow;
}

static void expect_connected(const char *host)
{
  lk_flow flow = connect_to(host);

  ck_assert_msg(flow == LK_FLOW_DONE, "%s", t->why);
  for (int i = 0; i < STEPS && !server.ready; i++)
    tls_server_step(&server);
  ck_assert(server.ready);
}

static void expect_refusal(const char *host, lk_tls_cause cause,
                           const char *why)
{
  ck_assert_int_eq(connect_to(host), LK_FLOW_FAILED);
  ck_assert_msg(strstr(t->why, why) != NULL, "%s", t->why);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  ck_assert_msg(t->cause == cause, "%s", t->why);
  type->close(t);
}

/* Receive, or find that there is nothing to receive yet. */
static void receive_or_wait(void *room, size_t size, size_t *got)
{
  lk_flow flow = type->recv(t, room, size, got);

  ck_assert_msg(flow == LK_FLOW_DONE || flow == LK_FLOW_READ, "%s", t->why);
}

static char *crl_of(const tls_identity *issuer, const long *serials,
                    size_t count)
{
  const bool outdated = false;

  return tls_pem_of_crl(issuer, serials, count, outdated);
}

static char *outdated_crl_of(const tls_identity *issuer)
{
  const bool outdated = true;

  return tls_pem_of_crl(issuer, NULL, 0, outdated);
}

static void hang_up(void)
{
  type->close(t);
  tls_server_hang_up(&server);
}

/* ---- whom it trusts ------------------------------------------------------ */

START_TEST(server_with_name_or_address_is_trusted)
{
  setup_client_and_server();
  expect_connected("zk.test");
  hang_up();
  expect_connected("zk.test.");
  hang_up();
  expect_connected("ZK.TEST");
  hang_up();
  expect_connected("127.0.0.1");
  teardown();
}
END_TEST

START_TEST(name_is_sent_and_address_is_not)
{
  setup_client_and_server();
  expect_connected("zk.test");
  ck_assert_str_eq(SSL_get_servername(server.ssl, TLSEXT_NAMETYPE_host_name),
                   "zk.test");
  hang_up();
  expect_connected("127.0.0.1");
  ck_assert_ptr_null(SSL_get_servername(server.ssl, TLSEXT_NAMETYPE_host_name));
  teardown();
}
END_TEST

START_TEST(certificate_of_another_name_is_refused)
{
  setup_client_and_server();
  expect_refusal("other.test", LK_TLS_NAME,
                 "is for zk.test, 127.0.0.1, not for other.test");
  hang_up();
  expect_refusal("127.0.0.2", LK_TLS_NAME, "not for 127.0.0.2");
  hang_up();
  expect_refusal("a.zk.test", LK_TLS_NAME, "not for a.zk.test");
  teardown();
}
END_TEST

START_TEST(common_name_is_not_used)
{
  const tls_wish nameless = {.serial = 1};

  setup_client();
  setup_server(&nameless, &ca);
  expect_refusal("server", LK_TLS_NAME, "no subjectAltName");
  teardown();
}
END_TEST

START_TEST(names_of_certificate_are_shown_without_control_characters)
{
  const tls_wish strange = {.names =
                                "DNS:a\x1b[31mb, DNS:"
                                "cccccccccccccccccccccccccccccccccccccccc"
                                "cccccccccccccccccccccccccccccccccccccccc"
                                ", DNS:d, "
                                "DNS:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"};

  setup_client();
  setup_server(&strange, &ca);
  expect_refusal("zk.test", LK_TLS_NAME, "a?[31mb, ccc");
  ck_assert_ptr_null(strchr(t->why, '\x1b'));
  ck_assert_ptr_nonnull(strstr(t->why, ", ..., not for zk.test"));
  teardown();
}
END_TEST

START_TEST(expected_server_name_can_be_configured)
{
  setup_client_and_server();
  config.server_name = "zk.test";
  expect_connected("10.1.2.3");
  ck_assert_str_eq(SSL_get_servername(server.ssl, TLSEXT_NAMETYPE_host_name),
                   "zk.test");
  hang_up();
  config.server_name = "other.test";
  expect_refusal("zk.test", LK_TLS_NAME, "not for other.test");
  teardown();
}
END_TEST

START_TEST(unknown_ca_is_refused)
{
  const tls_wish wish = {.ca = true};
  tls_identity other;

  setup_client();
  other = tls_issue(NULL, "another CA", &wish);
  setup_server(&for_server, &other);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  tls_identity_free(&other);
  teardown();
}
END_TEST

START_TEST(certificate_signed_by_itself_is_refused)
{
  setup_client();
  setup_server(&for_server, signed_by_itself);
  expect_refusal("zk.test", LK_TLS_ISSUER, "self");
  teardown();
}
END_TEST

START_TEST(without_ca_the_cas_of_the_system_are_used)
{
  setup_client();
  setup_server(&for_server, &ca);
  config.ca_pem = lk_text(NULL);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  teardown();
}
END_TEST

START_TEST(expired_certificate_is_refused)
{
  const tls_wish old = {
      .names = "DNS:zk.test", .from_days = -9, .days = 8 /* until yesterday */};

  setup_client();
  setup_server(&old, &ca);
  expect_refusal("zk.test", LK_TLS_EXPIRED, "expired");
  teardown();
}
END_TEST

START_TEST(certificate_that_is_not_valid_yet_is_refused)
{
  const tls_wish young = {.names = "DNS:zk.test", .from_days = 1};

  setup_client();
  setup_server(&young, &ca);
  expect_refusal("zk.test", LK_TLS_NOT_YET_VALID, "not yet valid");
  teardown();
}
END_TEST

START_TEST(revoked_certificate_is_refused)
{
  const long serials[] = {3, 7};
  char *crl;

  setup_client_and_server();
  crl = crl_of(&ca, serials, 2);
  config.crl_pem = lk_text(crl);
  expect_refusal("zk.test", LK_TLS_REVOKED, "revoked");
  hang_up();
  free(crl);
  crl = crl_of(&ca, serials, 1);
  config.crl_pem = lk_text(crl);
  expect_connected("zk.test");
  free(crl);
  teardown();
}
END_TEST

START_TEST(missing_or_outdated_revocation_list_refuses)
{
  const tls_wish wish = {.ca = true};
  tls_identity other;
  char *crl;

  setup_client_and_server();
  crl = outdated_crl_of(&ca);
  config.crl_pem = lk_text(crl);
  expect_refusal("zk.test", LK_TLS_CRL, "CRL has expired");
  hang_up();
  free(crl);
  other = tls_issue(NULL, "another CA", &wish);
  crl = crl_of(&other, NULL, 0);
  config.crl_pem = lk_text(crl);
  expect_refusal("zk.test", LK_TLS_CRL, "unable to get certificate CRL");
  free(crl);
  tls_identity_free(&other);
  teardown();
}
END_TEST

START_TEST(list_signed_by_another_ca_of_that_name_refuses)
{
  const tls_wish wish = {.ca = true};
  tls_identity other;
  char *crl;

  setup_client_and_server();
  other = tls_issue(NULL, "latchkey test CA", &wish);
  crl = crl_of(&other, NULL, 0);
  config.crl_pem = lk_text(crl);
  expect_refusal("zk.test", LK_TLS_CRL, "CRL signature failure");
  free(crl);
  tls_identity_free(&other);
  teardown();
}
END_TEST

START_TEST(another_ca_of_that_name_is_refused)
{
  const tls_wish wish = {.ca = true};
  tls_identity other;

  setup_client();
  other = tls_issue(NULL, "latchkey test CA", &wish);
  setup_server(&for_server, &other);
  expect_refusal("zk.test", LK_TLS_ISSUER, "no trusted CA has issued it");
  tls_identity_free(&other);
  teardown();
}
END_TEST

START_TEST(each_opt_out_disables_its_check)
{
  const tls_wish old = {
      .names = "DNS:old", .from_days = -9, .days = 8 /* until yesterday */};

  setup_client_and_server();
  config.any_name = true;
  expect_connected("other.test");
  hang_up();
  config.ca_pem = lk_text(NULL);
  expect_refusal("other.test", LK_TLS_ISSUER, "issuer certificate");
  tls_server_close(&server);
  tls_identity_free(&server_identity);
  setup_server(&old, signed_by_itself);
  config.any_certificate = true;
  expect_connected("other.test");
  teardown();
}
END_TEST

/* ---- client certificates ------------------------------------------------- */

/* Have the server require a client certificate. The client gets one that
   `issuer` has signed; NULL: the client gets none. */
static void want_certificate(const tls_identity *issuer, const char *password)
{
  const tls_wish wish = {.serial = 9};
  tls_identity client;

  setup_server_with_trust(&for_server, &ca, &ca);
  if (issuer == NULL)
    return;
  client = tls_issue(issuer, "alice", &wish);
  cert_pem = tls_pem_of_certificate(&client);
  key_pem = tls_pem_of_key(&client, password);
  config.cert_pem = lk_text(cert_pem);
  config.key_pem = lk_text(key_pem);
  tls_identity_free(&client);
}

/* Expect that the server refuses the client. With TLS 1.3 the refusal comes
   only after the client's last step of the handshake, so that recv() reports
   it. */
static void expect_refusal_by_server(lk_tls_cause cause, const char *why)
{
  char room[16];
  size_t got;
  lk_flow flow = connect_to("zk.test");

  for (int i = 0; i < STEPS && flow != LK_FLOW_FAILED; i++) {
    ck_assert(flow == LK_FLOW_DONE || flow == LK_FLOW_READ);
    tls_server_step(&server);
    wait_shortly();
    flow = type->recv(t, room, sizeof room, &got);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_msg(t->cause == cause && strstr(t->why, why) != NULL, "%s", t->why);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  type->close(t);
}

START_TEST(client_certificate_is_presented)
{
  char name[64] = "";

  setup_client();
  want_certificate(&ca, no_password);
  expect_connected("zk.test");
  X509_NAME_get_text_by_NID(
      X509_get_subject_name(SSL_get0_peer_certificate(server.ssl)),
      NID_commonName, name, sizeof name);
  ck_assert_str_eq(name, "alice");
  teardown();
}
END_TEST

START_TEST(missing_client_certificate_is_reported)
{
  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    setup_client();
    want_certificate(no_certificate, no_password);
    SSL_CTX_set_max_proto_version(server.context, version);
    expect_refusal_by_server(LK_TLS_WANTS_CERTIFICATE,
                             "wants a client certificate");
    teardown();
  }
}
END_TEST

START_TEST(refused_client_certificate_is_reported)
{
  const tls_wish wish = {.ca = true};

  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    setup_client();
    tls_identity other = tls_issue(NULL, "another CA", &wish);

    want_certificate(&other, no_password);
    SSL_CTX_set_max_proto_version(server.context, version);
    expect_refusal_by_server(LK_TLS_REFUSES_CERTIFICATE, "does not accept");
    tls_identity_free(&other);
    teardown();
  }
}
END_TEST

static int give_password(char *out, size_t size, void *arg)
{
  const char *secret = arg;
  size_t len = strlen(secret);

  ck_assert_uint_le(len, size);
  memcpy(out, secret, len);
  return (int)len;
}

static int give_no_password(char *out, size_t size, void *arg)
{
  (void)out;
  (void)size;
  (void)arg;
  return -1;
}

START_TEST(encrypted_key_needs_its_password)
{
  char secret[] = "correct horse", wrong[] = "battery staple";

  setup_client();
  want_certificate(&ca, secret);
  expect_refusal("zk.test", LK_TLS_FILES, "key_pem: has no key");
  config.password = give_no_password;
  expect_refusal("zk.test", LK_TLS_FILES, "key_pem: has no key");
  config.password = give_password;
  config.password_arg = wrong;
  expect_refusal("zk.test", LK_TLS_FILES, "key_pem: has no key");
  ck_assert_ptr_null(strstr(t->why, wrong));
  config.password_arg = secret;
  expect_connected("zk.test");
  teardown();
}
END_TEST

START_TEST(key_of_another_certificate_is_refused)
{
  const tls_wish wish = {.serial = 10};
  tls_identity bob;

  setup_client();
  want_certificate(&ca, no_password);
  bob = tls_issue(&ca, "bob", &wish);
  free(key_pem);
  key_pem = tls_pem_of_key(&bob, no_password);
  config.key_pem = lk_text(key_pem);
  expect_refusal("zk.test", LK_TLS_FILES, "key_pem: does not fit");
  tls_identity_free(&bob);
  teardown();
}
END_TEST

/* ---- files --------------------------------------------------------------- */

#define FOLDER_TEMPLATE "/tmp/latchkey-tls-XXXXXX"
static char folder[] = FOLDER_TEMPLATE;

static void make_folder(void)
{
  strcpy(folder, FOLDER_TEMPLATE);
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Write a file. Its path is valid until four more files were written. */
static const char *put_file(const char *name, const char *text)
{
  static char paths[4][64];
  static unsigned at;
  char *path = paths[at++ % 4];
  int fd;

  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  return path;
}

static void remove_file(const char *name)
{
  char path[64];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  ck_assert_int_eq(unlink(path), 0);
}

START_TEST(files_are_read_at_each_attempt)
{
  const tls_wish wish = {.ca = true};
  tls_identity other;
  char *other_pem;

  setup_client_and_server();
  make_folder();
  other = tls_issue(NULL, "another CA", &wish);
  other_pem = tls_pem_of_certificate(&other);
  config.ca_pem = lk_text(NULL);
  config.ca_file = put_file("ca", other_pem);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  hang_up();
  put_file("ca", ca_pem);
  expect_connected("zk.test");
  hang_up();
  put_file("ca", other_pem);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  hang_up();
  remove_file("ca");
  expect_refusal("zk.test", LK_TLS_FILES, "cannot read");
  ck_assert_ptr_nonnull(strstr(t->why, "No such file"));
  ck_assert_int_eq(rmdir(folder), 0);
  tls_identity_free(&other);
  free(other_pem);
  teardown();
}
END_TEST

START_TEST(certificate_key_and_password_come_from_files)
{
  setup_client();
  make_folder();
  want_certificate(&ca, "correct horse");
  config.cert_pem = config.key_pem = lk_text(NULL);
  config.cert_file = put_file("cert", cert_pem);
  config.key_file = put_file("key", key_pem);
  config.password_file = put_file("password", "correct horse\nrest");
  expect_connected("zk.test");
  hang_up();
  put_file("password", "battery staple\n");
  expect_refusal("zk.test", LK_TLS_FILES, "key: has no key");
  remove_file("cert");
  remove_file("key");
  remove_file("password");
  ck_assert_int_eq(rmdir(folder), 0);
  teardown();
}
END_TEST

START_TEST(key_may_stand_beside_the_certificate)
{
  char both[8192];

  setup_client();
  want_certificate(&ca, no_password);
  snprintf(both, sizeof both, "%s%s", key_pem, cert_pem);
  config.cert_pem = lk_text(both);
  config.key_pem = lk_text(NULL);
  expect_connected("zk.test");
  teardown();
}
END_TEST

START_TEST(check_reports_errors_in_the_files)
{
  char text[200] = "x", short_text[5];

  setup_client_and_server();
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), 0);
  ck_assert_str_eq(text, "");
  config.ca_file = "/nowhere/ca.pem";
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  ck_assert_str_eq(
      text, "TLS: cannot read /nowhere/ca.pem: No such file or directory");
  ck_assert_int_eq(lk_tls_check(&config, short_text, sizeof short_text),
                   LK_ERR_TLS);
  ck_assert_str_eq(short_text, "TLS:");
  ck_assert_int_eq(lk_tls_check(&config, NULL, 0), LK_ERR_TLS);
  config.ca_file = "/";
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  ck_assert_ptr_nonnull(strstr(text, "Is a directory"));
  config.ca_file = "/dev/zero";
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  config.ca_file = NULL;
  config.ca_pem = lk_text("no PEM");
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  ck_assert_str_eq(text, "TLS: ca_pem: has no certificate");
  config.crl_pem = config.ca_pem = lk_text(ca_pem);
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  ck_assert_str_eq(text, "TLS: crl_pem: has no revocation list");
  config.size = 0;
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(text, "lk_tls_config.size is not set");
  teardown();
}
END_TEST

static void expect_complaint(const char *complaint)
{
  char text[200];

  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  ck_assert_str_eq(text, complaint);
}

/* The server's certificate is from the first CA, and the program trusts the
   second one. */
START_TEST(cas_of_the_system_can_be_added_to_those_of_the_program)
{
  const tls_wish wish = {.ca = true};

  setup_client_and_server();
  make_folder();
  tls_identity other = tls_issue(NULL, "another CA", &wish);
  char *other_pem = tls_pem_of_certificate(&other);

  setenv("SSL_CERT_DIR", "/nowhere", 1);
  setenv("SSL_CERT_FILE", put_file("system", ca_pem), 1);
  config.ca_pem = lk_text(other_pem);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  hang_up();
  config.system_cas = true;
  expect_connected("zk.test");
  hang_up();
  put_file("system", other_pem);
  expect_refusal("zk.test", LK_TLS_ISSUER, "issuer certificate");
  hang_up();
  config.ca_pem = lk_text(ca_pem);
  expect_connected("zk.test");
  remove_file("system");
  unsetenv("SSL_CERT_DIR");
  unsetenv("SSL_CERT_FILE");
  ck_assert_int_eq(rmdir(folder), 0);
  free(other_pem);
  tls_identity_free(&other);
  teardown();
}
END_TEST

START_TEST(system_without_cas_is_an_error)
{
  char text[200];

  setup_client_and_server();
  make_folder();
  config.ca_pem = lk_text(NULL);
  setenv("SSL_CERT_DIR", "/nowhere", 1);
  setenv("SSL_CERT_FILE", "/nowhere/ca.pem", 1);
  expect_complaint("TLS: /nowhere/ca.pem: No such file or directory");
  setenv("SSL_CERT_FILE", put_file("ca", "no PEM"), 1);
  snprintf(text, sizeof text, "TLS: %s: has no certificate",
           getenv("SSL_CERT_FILE"));
  expect_complaint(text);
  put_file("ca", ca_pem);
  expect_connected("zk.test");
  remove_file("ca");
  setenv("SSL_CERT_DIR", folder, 1); /* CAs may be put into it later */
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), 0);
  setenv("SSL_CERT_DIR", "/nowhere:/neither", 1);
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), 0);
  unsetenv("SSL_CERT_DIR");
  unsetenv("SSL_CERT_FILE");
  ck_assert_int_eq(rmdir(folder), 0);
  teardown();
}
END_TEST

/* The message has the whole path, so that the user knows which file it is. */
START_TEST(check_names_a_file_with_a_long_path)
{
  char text[400], path[260] = "", wanted[400];

  while (strlen(path) < 250)
    strcat(path, "/long-name");
  setup_client();
  config.ca_file = path;
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), LK_ERR_TLS);
  snprintf(wanted, sizeof wanted,
           "TLS: cannot read %s: No such file or directory", path);
  ck_assert_str_eq(text, wanted);
  teardown();
}
END_TEST

/* ---- what a connection is like ------------------------------------------- */

START_TEST(connection_is_described_with_both_certificates)
{
  lk_tls_connection c;
  int64_t now_s = time(NULL);

  setup_client();
  want_certificate(&ca, no_password);
  expect_connected("zk.test");
  ck_assert_int_eq(lk_tls_inspect(t, &c, sizeof c), 0);
  ck_assert_str_eq(c.version, SSL_get_version(server.ssl));
  ck_assert_str_eq(c.cipher, SSL_get_cipher_name(server.ssl));
  ck_assert_str_eq(c.server.subject, "CN=server");
  ck_assert_str_eq(c.server.issuer, "CN=latchkey test CA");
  ck_assert_str_eq(c.server.names, "zk.test, 127.0.0.1");
  ck_assert_int_ge(c.server.not_before_s, now_s - 60);
  ck_assert_int_le(c.server.not_before_s, now_s + 60);
  ck_assert_int_eq(c.server.not_after_s - c.server.not_before_s,
                   30L * 24 * 60 * 60);
  ck_assert_str_eq(c.own.subject, "CN=alice");
  ck_assert_str_eq(c.own.names, "");
  /* A program with an older, shorter struct gets what fits; behind the members
     that the library knows, a longer struct gets zeros. */
  char more[sizeof c + 8];

  memset(more, 'x', sizeof more);
  ck_assert_int_eq(lk_tls_inspect(t, (lk_tls_connection *)(void *)more, 3), 0);
  ck_assert_mem_eq(more, "TLSx", 4);
  ck_assert_int_eq(
      lk_tls_inspect(t, (lk_tls_connection *)(void *)more, sizeof more), 0);
  ck_assert_mem_eq(more, &c, sizeof c);
  ck_assert_int_eq(more[sizeof c], 0);
  type->close(t);
  ck_assert_int_eq(lk_tls_inspect(t, &c, sizeof c), LK_ERR_STATE);
  ck_assert_str_eq(c.version, "");
  teardown();
}
END_TEST

START_TEST(certificate_that_was_refused_is_described)
{
  const tls_wish old = {.names = "DNS:old.test",
                        .from_days = -9,
                        .days = 8 /* until yesterday */};
  lk_tls_connection c;

  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    setup_client();
    setup_server(&old, &ca);
    SSL_CTX_set_max_proto_version(server.context, version);
    ck_assert_int_eq(lk_tls_inspect(t, &c, sizeof c), LK_ERR_STATE);
    ck_assert_int_eq(connect_to("old.test"), LK_FLOW_FAILED);
    ck_assert_int_eq(lk_tls_inspect(t, &c, sizeof c), 0);
    ck_assert_str_eq(c.version,
                     version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3");
    ck_assert_str_eq(c.server.names, "old.test");
    ck_assert_int_lt(c.server.not_after_s, time(NULL));
    ck_assert_str_eq(c.own.issuer, "");
    teardown();
  }
}
END_TEST

/* ---- sessions ------------------------------------------------------------ */

/* Connect, receive a byte so that tickets arrive, and close. Returns whether a
   session was resumed. */
static bool resumes_session(const char *host)
{
  char room[4];
  size_t got = 0;
  bool resumed;

  expect_connected(host);
  resumed = SSL_session_reused(server.ssl) == 1;
  tls_server_send(&server, "x", 1);
  for (int i = 0; i < STEPS && got == 0; i++) {
    wait_shortly();
    receive_or_wait(room, sizeof room, &got);
  }
  ck_assert_uint_eq(got, 1);
  hang_up();
  return resumed;
}

START_TEST(session_is_resumed_while_nothing_has_changed)
{
  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    char *crl;

    setup_client_and_server();
    SSL_CTX_set_max_proto_version(server.context, version);
    ck_assert(!resumes_session("zk.test"));
    ck_assert(resumes_session("zk.test"));
    ck_assert(!resumes_session("127.0.0.1"));
    ck_assert(resumes_session("127.0.0.1"));
    crl = crl_of(&ca, NULL, 0);
    config.crl_pem = lk_text(crl);
    ck_assert(!resumes_session("127.0.0.1"));
    ck_assert(resumes_session("127.0.0.1"));
    config.any_name = true;
    ck_assert(!resumes_session("127.0.0.1"));
    free(crl);
    teardown();
  }
}
END_TEST

static int keep_ticket(SSL *ssl, void *arg)
{
  (void)ssl;
  (void)arg;
  return 1;
}

static SSL_TICKET_RETURN renew_ticket(SSL *ssl, SSL_SESSION *session,
                                      const unsigned char *name, size_t len,
                                      SSL_TICKET_STATUS status, void *arg)
{
  (void)ssl;
  (void)session;
  (void)name;
  (void)len;
  (void)arg;
  return status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW
             ? SSL_TICKET_RETURN_USE_RENEW
             : SSL_TICKET_RETURN_IGNORE_RENEW;
}

START_TEST(session_is_resumed_again_after_its_ticket_was_renewed)
{
  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    setup_client_and_server();
    SSL_CTX_set_max_proto_version(server.context, version);
    ck_assert_int_eq(SSL_CTX_set_session_ticket_cb(server.context, keep_ticket,
                                                   renew_ticket, NULL),
                     1);
    ck_assert(!resumes_session("zk.test"));
    for (int i = 0; i < 4; i++)
      ck_assert_msg(resumes_session("zk.test"), "version %x, connection %d",
                    (unsigned)version, i);
    teardown();
  }
}
END_TEST

START_TEST(revocation_ends_a_session)
{
  const long serials[] = {7};
  char *crl;

  setup_client_and_server();
  ck_assert(!resumes_session("zk.test"));
  crl = crl_of(&ca, serials, 1);
  config.crl_pem = lk_text(crl);
  expect_refusal("zk.test", LK_TLS_REVOKED, "revoked");
  free(crl);
  teardown();
}
END_TEST

/* ---- bytes --------------------------------------------------------------- */

static char pattern(size_t i)
{
  return (char)(i * 31 + i / 251);
}

START_TEST(output_beyond_the_socket_buffer_is_sent_in_steps)
{
  enum { LEN = 8 * 1024 * 1024 };
  char *bytes = malloc(LEN);
  size_t sent = 0;
  bool waited = false;

  setup_client_and_server();
  expect_connected("zk.test");
  ck_assert_ptr_nonnull(bytes);
  for (size_t i = 0; i < LEN; i++)
    bytes[i] = pattern(i);
  for (int i = 0; i < 100 * STEPS && sent < LEN; i++) {
    /* The first call leaves the rest to the next ones. */
    size_t done, len = sent == 0 ? 100000 : LEN - sent;
    lk_flow flow = type->send(t, bytes + sent, len, &done);

    ck_assert_uint_le(done, len);
    ck_assert_int_eq(flow == LK_FLOW_DONE, done == len);
    sent += done;
    if (flow == LK_FLOW_DONE)
      continue;
    ck_assert_int_eq(flow, LK_FLOW_WRITE);
    waited = true;
    tls_server_step(&server);
  }
  for (int i = 0; i < STEPS && server.received < LEN; i++)
    tls_server_step(&server);
  ck_assert(waited);
  ck_assert_uint_eq(server.received, LEN);
  ck_assert_int_eq(memcmp(server.room, bytes, server.got), 0);
  free(bytes);
  teardown();
}
END_TEST

START_TEST(bytes_buffered_by_openssl_are_reported)
{
  char sent[60], room[7];
  size_t got, total = 0;

  setup_client_and_server();
  expect_connected("zk.test");
  for (size_t i = 0; i < sizeof sent; i++)
    sent[i] = pattern(i);
  tls_server_send(&server, sent, 30);
  tls_server_send(&server, sent + 30, 30);
  tls_server_announce_and_hang_up(&server);
  wait_shortly();
  for (int i = 0; i < STEPS; i++) {
    lk_flow flow = type->recv(t, room, sizeof room, &got);

    if (flow == LK_FLOW_END)
      break;
    ck_assert_int_eq(flow, LK_FLOW_DONE);
    ck_assert_uint_gt(got, 0);
    ck_assert_int_eq(memcmp(room, sent + total, got), 0);
    total += got;
    ck_assert(total == sizeof sent || type->has_more(t));
  }
  ck_assert_uint_eq(total, sizeof sent);
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_END);
  teardown();
}
END_TEST

static void set_tcp_option(int option, int value)
{
  ck_assert_int_eq(
      setsockopt(server.fd, IPPROTO_TCP, option, &value, sizeof value), 0);
}

static void await_bytes(void)
{
  struct pollfd p = {.fd = t->fd, .events = POLLIN};

  ck_assert_int_eq(poll(&p, 1, 10000), 1);
}

/* Let the server encrypt bytes without sending them. Returns the length of the
   records in `out`. */
static size_t seal(char *out, size_t size, const void *bytes, size_t len)
{
  BIO *wire = SSL_get_wbio(server.ssl), *kept = BIO_new(BIO_s_mem());
  int sealed;

  ck_assert_ptr_nonnull(kept);
  ck_assert_int_eq(BIO_up_ref(wire) == 1 && BIO_up_ref(kept) == 1, 1);
  SSL_set0_wbio(server.ssl, kept);
  ck_assert_int_eq(SSL_write(server.ssl, bytes, (int)len), (int)len);
  sealed = BIO_read(kept, out, (int)size);
  SSL_set0_wbio(server.ssl, wire);
  BIO_free(kept);
  ck_assert_int_gt(sealed, (int)len);
  return (size_t)sealed;
}

/* Connect, and wait until nothing is under way, not even a ticket. */
static void connect_and_rest(void)
{
  char room[2];
  size_t got = 0;

  setup_client_and_server();
  expect_connected("zk.test");
  set_tcp_option(TCP_NODELAY, 1);
  tls_server_send(&server, "x", 1);
  for (int i = 0; i < STEPS && got == 0; i++) {
    wait_shortly();
    receive_or_wait(room, sizeof room, &got);
  }
  ck_assert_uint_eq(got, 1);
}

START_TEST(records_received_together_take_one_read)
{
  enum { RECORD = 100, RECORDS = 60 };
  char sent[RECORD * RECORDS], sealed[2 * sizeof sent], room[64 * 1024];
  size_t got, len = 0;

  connect_and_rest();
  for (size_t i = 0; i < sizeof sent; i++)
    sent[i] = pattern(i);
  for (size_t i = 0; i < RECORDS; i++)
    len += seal(sealed + len, sizeof sealed - len, sent + i * RECORD, RECORD);
  ck_assert_int_eq(send(server.fd, sealed, len, MSG_NOSIGNAL), (int)len);
  await_bytes();
  receive_count = 0;
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_DONE);
  ck_assert_uint_eq(got, sizeof sent);
  ck_assert_int_eq(memcmp(room, sent, got), 0);
  ck_assert(!type->has_more(t));
  ck_assert_int_eq(receive_count, 1);
  teardown();
}
END_TEST

START_TEST(half_a_record_is_waited_for_by_its_descriptor)
{
  char sealed[200], room[10];
  size_t got, first_len, both_len;

  connect_and_rest();
  first_len = seal(sealed, sizeof sealed, "0123456789", sizeof room);
  both_len = first_len + seal(sealed + first_len, sizeof sealed - first_len,
                              "abcdefghij", 10);
  ck_assert_int_eq(send(server.fd, sealed, first_len + 1, MSG_NOSIGNAL),
                   (int)first_len + 1);
  await_bytes();
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_DONE);
  ck_assert_uint_eq(got, sizeof room);
  for (size_t i = first_len + 1; i < both_len; i++) {
    if (type->has_more(t))
      ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_READ);
    ck_assert(!type->has_more(t));
    ck_assert_int_eq(send(server.fd, sealed + i, 1, MSG_NOSIGNAL), 1);
    await_bytes();
    ck_assert_int_eq(type->recv(t, room, sizeof room, &got),
                     i + 1 < both_len ? LK_FLOW_READ : LK_FLOW_DONE);
  }
  ck_assert_uint_eq(got, sizeof room);
  ck_assert_int_eq(memcmp(room, "abcdefghij", got), 0);
  ck_assert(!type->has_more(t));
  teardown();
}
END_TEST

/* Complete the handshake so that the server's last messages and a byte of data
   come in one segment. */
static void finish_handshake_with_a_byte(lk_flow flow)
{
  for (int i = 0; i < STEPS; i++) {
    if (server.fd >= 0)
      set_tcp_option(TCP_CORK, 1);
    tls_server_step(&server);
    if (server.ready)
      break;
    if (server.fd >= 0)
      set_tcp_option(TCP_CORK, 0);
    ck_assert(flow == LK_FLOW_READ || flow == LK_FLOW_WRITE);
    wait_shortly();
    flow = type->handshake(t);
  }
  tls_server_send(&server, "x", 1);
  set_tcp_option(TCP_CORK, 0);
  await_bytes();
  ck_assert_int_eq(type->handshake(t), LK_FLOW_DONE);
}

START_TEST(data_right_behind_the_handshake_leave_the_descriptor_readable)
{
  char room[8];
  size_t got;

  setup_client_and_server();
  SSL_CTX_set_max_proto_version(server.context, TLS1_2_VERSION);
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = lk__address_len(&server.at),
                          .host = "zk.test",
                          .tls = &config};

  finish_handshake_with_a_byte(type->open(t, &to));
  await_bytes();
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_DONE);
  ck_assert_uint_eq(got, 1);
  teardown();
}
END_TEST

START_TEST(end_without_an_alert_is_an_ordinary_end)
{
  char room[16];
  size_t got;

  setup_client_and_server();
  expect_connected("zk.test");
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_READ);
  tls_server_hang_up(&server);
  for (int i = 0; i < 2; i++) {
    lk_flow flow = LK_FLOW_READ;

    for (int k = 0; k < STEPS && flow == LK_FLOW_READ; k++) {
      wait_shortly();
      flow = type->recv(t, room, sizeof room, &got);
    }
    ck_assert_msg(flow == LK_FLOW_END, "%s", t->why);
  }
  teardown();
}
END_TEST

START_TEST(sending_to_a_closed_connection_raises_no_signal)
{
  size_t done;
  lk_flow flow = LK_FLOW_DONE;

  setup_client_and_server();
  expect_connected("zk.test");
  tls_server_hang_up(&server);
  for (int i = 0; i < STEPS && flow == LK_FLOW_DONE; i++) {
    wait_shortly();
    flow = type->send(t, "x", 1, &done);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_CONNECTION_LOSS);
  teardown();
}
END_TEST

/* A record of data for TLS 1.2 and 1.3, whose 32 bytes were not encrypted. */
static const char damaged_record[] = "\x17\x03\x03\x00\x20"
                                     "0123456789abcdef0123456789abcdef";

enum { DAMAGED_RECORD_LEN = sizeof damaged_record - 1 };

START_TEST(damaged_record_fails)
{
  char room[16];
  size_t got;
  lk_flow flow = LK_FLOW_READ;

  setup_client_and_server();
  expect_connected("zk.test");
  ck_assert_int_eq(
      send(server.fd, damaged_record, DAMAGED_RECORD_LEN, MSG_NOSIGNAL),
      DAMAGED_RECORD_LEN);
  for (int i = 0; i < STEPS && flow == LK_FLOW_READ; i++) {
    wait_shortly();
    flow = type->recv(t, room, sizeof room, &got);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  teardown();
}
END_TEST

/* ---- what does not speak TLS --------------------------------------------- */

/* Expect an error from a port without TLS. The server reads the client's first
   bytes and sends `answer`; NULL: the server closes the connection instead. */
static void expect_of_plain_port(const char *answer, lk_tls_cause cause,
                                 const char *why)
{
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = lk__address_len(&server.at),
                          .host = "zk.test",
                          .tls = &config};
  lk_flow flow = type->open(t, &to);
  char room[4096];
  int fd = -1;

  for (int i = 0; i < STEPS && flow != LK_FLOW_FAILED; i++) {
    wait_shortly();
    flow = type->handshake(t);
    if (fd < 0)
      fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || recv(fd, room, sizeof room, 0) <= 0)
      continue;
    if (answer == NULL)
      close(fd);
    else
      ck_assert_int_gt(send(fd, answer, strlen(answer), MSG_NOSIGNAL), 0);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_msg(t->cause == cause && strstr(t->why, why) != NULL, "%d: %s",
                (int)t->cause, t->why);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  type->close(t);
  if (answer != NULL)
    close(fd);
}

START_TEST(port_without_tls_is_reported)
{
  setup_client_and_server();
  expect_of_plain_port(NULL, LK_TLS_NOT_TLS, "instead of answering");
  expect_of_plain_port("HTTP/1.1 400 Bad Request\r\n\r\n", LK_TLS_NOT_TLS,
                       "does not speak TLS");
  expect_of_plain_port("This ZooKeeper instance is not currently serving "
                       "requests\n",
                       LK_TLS_NOT_TLS, "does not speak TLS");
  teardown();
}
END_TEST

START_TEST(refused_tcp_connection_is_no_tls_error)
{
  setup_client_and_server();
  close(server.listener);
  ck_assert_int_eq(connect_to("zk.test"), LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_CONNECT);
  ck_assert_ptr_nonnull(strstr(t->why, "refused"));
  server.listener = -1;
  teardown();
}
END_TEST

START_TEST(old_tls_versions_are_refused)
{
  setup_client_and_server();
  SSL_CTX_set_min_proto_version(server.context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(server.context, TLS1_1_VERSION);
  ck_assert_int_eq(connect_to("zk.test"), LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  ck_assert_ptr_nonnull(strstr(t->why, "no TLS 1.2 or later"));
  teardown();
}
END_TEST

SUITE("tls", server_with_name_or_address_is_trusted,
      name_is_sent_and_address_is_not, certificate_of_another_name_is_refused,
      common_name_is_not_used,
      names_of_certificate_are_shown_without_control_characters,
      expected_server_name_can_be_configured, unknown_ca_is_refused,
      certificate_signed_by_itself_is_refused,
      without_ca_the_cas_of_the_system_are_used,
      cas_of_the_system_can_be_added_to_those_of_the_program,
      expired_certificate_is_refused,
      certificate_that_is_not_valid_yet_is_refused,
      revoked_certificate_is_refused,
      missing_or_outdated_revocation_list_refuses,
      list_signed_by_another_ca_of_that_name_refuses,
      another_ca_of_that_name_is_refused, each_opt_out_disables_its_check,
      client_certificate_is_presented, missing_client_certificate_is_reported,
      refused_client_certificate_is_reported, encrypted_key_needs_its_password,
      key_of_another_certificate_is_refused, files_are_read_at_each_attempt,
      certificate_key_and_password_come_from_files,
      key_may_stand_beside_the_certificate, check_reports_errors_in_the_files,
      session_is_resumed_while_nothing_has_changed,
      session_is_resumed_again_after_its_ticket_was_renewed,
      revocation_ends_a_session,
      output_beyond_the_socket_buffer_is_sent_in_steps,
      bytes_buffered_by_openssl_are_reported,
      records_received_together_take_one_read,
      half_a_record_is_waited_for_by_its_descriptor,
      data_right_behind_the_handshake_leave_the_descriptor_readable,
      end_without_an_alert_is_an_ordinary_end,
      sending_to_a_closed_connection_raises_no_signal, damaged_record_fails,
      port_without_tls_is_reported, refused_tcp_connection_is_no_tls_error,
      old_tls_versions_are_refused,
      connection_is_described_with_both_certificates,
      certificate_that_was_refused_is_described, system_without_cas_is_an_error,
      check_names_a_file_with_a_long_path)
