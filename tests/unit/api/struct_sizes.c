/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/suite.h"
#include "unit/api/sized.h"

#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/roster.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>

/* Structs of programs that were compiled with older or newer headers, and
 * structs without a size. tests/unit/sync/struct_sizes.c tests those of the
 * blocking interface. */

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

static const lk_hooks hooks = {
    .now = on_now, .random = on_random, .wake = on_wake};

/* Valid structs, without their sizes: a_client, a_sasl and so on. */
static const lk_client_config a_client = {.log = sized_log};

static int sasl_start(void **state, const lk_sasl_facts *facts,
                      const char **why)
{
  (void)state;
  (void)facts;
  (void)why;
  return 0;
}

static int sasl_step(void *state, lk_bytes challenge, lk_bytes *response,
                     const char **why)
{
  (void)state;
  (void)challenge;
  (void)response;
  (void)why;
  return LK_SASL_DONE;
}

static void sasl_end(void *state)
{
  (void)state;
}

/* All members of a mechanism are required. */
static const lk_sasl_mechanism a_mechanism = {.size = sizeof a_mechanism,
                                              .name = "SIZED",
                                              .start = sasl_start,
                                              .step = sasl_step,
                                              .end = sasl_end};
static const lk_sasl_config a_sasl = {.mechanism = &a_mechanism};
static const lk_call a_call = {0};
static const lk_reconfiguration a_change = {.joining = "server.4=h:1:2;3"};
static const lk_parents_config some_parents = {.containers = true};
static const lk_lease_config a_lease = {.assurance = LK_ASSURE_PING};
static const lk_lock_config a_lock = {0};
static const lk_semaphore_config a_semaphore = {.permits = 2};
static const lk_multilock_config a_multilock = {.keep_order = true};
static const lk_single_config a_single = {.poll_ms = 50};
static const lk_membership_config a_membership = {0};
static const lk_roster_config a_roster = {.check_ms = 500};
static const lk_candidate_config a_candidate = {.pause_ms = 50};
static const lk_subscription_config a_subscription = {.check_ms = 500};

/* ---- lk__sized_struct_copy() --------------------------------------------- */

typedef struct lk_sample {
  size_t size;
  int first;
  int second;
} lk_sample;
#define LK_ENDS_lk_sample first, second

static const lk_sized_struct sample = LK_SIZED_STRUCT(lk_sample);

START_TEST(options_that_an_older_program_lacks_are_zero)
{
  lk_sample from = {offsetof(lk_sample, second), 1, 2}, out = {7, 7, 7};

  ck_assert_ptr_null(lk__sized_struct_copy(&sample, &out, &from));
  ck_assert_uint_eq(out.size, sizeof out);
  ck_assert_int_eq(out.first, 1);
  ck_assert_int_eq(out.second, 0);
}
END_TEST

START_TEST(missing_struct_selects_the_defaults)
{
  lk_sample out = {7, 7, 7};

  ck_assert_ptr_null(lk__sized_struct_copy(&sample, &out, NULL));
  ck_assert_uint_eq(out.size, sizeof out);
  ck_assert_int_eq(out.first, 0);
  ck_assert_int_eq(out.second, 0);
}
END_TEST

START_TEST(a_refusal_names_the_struct_and_copies_nothing)
{
  struct {
    lk_sample known;
    int newer_option;
  } from = {{0, 1, 2}, 3};
  lk_sample out = {7, 7, 7};

  ck_assert_str_eq(lk__sized_struct_copy(&sample, &out, &from),
                   "lk_sample.size is not set");
  from.known.size = sizeof from;
  ck_assert_str_eq(lk__sized_struct_copy(&sample, &out, &from),
                   "lk_sample has an option that is newer than this library");
  ck_assert_uint_eq(out.size, 7);
  ck_assert_int_eq(out.first, 7);
}
END_TEST

/* ---- functions that copy a struct ---------------------------------------- */

static int new_client(const void *s)
{
  lk_client *c;
  int err = lk_client_new(&c, s, &hooks);

  lk_client_free(c);
  return err;
}

static int new_client_with_sasl(const void *s)
{
  lk_client_config c = a_client;

  c.size = sizeof c;
  c.sasl = s;
  return new_client(&c);
}

static int new_client_with_mechanism(const void *s)
{
  lk_sasl_config sasl = {.size = sizeof sasl, .mechanism = s};

  return new_client_with_sasl(&sasl);
}

/* Uses a new client, since a lease can be configured only once. */
static int configure_lease(const void *s)
{
  lk_client_config config = a_client;
  lk_client *c;

  config.size = sizeof config;
  ck_assert_int_eq(lk_client_new(&c, &config, &hooks), 0);
  int err = lk_lease_configure(c, s);

  lk_client_free(c);
  return err;
}

/* Free what a constructor has made. Returns `err`, its result. */
static int free_lock(int err, lk_lock *l)
{
  ck_assert((err == 0) == (l != NULL));
  lk_lock_free(l);
  return err;
}

