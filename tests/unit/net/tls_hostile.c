/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The TLS transport against misbehaving servers, and with invalid files,
 * callbacks and settings.
 */

#include "support/suite.h"

#include <latchkey/client.h>

#include <fcntl.h>
#include <openssl/conf.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "support/tls_server.h"

enum { STEPS = 2000 };

static const lk_transport_type *type;
static lk_transport *t;
static tls_identity ca, server_identity;
static char *ca_pem, *server_pem, *key_pem;
static tls_server server;
static lk_tls_config config;
static time_t clock_shift_s; /* added to the result of time() */

/* Takes the place of the C library's time(), for OpenSSL and for the transport.
 */
time_t time(time_t *out)
{
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += clock_shift_s;
  if (out != NULL)
    *out = now.tv_sec;
  return now.tv_sec;
}

static void begin(void)
{
  const tls_identity *no_trust = NULL; /* clients need no certificate */
  const tls_wish authority = {.ca = true};
  const tls_wish wish = {.names = "DNS:zk.test, IP:127.0.0.1", .serial = 7};

  type = lk_transport_tls();
  ck_assert_ptr_nonnull(type);
  t = calloc(1, type->object_size);
  ck_assert_ptr_nonnull(t);
  t->fd = -1;
  ca = tls_issue(NULL, "latchkey test CA", &authority);
  server_identity = tls_issue(&ca, "server", &wish);
  ca_pem = tls_pem_of_certificate(&ca);
  server_pem = tls_pem_of_certificate(&server_identity);
  tls_server_open(&server, &server_identity, no_trust);
  config = (lk_tls_config){.size = sizeof config, .ca_pem = lk_text(ca_pem)};
}

static void finish(void)
{
  type->close(t);
  type->end(t);
  free(t);
  tls_server_close(&server);
  tls_identity_free(&server_identity);
  tls_identity_free(&ca);
  free(ca_pem);
  free(server_pem);
  free(key_pem);
  key_pem = NULL;
}

/* Sleep shortly, until the kernel has passed the bytes on. */
static void wait_shortly(void)
{
  struct pollfd p = {.fd = t->fd, .events = POLLIN};

  (void)poll(&p, 1, 1);
}

static lk_flow open_to_server(void)
{
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = lk__address_len(&server.at),
                          .host = "zk.test",
                          .tls = &config};

  return type->open(t, &to);
}

static void expect_connected(void)
{
  lk_flow flow = open_to_server();

  for (int i = 0; i < STEPS && flow != LK_FLOW_DONE; i++) {
    ck_assert_msg(flow == LK_FLOW_READ || flow == LK_FLOW_WRITE, "%s", t->why);
    tls_server_step(&server);
    wait_shortly();
    flow = type->handshake(t);
  }
  ck_assert_int_eq(flow, LK_FLOW_DONE);
  for (int i = 0; i < STEPS && !server.ready; i++)
    tls_server_step(&server);
  ck_assert(server.ready);
}

