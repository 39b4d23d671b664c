/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * All constructors of the library without libev: after wrong arguments and each
 * failing allocation the result is NULL and nothing is kept.
 */

#include <latchkey/acl.h>
#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/roster.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>

#include "unit/api/constructors.h"

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

static int make_client(void **out, unsigned mistake)
{
  const lk_hooks hooks = {.now = on_now,
                          .random = on_random,
                          .wake = mistake == 1 ? NULL : on_wake};
  const lk_client_config config = {.size = mistake == 2 ? 0 : sizeof config,
                                   .hosts = mistake == 3 ? "a:b" : "a:1,b:2",
                                   .send_limit = mistake == 4 ? SIZE_MAX : 0,
                                   .session_timeout_ms = mistake == 5 ? -1 : 0,
                                   .mem = &mem.mem};
  lk_client *c = *out;
  int err = lk_client_new(&c, mistake == 6 ? NULL : &config,
                          mistake == 7 ? NULL : &hooks);

  *out = c;
  return err;
}

static void free_client(void *made)
{
  lk_client_free(made);
}

/* Make a client and configure its session lease, which is freed with the
 * client. */
static int make_lease(void **out, unsigned mistake)
{
  const lk_lease_config config = {.size = mistake == 1 ? 0 : sizeof config,
                                  .gap_ms = mistake == 2 ? -1 : 0};
  int err = make_client(out, NO_MISTAKE);

  if (err == 0)
    err = lk_lease_configure(*out, &config);
  if (err != 0) {
    lk_client_free(*out);
    *out = NULL;
  }
  return err;
}

static lk_lock_config lock_config(unsigned mistake)
{
  return (lk_lock_config){.size = mistake == 1 ? 0 : sizeof(lk_lock_config)};
}

/* For all kinds of locks, the mistake 1 is in lock_config(), and the mistakes 2
 * to 4 are in the path. */
static const char *lock_path(unsigned mistake)
{
  switch (mistake) {
  case 2: return "a";
  case 3: return "/";
  case 4: return "/a//b";
  default: return "/a";
  }
}

static int make_lock(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  lk_lock *l = *out;

  if (mistake == 5)
    config.prefix = "a/b";
  int err = lk_lock_new(&l, client, lock_path(mistake), &config);

  *out = l;
  return err;
}

static void free_lock(void *made)
{
  lk_lock_free(made);
}

static int make_rwlock(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  lk_rwlock *rw = *out;

  if (mistake == 5)
    config.prefix = "p";
  int err = lk_rwlock_new(&rw, client, lock_path(mistake), &config);

  *out = rw;
  return err;
}

static void free_rwlock(void *made)
{
  lk_rwlock_free(made);
}

static int make_semaphore(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  const lk_semaphore_config options = {.size =
                                           mistake == 5 ? 0 : sizeof options,
                                       .permits = mistake == 6 ? -1 : 3,
                                       .take = mistake == 7 ? 4 : 2,
                                       .limit_path = mistake == 8 ? "b" : NULL};
  lk_lock *l = *out;
  int err = lk_semaphore_new(&l, client, lock_path(mistake), &config, &options);

  *out = l;
  return err;
}

/* Make a semaphore with all options whose values are copied. */
static int make_semaphore_with_copies(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  const lk_semaphore_config options = {
      .size = sizeof options, .permits = 3, .limit_path = "/limit"};
  lk_lock *l = *out;

  config.data = lk_text("who");
  config.acl = &lk_acl_open;
  config.parent_acl = &lk_acl_open;
  int err = lk_semaphore_new(&l, client, lock_path(mistake), &config, &options);

  *out = l;
  return err;
}

static int make_multilock(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  const lk_multilock_config options = {.size =
                                           mistake == 5 ? 0 : sizeof options};
  const lk_multilock_member members[] = {
      {lock_path(mistake), LK_MULTILOCK_MUTEX},
      {mistake == 6 ? "/a" : "/b", LK_MULTILOCK_READ},
  };
  lk_lock *l = *out;
  int err = lk_multilock_new(&l, client, members, mistake == 7 ? 0 : 2, &config,
                             &options);

  *out = l;
  return err;
}

static int make_single(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  const lk_single_config options = {.size = mistake == 5 ? 0 : sizeof options,
                                    .poll_ms = mistake == 6 ? -1 : 0};
  lk_lock *l = *out;

  config.layout = mistake == 7 ? LK_LAYOUT_KAZOO : LK_LAYOUT_CURATOR;
  int err = lk_single_new(&l, client, lock_path(mistake), &config, &options);

  *out = l;
  return err;
}

static int make_candidate(void **out, unsigned mistake)
{
  const lk_candidate_config config = {
      .size = mistake == 1 ? 0 : sizeof config,
      .pause_ms = mistake == 2 ? -1 : (mistake == 3 ? 100 : 0),
      .max_pause_ms = mistake == 3 ? 99 : (mistake == 4 ? 3600001 : 0)};
  lk_candidate *c = *out;
  lk_lock *l;
  int err = lk_lock_new(&l, client, "/a", NULL);

  if (err != 0) {
    *out = NULL;
    return err;
  }
  err = lk_candidate_new(&c, l, &config);
  if (err != 0)
    lk_lock_free(l);
  *out = c;
  return err;
}

/* Free a candidate and its lock. */
static void free_candidate(void *made)
{
  lk_lock *l = lk_candidate_lock(made);

  lk_candidate_free(made);
  lk_lock_free(l);
}