static int new_mutex(const void *s)
{
  lk_lock *l;
  int err = lk_lock_new(&l, client, "/x", s);

  return free_lock(err, l);
}

static int new_rwlock(const void *s)
{
  lk_rwlock *rw;
  int err = lk_rwlock_new(&rw, client, "/x", s);

  ck_assert((err == 0) == (rw != NULL));
  lk_rwlock_free(rw);
  return err;
}

static int new_semaphore_lock(const void *s)
{
  lk_semaphore_config options = a_semaphore;
  lk_lock *l;

  options.size = sizeof options;
  int err = lk_semaphore_new(&l, client, "/x", s, &options);

  return free_lock(err, l);
}

static int new_semaphore(const void *s)
{
  lk_lock *l;
  int err = lk_semaphore_new(&l, client, "/x", NULL, s);

  return free_lock(err, l);
}

static const lk_multilock_member members[] = {{"/x", LK_MULTILOCK_MUTEX},
                                              {"/y", LK_MULTILOCK_READ}};

static int new_multilock_lock(const void *s)
{
  lk_lock *l;
  int err = lk_multilock_new(&l, client, members, 2, s, NULL);

  return free_lock(err, l);
}

static int new_multilock(const void *s)
{
  lk_lock *l;
  int err = lk_multilock_new(&l, client, members, 2, NULL, s);

  return free_lock(err, l);
}

static int new_single_lock(const void *s)
{
  lk_lock *l;
  int err = lk_single_new(&l, client, "/x", s, NULL);

  return free_lock(err, l);
}

static int new_single(const void *s)
{
  lk_lock *l;
  int err = lk_single_new(&l, client, "/x", NULL, s);

  return free_lock(err, l);
}

static int new_election(const void *s)
{
  lk_candidate *c;
  int err = lk_election_new(&c, client, "/x", LK_LAYOUT_LATCH, NULL, s);

  ck_assert((err == 0) == (c != NULL));
  lk_candidate_free(c);
  return err;
}

static int new_election_lock(const void *s)
{
  lk_candidate *c;
  int err = lk_election_new(&c, client, "/x", LK_LAYOUT_LATCH, s, NULL);

  ck_assert((err == 0) == (c != NULL));
  lk_candidate_free(c);
  return err;
}

static void on_data(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)s;
  (void)err;
  (void)data;
  (void)stat;
  (void)arg;
}

static int subscribe(const void *s)
{
  lk_subscription *sub;
  int err = lk_subscribe_data(&sub, client, "/x", s, on_data, NULL);

  ck_assert((err == 0) == (sub != NULL));
  lk_subscription_free(sub);
  return err;
}

static int new_membership(const void *s)
{
  lk_membership *m;
  int err = lk_membership_new(&m, client, "/x", "m", s);

  ck_assert((err == 0) == (m != NULL));
  lk_membership_free(m);
  return err;
}

static int do_roster_get(const void *s)
{
  return lk_roster_get(client, "/x", s, NULL, NULL, NULL);
}

static int do_roster_get_call(const void *call)
{
  return lk_roster_get(client, "/x", NULL, call, NULL, NULL);
}

/* ---- requests ----------------------------------------------------------- */

static int do_get(const void *call)
{
  return lk_get(client, "/x", call, NULL, NULL);
}

static int do_set(const void *call)
{
  return lk_set(client, "/x", lk_text(""), -1, call, NULL, NULL);
}

static int do_create(const void *call)
{
  return lk_create(client, "/x", lk_text(""), NULL, 0, call, NULL, NULL);
}

static int do_ephemerals(const void *call)
{
  return lk_ephemerals(client, "/", call, NULL, NULL);
}

static int do_who_am_i(const void *call)
{
  return lk_who_am_i(client, call, NULL, NULL);
}

static int do_multi(const void *call)
{
  lk_op op = lk_op_check("/x", -1);

  return lk_multi(client, &op, 1, call, NULL, NULL);
}

static int do_multi_read(const void *call)
{
  lk_read read = lk_read_get("/x");

  return lk_multi_read(client, &read, 1, call, NULL, NULL);
}

static int do_create_with_parents(const void *call)
{
  return lk_create_with_parents(client, "/x", lk_text(""), NULL, 0, NULL, call,
                                NULL, NULL);
}

static int do_parents_config(const void *s)
{
  return lk_create_with_parents(client, "/x", lk_text(""), NULL, 0, s, NULL,
                                NULL, NULL);
}

static int do_delete_recursive(const void *call)
{
  return lk_delete_recursive(client, "/x", call, NULL, NULL, NULL);
}

static int do_set_reliable(const void *call)
{
  return lk_set_reliable(client, "/x", lk_text(""), -1, false, call, NULL,
                         NULL);
}

