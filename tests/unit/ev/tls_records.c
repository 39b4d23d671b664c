/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The driver, the engine and TLS together, against the model server behind TLS
 * on the same thread. A wrapper of TCP moves as many bytes at a time as a test
 * wants, and breaks where the test wants. A program must get the same results
 * as over plain TCP.
 */

#include <latchkey/ev.h>

#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "jute/reader.h"
#include "net/tcp.h"
#include "support/model_server.h"
#include "support/suite.h"
#include "support/tls_server.h"
#include "support/wire.h"

enum {
  LONG_DATA = 40000,
  LIMIT_S = 20,  /* a test that takes longer hangs */
  PLAIN_TCP = 0, /* in place of a version of TLS */
  LEN_SIZE = 4   /* the length in front of a frame */
};

/* Each thread of a test has a client and a server of its own. */
static _Thread_local bool plain, mute;
static _Thread_local tls_identity ca, server_identity;
static _Thread_local char *ca_pem;
static _Thread_local tls_server server;
static _Thread_local model_server zookeeper;
static _Thread_local model_link *served_link;

/* ---- TCP that is cut ----------------------------------------------------- */

static _Thread_local struct {
  size_t max_read;  /* the most bytes of one read; 0: no limit */
  size_t max_write; /* the most bytes of one write; 0: no limit */
  uint64_t seed; /* of random limits up to `max_read` and `max_write`; 0: these
                    are the limits */
  size_t room;   /* how many bytes can be written until it is set again */
  size_t sent;   /* how many bytes were written */
  bool waits;    /* every other call has to wait */
  bool waited;   /* the last call had to wait */
  size_t break_at; /* after so many received bytes the connection breaks once */
  bool reset;      /* it breaks by a reset instead of a regular end */
  size_t received; /* how many bytes were received */
  unsigned attempts; /* how many times a connection was opened */
} cuts;

const lk_transport_type *__real_lk_transport_tcp(void);
const lk_transport_type *__wrap_lk_transport_tcp(void);

static size_t limit_length(size_t len, size_t most)
{
  if (most == 0)
    return len;
  if (cuts.seed != 0) {
    cuts.seed = cuts.seed * 6364136223846793005u + 1442695040888963407u;
    most = 1 + (size_t)(cuts.seed >> 33) % most;
  }
  return len < most ? len : most;
}

static bool has_to_wait(void)
{
  cuts.waited = cuts.waits && !cuts.waited;
  return cuts.waited;
}

/* The client has several addresses, so that it tries the next one at once. All
   lead to the same server. */
static lk_flow cut_open(lk_transport *t, const lk_endpoint *to)
{
  lk_endpoint there = *to;

  there.address = &server.at.any;
  cuts.attempts++;
  return __real_lk_transport_tcp()->open(t, &there);
}

static lk_flow cut_handshake(lk_transport *t)
{
  return __real_lk_transport_tcp()->handshake(t);
}

static lk_flow cut_send(lk_transport *t, const void *bytes, size_t len,
                        size_t *done)
{
  size_t some = limit_length(len, cuts.max_write);

  *done = 0;
  if (has_to_wait() || cuts.room == 0)
    return LK_FLOW_WRITE;
  if (some > cuts.room)
    some = cuts.room;
  lk_flow flow = __real_lk_transport_tcp()->send(t, bytes, some, done);

  cuts.room -= *done;
  cuts.sent += *done;
  return flow == LK_FLOW_DONE && some < len ? LK_FLOW_WRITE : flow;
}

static lk_flow cut_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  size_t left = cuts.break_at - cuts.received;

  *got = 0;
  if (left == 0) {
    cuts.break_at = SIZE_MAX;
    return cuts.reset ? lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "receive",
                                           ECONNRESET)
                      : LK_FLOW_END;
  }
  if (has_to_wait())
    return LK_FLOW_READ;
  size = limit_length(size, cuts.max_read);
  lk_flow flow =
      __real_lk_transport_tcp()->recv(t, room, size < left ? size : left, got);

  cuts.received += *got;
  return flow;
}

static void cut_close(lk_transport *t)
{
  __real_lk_transport_tcp()->close(t);
}

const lk_transport_type *__wrap_lk_transport_tcp(void)
{
  static const lk_transport_type type = {
      .size = sizeof type,
      .object_size = sizeof(lk_tcp),
      .open = cut_open,
      .handshake = cut_handshake,
      .send = cut_send,
      .recv = cut_recv,
      .close = cut_close,
  };

  return &type;
}

/* ---- the server ---------------------------------------------------------- */

static void hang_up(void)
{
  tls_server_hang_up(&server);
  if (served_link != NULL)
    model_hang_up(served_link);
  served_link = NULL;
}

