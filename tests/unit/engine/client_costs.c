/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The costs of a client: allocations in the steady state, pieces of output,
 * memory for received bytes.
 */

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"
#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"

#include <stdio.h>
#include <time.h>

enum { PING_INTERVAL_MS = 10000 }; /* a third of the session timeout */

static harness *h;

static struct {
  unsigned gets, creates, deletes, events; /* numbers of callbacks */
  lk_watch *watch;                         /* the one set last */
} called;

static void begin(const lk_client_config *config)
{
  memset(&called, 0, sizeof called);
  h = calloc(1, sizeof *h);
  failing_mem_init(&h->mem);
  ck_assert_int_eq(harness_init(h, config), 0);
  h->mute = true;
  harness_settle(h);
}

static void receive(lk_buf *b)
{
  harness_receive(h, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

static void connect_client(void)
{
  lk_buf b = wire_buf();

  harness_connected(h);
  wire_welcome(&b, 0x10, 30000);
  receive(&b);
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
}

static void end(void)
{
  harness_done(h);
  free(h);
}

static const char lock_node[] = "/queue/lock-0000000001";

/* ---- the steady state --------------------------------------------------- */

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_ptr_eq(w, called.watch);
  ck_assert_int_eq(event->type, LK_EVENT_CHANGED);
  called.events++;
}

static void on_end_of_watch(lk_client *c, lk_watch *w, const lk_event *event,
                            void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  ck_assert_int_eq(event->type, LK_EVENT_ENDED);
}

static void on_get(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  (void)arg;
  ck_assert_int_eq(err, 0);
  called.gets++;
}

static void on_create(lk_client *c, int err, const char *path,
                      const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  (void)arg;
  ck_assert_int_eq(err, 0);
  ck_assert_str_eq(path, lock_node);
  called.creates++;
}

static void on_delete(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_int_eq(err, 0);
  called.deletes++;
}

/* Reply to the requests of run_round(), then let the watch fire. `xid`: of the
   first request. */
static void answer_round(int32_t xid)
{
  struct lk_path_stat_reply created = {.path = lk_text(lock_node),
                                       .stat = {.czxid = xid}};
  struct lk_data_reply data = {.data = lk_text("some data")};
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, xid, xid, 0);
  wire_record(&b, &lk__path_stat_reply_record, &created);
  wire_end(&b, mark);
  mark = wire_begin(&b);
  wire_header(&b, xid + 1, xid, 0);
  wire_record(&b, &lk__data_reply_record, &data);
  wire_end(&b, mark);
  wire_reply(&b, xid + 2, xid, 0);
  wire_event(&b, LK_EVENT_CHANGED, lock_node);
  receive(&b);
}

enum { REQUESTS_OF_ROUND = 3 };

static void run_round(int32_t first_xid)
{
  lk_call call = {.size = sizeof call,
                  .on_event = on_event,
                  .watch = &called.watch,
                  .timeout_ms = 1000};

  ck_assert_int_eq(lk_create2(h->client, "/queue/lock-", lk_text("127.0.0.1"),
                              NULL, LK_EPHEMERAL | LK_SEQUENTIAL, NULL,
                              on_create, NULL),
                   0);
  ck_assert_int_eq(lk_get(h->client, lock_node, &call, on_get, NULL), 0);
  ck_assert_int_eq(lk_delete(h->client, lock_node, -1, NULL, on_delete, NULL),
                   0);
  harness_settle(h);
  answer_round(first_xid);
}

/* The steady state is reached after WARM_UP rounds. */
enum { WARM_UP = 10, MEASURED = 1000, ROUNDS = WARM_UP + MEASURED };

