/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"

#include <stdio.h>

static failing_mem mem;
static lk_client *client;

enum { NOW_MS = 5000, RANDOM_BYTE = 0x5a };

static int64_t on_now(void *arg)
{
  (void)arg;
  return NOW_MS;
}

static void on_random(void *arg, void *out, size_t len)
{
  (void)arg;
  memset(out, RANDOM_BYTE, len);
}

static void on_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

static lk_hooks hooks(void)
{
  lk_hooks h = {
      .size = sizeof h, .now = on_now, .random = on_random, .wake = on_wake};

  return h;
}

static lk_client_config config(void)
{
  lk_client_config c = {.size = sizeof c, .mem = &mem.mem};

  failing_mem_init(&mem);
  return c;
}

/* Returns the result of lk_client_new(), and frees the client. */
static int try_new_client(const lk_client_config *c, const lk_hooks *h)
{
  client = (lk_client *)&mem; /* a failure must set it to NULL */
  int err = lk_client_new(&client, c, h);

  ck_assert((err == 0) == (client != NULL));
  lk_client_free(client);
  ck_assert_uint_eq(mem.live, 0);
  return err;
}

START_TEST(a_client_needs_its_hooks)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  ck_assert_int_eq(try_new_client(&c, &h), 0);
  ck_assert_int_eq(try_new_client(&c, NULL), LK_ERR_BAD_ARGUMENT);
  h.now = NULL;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  h = hooks();
  h.random = NULL;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  h = hooks();
  h.wake = NULL;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  ck_assert_int_eq(try_new_client(NULL, &h), LK_ERR_BAD_ARGUMENT);
  c.size = 0;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.session_timeout_ms = -1;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.give_up_ms = -2;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.send_limit = (size_t)INT32_MAX + 1;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.receive_limit = (size_t)INT32_MAX + 1;
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.session_timeout_ms = INT32_MAX;
  c.give_up_ms = -1;
  c.send_limit = INT32_MAX;
  c.receive_limit = INT32_MAX;
  ck_assert_int_eq(try_new_client(&c, &h), 0);
}
END_TEST

START_TEST(wrong_servers_are_refused)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  c.hosts = "a:0";
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_HOSTS);
  c.hosts = "";
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_HOSTS);
  c.hosts = "a//b";
  ck_assert_int_eq(try_new_client(&c, &h), LK_ERR_BAD_HOSTS);
}
END_TEST

START_TEST(without_memory_there_is_no_client)
{
  lk_hooks h = hooks();
  bool failed = true;

  for (size_t n = 1; failed; n++) {
    lk_client_config c = config();

    mem.fail_at = n;
    int err = try_new_client(&c, &h);

    failed = failing_mem_failed(&mem);
    ck_assert_int_eq(err, failed ? LK_ERR_NO_MEMORY : 0);
    ck_assert(failed || n > 3); /* it needs a few allocations */
  }
}
END_TEST