static void receive_plain(void)
{
  ssize_t n;

  if (server.fd < 0)
    server.fd =
        accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (server.fd < 0)
    return;
  server.ready = true;
  n = recv(server.fd, server.room + server.got, sizeof server.room - server.got,
           0);
  server.closed = n == 0 || (n < 0 && errno != EAGAIN);
  if (n > 0)
    server.got += (size_t)n;
}

static void take_frames(void)
{
  size_t at = 0;

  while (server.got - at >= LEN_SIZE) {
    lk_reader r;

    lk__reader_init(&r, server.room + at, server.got - at);
    size_t size = LEN_SIZE + (size_t)lk__reader_int(&r);

    if (server.got - at < size)
      break;
    model_take(served_link, lk_bytes_of(server.room + at, size));
    at += size;
  }
  memmove(server.room, server.room + at, server.got - at);
  server.got -= at;
}

/* Send some of what the model server has written. false: the server would have
   to wait, or the client has closed. */
static bool send_some(void)
{
  const unsigned char *bytes = lk__buf_bytes(&served_link->out);
  size_t len = lk__buf_len(&served_link->out), n = 0;
  ssize_t sent;

  if (plain) {
    sent = send(server.fd, bytes, len, MSG_NOSIGNAL);
    n = sent > 0 ? (size_t)sent : 0;
  } else {
    (void)SSL_write_ex(server.ssl, bytes, len, &n);
  }
  lk__buf_consume(&served_link->out, n);
  return n > 0;
}

static void server_step(void)
{
  if (mute)
    return;
  if (plain)
    receive_plain();
  else
    tls_server_step(&server);
  if (!server.ready || server.fd < 0) {
    if (server.failed)
      hang_up();
    return;
  }
  if (served_link == NULL)
    served_link = model_accept(&zookeeper);
  take_frames();
  while (lk__buf_len(&served_link->out) > 0 && send_some())
    ;
  if (server.closed || server.failed || !served_link->up ||
      served_link->closed_by_server) {
    hang_up();
    server.ready = server.closed = server.failed = false;
    server.got = 0;
  }
}

/* ---- the client ---------------------------------------------------------- */

static _Thread_local struct ev_loop *loop;
static _Thread_local lk_ev *ev;
static _Thread_local lk_client *client;
static _Thread_local char observed[512]; /* what the program sees */
static _Thread_local char long_data[LONG_DATA + 1];
static _Thread_local bool closed, event_seen;

static void add_line(const char *what, int err)
{
  size_t len = strlen(observed);

  snprintf(observed + len, sizeof observed - len, "%s %d, ", what, err);
}

static bool is_lost(int err)
{
  return err == LK_ERR_CONNECTION_LOSS || err == LK_ERR_IN_DOUBT ||
         err == LK_ERR_NOT_SENT;
}

static void on_closed(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  closed = true;
  add_line("closed", is_lost(err) ? 0 : err);
}

static void on_long(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)stat;
  (void)arg;
  add_line("get", err);
  if (err == 0 && data->len == LONG_DATA &&
      memcmp(data->at, long_data, LONG_DATA) == 0)
    add_line("long", 0);
  ck_assert_int_eq(lk_client_close(c, on_closed, NULL), 0);
}

static void get_long(lk_client *c)
{
  const lk_call again = {.size = sizeof again, .repeat = true};

  ck_assert_int_eq(lk_get(c, "/a", &again, on_long, NULL), 0);
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)w;
  (void)event;
  (void)arg;
  if (!event_seen)
    get_long(c);
  event_seen = true;
}

static void on_short(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  (void)arg;
  add_line("get", err);
  if (err == 0 && data->len == 5 && memcmp(data->at, "short", 5) == 0)
    add_line("short", 0);
  model_set(&zookeeper, "/a", long_data);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  const lk_call watched = {
      .size = sizeof watched, .repeat = true, .on_event = on_event};

  (void)path;
  (void)stat;
  (void)arg;
  if (is_lost(err)) {
    ck_assert_int_eq(
        lk_create(c, "/a", lk_text("short"), NULL, 0, NULL, on_created, NULL),
        0);
    return;
  }
  add_line("create", err == LK_ERR_NODE_EXISTS ? 0 : err);
  ck_assert_int_eq(lk_get(c, "/a", &watched, on_short, NULL), 0);
}

static bool takes_too_long(const struct timespec *from)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec - from->tv_sec > LIMIT_S;
}

static void turn(void)
{
  server_step();
  ev_run(loop, EVRUN_NOWAIT);
}