START_TEST(in_the_steady_state_nothing_is_allocated)
{
  lk_client_config config = {.size = sizeof config};
  int32_t xid = 1;

  begin(&config);
  connect_client();
  for (int i = 0; i < WARM_UP; i++, xid += REQUESTS_OF_ROUND)
    run_round(xid);
  size_t count = h->mem.count;

  for (int i = 0; i < MEASURED; i++, xid += REQUESTS_OF_ROUND)
    run_round(xid);
  ck_assert_uint_eq(called.gets, ROUNDS);
  ck_assert_uint_eq(called.creates, ROUNDS);
  ck_assert_uint_eq(called.deletes, ROUNDS);
  ck_assert_uint_eq(called.events, ROUNDS);
  ck_assert_uint_eq(h->mem.count, count);
  end();
}
END_TEST

START_TEST(nothing_is_allocated_with_a_chroot_and_many_other_watches)
{
  lk_client_config config = {.size = sizeof config, .hosts = "a/some/root"};
  lk_call call = {.size = sizeof call, .on_event = on_end_of_watch};
  int32_t xid = 1;

  begin(&config);
  connect_client();
  for (; xid <= 500; xid++) {
    char path[16];

    snprintf(path, sizeof path, "/%d", (int)xid);
    ck_assert_int_eq(lk_exists(h->client, path, &call, NULL, NULL), 0);
    harness_settle(h);
    lk_buf b = wire_buf();
    wire_reply(&b, xid, 1, LK_ERR_NO_NODE);
    receive(&b);
  }
  call.on_event = on_event;
  size_t count = 0;

  for (int i = 0; i < ROUNDS; i++, xid++) {
    struct lk_data_reply data = {.data = lk_text("x")};
    char path[32];
    lk_buf b = wire_buf();

    if (i == WARM_UP)
      count = h->mem.count;
    call.watch = &called.watch;
    snprintf(path, sizeof path, "/queue/%d", i);
    ck_assert_int_eq(lk_get(h->client, path, &call, on_get, NULL), 0);
    harness_settle(h);
    size_t mark = wire_begin(&b);
    wire_header(&b, xid, 1, 0);
    wire_record(&b, &lk__data_reply_record, &data);
    wire_end(&b, mark);
    snprintf(path, sizeof path, "/some/root/queue/%d", i);
    wire_event(&b, LK_EVENT_CHANGED, path);
    receive(&b);
  }
  ck_assert_uint_eq(called.events, ROUNDS);
  ck_assert_uint_eq(h->mem.count, count);
  end();
}
END_TEST

/* ---- output ------------------------------------------------------------- */

/* The bytes of a getData of "/a": the length, the header, the path with its
   length, and whether to watch. */
enum { GET_LEN = 4 + 8 + 4 + 2 + 1 };

static void queue_a_thousand_gets(void)
{
  for (int i = 0; i < 1000; i++)
    ck_assert_int_eq(lk_get(h->client, "/a", NULL, NULL, NULL), 0);
}

START_TEST(a_thousand_requests_leave_in_one_piece)
{
  lk_client_config config = {.size = sizeof config};

  begin(&config);
  connect_client();
  queue_a_thousand_gets();
  lk_bytes bytes = lk_client_pending(h->client);

  ck_assert_uint_eq(bytes.len, 1000 * GET_LEN);
  lk_client_sent(h->client, h->want.attempt, bytes.len);
  ck_assert_uint_eq(lk_client_pending(h->client).len, 0);
  end();
}
END_TEST

START_TEST(waiting_requests_leave_in_one_piece)
{
  lk_client_config config = {.size = sizeof config};
  lk_buf b = wire_buf();

  begin(&config);
  queue_a_thousand_gets();
  ck_assert_uint_eq(lk_client_pending(h->client).len, 0);
  harness_connected(h);
  h->room = 0;
  wire_welcome(&b, 0x10, 30000);
  receive(&b);
  ck_assert_uint_eq(lk_client_pending(h->client).len, 1000 * GET_LEN);
  end();
}
END_TEST