START_TEST(new_client_keeps_its_options)
{
  lk_client_config c = config();
  lk_session resume = {.id = 77, .password = "0123456789abcde"};
  lk_hooks h = hooks();
  lk_want want;
  const char *why;
  unsigned char bytes[3];
  char hosts[] = "[::1]:7/some/root"; /* the client must copy it */

  c.hosts = hosts;
  c.resume = &resume;
  c.session_timeout_ms = 1234;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  memset(hosts, 'x', sizeof hosts - 1);
  resume.id = 0;
  memset(&h, 0, sizeof h);
  ck_assert_int_eq(lk_client_state(client), LK_STATE_CONNECTING);
  ck_assert_int_eq(lk_client_timeout_ms(client), 1234);
  ck_assert_int_eq(lk_client_session(client).id, 77);
  ck_assert_mem_eq(lk_client_session(client).password, "0123456789abcde", 16);
  ck_assert_uint_eq(lk_client_connection(client), 0);
  ck_assert_str_eq(lk_client_chroot(client), "/some/root");
  ck_assert_int_eq(lk_client_last_error(client, &why), 0);
  ck_assert_str_eq(why, "");
  ck_assert_int_eq(lk_client_input_ms(client), NOW_MS);
  ck_assert_int_eq(lk_client_clock(client), NOW_MS);
  ck_assert_ptr_null(lk_client_reply(client));
  ck_assert_ptr_eq(lk_client_mem(client)->arg, &mem);
  lk_client_random(client, bytes, sizeof bytes);
  ck_assert_int_eq(bytes[2], RANDOM_BYTE);
  lk_client_log(client, LK_LOG_ERROR, 0, "nobody listens");
  /* The client wants nothing before its first tick, which is due at once. */
  want = *lk_client_want(client);
  ck_assert_uint_eq(want.attempt, 0);
  ck_assert_int_le(lk_client_deadline(client), NOW_MS);
  lk_client_tick(client);
  want = *lk_client_want(client);
  ck_assert_uint_eq(want.attempt, 1);
  ck_assert_str_eq(want.host, "::1");
  ck_assert_uint_eq(want.port, 7);
  ck_assert_str_eq(lk_client_server(client), "[::1]:7");
  lk_client_free(client);
  lk_client_free(NULL);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(client_without_servers_connects_to_localhost)
{
  lk_client_config c = config();
  lk_hooks h = hooks();
  lk_want want;

  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  lk_client_tick(client);
  want = *lk_client_want(client);
  ck_assert_str_eq(want.host, "127.0.0.1");
  ck_assert_uint_eq(want.port, 2181);
  ck_assert_int_eq(lk_client_timeout_ms(client), 30000);
  ck_assert_str_eq(lk_client_chroot(client), "");
  lk_client_free(client);
}
END_TEST

static void check_first_server(bool in_order, const char *name)
{
  lk_client_config c = config();
  lk_hooks h = hooks();
  lk_want want;

  c.hosts = "a,b,c,d,e";
  c.in_order = in_order;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  lk_client_tick(client);
  want = *lk_client_want(client);
  ck_assert_str_eq(want.host, name);
  lk_client_free(client);
}

/* The hook always returns the same random number. */
START_TEST(servers_are_tried_in_order_if_the_program_asks_for_it)
{
  const bool in_order = true;

  check_first_server(in_order, "a");
  check_first_server(!in_order, "b");
}
END_TEST

START_TEST(every_state_has_a_name)
{
  for (int i = LK_STATE_CONNECTING; i <= LK_STATE_CLOSED; i++) {
    const char *name = lk_state_text((lk_state)i);

    ck_assert_str_ne(name, "unknown state");
    for (int k = LK_STATE_CONNECTING; k < i; k++)
      ck_assert_str_ne(name, lk_state_text((lk_state)k));
  }
  ck_assert_str_eq(lk_state_text((lk_state)99), "unknown state");
}
END_TEST

/* ---- the reply that a callback sees -------------------------------------- */

static int seen_err;
static int64_t seen_zxid, seen_sent_ms, seen_received_ms;

static void on_done(lk_client *c, int err, void *arg)
{
  const lk_reply *a = lk_client_reply(c);

  (void)arg;
  ck_assert_ptr_nonnull(a);
  seen_err = err;
  seen_zxid = a->zxid;
  seen_sent_ms = a->sent_ms;
  seen_received_ms = a->received_ms;
  ck_assert_int_eq(a->evidence, LK_EVIDENCE_COMMIT);
  ck_assert_uint_eq(a->connection, 1);
}

static void receive(harness *h, lk_buf *b)
{
  harness_receive(h, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_consume(b, lk__buf_len(b));
}

/* A harness that does not log requests. Its client wants its first connection.
 */
static harness *new_peer(void)
{
  lk_client_config c = {.size = sizeof c};
  harness *h = calloc(1, sizeof *h);

  failing_mem_init(&h->mem);
  h->mute = true;
  ck_assert_int_eq(harness_init(h, &c), 0);
  harness_settle(h);
  return h;
}

static void connect_client(harness *h)
{
  lk_buf b = wire_buf();

  harness_connected(h);
  wire_welcome(&b, 7, 30000);
  receive(h, &b);
  lk__buf_free(&b);
}

START_TEST(reply_has_the_times_of_its_request_and_its_receipt)
{
  harness *h = new_peer();
  lk_buf b = wire_buf();

  connect_client(h);
  h->now += 10; /* the client has not read the clock again */
  ck_assert_int_eq(lk_delete(h->client, "/a", -1, NULL, on_done, NULL), 0);
  h->now += 20;
  ck_assert_int_eq(lk_delete(h->client, "/a", -1, NULL, on_done, NULL), 0);
  harness_settle(h);
  h->now += 30;
  wire_reply(&b, 1, 99, 0);
  receive(h, &b);
  ck_assert_int_eq(seen_zxid, 99);
  ck_assert_int_eq(seen_sent_ms, h->log_start + 10);
  ck_assert_int_eq(seen_received_ms, h->log_start + 60);
  h->now += 40;
  wire_reply(&b, 2, 100, 0);
  receive(h, &b);
  ck_assert_int_eq(seen_zxid, 100);
  /* Both requests were sent together, so the second may have the time of the
     first. An earlier time is safe. */
  ck_assert_int_le(seen_sent_ms, h->log_start + 30);
  ck_assert_int_ge(seen_sent_ms, h->log_start + 10);
  ck_assert_int_eq(seen_received_ms, h->log_start + 100);
  ck_assert_int_eq(seen_err, 0);
  ck_assert_ptr_null(lk_client_reply(h->client));
  lk__buf_free(&b);
  harness_done(h);
  free(h);
}
END_TEST

/* ---- handles of watches -------------------------------------------------- */

static unsigned created_events;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  ck_assert_ptr_eq(w, *(lk_watch **)arg);
  if (event->type == LK_EVENT_CREATED)
    created_events++;
}

/* Watch a node that does not exist; the reply comes at once. */
static void watch_missing_node(harness *h, const char *path, lk_watch **handle)
{
  lk_call call = {.size = sizeof call,
                  .on_event = on_event,
                  .watch_arg = handle,
                  .watch = handle};
  lk_buf b = wire_buf();

  ck_assert_int_eq(lk_exists(h->client, path, &call, NULL, NULL), 0);
  harness_settle(h);
  wire_reply(&b, h->client->session.last_xid, 5, LK_ERR_NO_NODE);
  receive(h, &b);
  lk__buf_free(&b);
}

static void receive_created_event(harness *h, const char *path)
{
  lk_buf b = wire_buf();

  wire_event(&b, LK_EVENT_CREATED, path);
  receive(h, &b);
  lk__buf_free(&b);
}

START_TEST(late_cancel_of_a_watch_cancels_no_other)
{
  harness *h = new_peer();
  lk_watch *first, *second;

  created_events = 0;
  connect_client(h);
  watch_missing_node(h, "/a", &first);
  receive_created_event(h, "/a");
  ck_assert_uint_eq(created_events, 1);
  watch_missing_node(h, "/b", &second);
  ck_assert_ptr_ne(first, second);
  lk_watch_cancel(h->client, first);
  lk_watch_cancel(h->client, NULL);
  receive_created_event(h, "/b");
  ck_assert_uint_eq(created_events, 2);
  harness_done(h);
  free(h);
}
END_TEST

/* ---- a connection that is made without memory ---------------------------- */

enum { WATCHES = 300, PAUSE_BEFORE_RECONNECT_MS = 1000 };

/* The client then expects a connect response. Its output stays in its buffer.
 */
static void reconnect(harness *h)
{
  harness_pass(h, PAUSE_BEFORE_RECONNECT_MS);
  harness_connected(h);
  h->room = 0;
}

/* Have the next connect response allocate the output buffer, too. */
static void free_output_buffer(harness *h)
{
  lk__buf_free(&h->client->output.bytes);
}

/* Make a client that has reconnected and waits for the connect response. It has
   an identity that needs a block of its own, many watches, and a waiting
   request. */
static harness *new_peer_with_watches(void)
{
  char secret[1000] = "bob:";
  harness *h = new_peer();
  lk_buf b = wire_buf();

  memset(secret + 4, 'x', sizeof secret - 4);
  harness_auth(h, "id", "digest", lk_bytes_of(secret, sizeof secret));
  connect_client(h);
  for (int32_t i = 1; i <= WATCHES; i++) {
    char path[64];

    snprintf(path, sizeof path, "/some/path/that/is/not/short/%d", (int)i);
    harness_exists(h, &(harness_call){.name = "e", .watch = "w"}, path);
    harness_settle(h);
    wire_reply(&b, i, 1, LK_ERR_NO_NODE);
    receive(h, &b);
  }
  harness_failed(h, 0, NULL);
  harness_get(h, &(harness_call){.name = "g"}, "/a");
  free_output_buffer(h);
  reconnect(h);
  lk__buf_free(&b);
  return h;
}

enum { NO_FAILURE = 0 };

/* `nth`: which allocation from now on fails, or NO_FAILURE. */
static void receive_welcome(harness *h, size_t nth)
{
  lk_buf b = wire_buf();

  h->mem.fail_at = nth == NO_FAILURE ? 0 : h->mem.count + nth;
  wire_welcome(&b, 7, 30000);
  receive(h, &b);
  lk__buf_free(&b);
}

/* How many bytes the client sends after a connect response during which the nth
   allocation fails. 0: the client did not accept the response. */
static size_t sent_after_welcome(size_t nth, bool *failed)
{
  harness *h = new_peer_with_watches();

  receive_welcome(h, nth);
  *failed = failing_mem_failed(&h->mem);
  size_t len = lk_client_state(h->client) == LK_STATE_CONNECTED
                   ? lk_client_pending(h->client).len
                   : 0;
  const char *why;

  if (*failed)
    ck_assert_int_eq(lk_client_last_error(h->client, &why), LK_ERR_NO_MEMORY);
  harness_done(h);
  free(h);
  return len;
}

START_TEST(client_sends_everything_after_a_welcome_or_drops_the_connection)
{
  bool failed;
  size_t whole = sent_after_welcome(NO_FAILURE, &failed);

  ck_assert_uint_gt(whole, WATCHES * strlen("/some/path/that/is/not/short/1"));
  for (size_t n = 1;; n++) {
    size_t len = sent_after_welcome(n, &failed);

    ck_assert_uint_eq(len, failed ? 0 : whole);
    if (!failed) {
      ck_assert_uint_gt(n, 3); /* the response needs a few allocations */
      break;
    }
  }
}
END_TEST

enum { REPEATED = 40 };

/* Make a client that has lost its connection and has reads to repeat. */
static harness *new_peer_with_reads(void)
{
  harness *h = new_peer();

  connect_client(h);
  harness_failed(h, 0, NULL);
  for (int i = 0; i < REPEATED; i++) {
    char path[64];

    snprintf(path, sizeof path, "/node-%02d-with-a-name-that-takes-room", i);
    harness_get(h, &(harness_call){.name = "g", .repeat = true}, path);
  }
  free_output_buffer(h);
  return h;
}

/* Check that the reads of new_peer_with_reads() stand in `out`, in order. */
static void expect_reads_in_order(lk_bytes out)
{
  const char *bytes = out.at;
  size_t next = 0;

  for (size_t i = 0; i + strlen("/node-00") <= out.len; i++) {
    char expected[16];

    if (memcmp(bytes + i, "/node-", strlen("/node-")) != 0)
      continue;
    snprintf(expected, sizeof expected, "/node-%02u", (unsigned)next);
    ck_assert_mem_eq(bytes + i, expected, strlen(expected));
    next++;
  }
  ck_assert_uint_eq(next, REPEATED);
}

START_TEST(repeated_requests_keep_their_order_when_memory_fails)
{
  bool failed = true;

  for (size_t n = 1; failed; n++) {
    harness *h = new_peer_with_reads();

    reconnect(h);
    receive_welcome(h, n);
    failed = failing_mem_failed(&h->mem);
    if (failed) {
      reconnect(h);
      receive_welcome(h, NO_FAILURE);
    }
    ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
    expect_reads_in_order(lk_client_pending(h->client));
    ck_assert(failed || n > 1); /* the response needs an allocation */
    harness_done(h);
    free(h);
  }
}
END_TEST

static void count_line(void *arg, lk_log_level level, int err, const char *text)
{
  unsigned *lines = arg;

  (void)err;
  (void)text;
  lines[level]++;
}

static void expect_logged(lk_log_level least, lk_log_level expected)
{
  unsigned lines[LK_LOG_DEBUG + 1] = {0};
  lk_client_config c = config();
  lk_hooks h = hooks();

  c.log_level = least;
  c.log = count_line;
  c.log_arg = lines;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  for (int level = LK_LOG_ERROR; level <= LK_LOG_DEBUG; level++) {
    lk_client_log(client, (lk_log_level)level, 0, "text");
    lk__client_logf(client, (lk_log_level)level, 0, "%d", level);
    ck_assert_uint_eq(lines[level], level <= (int)expected ? 2 : 0);
  }
  lk_client_free(client);
}

START_TEST(lines_below_the_level_are_not_logged)
{
  expect_logged((lk_log_level)0, LK_LOG_INFO);
  expect_logged(LK_LOG_ERROR, LK_LOG_ERROR);
  expect_logged(LK_LOG_WARNING, LK_LOG_WARNING);
  expect_logged(LK_LOG_DEBUG, LK_LOG_DEBUG);
}
END_TEST

/* ---- listeners of older and newer programs ------------------------------- */

static unsigned listener_calls;

static void count_state(lk_client *c, lk_state state, int err, void *arg)
{
  (void)c;
  (void)state;
  (void)err;
  (void)arg;
  listener_calls++;
}

/* A listener whose header has one function more than the library. */
typedef struct newer_listener {
  lk_listener known;
  void (*newer)(void);
} newer_listener;

START_TEST(listener_needs_its_size_and_may_be_newer)
{
  lk_client_config c = config();
  lk_hooks h = hooks();
  newer_listener l = {.known = {.state = count_state}};

  listener_calls = 0;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  ck_assert_int_eq(lk_client_attach(client, &l.known), LK_ERR_BAD_ARGUMENT);
  l.known.size = sizeof l.known - 1;
  ck_assert_int_eq(lk_client_attach(client, &l.known), LK_ERR_BAD_ARGUMENT);
  l.known.size = sizeof l;
  l.newer = abort;
  ck_assert_int_eq(lk_client_attach(client, &l.known), LK_ERR_BAD_ARGUMENT);
  l.newer = NULL;
  ck_assert_int_eq(lk_client_attach(client, &l.known), 0);
  ck_assert_int_eq(lk_client_close(client, NULL, NULL), 0);
  lk_client_tick(client);
  ck_assert_uint_eq(listener_calls, 1); /* LK_STATE_CLOSED, once */
  lk_client_detach(client, &l.known);
  ck_assert_int_eq(lk_client_attach(client, &l.known), LK_ERR_CLOSED);
  lk_client_free(client);
}
END_TEST

START_TEST(wanted_connection_has_the_time_for_tcp_until_it_is_connected)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  c.hosts = "a,b";
  c.session_timeout_ms = 4000;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  ck_assert_int_eq(lk_client_want(client)->tcp_ms, 0);
  ck_assert_uint_eq(lk_client_want(client)->size, sizeof(lk_want));
  ck_assert_uint_eq(lk_client_want_probe(client)->size, sizeof(lk_want));
  lk_client_tick(client);
  ck_assert_uint_eq(lk_client_want(client)->attempt, 1);
  ck_assert_int_eq(lk_client_want(client)->tcp_ms, 500); /* an eighth */
  lk_client_connected(client, 1);
  ck_assert_uint_eq(lk_client_want(client)->attempt, 1);
  ck_assert_int_eq(lk_client_want(client)->tcp_ms, 0);
  lk_client_free(client);
}
END_TEST

