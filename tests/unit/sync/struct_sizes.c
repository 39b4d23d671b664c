/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/suite.h"
#include "unit/api/sized.h"

#include <latchkey/sync.h>
#include <stdio.h>

/* Structs of older and newer programs, and those whose size was forgotten, of
 * the blocking interface. The others: tests/unit/api/struct_sizes.c. */

static lk_sync_client *client;
static lk_sync_lock *lock;
static lk_sync_subscription *subscription;

static const lk_sync_config a_config = {0};
static const lk_client_config a_client = {.log = sized_log};
static const lk_lease_config a_lease = {.assurance = LK_ASSURE_PING};
static const lk_sync_call a_call = {.timeout_ms = 1};
static const lk_sync_lock_config a_lock = {0};
static const lk_semaphore_config a_semaphore = {.permits = 2};
static const lk_multilock_config a_multilock = {.keep_order = true};
static const lk_single_config a_single = {.poll_ms = 50};
static const lk_lock_config a_lock_config = {0};
static const lk_sync_candidate_config a_candidate = {.pause_ms = 50};
static const lk_subscription_config a_subscription = {.check_ms = 500};
static const lk_roster_config a_roster = {.check_ms = 500};
static const lk_sync_membership_config a_membership = {.data = {"data", 4}};
static const lk_parents_config some_parents = {.containers = true};

/* ---- clients ------------------------------------------------------------ */

static int make_client(const lk_sync_config *config)
{
  lk_sync_client *c;
  int err = lk_sync_client_new(&c, config);

  ck_assert((err == 0) == (c != NULL));
  lk_sync_client_free(c);
  return err;
}

static int new_client(const void *s)
{
  return make_client(s);
}

static int new_inner_client(const void *s)
{
  return make_client(
      &(lk_sync_config){.size = sizeof(lk_sync_config), .client = s});
}

/* lk_client_config.sasl reaches the client. */
static int new_inner_sasl(const void *s)
{
  lk_client_config c = a_client;

  c.size = sizeof c;
  c.sasl = s;
  return new_inner_client(&c);
}

static int sasl_start(void **state, const lk_sasl_facts *facts,
                      const char **why)
{
  (void)state;
  (void)facts;
  (void)why;
  return LK_ERR_STATE;
}

static int sasl_step(void *state, lk_bytes challenge, lk_bytes *response,
                     const char **why)
{
  (void)state;
  (void)challenge;
  (void)response;
  (void)why;
  return LK_ERR_STATE;
}

static void sasl_end(void *state)
{
  (void)state;
}

static const lk_sasl_mechanism a_mechanism = {.size = sizeof a_mechanism,
                                              .name = "SIZED",
                                              .start = sasl_start,
                                              .step = sasl_step,
                                              .end = sasl_end};
static const lk_sasl_config a_sasl = {.mechanism = &a_mechanism};

static int new_inner_lease(const void *s)
{
  lk_client_config c = a_client;

  c.size = sizeof c;
  return make_client(&(lk_sync_config){
      .size = sizeof(lk_sync_config), .client = &c, .lease = s});
}

/* ---- locks -------------------------------------------------------------- */

static int free_lock(int err, lk_sync_lock *l)
{
  ck_assert((err == 0) == (l != NULL));
  lk_sync_lock_free(l);
  return err;
}

static int new_mutex(const void *s)
{
  lk_sync_lock *l;
  int err = lk_sync_lock_new(&l, client, "/x", s);

  return free_lock(err, l);
}

static int new_rwlock(const void *s)
{
  lk_sync_rwlock *rw;
  int err = lk_sync_rwlock_new(&rw, client, "/x", s);

  ck_assert((err == 0) == (rw != NULL));
  lk_sync_rwlock_free(rw);
  return err;
}

static int new_semaphore(const void *s)
{
  lk_sync_lock *l;
  int err = lk_sync_semaphore_new(&l, client, "/x", NULL, s);

  return free_lock(err, l);
}

