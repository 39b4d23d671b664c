/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/timeout.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#include <stdio.h>

/* Every timeout and deadline of the callback interface follows one rule.
   tests/unit/sync/timeouts.c tests those of the blocking interface. */

static model_server server;
static test_client p;
static int ended;   /* how many times the call has ended */
static int end_err; /* with which error; NOT_YET: it has not ended */

static void end_with(int err)
{
  ended++;
  end_err = err;
}

/* Why no replies come. */
typedef enum fault { SERVER_IS_SILENT, NO_CONNECTION } fault;

static void begin(fault f)
{
  model_init(&server);
  model_create(&server, "/x");
  test_client_init(&p, &server, NULL);
  if (f == SERVER_IS_SILENT)
    model_turn(&server); /* the client connects */
  server.down = f == NO_CONNECTION;
  p.link->frozen = true;
  p.link->log[0] = '\0';
  ended = 0;
  end_err = NOT_YET;
}

static void end(void)
{
  test_client_free(&p);
  model_done(&server);
}

/* ---- calls with a time limit --------------------------------------------- */

/* The options of a request, or the arguments of an acquire. */
typedef struct limit {
  int64_t timeout_ms;
  int64_t deadline_ms;
  bool until; /* an acquire has the deadline; otherwise it has the timeout */
  bool tries; /* it is a try */
} limit;

static lk_call call_of(const limit *m)
{
  return (lk_call){.size = sizeof(lk_call),
                   .timeout_ms = m->timeout_ms,
                   .deadline_ms = m->deadline_ms};
}

static void on_get(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  (void)arg;
  end_with(err);
}

static void on_create(lk_client *c, int err, const char *path,
                      const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  (void)arg;
  end_with(err);
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  end_with(err);
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)stat;
  on_done(c, err, arg);
}

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  (void)results;
  (void)count;
  on_done(c, err, arg);
}

static void on_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  (void)deleted;
  on_done(c, err, arg);
}

static int start_get(const limit *m)
{
  lk_call call = call_of(m);

  return lk_get(p.link->client, "/x", &call, on_get, NULL);
}

static int start_repeat(const limit *m)
{
  lk_call call = call_of(m);

  call.repeat = true;
  return lk_get(p.link->client, "/x", &call, on_get, NULL);
}

static int start_create(const limit *m)
{
  lk_call call = call_of(m);

  return lk_create(p.link->client, "/new", lk_text(""), NULL, 0, &call,
                   on_create, NULL);
}

static int start_multi(const limit *m)
{
  lk_call call = call_of(m);
  lk_op op = lk_op_check("/x", -1);

  return lk_multi(p.link->client, &op, 1, &call, on_multi, NULL);
}

static int start_create_with_parents(const limit *m)
{
  lk_call call = call_of(m);

  return lk_create_with_parents(p.link->client, "/a/b", lk_text(""), NULL, 0,
                                NULL, &call, on_create, NULL);
}

static int start_delete_recursive(const limit *m)
{
  lk_call call = call_of(m);

  return lk_delete_recursive(p.link->client, "/x", &call, NULL, on_deleted,
                             NULL);
}

static int start_create_reliable(const limit *m)
{
  lk_call call = call_of(m);

  return lk_create_reliable(p.link->client, "/new", lk_text(""), NULL, 0, false,
                            &call, on_create, NULL);
}

static int start_set_reliable(const limit *m)
{
  lk_call call = call_of(m);

  return lk_set_reliable(p.link->client, "/x", lk_text(""), -1, false, &call,
                         on_stat, NULL);
}

static int start_delete_reliable(const limit *m)
{
  lk_call call = call_of(m);

  return lk_delete_reliable(p.link->client, "/x", -1, false, &call, on_done,
                            NULL);
}

/* ---- locks -------------------------------------------------------------- */

static lk_lock *lock;
static lk_rwlock *rw;

static void on_lock(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)arg;
  end_with(err);
}

static int acquire(const limit *m)
{
  if (m->tries)
    return lk_lock_try_until(lock, m->deadline_ms, on_lock, NULL);
  return m->until ? lk_lock_acquire_until(lock, m->deadline_ms, on_lock, NULL)
                  : lk_lock_acquire(lock, m->timeout_ms, on_lock, NULL);
}