START_TEST(memory_of_waiting_requests_is_freed_once_sent)
{
  lk_client_config config = {.size = sizeof config};
  char *data = calloc(1, 100000);

  begin(&config);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(lk_set(h->client, "/a", lk_bytes_of(data, 100000), -1,
                            NULL, NULL, NULL),
                     0);
  ck_assert_uint_gt(h->client->requests.waiting_frames.cap, 300000);
  connect_client();
  ck_assert_uint_eq(h->client->requests.waiting_frames.cap, 0);
  ck_assert_uint_gt(h->client->output.bytes.cap, 300000);
  harness_failed(h, 0, NULL);
  ck_assert_uint_eq(h->client->output.bytes.cap, 0);
  free(data);
  end();
}
END_TEST

START_TEST(memory_of_a_burst_is_given_back_when_it_has_been_sent)
{
  lk_client_config config = {.size = sizeof config};
  char *data = calloc(1, 1000000);

  begin(&config);
  connect_client();
  size_t before = h->mem.held;

  h->room = 0;
  for (int i = 0; i < 16; i++)
    ck_assert_int_eq(lk_set(h->client, "/a", lk_bytes_of(data, 1000000), -1,
                            NULL, NULL, NULL),
                     0);
  ck_assert_uint_gt(h->mem.held, 16000000);
  h->room = SIZE_MAX;
  harness_settle(h);
  ck_assert_uint_lt(h->mem.held, before + 10000);
  free(data);
  end();
}
END_TEST

/* ---- many watches ------------------------------------------------------- */

static void on_created(lk_client *c, lk_watch *w, const lk_event *event,
                       void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  if (event->type == LK_EVENT_CREATED)
    called.events++;
}

/* Watch a node that does not exist; the reply comes at once. The harness takes
   no part, so that only the client's own time is measured. */
static lk_watch *watch_missing_node(const char *path)
{
  lk_watch *w;
  lk_call call = {.size = sizeof call, .on_event = on_created, .watch = &w};
  lk_bytes out;
  lk_buf b = wire_buf();

  ck_assert_int_eq(lk_exists(h->client, path, &call, NULL, NULL), 0);
  out = lk_client_pending(h->client);
  lk_client_sent(h->client, h->want.attempt, out.len);
  wire_reply(&b, h->client->session.last_xid, 5, LK_ERR_NO_NODE);
  lk_client_received(h->client, h->want.attempt, lk__buf_bytes(&b),
                     lk__buf_len(&b));
  lk__buf_free(&b);
  return w;
}

START_TEST(output_keeps_one_mebibyte_until_it_is_idle)
{
  lk_client_config config = {.size = sizeof config};
  char data[64] = "";

  begin(&config);
  connect_client();
  h->room = 0;
  while (h->client->output.bytes.cap < 1024 * 1024)
    ck_assert_int_eq(lk_set(h->client, "/a", lk_bytes_of(data, sizeof data), -1,
                            NULL, NULL, NULL),
                     0);
  ck_assert_uint_eq(h->client->output.bytes.cap, 1024 * 1024);
  h->room = SIZE_MAX;
  harness_settle(h);
  ck_assert_uint_eq(h->client->output.bytes.cap, 1024 * 1024);
  harness_pass(h, PING_INTERVAL_MS);
  ck_assert_uint_le(h->client->output.bytes.cap, 64 * 1024);
  end();
}
END_TEST

START_TEST(input_keeps_64_kibibytes)
{
  static const char zeros[40000];
  lk_client_config config = {.size = sizeof config};
  lk_buf b = wire_buf();

  begin(&config);
  connect_client();
  wire_int(&b, 50000);
  ck_assert(lk__buf_append(&b, zeros, sizeof zeros));
  h->step = 100;
  receive(&b);
  ck_assert_uint_eq(h->client->input.frames.partial.cap, 64 * 1024);
  harness_failed(h, 0, NULL);
  ck_assert_uint_eq(h->client->input.frames.partial.cap, 64 * 1024);
  end();
}
END_TEST