static int new_multilock(const void *s)
{
  static const lk_multilock_member members[] = {{"/x", LK_MULTILOCK_MUTEX},
                                                {"/y", LK_MULTILOCK_READ}};
  lk_sync_lock *l;
  int err = lk_sync_multilock_new(&l, client, members, 2, NULL, s);

  return free_lock(err, l);
}

static int new_single(const void *s)
{
  lk_sync_lock *l;
  int err = lk_sync_single_new(&l, client, "/x", NULL, s);

  return free_lock(err, l);
}

static int new_election(const void *s)
{
  lk_sync_candidate *c;
  int err = lk_sync_election_new(&c, client, "/x", LK_LAYOUT_LATCH, NULL, s);

  ck_assert((err == 0) == (c != NULL));
  lk_sync_candidate_free(c);
  return err;
}

static int new_candidate(const void *s)
{
  lk_sync_lock *l;
  lk_sync_candidate *c;

  ck_assert_int_eq(lk_sync_lock_new(&l, client, "/x", NULL), 0);
  int err = lk_sync_candidate_new(&c, l, s);

  ck_assert((err == 0) == (c != NULL));
  lk_sync_candidate_free(c);
  lk_sync_lock_free(l);
  return err;
}

static int new_election_lock(const void *s)
{
  lk_sync_candidate *c;
  int err = lk_sync_election_new(&c, client, "/x", LK_LAYOUT_LATCH, s, NULL);

  ck_assert((err == 0) == (c != NULL));
  lk_sync_candidate_free(c);
  return err;
}

static int subscribe(const void *s)
{
  lk_sync_subscription *sub;
  int err = lk_sync_subscribe_data(&sub, client, "/x", s);

  ck_assert((err == 0) == (sub != NULL));
  lk_sync_subscription_free(sub);
  return err;
}

static int subscribe_roster(const void *s)
{
  lk_sync_subscription *sub;
  int err = lk_sync_subscribe_roster(&sub, client, "/x", s);

  ck_assert((err == 0) == (sub != NULL));
  lk_sync_subscription_free(sub);
  return err;
}

static int new_membership(const void *s)
{
  lk_sync_membership *m;
  int err = lk_sync_membership_new(&m, client, "/x", "a", s);

  ck_assert((err == 0) == (m != NULL));
  lk_sync_membership_free(m);
  return err;
}

/* ---- calls -------------------------------------------------------------- */

/* No server replies, so a call that was accepted ends at its deadline. */
static int result_of_accepted(int err)
{
  return err == LK_ERR_DEADLINE ? 0 : err;
}

static int do_get(const void *call)
{
  return result_of_accepted(lk_sync_get(client, NULL, "/x", call));
}

static int do_acquire(const void *call)
{
  return result_of_accepted(lk_sync_lock_acquire(lock, call));
}

static int do_next(const void *call)
{
  return result_of_accepted(
      lk_sync_subscription_next(subscription, NULL, call));
}

/* The timeout is long enough for a busy machine to begin the call, which then
 * reads the struct. */
static int do_parents(const void *s)
{
  const lk_sync_call call = {.size = sizeof call, .timeout_ms = 300};
  lk_sync_result junk, *r = &junk;
  int err = lk_sync_create_with_parents(client, &r, "/x", lk_text(""), NULL, 0,
                                        s, &call);

  ck_assert_ptr_null(r);
  return result_of_accepted(err);
}