static void new_client(void)
{
  const lk_tls_config tls = {
      .size = sizeof tls, .ca_pem = lk_text(ca_pem), .server_name = "zk.test"};
  const lk_client_config config = {
      .size = sizeof config,
      .hosts = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4",
      .session_timeout_ms = 6000,
      .tls = plain ? NULL : &tls};

  ck_assert_int_eq(lk_ev_client_new(&client, ev, &config), 0);
}

/* Make all calls of a program from connect to close; `observed` gets the
 * results. */
static void run_program(void)
{
  struct timespec from;

  observed[0] = '\0';
  closed = event_seen = false;
  cuts.received = cuts.attempts = 0;
  model_init(&zookeeper);
  new_client();
  ck_assert_int_eq(lk_create(client, "/a", lk_text("short"), NULL, 0, NULL,
                             on_created, NULL),
                   0);
  clock_gettime(CLOCK_MONOTONIC, &from);
  while (!closed) {
    turn();
    ck_assert_msg(!takes_too_long(&from), "it hangs: %s", observed);
  }
  lk_client_free(client);
  hang_up();
  server.ready = server.failed = server.closed = false;
  model_done(&zookeeper);
}

static void start(int version)
{
  const tls_wish authority = {.ca = true};
  const tls_wish wish = {.names = "DNS:zk.test"};

  (void)signal(SIGPIPE, SIG_IGN); /* the server writes to broken connections */
  memset(&cuts, 0, sizeof cuts);
  cuts.break_at = cuts.room = SIZE_MAX;
  plain = version == PLAIN_TCP;
  memset(long_data, 'x', LONG_DATA);
  ca = tls_issue(NULL, "latchkey test CA", &authority);
  server_identity = tls_issue(&ca, "server", &wish);
  ca_pem = tls_pem_of_certificate(&ca);
  tls_server_open(&server, &server_identity, NULL);
  if (!plain)
    SSL_CTX_set_max_proto_version(server.context, version);
  loop = ev_loop_new(EVFLAG_AUTO);
  ck_assert_ptr_nonnull(loop);
  ck_assert_int_eq(lk_ev_new(&ev, loop, NULL), 0);
}

static void stop(void)
{
  lk_ev_free(ev);
  ev_loop_destroy(loop);
  tls_server_close(&server);
  tls_identity_free(&server_identity);
  tls_identity_free(&ca);
  free(ca_pem);
}

static const char all_results[] =
    "create 0, get 0, short 0, get 0, long 0, closed 0, ";
static const int versions[] = {PLAIN_TCP, TLS1_2_VERSION, TLS1_3_VERSION};

enum { VERSIONS = sizeof versions / sizeof *versions, FIRST_TLS = 1 };

/* ---- tests --------------------------------------------------------------- */

START_TEST(session_works_over_tls_as_over_tcp)
{
  for (size_t v = 0; v < VERSIONS; v++) {
    start(versions[v]);
    run_program();
    ck_assert_str_eq(observed, all_results);
    ck_assert_uint_eq(cuts.attempts, 1);
    stop();
  }
}
END_TEST

static lk_transport *connect_transport(const lk_tls_config *tls)
{
  const lk_transport_type *type = lk_transport_tls();
  const lk_endpoint to = {.size = sizeof to,
                          .address = &server.at.any,
                          .address_len = sizeof server.at,
                          .host = "zk.test",
                          .tls = tls};
  lk_transport *t = calloc(1, type->object_size);

  ck_assert_ptr_nonnull(t);
  t->fd = -1;
  lk_flow flow = type->open(t, &to);

  for (int i = 0; i < 1000 && flow != LK_FLOW_DONE; i++) {
    ck_assert_int_ne(flow, LK_FLOW_FAILED);
    tls_server_step(&server);
    (void)usleep(1000);
    flow = type->handshake(t);
  }
  ck_assert_int_eq(flow, LK_FLOW_DONE);
  return t;
}

/* A request of the first record may be executed: it must not count as one that
   was not sent. */