static int do_reconfig(const void *s)
{
  return lk_reconfig(client, s, NULL, NULL, NULL);
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

static const sized_row rows[] = {
    SIZED_ROW(lk_client_config, a_client, .name = "lk_client_new",
              .hand_in = new_client, .silent_unset = true),
    SIZED_ROW(lk_sasl_config, a_sasl, .name = "lk_client_new, sasl",
              .hand_in = new_client_with_sasl),
    SIZED_ROW(lk_sasl_mechanism, a_mechanism,
              .name = "lk_client_new, mechanism",
              .hand_in = new_client_with_mechanism),
    SIZED_ROW(lk_lease_config, a_lease, .name = "lk_lease_configure",
              .hand_in = configure_lease),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_lock_new",
              .hand_in = new_mutex),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_rwlock_new",
              .hand_in = new_rwlock),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_semaphore_new, config",
              .hand_in = new_semaphore_lock),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_multilock_new, config",
              .hand_in = new_multilock_lock),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_single_new, config",
              .hand_in = new_single_lock),
    SIZED_ROW(lk_semaphore_config, a_semaphore, .name = "lk_semaphore_new",
              .hand_in = new_semaphore),
    SIZED_ROW(lk_multilock_config, a_multilock, .name = "lk_multilock_new",
              .hand_in = new_multilock),
    SIZED_ROW(lk_single_config, a_single, .name = "lk_single_new",
              .hand_in = new_single),
    SIZED_ROW(lk_candidate_config, a_candidate, .name = "lk_election_new",
              .hand_in = new_election),
    SIZED_ROW(lk_lock_config, a_lock, .name = "lk_election_new, lock",
              .hand_in = new_election_lock),
    SIZED_ROW(lk_subscription_config, a_subscription,
              .name = "lk_subscribe_data", .hand_in = subscribe),
    SIZED_ROW(lk_parents_config, some_parents,
              .name = "lk_create_with_parents, parents",
              .hand_in = do_parents_config),
    SIZED_ROW(lk_reconfiguration, a_change, .name = "lk_reconfig",
              .hand_in = do_reconfig),
    SIZED_ROW(lk_membership_config, a_membership, .name = "lk_membership_new",
              .hand_in = new_membership),
    SIZED_ROW(lk_roster_config, a_roster, .name = "lk_roster_get",
              .hand_in = do_roster_get),
    SIZED_ROW(lk_call, a_call, .name = "lk_roster_get, call",
              .hand_in = do_roster_get_call),
    SIZED_ROW(lk_call, a_call, .name = "lk_get", .hand_in = do_get),
    SIZED_ROW(lk_call, a_call, .name = "lk_set", .hand_in = do_set),
    SIZED_ROW(lk_call, a_call, .name = "lk_create", .hand_in = do_create),
    SIZED_ROW(lk_call, a_call, .name = "lk_ephemerals",
              .hand_in = do_ephemerals),
    SIZED_ROW(lk_call, a_call, .name = "lk_who_am_i", .hand_in = do_who_am_i),
    SIZED_ROW(lk_call, a_call, .name = "lk_multi", .hand_in = do_multi),
    SIZED_ROW(lk_call, a_call, .name = "lk_multi_read",
              .hand_in = do_multi_read),
    SIZED_ROW(lk_call, a_call, .name = "lk_create_with_parents",
              .hand_in = do_create_with_parents),
    SIZED_ROW(lk_call, a_call, .name = "lk_delete_recursive",
              .hand_in = do_delete_recursive),
    SIZED_ROW(lk_call, a_call, .name = "lk_set_reliable",
              .hand_in = do_set_reliable),
};

START_TEST(structs_may_be_older_or_newer_but_need_a_size)
{
  lk_client_config config = a_client;

  config.size = sizeof config;
  ck_assert_int_eq(lk_client_new(&client, &config, &hooks), 0);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    sized_check(&rows[i]);
  lk_client_free(client);
}
END_TEST

/* Bytes behind the size of an older program's struct do not belong to it. */
START_TEST(a_call_has_no_watch_behind_its_size)
{
  lk_client_config config = a_client;
  lk_call call = {.size = offsetof(lk_call, on_event), .on_event = on_event};

  config.size = sizeof config;
  ck_assert_int_eq(lk_client_new(&client, &config, &hooks), 0);
  ck_assert_int_eq(do_set(&call), 0);
  ck_assert_int_eq(
      lk_add_watch(client, "/x", LK_WATCH_PERSISTENT, &call, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  call.size = sizeof call;
  ck_assert_int_eq(do_set(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_add_watch(client, "/x", LK_WATCH_PERSISTENT, &call, NULL, NULL), 0);
  lk_client_free(client);
}
END_TEST

SUITE("struct_sizes", options_that_an_older_program_lacks_are_zero,
      missing_struct_selects_the_defaults,
      a_refusal_names_the_struct_and_copies_nothing,
      structs_may_be_older_or_newer_but_need_a_size,
      a_call_has_no_watch_behind_its_size)