static int start_mutex(const limit *m)
{
  ck_assert_int_eq(lk_lock_new(&lock, p.link->client, "/lock", NULL), 0);
  return acquire(m);
}

static int start_read_side(const limit *m)
{
  ck_assert_int_eq(lk_rwlock_new(&rw, p.link->client, "/lock", NULL), 0);
  lock = lk_rwlock_read_side(rw);
  return acquire(m);
}

static int start_semaphore(const limit *m)
{
  const lk_semaphore_config two = {.size = sizeof two, .permits = 2};

  ck_assert_int_eq(lk_semaphore_new(&lock, p.link->client, "/lock", NULL, &two),
                   0);
  return acquire(m);
}

static int start_multilock(const limit *m)
{
  const lk_multilock_part members[] = {{"/l1", LK_MULTILOCK_MUTEX},
                                       {"/l2", LK_MULTILOCK_WRITE}};

  ck_assert_int_eq(
      lk_multilock_new(&lock, p.link->client, members, 2, NULL, NULL), 0);
  return acquire(m);
}

static int start_single(const limit *m)
{
  ck_assert_int_eq(lk_single_new(&lock, p.link->client, "/lock", NULL, NULL),
                   0);
  return acquire(m);
}

static void free_lock(void)
{
  if (rw != NULL)
    lk_rwlock_free(rw);
  else
    lk_lock_free(lock);
  rw = NULL;
  lock = NULL;
}

typedef struct row {
  const char *name;
  int (*start)(const limit *m);
} row;

static const row requests[] = {
    {"get", start_get},
    {"get, repeat", start_repeat},
    {"create", start_create},
    {"multi", start_multi},
    {"create_with_parents", start_create_with_parents},
    {"delete_recursive", start_delete_recursive},
    {"create_reliable", start_create_reliable},
    {"set_reliable", start_set_reliable},
    {"delete_reliable", start_delete_reliable},
};

