/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/peer.h"
#include "support/suite.h"
#include "support/wire.h"

#include <stdio.h>

static failing_mem mem;
static lk_client *client;

static int64_t on_now(void *arg)
{
  (void)arg;
  return 5000;
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

static lk_hooks hooks(void)
{
  lk_hooks h = {.now = on_now, .random = on_random, .wake = on_wake};

  return h;
}

static lk_client_config config(void)
{
  lk_client_config c = {.size = sizeof c, .mem = &mem.mem};

  failing_mem_init(&mem);
  return c;
}

/* The result of lk_client_new(). A client that was made is freed again. */
static int make(const lk_client_config *c, const lk_hooks *h)
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

  ck_assert_int_eq(make(&c, &h), 0);
  ck_assert_int_eq(make(&c, NULL), LK_ERR_BAD_ARGUMENT);
  h.now = NULL;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  h = hooks();
  h.random = NULL;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  h = hooks();
  h.wake = NULL;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  ck_assert_int_eq(make(NULL, &h), LK_ERR_BAD_ARGUMENT);
  c.size = 0;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.session_timeout_ms = -1;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.give_up_ms = -2;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.send_limit = (size_t)INT32_MAX + 1;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.receive_limit = (size_t)INT32_MAX + 1;
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_ARGUMENT);
  c = config();
  c.session_timeout_ms = INT32_MAX;
  c.give_up_ms = -1;
  c.send_limit = INT32_MAX;
  c.receive_limit = INT32_MAX;
  ck_assert_int_eq(make(&c, &h), 0);
}
END_TEST

START_TEST(wrong_servers_are_refused)
{
  lk_client_config c = config();
  lk_hooks h = hooks();

  c.hosts = "a:0";
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_HOSTS);
  c.hosts = "";
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_HOSTS);
  c.hosts = "a//b";
  ck_assert_int_eq(make(&c, &h), LK_ERR_BAD_HOSTS);
}
END_TEST