static void expect_failed_files(const char *why)
{
  ck_assert_int_eq(open_to_server(), LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  ck_assert_int_eq(t->cause, LK_TLS_FILES);
  ck_assert_msg(strstr(t->why, why) != NULL, "%s", t->why);
  type->close(t);
}

static void hang_up(void)
{
  type->close(t);
  tls_server_hang_up(&server);
}

/* Receive, or find that there is nothing to receive yet. */
static void receive_or_wait(void *room, size_t size, size_t *got)
{
  lk_flow flow = type->recv(t, room, size, got);

  ck_assert_msg(flow == LK_FLOW_DONE || flow == LK_FLOW_READ, "%s", t->why);
}

/* How many bytes have come and were not read. */
static int unread_bytes(void)
{
  int n = 0;

  ck_assert_int_eq(ioctl(t->fd, FIONREAD, &n), 0);
  return n;
}

/* ---- servers that never pause -------------------------------------------- */

/* Connect the client, and accept the connection without TLS. Reads the client's
   first message. */
static void accept_without_tls(void)
{
  char hello[4096];
  lk_flow flow = open_to_server();

  for (int i = 0; i < STEPS && server.fd < 0; i++) {
    server.fd =
        accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    wait_shortly();
  }
  ck_assert_int_ge(server.fd, 0);
  for (int i = 0; i < STEPS; i++) {
    ck_assert(flow == LK_FLOW_READ || flow == LK_FLOW_WRITE);
    flow = type->handshake(t);
    if (recv(server.fd, hello, sizeof hello, 0) > 0)
      return;
    wait_shortly();
  }
  ck_abort_msg("the client said no hello");
}

START_TEST(endless_hello_requests_do_not_hold_the_handshake)
{
  static const char hello_request[] = "\x16\x03\x03\x00\x04\x00\x00\x00\x00";
  enum { LEN = sizeof hello_request - 1, COUNT = 4096 };
  char *flood = malloc(LEN * COUNT);
  lk_flow flow;

  begin();
  accept_without_tls();
  ck_assert_ptr_nonnull(flood);
  for (size_t i = 0; i < COUNT; i++)
    memcpy(flood + i * LEN, hello_request, LEN);
  ck_assert_int_eq(send(server.fd, flood, LEN * COUNT, MSG_NOSIGNAL),
                   LEN * COUNT);
  wait_shortly();
  flow = type->handshake(t);
  ck_assert_int_eq(flow, LK_FLOW_READ);
  ck_assert_int_gt(unread_bytes(), 0);
  free(flood);
  finish();
}
END_TEST

START_TEST(endless_key_updates_do_not_hold_the_reader)
{
  char room[64];
  size_t got;

  begin();
  expect_connected();
  for (int i = 0; i < 10000; i++) {
    ck_assert_int_eq(SSL_key_update(server.ssl, SSL_KEY_UPDATE_NOT_REQUESTED),
                     1);
    ck_assert_int_eq(SSL_do_handshake(server.ssl), 1);
  }
  tls_server_send(&server, "x", 1);
  wait_shortly();
  ck_assert_int_eq(type->recv(t, room, sizeof room, &got), LK_FLOW_READ);
  ck_assert_int_gt(unread_bytes(), 0);
  for (int i = 0; i < STEPS && got == 0; i++)
    receive_or_wait(room, sizeof room, &got);
  ck_assert_uint_eq(got, 1);
  finish();
}
END_TEST

START_TEST(a_long_answer_is_received_in_several_steps)
{
  enum { LEN = 4 * 1024 * 1024, RECORD = 64 };
  char *bytes = calloc(1, LEN), *room = malloc(LEN);
  size_t got, total, sent = 0;

  begin();
  expect_connected();
  ck_assert(bytes != NULL && room != NULL);
  while (sent < LEN) {
    int n = SSL_write(server.ssl, bytes + sent, RECORD);

    if (n <= 0) /* the socket is full */
      break;
    sent += (size_t)n;
  }
  wait_shortly();
  ck_assert_int_eq(type->recv(t, room, LEN, &total), LK_FLOW_DONE);
  ck_assert_int_gt(unread_bytes(), 0);
  for (int i = 0; i < 10 * STEPS && total < sent; i++) {
    receive_or_wait(room, LEN, &got);
    total += got;
  }
  ck_assert_uint_eq(total, sent);
  free(bytes);
  free(room);
  finish();
}
END_TEST

/* ---- what follows a failure ---------------------------------------------- */

/* A record of data for TLS 1.2 and 1.3, whose 32 bytes were not encrypted. */
static const char damaged_record[] = "\x17\x03\x03\x00\x20"
                                     "0123456789abcdef0123456789abcdef";

enum { DAMAGED_RECORD_LEN = sizeof damaged_record - 1 };

START_TEST(sending_after_a_failure_repeats_it)
{
  char room[16], why[sizeof t->why];
  size_t n;
  lk_flow flow = LK_FLOW_READ;

  begin();
  expect_connected();
  ck_assert_int_eq(
      send(server.fd, damaged_record, DAMAGED_RECORD_LEN, MSG_NOSIGNAL),
      DAMAGED_RECORD_LEN);
  for (int i = 0; i < STEPS && flow == LK_FLOW_READ; i++) {
    wait_shortly();
    flow = type->recv(t, room, sizeof room, &n);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  memcpy(why, t->why, sizeof why);
  ck_assert_int_eq(type->send(t, "x", 1, &n), LK_FLOW_FAILED);
  ck_assert_uint_eq(n, 0);
  ck_assert_str_eq(t->why, why);
  ck_assert_int_eq(type->recv(t, room, sizeof room, &n), LK_FLOW_FAILED);
  ck_assert_str_eq(t->why, why);
  finish();
}
END_TEST

/* The server sends an alert and resets the connection: sending fails, but the
   alert can still be read. */
START_TEST(refused_client_that_fails_to_send_learns_the_reason)
{
  char room[16];
  size_t n;
  lk_flow flow = LK_FLOW_DONE;

  begin();
  ck_assert_int_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(server.context),
                                       ca.certificate),
                   1);
  SSL_CTX_set_verify(server.context,
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  flow = open_to_server();
  for (int i = 0; i < STEPS && flow != LK_FLOW_DONE; i++) {
    tls_server_step(&server);
    wait_shortly();
    flow = type->handshake(t);
  }
  for (int i = 0; i < STEPS && !server.failed; i++)
    tls_server_step(&server);
  ck_assert(server.failed);
  tls_server_hang_up(&server);
  for (int i = 0; i < STEPS && flow == LK_FLOW_DONE; i++) {
    wait_shortly();
    flow = type->send(t, "x", 1, &n);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  ck_assert_int_eq(type->recv(t, room, sizeof room, &n), LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_TLS);
  ck_assert_int_eq(t->cause, LK_TLS_WANTS_CERTIFICATE);
  finish();
}
END_TEST

START_TEST(abandoned_handshake_leaves_no_openssl_error)
{
  begin();
  (void)open_to_server();
  for (int i = 0; i < 3; i++) {
    wait_shortly();
    (void)type->handshake(t);
  }
  type->close(t);
  ck_assert_uint_eq(ERR_peek_error(), 0);
  finish();
}
END_TEST

/* ---- sessions ------------------------------------------------------------ */

/* Connect, receive a byte so that tickets arrive, and close. Returns whether a
   session was resumed. */
static bool resumes_session(void)
{
  char room[4];
  size_t got = 0;
  bool resumed;

  expect_connected();
  resumed = SSL_session_reused(server.ssl) == 1;
  tls_server_send(&server, "x", 1);
  for (int i = 0; i < STEPS && got == 0; i++) {
    wait_shortly();
    receive_or_wait(room, sizeof room, &got);
  }
  hang_up();
  return resumed;
}

/* Start a server of this version, with a session that the client can resume. */
static void begin_with_version(int version)
{
  begin();
  SSL_CTX_set_max_proto_version(server.context, version);
  SSL_CTX_set_timeout(server.context, 100000);
  ck_assert(!resumes_session());
  ck_assert(resumes_session());
}

START_TEST(session_is_resumed_for_ten_minutes_after_it_was_verified)
{
  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    begin_with_version(version);
    clock_shift_s += 400;
    ck_assert(resumes_session()); /* the client gets a new ticket, too */
    clock_shift_s += 400;
    ck_assert(!resumes_session());
    ck_assert(resumes_session());
    clock_shift_s -= 1000;
    ck_assert(!resumes_session()); /* the clock was set back */
    finish();
  }
}
END_TEST

START_TEST(session_that_breaks_a_handshake_is_not_offered_again)
{
  for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
    lk_flow flow = LK_FLOW_READ;

    begin_with_version(version);
    accept_without_tls();
    close(server.fd);
    server.fd = -1;
    for (int i = 0; i < STEPS && flow == LK_FLOW_READ; i++) {
      wait_shortly();
      flow = type->handshake(t);
    }
    ck_assert_int_eq(flow, LK_FLOW_FAILED);
    type->close(t);
    ck_assert(!resumes_session());
    ck_assert(resumes_session());
    finish();
  }
}
END_TEST