START_TEST(record_that_was_sent_is_reported_though_the_next_one_waits)
{
  static const unsigned char bytes[36];
  size_t done;

  for (size_t v = FIRST_TLS; v < VERSIONS; v++) {
    start(versions[v]);
    const lk_tls_config tls = {.size = sizeof tls, .ca_pem = lk_text(ca_pem)};
    const lk_transport_type *type = lk_transport_tls();
    lk_transport *t = connect_transport(&tls);

    cuts.sent = 0;
    ck_assert_int_eq(type->send(t, bytes, 24, &done), LK_FLOW_DONE);
    size_t record_len = cuts.sent; /* on the wire */

    cuts.room = 10; /* a part of the record */
    ck_assert_int_eq(type->send(t, bytes, 24, &done), LK_FLOW_WRITE);
    ck_assert_uint_eq(done, 0);
    cuts.room = record_len - 10 + 5; /* the rest, and a part of the next one */
    ck_assert_int_eq(type->send(t, bytes, 36, &done), LK_FLOW_WRITE);
    ck_assert_uint_eq(done, 24);
    cuts.room = SIZE_MAX;
    ck_assert_int_eq(type->send(t, bytes + 24, 12, &done), LK_FLOW_DONE);
    ck_assert_uint_eq(done, 12);
    type->close(t);
    type->end(t);
    free(t);
    stop();
  }
}
END_TEST

START_TEST(session_over_tls_works_in_pieces_of_any_length)
{
  static const size_t lengths[] = {
      1, 2, 3, 4, 5, 6, 7, 29, 64, 255, 1000, 1460, 4096, 16383, 16384, 16385};

  for (size_t v = 0; v < VERSIONS; v++) {
    start(versions[v]);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      cuts.max_read = cuts.max_write = lengths[i];
      cuts.waits = i % 2 == 0 || lengths[i] == 1460;
      run_program();
      ck_assert_str_eq(observed, all_results);
      ck_assert_uint_eq(cuts.attempts, 1);
    }
    stop();
  }
}
END_TEST

START_TEST(session_over_tls_works_in_pieces_of_random_length)
{
  for (size_t v = FIRST_TLS; v < VERSIONS; v++) {
    start(versions[v]);
    for (unsigned seed = 1; seed <= 20; seed++) {
      cuts.seed = seed;
      cuts.max_read = 1 + seed * 37 % 600;
      cuts.max_write = 1 + seed * 11 % 90;
      cuts.waits = seed % 2 == 0;
      run_program();
      ck_assert_str_eq(observed, all_results);
      ck_assert_uint_eq(cuts.attempts, 1);
    }
    stop();
  }
}
END_TEST

/* Run the program again and again, each time with a later break: after 0 bytes
   from the server, after `step` bytes, and so on, above 3000 bytes in larger
   steps. Return when the program has received fewer bytes than that. */
static void break_everywhere(size_t step)
{
  bool program_was_broken = true;

  for (size_t at = 0; program_was_broken; at += at < 3000 ? step : 2000) {
    cuts.break_at = at;
    cuts.reset = at / step % 2 == 1; /* every other time */
    run_program();
    ck_assert_msg(strcmp(observed, all_results) == 0, "broken at %zu: %s", at,
                  observed);
    program_was_broken = cuts.received >= at;
  }
}

START_TEST(break_at_any_byte_loses_no_request)
{
  for (size_t v = 0; v < VERSIONS; v++) {
    start(versions[v]);
    break_everywhere(v == 0 ? 61 : 79);
    stop();
  }
}
END_TEST

/* The deadline of the attempt ends a handshake in which nothing happens. */
START_TEST(handshake_that_hangs_ends_at_its_deadline)
{
  struct timespec from;

  start(TLS1_3_VERSION);
  model_init(&zookeeper);
  cuts.attempts = 0;
  mute = true;
  new_client();
  clock_gettime(CLOCK_MONOTONIC, &from);
  while (cuts.attempts < 2) {
    ev_run(loop, EVRUN_NOWAIT);
    usleep(1000);
    ck_assert(!takes_too_long(&from));
  }
  mute = false;
  lk_client_free(client);
  model_done(&zookeeper);
  stop();
}
END_TEST

/* Returns NULL, or any other pointer if a result was wrong. */
static void *run_programs(void *arg)
{
  int *version = arg;
  void *wrong = NULL;

  start(*version);
  for (int i = 0; i < 10; i++) {
    run_program();
    if (strcmp(observed, all_results) != 0)
      wrong = version;
  }
  stop();
  return wrong;
}

START_TEST(clients_in_several_threads_are_independent)
{
  int thread_versions[] = {TLS1_2_VERSION, TLS1_3_VERSION, TLS1_3_VERSION};
  pthread_t threads[3];
  void *wrong;

  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, run_programs, &thread_versions[i]),
        0);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
    ck_assert_ptr_null(wrong);
  }
}
END_TEST

SUITE("tls_records", session_works_over_tls_as_over_tcp,
      record_that_was_sent_is_reported_though_the_next_one_waits,
      session_over_tls_works_in_pieces_of_any_length,
      session_over_tls_works_in_pieces_of_random_length,
      break_at_any_byte_loses_no_request,
      handshake_that_hangs_ends_at_its_deadline,
      clients_in_several_threads_are_independent)