START_TEST(without_memory_there_is_no_client)
{
  lk_hooks h = hooks();
  bool failed = true;

  for (size_t n = 1; failed; n++) {
    lk_client_config c = config();

    mem.fail_at = n;
    int err = make(&c, &h);

    failed = failing_mem_failed(&mem);
    ck_assert_int_eq(err, failed ? LK_ERR_NO_MEMORY : 0);
    ck_assert(failed || n > 3);
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
  ck_assert_int_eq(lk_client_input_ms(client), 5000);
  ck_assert_int_eq(lk_client_clock(client), 5000);
  ck_assert_ptr_null(lk_client_reply(client));
  ck_assert_ptr_eq(lk_client_mem(client)->arg, &mem);
  lk_client_random(client, bytes, sizeof bytes);
  ck_assert_int_eq(bytes[2], 0x5a);
  lk_client_log(client, LK_LOG_ERROR, 0, "nobody listens");
  /* The client wants nothing before its first tick, which is due at once. */
  lk_client_want(client, &want);
  ck_assert_uint_eq(want.attempt, 0);
  ck_assert_int_le(lk_client_deadline(client), 5000);
  lk_client_tick(client);
  lk_client_want(client, &want);
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
  lk_client_want(client, &want);
  ck_assert_str_eq(want.host, "127.0.0.1");
  ck_assert_uint_eq(want.port, 2181);
  ck_assert_int_eq(lk_client_timeout_ms(client), 30000);
  ck_assert_str_eq(lk_client_chroot(client), "");
  lk_client_free(client);
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

/* ---- beyond transcripts -------------------------------------------------- */

static int seen_err;
static int64_t seen_zxid, seen_sent, seen_answered;

static void on_done(lk_client *c, int err, void *arg)
{
  const lk_reply *a = lk_client_reply(c);

  (void)arg;
  ck_assert_ptr_nonnull(a);
  seen_err = err;
  seen_zxid = a->zxid;
  seen_sent = a->sent_ms;
  seen_answered = a->received_ms;
  ck_assert_int_eq(a->evidence, LK_EVIDENCE_COMMIT);
  ck_assert_uint_eq(a->connection, 1);
}

START_TEST(reply_has_the_times_of_its_request_and_its_receipt)
{
  lk_client_config c = {.size = sizeof c};
  peer *p = calloc(1, sizeof *p);
  lk_buf b = wire_buf();

  failing_mem_init(&p->mem);
  p->mute = true;
  ck_assert_int_eq(peer_init(p, &c), 0);
  peer_settle(p);
  peer_connected(p);
  wire_welcome(&b, 7, 30000);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_consume(&b, lk__buf_len(&b));
  p->now += 10; /* the client has not read the clock again */
  ck_assert_int_eq(lk_delete(p->client, "/a", -1, NULL, on_done, NULL), 0);
  p->now += 20;
  /* older is safer: of the same batch */
  ck_assert_int_eq(lk_delete(p->client, "/a", -1, NULL, on_done, NULL), 0);
  peer_settle(p);
  p->now += 30;
  wire_reply(&b, 1, 99, 0);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  ck_assert_int_eq(seen_zxid, 99);
  ck_assert_int_eq(seen_sent, p->log_start + 10);
  ck_assert_int_eq(seen_answered, p->log_start + 60);
  lk__buf_consume(&b, lk__buf_len(&b));
  p->now += 40;
  wire_reply(&b, 2, 100, 0);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  ck_assert_int_eq(seen_zxid, 100);
  ck_assert_int_le(seen_sent, p->log_start + 30);
  ck_assert_int_ge(seen_sent, p->log_start + 10);
  ck_assert_int_eq(seen_answered, p->log_start + 100);
  ck_assert_int_eq(seen_err, 0);
  ck_assert_ptr_null(lk_client_reply(p->client));
  lk__buf_free(&b);
  peer_done(p);
  free(p);
}
END_TEST

/* ---- handles of watches -------------------------------------------------- */

static unsigned events;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  ck_assert_ptr_eq(w, *(lk_watch **)arg);
  events += event->type == LK_EVENT_CREATED;
}

/* Watch a node that does not exist; the reply comes at once. */
static void watch_missing(peer *p, const char *path, lk_watch **handle)
{
  lk_call call = {.size = sizeof call,
                  .on_event = on_event,
                  .watch_arg = handle,
                  .watch = handle};
  lk_buf b = wire_buf();

  ck_assert_int_eq(lk_exists(p->client, path, &call, NULL, NULL), 0);
  peer_settle(p);
  wire_reply(&b, p->client->session.last_xid, 5, LK_ERR_NO_NODE);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

static void create(peer *p, const char *path)
{
  lk_buf b = wire_buf();

  wire_event(&b, LK_EVENT_CREATED, path);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

START_TEST(late_cancel_of_a_watch_cancels_no_other)
{
  lk_client_config c = {.size = sizeof c};
  peer *p = calloc(1, sizeof *p);
  lk_buf b = wire_buf();
  lk_watch *first, *second;

  events = 0;
  failing_mem_init(&p->mem);
  p->mute = true;
  ck_assert_int_eq(peer_init(p, &c), 0);
  peer_settle(p);
  peer_connected(p);
  wire_welcome(&b, 7, 30000);
  peer_receive(p, lk__buf_bytes(&b), lk__buf_len(&b));
  watch_missing(p, "/a", &first);
  create(p, "/a");
  ck_assert_uint_eq(events, 1);
  watch_missing(p, "/b", &second);
  ck_assert_ptr_ne(first, second);
  lk_watch_cancel(p->client, first, false);
  lk_watch_cancel(p->client, NULL, false);
  create(p, "/b");
  ck_assert_uint_eq(events, 2);
  lk__buf_free(&b);
  peer_done(p);
  free(p);
}
END_TEST

/* ---- a connection that is made without memory ---------------------------- */

static void say(peer *p, lk_buf *b)
{
  peer_receive(p, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_consume(b, lk__buf_len(b));
}

/* Make a client that has reconnected and waits for the connect response. It has
   an identity that needs a block of its own, three hundred watches, and a
   waiting request. */
static peer *about_to_return(void)
{
  lk_client_config c = {.size = sizeof c};
  char secret[1000] = "bob:";
  peer *p = calloc(1, sizeof *p);
  lk_buf b = wire_buf();

  failing_mem_init(&p->mem);
  p->mute = true;
  ck_assert_int_eq(peer_init(p, &c), 0);
  peer_settle(p);
  memset(secret + 4, 'x', sizeof secret - 4);
  peer_auth(p, "id", "digest", lk_bytes_of(secret, sizeof secret));
  peer_connected(p);
  wire_welcome(&b, 7, 30000);
  say(p, &b);
  for (int32_t i = 1; i <= 300; i++) {
    char path[64];

    snprintf(path, sizeof path, "/some/path/that/is/not/short/%d", (int)i);
    peer_exists(p, &(peer_call){.name = "e", .watch = "w"}, path);
    peer_settle(p);
    wire_reply(&b, i, 1, LK_ERR_NO_NODE);
    say(p, &b);
  }
  peer_failed(p, 0, NULL);
  peer_get(p, &(peer_call){.name = "g"}, "/a");
  lk__buf_free(&p->client->output.bytes); /* it grows again */
  peer_pass(p, 1000);
  peer_connected(p);
  p->room = 0;
  lk__buf_free(&b);
  return p;
}

/* How many bytes the client sends after a connect response; 0: the client did
   not accept the response. */
static size_t sent_at_welcome(size_t fail_at, bool *failed)
{
  peer *p = about_to_return();
  lk_buf b = wire_buf();

  p->mem.fail_at = fail_at == 0 ? 0 : p->mem.count + fail_at;
  wire_welcome(&b, 7, 30000);
  say(p, &b);
  *failed = failing_mem_failed(&p->mem);
  size_t len = lk_client_state(p->client) == LK_STATE_CONNECTED
                   ? lk_client_pending(p->client).len
                   : 0;
  const char *why;

  if (*failed)
    ck_assert_int_eq(lk_client_last_error(p->client, &why), LK_ERR_NO_MEMORY);
  lk__buf_free(&b);
  peer_done(p);
  free(p);
  return len;
}

START_TEST(connection_without_memory_is_complete_or_fails)
{
  bool failed;
  size_t whole = sent_at_welcome(0, &failed);

  ck_assert_uint_gt(whole, 300 * 30);
  for (size_t n = 1;; n++) {
    size_t len = sent_at_welcome(n, &failed);

    ck_assert_uint_eq(len, failed ? 0 : whole);
    if (!failed) {
      ck_assert_uint_gt(n, 3);
      break;
    }
  }
}
END_TEST

enum { REPEATED = 40 };

/* Make a client that has reconnected, waits for the connect response, and has
   reads to repeat. */
static peer *about_to_repeat(void)
{
  lk_client_config c = {.size = sizeof c};
  peer *p = calloc(1, sizeof *p);
  lk_buf b = wire_buf();

  failing_mem_init(&p->mem);
  p->mute = true;
  ck_assert_int_eq(peer_init(p, &c), 0);
  peer_settle(p);
  peer_connected(p);
  wire_welcome(&b, 7, 30000);
  say(p, &b);
  peer_failed(p, 0, NULL);
  for (int i = 0; i < REPEATED; i++) {
    char path[64];

    snprintf(path, sizeof path, "/node-%02d-with-a-name-that-takes-room", i);
    peer_get(p, &(peer_call){.name = "g", .repeat = true}, path);
  }
  lk__buf_free(&p->client->output.bytes); /* it grows again */
  lk__buf_free(&b);
  return p;
}

static void return_and_be_welcomed(peer *p, size_t fail_at)
{
  lk_buf b = wire_buf();

  peer_pass(p, 1000);
  peer_connected(p);
  p->room = 0;
  p->mem.fail_at = fail_at == 0 ? 0 : p->mem.count + fail_at;
  wire_welcome(&b, 7, 30000);
  say(p, &b);
  lk__buf_free(&b);
}

static void assert_in_order(lk_bytes out)
{
  const unsigned char *at = out.at;
  size_t next = 0;

  for (size_t i = 0; i + 8 <= out.len; i++) {
    if (memcmp(at + i, "/node-", 6) != 0)
      continue;
    ck_assert_int_eq((at[i + 6] - '0') * 10 + at[i + 7] - '0', (int)next);
    next++;
  }
  ck_assert_uint_eq(next, REPEATED);
}

START_TEST(repeated_requests_keep_their_order_when_memory_fails)
{
  bool failed = true;

  for (size_t n = 1; failed; n++) {
    peer *p = about_to_repeat();

    return_and_be_welcomed(p, n);
    failed = failing_mem_failed(&p->mem);
    if (failed)
      return_and_be_welcomed(p, 0);
    ck_assert_int_eq(lk_client_state(p->client), LK_STATE_CONNECTED);
    assert_in_order(lk_client_pending(p->client));
    ck_assert(failed || n > 2);
    peer_done(p);
    free(p);
  }
}
END_TEST

SUITE("client", a_client_needs_its_hooks, options_out_of_range_are_refused,
      wrong_servers_are_refused, without_memory_there_is_no_client,
      new_client_keeps_its_options,
      client_without_servers_connects_to_localhost, every_state_has_a_name,
      reply_has_the_times_of_its_request_and_its_receipt,
      late_cancel_of_a_watch_cancels_no_other,
      connection_without_memory_is_complete_or_fails,
      repeated_requests_keep_their_order_when_memory_fails)