/* ---- files, callbacks, settings ------------------------------------------ */

#define PATH_TEMPLATE "/tmp/latchkey-tls-XXXXXX"
static char path[] = PATH_TEMPLATE;

static int new_file(void)
{
  strcpy(path, PATH_TEMPLATE);
  int fd = mkstemp(path);

  ck_assert_int_ge(fd, 0);
  return fd;
}

START_TEST(a_file_of_any_length_is_read_or_refused)
{
  begin();
  int fd = new_file();

  config.ca_pem = lk_text(NULL);
  config.ca_file = path;
  /* More than the 16 MB that are read. */
  ck_assert_int_eq(ftruncate(fd, 17 * 1024 * 1024), 0);
  expect_failed_files("File too large");
  ck_assert_int_eq(ftruncate(fd, 0), 0);
  expect_failed_files("has no certificate");
  /* The certificate stands behind 100 KB that are no PEM. */
  ck_assert_int_eq(ftruncate(fd, 100 * 1024), 0);
  ck_assert_int_eq(pwrite(fd, "\n", 1, 100 * 1024 - 1), 1);
  ck_assert_int_eq(pwrite(fd, ca_pem, strlen(ca_pem), 100 * 1024),
                   (ssize_t)strlen(ca_pem));
  expect_connected();
  close(fd);
  unlink(path);
  finish();
}
END_TEST

static int give_too_much(char *out, size_t size, void *arg)
{
  (void)arg;
  memset(out, 'x', size);
  return (int)size + 100000;
}