START_TEST(replies_keep_256_kibibytes)
{
  lk_client_config config = {.size = sizeof config};
  int32_t count = 256 * 1024 / (int32_t)sizeof(lk_bytes);
  lk_buf b = wire_buf();

  begin(&config);
  connect_client();
  ck_assert_int_eq(lk_get_children(h->client, "/a", NULL, NULL, NULL), 0);
  harness_settle(h);
  size_t mark = wire_begin(&b);

  wire_header(&b, h->client->session.last_xid, 1, 0);
  wire_int(&b, count);
  for (int32_t i = 0; i < count; i++)
    wire_bytes(&b, lk_text("a"));
  for (int i = 0; i < 17; i++)
    wire_int(&b, 0); /* the Stat */
  wire_end(&b, mark);
  receive(&b);
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
  ck_assert_ptr_nonnull(h->client->input.arena.first);
  end();
}
END_TEST

START_TEST(memory_of_watches_that_fired_is_given_back)
{
  enum { COUNT = 10000 };
  lk_client_config config = {.size = sizeof config};
  char path[32];

  begin(&config);
  connect_client();
  for (unsigned i = 0; i < COUNT; i++) {
    snprintf(path, sizeof path, "/members/member-%u", i);
    watch_missing_node(path);
  }
  size_t most = h->mem.held;

  for (unsigned i = 0; i < COUNT; i++) {
    lk_buf b = wire_buf();

    snprintf(path, sizeof path, "/members/member-%u", i);
    wire_event(&b, LK_EVENT_CREATED, path);
    receive(&b);
  }
  ck_assert_uint_eq(called.events, COUNT);
  ck_assert_uint_lt(h->mem.held, most / 6); /* 1,024 of 10,000 are kept */
  end();
}
END_TEST

/* ---- the time for many watches or deadlines ------------------------------ */