static const row locks[] = {
    {"mutex", start_mutex},         {"read side", start_read_side},
    {"semaphore", start_semaphore}, {"multilock", start_multilock},
    {"single", start_single},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* ---- when a call ends ---------------------------------------------------- */

static char which_call[160]; /* the call and its limit, for messages */

static void expect(bool is_right, const char *what)
{
  ck_assert_msg(is_right, "%s: %s; ended %d times, with %s", which_call, what,
                ended, end_err == NOT_YET ? "nothing" : lk_error_text(end_err));
}

/* The limit had already passed: nothing was sent, and no callback follows. */
static void expect_refusal(int err)
{
  expect(err == LK_ERR_DEADLINE, "must be refused");
  expect(lock == NULL || lk_lock_get_state(lock) == LK_LOCK_IDLE,
         "must leave the lock idle");
  model_turn(&server);
  expect(ended == 0, "must not end");
  expect(lk__buf_len(&p.link->in) == 0, "must send nothing");
}

/* The call ends when the clock has advanced by `ms`. */
static void expect_end_after(int64_t ms)
{
  model_turn(&server);
  model_run(&server, ms - 1);
  expect(ended == 0, "must not end early");
  model_run(&server, 1);
  expect(ended == 1 && end_err == LK_ERR_DEADLINE, "must end in time");
}

static void expect_no_end_without_reply(void)
{
  model_turn(&server);
  model_run(&server, 100);
  expect(ended == 0, "must not end without a reply");
  p.link->frozen = false;
  server.down = false;
  model_run(&server, T);
  expect(ended == 1 && end_err != LK_ERR_DEADLINE, "must end with a reply");
}

/* Values of `end_ms`; all others are the milliseconds until the call ends. */
enum {
  NEVER = -1, /* it has no limit */
  PASSED = 0  /* its limit had passed before */
};

static void check_call(const row *r, const limit *m, fault f, int64_t end_ms)
{
  snprintf(which_call, sizeof which_call, "%s, timeout %lld, deadline %lld%s%s",
           r->name, (long long)m->timeout_ms, (long long)m->deadline_ms,
           m->until ? ", until" : "",
           f == NO_CONNECTION ? ", no connection" : "");
  begin(f);
  int err = r->start(m);

  ck_assert_msg(err == 0 || end_ms == PASSED, "%s: refused: %s", which_call,
                lk_error_text(err));
  if (end_ms == NEVER)
    expect_no_end_without_reply();
  else if (end_ms == PASSED)
    expect_refusal(err);
  else
    expect_end_after(end_ms);
  free_lock();
  end();
}

static void check_all(const row *rows, size_t count, const limit *m,
                      int64_t end_ms)
{
  for (size_t i = 0; i < count; i++) {
    check_call(&rows[i], m, SERVER_IS_SILENT, end_ms);
    check_call(&rows[i], m, NO_CONNECTION, end_ms);
  }
}

/* The time of a new model server. */
static int64_t now(void)
{
  begin(SERVER_IS_SILENT);
  int64_t ms = lk_client_clock(p.link->client);

  end();
  return ms;
}

/* A timeout ends 1 ms late, since the clock is rounded down to milliseconds. */
START_TEST(request_ends_at_its_timeout)
{
  static const struct {
    int64_t timeout_ms, end_ms;
  } cases[] = {{LK_NO_LIMIT, NEVER},
               {0, NEVER},
               {-2, PASSED},
               {INT64_MIN, PASSED},
               {1, 2},
               {50, 51},
               {INT64_MAX, NEVER},
               {INT64_MAX - 1, NEVER}};

  for (size_t i = 0; i < COUNT(cases); i++) {
    const limit m = {.timeout_ms = cases[i].timeout_ms};

    check_all(requests, COUNT(requests), &m, cases[i].end_ms);
  }
}
END_TEST

START_TEST(acquire_ends_at_its_timeout)
{
  static const struct {
    int64_t timeout_ms, end_ms;
  } cases[] = {{LK_NO_LIMIT, NEVER},
               {0, PASSED},
               {-2, PASSED},
               {INT64_MIN, PASSED},
               {1, 2},
               {50, 51},
               {INT64_MAX, NEVER},
               {INT64_MAX - 1, NEVER}};

  for (size_t i = 0; i < COUNT(cases); i++) {
    const limit m = {.timeout_ms = cases[i].timeout_ms};

    check_all(locks, COUNT(locks), &m, cases[i].end_ms);
  }
}
END_TEST

START_TEST(request_ends_at_its_deadline)
{
  const struct {
    int64_t deadline_ms, end_ms;
  } cases[] = {{LK_NO_LIMIT, NEVER},  {0, NEVER},
               {-2, PASSED},          {INT64_MIN, PASSED},
               {1, PASSED},           {now() - 1, PASSED},
               {now(), PASSED},       {now() + 1, 1},
               {now() + 50, 50},      {INT64_MAX, NEVER},
               {INT64_MAX - 1, NEVER}};

  for (size_t i = 0; i < COUNT(cases); i++) {
    const limit m = {.deadline_ms = cases[i].deadline_ms};

    check_all(requests, COUNT(requests), &m, cases[i].end_ms);
  }
}
END_TEST

START_TEST(acquire_ends_at_its_deadline)
{
  const struct {
    int64_t deadline_ms, end_ms;
  } cases[] = {{LK_NO_LIMIT, NEVER}, {0, PASSED},           {-2, PASSED},
               {INT64_MIN, PASSED},  {1, PASSED},           {now() - 1, PASSED},
               {now(), PASSED},      {now() + 1, 1},        {now() + 50, 50},
               {INT64_MAX, NEVER},   {INT64_MAX - 1, NEVER}};

  for (size_t i = 0; i < COUNT(cases); i++) {
    limit m = {.deadline_ms = cases[i].deadline_ms, .until = true};

    check_all(locks, COUNT(locks), &m, cases[i].end_ms);
    m.tries = true;
    check_all(locks, COUNT(locks), &m, cases[i].end_ms);
  }
}
END_TEST

START_TEST(the_earlier_of_timeout_and_deadline_counts)
{
  const limit timeout_first = {.timeout_ms = 9, .deadline_ms = now() + 20};
  const limit deadline_first = {.timeout_ms = 20, .deadline_ms = now() + 10};
  const limit one_passed = {.timeout_ms = 20, .deadline_ms = now()};

  check_all(requests, COUNT(requests), &timeout_first, 10);
  check_all(requests, COUNT(requests), &deadline_first, 10);
  check_all(requests, COUNT(requests), &one_passed, PASSED);
}
END_TEST

/* A call once did not end if the remaining time was exactly 0. */
START_TEST(calls_end_for_each_remaining_time_around_zero)
{
  for (int64_t left = -2; left <= 2; left++) {
    limit m = {.deadline_ms = now() + left};

    check_all(requests, COUNT(requests), &m, left > 0 ? left : PASSED);
    m.until = true;
    check_all(locks, COUNT(locks), &m, left > 0 ? left : PASSED);
  }
}
END_TEST

START_TEST(deadlines_do_not_overflow)
{
  ck_assert_int_eq(lk__timeout_after(INT64_MAX - 5, 3), INT64_MAX - 1);
  ck_assert_int_eq(lk__timeout_after(INT64_MAX - 5, 4), INT64_MAX);
  ck_assert_int_eq(lk__timeout_after(INT64_MAX - 5, INT64_MAX), INT64_MAX);
  ck_assert_int_eq(lk__timeout_after(INT64_MIN, INT64_MAX), 0);
  ck_assert_int_eq(lk__timeout_after(7, INT64_MIN), 7);
  ck_assert_int_eq(lk__timeout_until(7, INT64_MIN), 7);
  ck_assert_int_eq(lk__timeout_end(7, 0, 0), INT64_MAX);
}
END_TEST

/* ---- releases ----------------------------------------------------------- */

typedef struct release_case {
  bool until;          /* lk_lock_release_until() is called */
  int64_t deadline_ms; /* its argument */
  fault fault;
} release_case;

/* Make a client that holds a lock. */
static void begin_with_lock_held(const row *r)
{
  begin(SERVER_IS_SILENT);
  p.link->frozen = false;
  ck_assert_int_eq(r->start(&(limit){.timeout_ms = LK_NO_LIMIT}), 0);
  model_turn(&server);
  ck_assert_int_eq(end_err, 0);
  ended = 0;
  end_err = NOT_YET;
}

static void begin_fault(fault f)
{
  server.down = f == NO_CONNECTION;
  p.link->frozen = true;
  if (f == NO_CONNECTION)
    model_drop(p.link);
  p.link->log[0] = '\0';
}

static void end_fault(void)
{
  server.down = false;
  p.link->frozen = false;
  model_run(&server, T);
}

static void release(const release_case *c)
{
  int err = c->until
                ? lk_lock_release_until(lock, c->deadline_ms, on_lock, NULL)
                : lk_lock_release(lock, on_lock, NULL);

  ck_assert_msg(err == 0, "%s: refused: %s", which_call, lk_error_text(err));
  ck_assert_int_eq(lk_lock_get_state(lock), LK_LOCK_IDLE);
  expect(ended == 0, "must not end before it returned");
}

/* Check that the handle can acquire again, and that the node of the last
   acquire is deleted. */
static void assert_released(void)
{
  ended = 0;
  ck_assert_int_eq(acquire(&(limit){.timeout_ms = LK_NO_LIMIT}), 0);
  end_fault();
  expect(ended == 1 && end_err == 0, "must be acquired anew");
  ck_assert_uint_eq(lk_lease_pending_cleanups(p.link->client), 0);
  free_lock();
  model_run(&server, T);
  expect(ended == 1, "must end once");
  model_sweep(&server); /* deletes the containers of semaphores */
  ck_assert_uint_eq(model_children(&server, "/lock"), 0);
  ck_assert_uint_eq(model_children(&server, "/l1"), 0);
  ck_assert_uint_eq(model_children(&server, "/l2"), 0);
}

static void check_release(const row *r, const release_case *c, int64_t end_ms)
{
  snprintf(which_call, sizeof which_call, "%s, release, deadline %lld%s%s",
           r->name, (long long)c->deadline_ms, c->until ? ", until" : "",
           c->fault == NO_CONNECTION ? ", no connection" : "");
  begin_with_lock_held(r);
  begin_fault(c->fault);
  release(c);
  model_turn(&server);
  if (end_ms == NEVER) {
    model_run(&server, T / 2);
    expect(ended == 0, "must not end without a reply");
    end_fault();
    expect(ended == 1 && end_err == 0, "must end with a reply");
  } else {
    if (end_ms != PASSED)
      expect_end_after(end_ms);
    expect(ended == 1 && end_err == LK_ERR_DEADLINE, "must end in time");
    expect(c->fault == NO_CONNECTION || lk__buf_len(&p.link->in) > 0,
           "must be sent");
  }
  assert_released();
  end();
}

static void check_releases(release_case c, int64_t end_ms)
{
  for (size_t i = 0; i < COUNT(locks); i++) {
    c.fault = SERVER_IS_SILENT;
    check_release(&locks[i], &c, end_ms);
    c.fault = NO_CONNECTION;
    check_release(&locks[i], &c, end_ms);
  }
}

/* A close waits 1500 ms, and a timeout ends 1 ms late. */
enum { RELEASE_END_MS = 1501, AFTER_RELEASE_END_MS = 1600 };

START_TEST(a_release_waits_no_longer_than_a_close)
{
  check_releases((release_case){.until = false}, RELEASE_END_MS);
}
END_TEST

START_TEST(release_ends_at_its_deadline)
{
  const struct {
    int64_t deadline_ms, end_ms;
  } cases[] = {{LK_NO_LIMIT, NEVER}, {0, PASSED},       {-2, PASSED},
               {INT64_MIN, PASSED},  {now(), PASSED},   {now() + 1, 1},
               {now() + 50, 50},     {INT64_MAX, NEVER}};

  for (size_t i = 0; i < COUNT(cases); i++)
    check_releases(
        (release_case){.until = true, .deadline_ms = cases[i].deadline_ms},
        cases[i].end_ms);
}
END_TEST

/* Check that the function `end_it` ends the release with `err`, and that the
   release then does not end again at its deadline. */
static void check_release_ended_by(const row *r, void (*end_it)(void), int err)
{
  snprintf(which_call, sizeof which_call, "%s, release", r->name);
  begin_with_lock_held(r);
  begin_fault(SERVER_IS_SILENT);
  release(&(release_case){.until = false});
  model_turn(&server);
  end_it();
  expect(ended == 1 && end_err == err, "must end with the other error");
  if (lock != NULL)
    free_lock();
  model_run(&server, AFTER_RELEASE_END_MS);
  expect(ended == 1, "must end once");
  end();
}

static void free_client(void)
{
  lk_client_free(p.link->client);
}

static void receive_reply(void)
{
  p.link->frozen = false;
  model_turn(&server);
}

static void time_out_and_free_client(void)
{
  model_run(&server, RELEASE_END_MS);
  lk_client_free(p.link->client);
}

START_TEST(a_release_ends_once)
{
  for (size_t i = 0; i < COUNT(locks); i++) {
    check_release_ended_by(&locks[i], receive_reply, 0);
    check_release_ended_by(&locks[i], free_lock, LK_ERR_CLOSED);
    check_release_ended_by(&locks[i], free_client, LK_ERR_CLOSED);
    check_release_ended_by(&locks[i], time_out_and_free_client,
                           LK_ERR_DEADLINE);
  }
}
END_TEST

/* The limits of the release and of the close end in the same turn, so either
   error is right. */
static void close_client_at_once(void)
{
  (void)lk_client_close(p.link->client, NULL, NULL);
  model_run(&server, AFTER_RELEASE_END_MS);
  if (end_err == LK_ERR_DEADLINE)
    end_err = LK_ERR_CLOSED;
}

START_TEST(a_release_ends_once_where_its_client_is_closed)
{
  for (size_t i = 0; i < COUNT(locks); i++)
    check_release_ended_by(&locks[i], close_client_at_once, LK_ERR_CLOSED);
}
END_TEST

START_TEST(the_limit_of_a_release_that_has_ended_ends_no_other)
{
  begin_with_lock_held(&locks[0]);
  release(&(release_case){.until = false});
  model_turn(&server);
  expect(ended == 1 && end_err == 0, "must end with its reply");
  ck_assert_int_eq(acquire(&(limit){.timeout_ms = LK_NO_LIMIT}), 0);
  model_turn(&server);
  begin_fault(SERVER_IS_SILENT);
  ended = 0;
  release(&(release_case){.until = true, .deadline_ms = LK_NO_LIMIT});
  model_run(&server, AFTER_RELEASE_END_MS);
  expect(ended == 0, "must not end without a reply");
  free_lock();
  end();
}
END_TEST

START_TEST(reentrant_release_sends_nothing)
{
  begin_with_lock_held(&locks[0]);
  ck_assert_int_eq(acquire(&(limit){.timeout_ms = 0}), 0);
  model_turn(&server);
  begin_fault(SERVER_IS_SILENT);
  ended = 0;
  ck_assert_int_eq(lk_lock_release_until(lock, -2, on_lock, NULL), 0);
  model_turn(&server);
  expect(ended == 1 && end_err == 0, "must end at once");
  free_lock();
  end();
}
END_TEST

/* ---- late calls: those whose limit has passed before --------------------- */

static const limit late = {.timeout_ms = -2};

START_TEST(handle_acquires_after_a_late_acquire)
{
  begin(SERVER_IS_SILENT);
  p.link->frozen = false;
  ck_assert_int_eq(start_mutex(&late), LK_ERR_DEADLINE);
  ck_assert_int_eq(acquire(&(limit){.timeout_ms = LK_NO_LIMIT}), 0);
  ck_assert_int_eq(acquire(&late), LK_ERR_STATE);
  model_turn(&server);
  ck_assert_int_eq(ended, 1);
  ck_assert_int_eq(end_err, 0);
  free_lock();
  end();
}
END_TEST

START_TEST(reentrant_acquire_succeeds_after_its_deadline)
{
  begin(SERVER_IS_SILENT);
  p.link->frozen = false;
  ck_assert_int_eq(start_mutex(&(limit){.timeout_ms = LK_NO_LIMIT}), 0);
  model_turn(&server);
  ck_assert_int_eq(end_err, 0);
  ck_assert_int_eq(acquire(&late), 0);
  model_turn(&server);
  ck_assert_int_eq(ended, 2);
  ck_assert_int_eq(end_err, 0);
  ck_assert_uint_eq(lk_lock_count(lock), 2);
  free_lock();
  end();
}
END_TEST

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
  ck_abort_msg("a watch that was never set gets an event");
}