static const sized_row rows[] = {
    SIZED_ROW(lk_sync_config, a_config, .name = "lk_sync_client_new",
              .hand_in = new_client, .silent_unset = true,
              .silent_beyond = true),
    SIZED_ROW(lk_client_config, a_client, .name = "lk_sync_client_new, client",
              .hand_in = new_inner_client, .silent_unset = true),
    SIZED_ROW(lk_sasl_config, a_sasl, .name = "lk_sync_client_new, sasl",
              .hand_in = new_inner_sasl),
    SIZED_ROW(lk_lease_config, a_lease, .name = "lk_sync_client_new, lease",
              .hand_in = new_inner_lease),
    SIZED_ROW(lk_sync_lock_config, a_lock, .name = "lk_sync_lock_new",
              .hand_in = new_mutex),
    SIZED_ROW(lk_sync_lock_config, a_lock, .name = "lk_sync_rwlock_new",
              .hand_in = new_rwlock),
    SIZED_ROW(lk_semaphore_config, a_semaphore, .name = "lk_sync_semaphore_new",
              .hand_in = new_semaphore),
    SIZED_ROW(lk_multilock_config, a_multilock, .name = "lk_sync_multilock_new",
              .hand_in = new_multilock),
    SIZED_ROW(lk_single_config, a_single, .name = "lk_sync_single_new",
              .hand_in = new_single),
    SIZED_ROW(lk_sync_candidate_config, a_candidate,
              .name = "lk_sync_election_new", .hand_in = new_election),
    SIZED_ROW(lk_sync_candidate_config, a_candidate,
              .name = "lk_sync_candidate_new", .hand_in = new_candidate),
    SIZED_ROW(lk_lock_config, a_lock_config,
              .name = "lk_sync_election_new, lock",
              .hand_in = new_election_lock),
    SIZED_ROW(lk_subscription_config, a_subscription,
              .name = "lk_sync_subscribe_data", .hand_in = subscribe),
    SIZED_ROW(lk_roster_config, a_roster, .name = "lk_sync_subscribe_roster",
              .hand_in = subscribe_roster),
    SIZED_ROW(lk_sync_membership_config, a_membership,
              .name = "lk_sync_membership_new", .hand_in = new_membership),
    SIZED_ROW(lk_parents_config, some_parents,
              .name = "lk_sync_create_with_parents, parents",
              .hand_in = do_parents),
    SIZED_ROW(lk_sync_call, a_call, .name = "lk_sync_get", .hand_in = do_get),
    SIZED_ROW(lk_sync_call, a_call, .name = "lk_sync_lock_acquire",
              .hand_in = do_acquire),
    SIZED_ROW(lk_sync_call, a_call, .name = "lk_sync_subscription_next",
              .hand_in = do_next),
};

static char last_log_line[256]; /* last line of the log */

static void keep_line(void *arg, int level, int err, const char *text)
{
  sized_log(arg, level, err, text);
  snprintf(last_log_line, sizeof last_log_line, "%s", text);
}

static void start(void)
{
  lk_client_config c = a_client;
  lk_sync_config config = {.size = sizeof config, .client = &c};

  c.size = sizeof c;
  c.hosts = "127.0.0.1:1";
  c.log = keep_line;
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  ck_assert_int_eq(lk_sync_lock_new(&lock, client, "/x", NULL), 0);
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/x", NULL),
                   0);
}

static void stop(void)
{
  lk_sync_lock_free(lock);
  lk_sync_subscription_free(subscription);
  lk_sync_client_free(client);
}

START_TEST(structs_may_be_older_or_newer_but_need_a_size)
{
  start();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    sized_check(&rows[i]);
  stop();
}
END_TEST

static void call_without_size_in_callback(lk_client *c, void *arg)
{
  static const lk_sync_call none = {0};
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sync_call);

  (void)c;
  *(int *)arg = lk_sync_get(client, NULL, "/x", &none);
  ck_assert_str_eq(last_log_line, what.unset);
}

START_TEST(forgotten_size_is_logged_in_a_callback_too)
{
  int err = 0;

  start();
  ck_assert_int_eq(
      lk_sync_client_run_on_thread(client, call_without_size_in_callback, &err),
      0);
  ck_assert_int_eq(err, LK_ERR_STATE);
  stop();
}
END_TEST

SUITE("struct_sizes", structs_may_be_older_or_newer_but_need_a_size,
      forgotten_size_is_logged_in_a_callback_too)