START_TEST(password_longer_than_its_buffer_is_refused)
{
  begin();
  key_pem = tls_pem_of_key(&server_identity, "correct horse");
  config.cert_pem = lk_text(server_pem);
  config.key_pem = lk_text(key_pem);
  config.password = give_too_much;
  expect_failed_files("has no key that can be read");
  finish();
}
END_TEST

START_TEST(certificate_without_any_key_is_refused)
{
  begin();
  config.cert_pem = lk_text(server_pem);
  expect_failed_files("cert_pem: has no private key");
  finish();
}
END_TEST

/* Without a callback OpenSSL would ask for the password on the terminal, or
   read it from standard input if there is no terminal. */
START_TEST(certificate_with_a_password_does_not_prompt)
{
  static const char type_line[] = "Proc-Type: 4,ENCRYPTED\n"
                                  "DEK-Info: AES-128-CBC,"
                                  "00112233445566778899AABBCCDDEEFF\n\n";
  char pem[8192], answer[32] = "";
  int ends[2], kept = dup(STDIN_FILENO); /* `ends`: of a pipe */
  char *line_end;

  begin();
  line_end = strchr(ca_pem, '\n') + 1;
  snprintf(pem, sizeof pem, "%.*s%s%s", (int)(line_end - ca_pem), ca_pem,
           type_line, line_end);
  ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), 0);
  ck_assert_int_eq(write(ends[1], "correct horse\n", 14), 14);
  config.ca_pem = lk_text(pem);
  expect_failed_files("ca_pem");
  ck_assert_int_eq(read(ends[0], answer, sizeof answer), 14);
  dup2(kept, STDIN_FILENO);
  close(kept);
  close(ends[0]);
  close(ends[1]);
  finish();
}
END_TEST

START_TEST(certificates_that_cannot_be_parsed_are_reported_as_damaged)
{
  char pem[8192];

  begin();
  snprintf(pem, sizeof pem,
           "%s-----BEGIN CERTIFICATE-----\nMAMCAQE=\n"
           "-----END CERTIFICATE-----\n",
           ca_pem);
  config.ca_pem = lk_text(pem);
  expect_failed_files("ca_pem: is damaged");
  snprintf(pem, sizeof pem, "%s%.*s", ca_pem, (int)strlen(ca_pem) / 2, ca_pem);
  config.ca_pem = lk_text(pem);
  expect_failed_files("ca_pem: is damaged");
  finish();
}
END_TEST

static void load_settings(const char *text)
{
  int fd = new_file();

  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  ck_assert_int_eq(CONF_modules_load_file(path, NULL, 0), 1);
  unlink(path);
}

START_TEST(stricter_settings_of_the_system_stay)
{
  begin();
  SSL_CTX_set_max_proto_version(server.context, TLS1_2_VERSION);
  load_settings("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                "system_default = least\n[least]\nMinProtocol = TLSv1.3\n");
  lk_flow flow = open_to_server();

  for (int i = 0; i < STEPS && flow != LK_FLOW_FAILED; i++) {
    tls_server_step(&server);
    wait_shortly();
    flow = type->handshake(t);
    ck_assert_int_ne(flow, LK_FLOW_DONE);
  }
  ck_assert_int_eq(flow, LK_FLOW_FAILED);
  CONF_modules_unload(1);
  finish();
}
END_TEST

START_TEST(name_that_matches_others_or_is_too_long_is_refused)
{
  char text[200], name[300];

  begin();
  config.server_name = ".test";
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(text, "server_name"));
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  config.server_name = name;
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text),
                   LK_ERR_BAD_ARGUMENT);
  name[255] = '\0';
  ck_assert_int_eq(lk_tls_check(&config, text, sizeof text), 0);
  finish();
}
END_TEST

SUITE("tls_hostile", endless_hello_requests_do_not_hold_the_handshake,
      endless_key_updates_do_not_hold_the_reader,
      a_long_answer_is_received_in_several_steps,
      sending_after_a_failure_repeats_it,
      refused_client_that_fails_to_send_learns_the_reason,
      abandoned_handshake_leaves_no_openssl_error,
      session_is_resumed_for_ten_minutes_after_it_was_verified,
      session_that_breaks_a_handshake_is_not_offered_again,
      a_file_of_any_length_is_read_or_refused,
      password_longer_than_its_buffer_is_refused,
      certificate_without_any_key_is_refused,
      certificate_with_a_password_does_not_prompt,
      certificates_that_cannot_be_parsed_are_reported_as_damaged,
      stricter_settings_of_the_system_stay,
      name_that_matches_others_or_is_too_long_is_refused)