static double processor_time(void)
{
  struct timespec t;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double watch_and_cancel(size_t count)
{
  lk_client_config config = {.size = sizeof config};
  lk_watch **watches = calloc(count, sizeof(lk_watch *));

  begin(&config);
  connect_client();
  double start = processor_time();

  for (size_t i = 0; i < count; i++)
    watches[i] = watch_missing_node("/a");
  for (size_t i = 0; i < count; i++)
    (void)lk_watch_remove(h->client, watches[i], NULL, NULL);
  double took = processor_time() - start;

  free(watches);
  h->room = 0; /* the harness does not take the output, nor check it */
  end();
  return took;
}

/* Eight times as many requests must take about eight times as long, not 64
   times. It is measured up to three times, since other work on the machine may
   slow one measurement down. */
static void expect_linear(double (*seconds_for)(size_t count), size_t count)
{
  double ratio = 0;

  for (int i = 0; i < 3; i++) {
    double few = seconds_for(count);

    ratio = seconds_for(count * 8) / few;
    if (ratio < 24) /* between 8 and 64 */
      return;
  }
  ck_abort_msg("eight times as many took %.0f times as long", ratio);
}

START_TEST(many_watches_of_one_path_cost_no_more_each)
{
  expect_linear(watch_and_cancel, 2000);
}
END_TEST

static void on_get_after_deadline(lk_client *c, int err, const lk_bytes *data,
                                  const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  (void)arg;
  ck_assert_int_eq(err, LK_ERR_DEADLINE);
  called.gets++;
}

/* Let requests end at their deadlines, which differ and ascend in no order, as
   7919 is a prime. Returns the seconds that it took. */
static double expire(size_t count)
{
  lk_call call = {.size = sizeof call};
  double start = processor_time();

  h->room = 0;
  called.gets = 0;
  for (size_t i = 0; i < count; i++) {
    call.timeout_ms = (int64_t)(1000 + i * 7919 % count / 8);
    ck_assert_int_eq(
        lk_get(h->client, "/a", &call, on_get_after_deadline, NULL), 0);
  }
  while (called.gets < count) {
    h->now = lk_client_deadline(h->client);
    lk_client_tick(h->client);
  }
  return processor_time() - start;
}

static double expire_waiting(size_t count)
{
  lk_client_config config = {.size = sizeof config};

  begin(&config);
  double took = expire(count);

  end();
  return took;
}

static double expire_sent(size_t count)
{
  lk_client_config config = {.size = sizeof config};

  begin(&config);
  connect_client();
  double took = expire(count);

  end();
  return took;
}

START_TEST(many_deadlines_cost_no_more_each)
{
  expect_linear(expire_waiting, 2000);
  expect_linear(expire_sent, 2000);
}
END_TEST

static void on_reply_to_get(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  (void)c;
  (void)err;
  (void)data;
  (void)stat;
  (void)arg;
  called.gets++;
}

/* As many replies as there are listeners, none of which has a function for
   replies: so has a subscription. */
static double receive_with_listeners(size_t count)
{
  lk_client_config config = {.size = sizeof config};
  lk_listener *listeners = calloc(count, sizeof *listeners);
  double took = 0;

  begin(&config);
  connect_client();
  for (size_t i = 0; i < count; i++) {
    listeners[i].size = sizeof listeners[i];
    lk_client_attach(h->client, &listeners[i]);
  }
  h->room = 0;
  for (size_t i = 0; i < count; i++)
    lk_get(h->client, "/a", NULL, on_reply_to_get, NULL);
  h->room = SIZE_MAX;
  harness_settle(h);
  for (size_t i = 0; i < count; i++) {
    lk_buf b = wire_buf();

    wire_reply(&b, (int32_t)i + 1, 77, LK_ERR_NO_NODE);
    double start = processor_time();

    receive(&b);
    took += processor_time() - start;
  }
  ck_assert_uint_eq(called.gets, count);
  for (size_t i = 0; i < count; i++)
    lk_client_detach(h->client, &listeners[i]);
  free(listeners);
  end();
  return took;
}

START_TEST(many_listeners_cost_nothing_at_a_reply)
{
  expect_linear(receive_with_listeners, 1000);
}
END_TEST

/* ---- the memory of requests ---------------------------------------------- */

static int32_t last_xid; /* of the requests that have a reply */

static void send_gets(int count)
{
  for (int i = 0; i < count; i++)
    ck_assert_int_eq(lk_get(h->client, "/a", NULL, on_reply_to_get, NULL), 0);
  harness_settle(h);
}

static void reply_to_gets(int count)
{
  lk_buf b = wire_buf();
  unsigned gets = called.gets;

  for (int i = 0; i < count; i++)
    wire_reply(&b, ++last_xid, 77, LK_ERR_NO_NODE);
  receive(&b);
  ck_assert_uint_eq(called.gets, gets + (unsigned)count);
}

static void begin_burst(int count)
{
  lk_client_config config = {.size = sizeof config,
                             .outstanding_limit = (size_t)count};

  begin(&config);
  connect_client();
  last_xid = 0;
  send_gets(count);
}

START_TEST(memory_of_many_requests_is_given_back)
{
  enum { MANY = 100000, KEPT = 1024 };

  begin_burst(MANY);
  size_t live = h->mem.live;

  reply_to_gets(MANY);
  ck_assert_uint_eq(h->client->requests.unused_count, KEPT);
  ck_assert_uint_le(h->mem.live, live - (MANY - KEPT) / LK_REQUEST_CHUNK);
  /* The memory that is kept is enough for so many requests. */
  send_gets(KEPT);
  reply_to_gets(KEPT);
  size_t count = h->mem.count;

  send_gets(KEPT);
  reply_to_gets(KEPT);
  ck_assert_uint_eq(h->mem.count, count);
  end();
}
END_TEST

/* The oldest of many requests get their replies, and as many new ones follow.
 */
START_TEST(many_outstanding_requests_allocate_nothing_in_the_steady_state)
{
  enum { MANY = 10000, ROUND = 100 };
  size_t count = 0;

  begin_burst(MANY);
  for (int i = 0; i < 3 * MANY / ROUND; i++) {
    if (i == 1) /* the buffers have been used */
      count = h->mem.count;
    reply_to_gets(ROUND);
    send_gets(ROUND);
  }
  ck_assert_uint_eq(h->mem.count, count);
  reply_to_gets(MANY);
  ck_assert_uint_le(h->client->requests.unused_count, 1024);
  end();
}
END_TEST

/* The next request uses the memory of the lost one. */
START_TEST(deadline_of_a_lost_request_ends_no_other)
{
  lk_client_config config = {.size = sizeof config};
  lk_call call = {.size = sizeof call, .timeout_ms = 10};

  begin(&config);
  connect_client();
  ck_assert_int_eq(lk_get(h->client, "/a", &call, on_reply_to_get, NULL), 0);
  harness_failed(h, 0, NULL);
  ck_assert_uint_eq(called.gets, 1);
  ck_assert_int_eq(lk_get(h->client, "/a", NULL, on_reply_to_get, NULL), 0);
  ck_assert_int_gt(lk_client_deadline(h->client), h->now);
  lk_client_tick(h->client);
  ck_assert_uint_eq(called.gets, 1);
  end();
}
END_TEST

static void on_deep_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  called.events += event->type == LK_EVENT_CREATED;
}