static int offline_err;

static void on_offline(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  (void)arg;
  offline_err = err;
}

/* Its first attempt is due at once, and is no pause. */
START_TEST(request_that_fails_offline_waits_for_the_first_attempt)
{
  const lk_call call = {.size = sizeof call, .offline = LK_OFFLINE_FAIL};
  lk_client_config c = config();
  lk_hooks h = hooks();

  offline_err = 0;
  ck_assert_int_eq(lk_client_new(&client, &c, &h), 0);
  ck_assert_int_eq(lk_exists(client, "/", &call, on_offline, NULL), 0);
  lk_client_tick(client);
  lk_client_failed(client, 1, LK_ERR_CONNECT, NULL);
  lk_client_tick(client);
  ck_assert_int_eq(offline_err, LK_ERR_NOT_SENT);
  ck_assert_int_eq(lk_exists(client, "/", &call, on_offline, NULL),
                   LK_ERR_NOT_CONNECTED);
  lk_client_free(client);
}
END_TEST

SUITE("client", a_client_needs_its_hooks, options_out_of_range_are_refused,
      wrong_servers_are_refused, without_memory_there_is_no_client,
      new_client_keeps_its_options, lines_below_the_level_are_not_logged,
      client_without_servers_connects_to_localhost,
      servers_are_tried_in_order_if_the_program_asks_for_it,
      every_state_has_a_name,
      reply_has_the_times_of_its_request_and_its_receipt,
      late_cancel_of_a_watch_cancels_no_other,
      listener_needs_its_size_and_may_be_newer,
      request_that_fails_offline_waits_for_the_first_attempt,
      wanted_connection_has_the_time_for_tcp_until_it_is_connected,
      client_sends_everything_after_a_welcome_or_drops_the_connection,
      repeated_requests_keep_their_order_when_memory_fails)