static int make_election(void **out, unsigned mistake)
{
  lk_lock_config config = lock_config(mistake);
  const lk_candidate_config options = {.size =
                                           mistake == 5 ? 0 : sizeof options};
  lk_layout layout = mistake == 6 ? (lk_layout)7 : LK_LAYOUT_LATCH;
  lk_candidate *c = *out;

  config.prefix = mistake == 7 ? "p" : NULL;
  int err = lk_election_new(&c, client, lock_path(mistake), layout, &config,
                            &options);

  *out = c;
  return err;
}

static void free_election(void *made)
{
  lk_candidate_free(made);
}

static void on_children(lk_subscription *s, int err, const lk_bytes *names,
                        size_t count, const lk_stat *stat, void *arg)
{
  (void)s;
  (void)err;
  (void)names;
  (void)count;
  (void)stat;
  (void)arg;
}

static int make_children(void **out, unsigned mistake)
{
  const lk_subscription_config config = {.size =
                                             mistake == 1 ? 0 : sizeof config,
                                         .check_ms = mistake == 2 ? -2 : 0};
  lk_subscription *s = *out;
  int err =
      lk_subscribe_children(&s, client, mistake == 3 ? "a" : "/a", &config,
                            mistake == 4 ? NULL : on_children, NULL);

  *out = s;
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

static int make_data(void **out, unsigned mistake)
{
  const lk_subscription_config config = {.size =
                                             mistake == 1 ? 0 : sizeof config,
                                         .check_ms = mistake == 2 ? -2 : 0};
  lk_subscription *s = *out;
  int err = lk_subscribe_data(&s, client, mistake == 3 ? "a" : "/a", &config,
                              mistake == 4 ? NULL : on_data, NULL);

  *out = s;
  return err;
}

static void free_subscription(void *made)
{
  lk_subscription_free(made);
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  (void)r;
  (void)err;
  (void)entries;
  (void)count;
  (void)arg;
}

static int make_roster(void **out, unsigned mistake)
{
  const lk_roster_config config = {.size = mistake == 1 ? 0 : sizeof config,
                                   .layout = mistake == 5 ? (lk_layout)99
                                                          : LK_LAYOUT_LATCH,
                                   .check_ms = mistake == 2 ? -2 : 0};
  lk_roster *r = *out;
  int err = lk_roster_subscribe(&r, client, mistake == 3 ? "a" : "/a", &config,
                                mistake == 4 ? NULL : on_roster, NULL);

  *out = r;
  return err;
}

static void free_roster(void *made)
{
  lk_roster_free(made);
}

static int make_membership(void **out, unsigned mistake)
{
  const lk_membership_config config = {.size = mistake == 1 ? 0 : sizeof config,
                                       .data = lk_text("data"),
                                       .acl = &lk_acl_open,
                                       .parent_acl = &lk_acl_open};
  lk_membership *m = *out;
  int err = lk_membership_new(&m, client, lock_path(mistake),
                              mistake == 5 ? "a/b" : "m", &config);

  *out = m;
  return err;
}

static void free_membership(void *made)
{
  lk_membership_free(made);
}

static int make_acl(void **out, unsigned mistake)
{
  static const char *const texts[] = {"world:anyone:r,auth::cdrwa", "", "world",
                                      "world:anyone:x", "a::r,,b::r"};
  lk_acls *acls = *out;
  int err = lk_acl_parse(&acls, texts[mistake], &mem.mem, NULL);

  *out = acls;
  return err;
}

static void free_acl(void *made)
{
  lk_acl_free(made, &mem.mem);
}

static const constructor constructors[] = {
    {"lk_client_new", make_client, free_client, 7},
    {"lk_lease_configure", make_lease, free_client, 2},
    {"lk_lock_new", make_lock, free_lock, 5},
    {"lk_rwlock_new", make_rwlock, free_rwlock, 5},
    {"lk_semaphore_new", make_semaphore, free_lock, 8},
    {"lk_semaphore_new, copies", make_semaphore_with_copies, free_lock, 4},
    {"lk_multilock_new", make_multilock, free_lock, 7},
    {"lk_single_new", make_single, free_lock, 7},
    {"lk_candidate_new", make_candidate, free_candidate, 4},
    {"lk_election_new", make_election, free_election, 7},
    {"lk_subscribe_children", make_children, free_subscription, 4},
    {"lk_subscribe_data", make_data, free_subscription, 4},
    {"lk_roster_subscribe", make_roster, free_roster, 5},
    {"lk_membership_new", make_membership, free_membership, 5},
    {"lk_acl_parse", make_acl, free_acl, 4},
};

enum { COUNT = sizeof constructors / sizeof constructors[0] };

static void begin(void)
{
  void *made = NULL;

  failing_mem_init(&mem);
  ck_assert_int_eq(make_client(&made, NO_MISTAKE), 0);
  client = made;
  ck_assert_int_eq(lk_lease_configure(client, NULL), 0);
}

static void end(void)
{
  lk_client_free(client);
  ck_assert_uint_eq(mem.live, 0);
}

START_TEST(constructors_with_wrong_arguments_return_null)
{
  begin();
  for (size_t i = 0; i < COUNT; i++)
    expect_refusals(&constructors[i]);
  end();
}
END_TEST

START_TEST(constructors_without_memory_return_null)
{
  for (size_t i = 0; i < COUNT; i++) {
    begin();
    expect_no_leaks(&constructors[i], &mem);
    end();
  }
}
END_TEST

SUITE("constructors", constructors_with_wrong_arguments_return_null,
      constructors_without_memory_return_null)