static void on_watch_added(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_int_eq(err, 0);
}

/* One event whose path has `count` components, and a recursive watch on "/". */
static double receive_deep_event(size_t count)
{
  lk_client_config config = {.size = sizeof config};
  lk_call call = {.size = sizeof call, .on_event = on_deep_event};
  char *path = calloc(2 * count + 1, 1);
  lk_buf b = wire_buf();

  for (size_t i = 0; i < count; i++)
    memcpy(path + 2 * i, "/a", 2);
  begin(&config);
  connect_client();
  h->room = SIZE_MAX;
  ck_assert_int_eq(lk_add_watch(h->client, "/", LK_WATCH_RECURSIVE, &call,
                                on_watch_added, NULL),
                   0);
  harness_settle(h);
  size_t mark = wire_begin(&b);

  wire_header(&b, 1, 77, 0);
  wire_int(&b, 0); /* an ErrorResponse */
  wire_end(&b, mark);
  receive(&b);
  b = wire_buf();
  wire_event(&b, LK_EVENT_CREATED, path);
  double start = processor_time();

  receive(&b);
  double took = processor_time() - start;

  ck_assert_uint_eq(called.events, 1);
  free(path);
  h->room = 0;
  end();
  return took;
}

START_TEST(a_component_of_an_event_costs_no_more_in_a_deep_path)
{
  expect_linear(receive_deep_event, 20000);
}
END_TEST

START_TEST(requests_that_completed_while_they_waited_are_not_sent)
{
  lk_client_config config = {.size = sizeof config};
  lk_call call = {.size = sizeof call};

  begin(&config);
  /* Two of ten requests end, too few for the client to free their memory. */
  for (int i = 0; i < 10; i++) {
    bool ends = i % 5 == 0;

    call.timeout_ms = ends ? 10 : 0;
    ck_assert_int_eq(lk_get(h->client, "/a", &call,
                            ends ? on_get_after_deadline : NULL, NULL),
                     0);
  }
  harness_pass(h, 100);
  ck_assert_uint_eq(called.gets, 2);
  harness_connected(h);
  h->room = 0;
  lk_buf b = wire_buf();

  wire_welcome(&b, 0x10, 30000);
  receive(&b);
  ck_assert_uint_eq(lk_client_pending(h->client).len, 8 * GET_LEN);
  end();
}
END_TEST

/* The memory of completed requests is freed when they have half of the bytes of
   all waiting ones. */