START_TEST(a_late_call_sets_no_watch)
{
  lk_call call = call_of(&late);
  lk_watch *w = NULL;

  begin(SERVER_IS_SILENT);
  p.link->frozen = false;
  call.on_event = on_event;
  call.watch = &w;
  ck_assert_int_eq(lk_get(p.link->client, "/x", &call, on_get, NULL),
                   LK_ERR_DEADLINE);
  ck_assert_ptr_null(w);
  ck_assert_int_eq(lk_add_watch(p.link->client, "/x", LK_WATCH_RECURSIVE, &call,
                                on_done, NULL),
                   LK_ERR_DEADLINE);
  model_set(&server, "/x", "new");
  model_turn(&server);
  ck_assert_int_eq(ended, 0);
  ck_assert(model_check_log(p.link, ""));
  end();
}
END_TEST

SUITE("timeouts", request_ends_at_its_timeout, acquire_ends_at_its_timeout,
      request_ends_at_its_deadline, acquire_ends_at_its_deadline,
      the_earlier_of_timeout_and_deadline_counts,
      calls_end_for_each_remaining_time_around_zero, deadlines_do_not_overflow,
      handle_acquires_after_a_late_acquire,
      reentrant_acquire_succeeds_after_its_deadline, a_late_call_sets_no_watch,
      a_release_waits_no_longer_than_a_close, release_ends_at_its_deadline,
      a_release_ends_once, a_release_ends_once_where_its_client_is_closed,
      the_limit_of_a_release_that_has_ended_ends_no_other,
      reentrant_release_sends_nothing)