START_TEST(requests_that_completed_while_they_waited_keep_no_memory)
{
  lk_client_config config = {.size = sizeof config};
  lk_call call = {.size = sizeof call, .timeout_ms = 10};

  begin(&config);
  ck_assert_int_eq(lk_get(h->client, "/a", NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_get(h->client, "/a", NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_get(h->client, "/a", &call, on_get_after_deadline, NULL),
                   0);
  harness_pass(h, 11);
  ck_assert_uint_eq(lk__buf_len(&h->client->requests.waiting_frames),
                    3 * GET_LEN);
  ck_assert_int_eq(lk_get(h->client, "/a", &call, on_get_after_deadline, NULL),
                   0);
  harness_pass(h, 11);
  ck_assert_uint_eq(called.gets, 2);
  ck_assert_uint_eq(lk__buf_len(&h->client->requests.waiting_frames),
                    2 * GET_LEN);
  end();
}
END_TEST

START_TEST(request_of_the_send_limit_is_sent_and_a_longer_one_refused)
{
  lk_client_config config = {.size = sizeof config};
  size_t send_limit = 0xfffff; /* the default */
  /* The header, the path and its length, the data's length, the version. */
  size_t most = send_limit - (8 + 4 + 2 + 4 + 4);
  char *data = calloc(1, most + 1);

  begin(&config);
  ck_assert_int_eq(
      lk_set(h->client, "/a", lk_bytes_of(data, most), -1, NULL, NULL, NULL),
      0);
  ck_assert_int_eq(lk_set(h->client, "/a", lk_bytes_of(data, most + 1), -1,
                          NULL, NULL, NULL),
                   LK_ERR_TOO_BIG);
  connect_client();
  ck_assert_int_eq(
      lk_set(h->client, "/a", lk_bytes_of(data, most), -1, NULL, NULL, NULL),
      0);
  ck_assert_int_eq(lk_set(h->client, "/a", lk_bytes_of(data, most + 1), -1,
                          NULL, NULL, NULL),
                   LK_ERR_TOO_BIG);
  free(data);
  end();
}
END_TEST

START_TEST(number_of_waiting_requests_is_limited)
{
  lk_client_config config = {.size = sizeof config};

  begin(&config);
  for (int i = 0; i < 65536; i++)
    ck_assert(lk_get(h->client, "/a", NULL, NULL, NULL) == 0);
  ck_assert_int_eq(lk_get(h->client, "/a", NULL, NULL, NULL), LK_ERR_TOO_MANY);
  end();
}
END_TEST

/* The server replies to nothing. */
START_TEST(requests_completed_at_their_deadline_are_not_outstanding)
{
  lk_client_config config = {.size = sizeof config, .outstanding_limit = 2};
  lk_call call = {.size = sizeof call, .timeout_ms = 50};

  begin(&config);
  connect_client();
  for (int round = 0; round < 3; round++) {
    ck_assert_int_eq(lk_get(h->client, "/a", &call, NULL, NULL), 0);
    ck_assert_int_eq(lk_get(h->client, "/a", &call, NULL, NULL), 0);
    ck_assert_int_eq(lk_get(h->client, "/a", &call, NULL, NULL),
                     LK_ERR_TOO_MANY);
    harness_pass(h, 51);
  }
  end();
}
END_TEST

/* ---- input -------------------------------------------------------------- */

enum { NAMES = 100000, NAME_LEN = 12 };

static bool listed;

static void on_children(lk_client *c, int err, const lk_bytes *names,
                        size_t count, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_int_eq(err, 0);
  ck_assert_uint_eq(count, NAMES);
  ck_assert_mem_eq(names[NAMES - 1].at, "n00000099999", NAME_LEN);
  ck_assert_int_eq(stat->num_children, NAMES);
  listed = true;
}

/* The reply to a getChildren2 of a node that has NAMES children. */
static lk_buf children_reply(int32_t xid)
{
  lk_buf b = wire_buf();
  struct lk_stat_reply stat = {{.num_children = NAMES}};
  size_t mark = wire_begin(&b);

  wire_header(&b, xid, 1, 0);
  wire_int(&b, NAMES);
  for (int i = 0; i < NAMES; i++) {
    char name[16];

    snprintf(name, sizeof name, "n%011d", i);
    wire_bytes(&b, lk_text(name));
  }
  wire_record(&b, &lk__stat_reply_record, &stat);
  wire_end(&b, mark);
  return b;
}

START_TEST(a_listing_of_1600000_bytes_arrives_in_pieces)
{
  lk_client_config config = {.size = sizeof config};

  begin(&config);
  connect_client();
  ck_assert_int_eq(lk_get_children(h->client, "/a", NULL, on_children, NULL),
                   0);
  harness_settle(h);
  h->step = 65536;
  size_t live = h->mem.live;
  lk_buf b = children_reply(1);

  ck_assert_uint_gt(lk__buf_len(&b), 1600000);
  receive(&b);
  ck_assert(listed);
  /* Another listing takes an allocation for the array of its names. */
  listed = false;
  ck_assert_int_eq(lk_get_children(h->client, "/a", NULL, on_children, NULL),
                   0);
  harness_settle(h);
  size_t count = h->mem.count;

  b = children_reply(2);
  receive(&b);
  ck_assert(listed);
  ck_assert_uint_le(h->mem.count - count, 1);
  /* The reply to the next ping frees all of it but 64 KiB. */
  const size_t kept = 64 * 1024;

  harness_pass(h, PING_INTERVAL_MS - 1);
  ck_assert_uint_gt(h->client->input.frames.partial.cap, kept);
  harness_pass(h, 1);
  b = wire_buf();
  wire_reply(&b, LK_XID_PING, 0, 0);
  receive(&b);
  ck_assert_uint_le(h->client->input.frames.partial.cap, kept);
  ck_assert_uint_le(h->mem.live, live + 1);
  end();
}
END_TEST

START_TEST(reply_beyond_the_receive_limit_ends_the_connection)
{
  lk_client_config config = {.size = sizeof config};

  for (int32_t over = 0; over < 2; over++) {
    lk_buf b = wire_buf();

    begin(&config);
    connect_client();
    size_t bytes = h->mem.bytes;

    wire_int(&b, 16 * 1024 * 1024 + over); /* the length of the frame */
    wire_int(&b, 1);                       /* its first bytes */
    receive(&b);
    ck_assert_int_eq(lk_client_state(h->client),
                     over > 0 ? LK_STATE_SUSPENDED : LK_STATE_CONNECTED);
    ck_assert_uint_le(h->mem.bytes, bytes + 1024);
    end();
  }
}
END_TEST

SUITE("client_costs", in_the_steady_state_nothing_is_allocated,
      nothing_is_allocated_with_a_chroot_and_many_other_watches,
      a_thousand_requests_leave_in_one_piece,
      waiting_requests_leave_in_one_piece,
      memory_of_waiting_requests_is_freed_once_sent,
      memory_of_a_burst_is_given_back_when_it_has_been_sent,
      output_keeps_one_mebibyte_until_it_is_idle, input_keeps_64_kibibytes,
      replies_keep_256_kibibytes, memory_of_watches_that_fired_is_given_back,
      many_watches_of_one_path_cost_no_more_each,
      many_deadlines_cost_no_more_each, many_listeners_cost_nothing_at_a_reply,
      memory_of_many_requests_is_given_back,
      deadline_of_a_lost_request_ends_no_other,
      many_outstanding_requests_allocate_nothing_in_the_steady_state,
      a_component_of_an_event_costs_no_more_in_a_deep_path,
      requests_that_completed_while_they_waited_are_not_sent,
      requests_that_completed_while_they_waited_keep_no_memory,
      request_of_the_send_limit_is_sent_and_a_longer_one_refused,
      number_of_waiting_requests_is_limited,
      requests_completed_at_their_deadline_are_not_outstanding,
      a_listing_of_1600000_bytes_arrives_in_pieces,
      reply_beyond_the_receive_limit_ends_the_connection)
