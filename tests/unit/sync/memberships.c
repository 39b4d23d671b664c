/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Members and rosters of the blocking interface with a model server on
   loopback. */

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "unit/fake/loopback.h"

static loopback zk;
static lk_sync_client *one, *two;
static lk_sync_membership *a, *b; /* of `one` and of `two` */
static char events[512];          /* of `a`; written by its thread */

static const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 10000};
static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 30};

static void on_event(lk_sync_membership *m, const lk_membership_event *event,
                     void *arg)
{
  (void)m;
  ck_assert_ptr_eq(arg, events);
  strcat(events, lk_membership_event_text(event->type));
  strcat(events, ", ");
}

static lk_sync_client *new_client(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  lk_sync_client *c;

  ck_assert_int_eq(lk_sync_client_new(&c, &config), 0);
  return c;
}

static void start(const char *name_of_b)
{
  const lk_sync_membership_config config = {.size = sizeof config,
                                            .data = lk_text("first"),
                                            .on_event = on_event,
                                            .arg = events};

  events[0] = '\0';
  loopback_start(&zk);
  one = new_client();
  two = new_client();
  ck_assert_int_eq(lk_sync_membership_new(&a, one, "/g", "a", &config), 0);
  ck_assert_int_eq(lk_sync_membership_new(&b, two, "/g", name_of_b, NULL), 0);
}

static void stop(void)
{
  lk_sync_membership_free(a);
  lk_sync_membership_free(b);
  lk_sync_client_free(one);
  lk_sync_client_free(two);
  loopback_stop(&zk);
}

/* ---- members ------------------------------------------------------------- */

START_TEST(member_joins_and_leaves)
{
  lk_stat stat;

  start("b");
  ck_assert_str_eq(lk_sync_membership_path(a), "/g/a");
  ck_assert(!lk_sync_membership_has_joined(a));
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert(lk_sync_membership_has_joined(a));
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert_int_eq(lk_sync_exists(two, &stat, "/g/a", &soon), 0);
  ck_assert_int_ne(stat.ephemeral_owner, 0);
  ck_assert_int_eq(lk_sync_membership_leave(a), 0);
  ck_assert(!lk_sync_membership_has_joined(a));
  ck_assert_int_eq(lk_sync_server_sync(one, "/", &soon),
                   0); /* after the delete */
  ck_assert_int_eq(lk_sync_exists(two, NULL, "/g/a", &soon), LK_ERR_NO_NODE);
  ck_assert_str_eq(events, "joined, left, ");
  stop();
}
END_TEST

START_TEST(join_waits_while_the_name_is_taken)
{
  start("a");
  ck_assert_int_eq(lk_sync_membership_join(b, &soon), 0);
  ck_assert_int_eq(lk_sync_membership_join(a, &brief), LK_ERR_DEADLINE);
  ck_assert(!lk_sync_membership_has_joined(a));
  ck_assert_int_eq(lk_sync_membership_leave(b), 0);
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert_str_eq(events, "name taken, joined, ");
  stop();
}
END_TEST

static int join(void *arg)
{
  (void)arg;
  return lk_sync_membership_join(a, NULL);
}

/* `b` has the name of `a`, and a thread waits until `a` has joined. */
static void start_joiner(waiter *w)
{
  start("a");
  ck_assert_int_eq(lk_sync_membership_join(b, &soon), 0);
  waiter_start(w, join, NULL);
  waiters_inside(one, 1);
}

START_TEST(leave_ends_the_wait_of_another_thread)
{
  waiter w;

  start_joiner(&w);
  ck_assert_int_eq(lk_sync_membership_leave(a), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CANCELLED);
  stop();
}
END_TEST

START_TEST(free_ends_the_wait_of_another_thread)
{
  waiter w;

  start_joiner(&w);
  lk_sync_membership_free(a);
  a = NULL;
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  stop();
}
END_TEST

/* The other thread still uses the membership when the free has ended its wait.
 */
START_TEST(free_waits_until_the_call_of_another_thread_has_returned)
{
  waiter w;

  start_joiner(&w);
  waiter_stand_still(&w);
  lk_sync_membership_free(a);
  a = NULL;
  ck_assert(!waiter_stands_still());
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  stop();
}
END_TEST

START_TEST(close_of_the_client_ends_the_wait)
{
  waiter w;

  start_joiner(&w);
  ck_assert_int_eq(lk_sync_client_close(one), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_client_close(two), 0);
  ck_assert(!lk_sync_membership_has_joined(b));
  stop();
}
END_TEST

START_TEST(expired_member_joins_again)
{
  lk_stat before, after;
  int err;

  start("b");
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert_int_eq(lk_sync_exists(two, &before, "/g/a", &soon), 0);
  loopback_expire(&zk);
  do {
    usleep(2000);
    err = lk_sync_exists(two, &after, "/g/a", &soon);
  } while (err != 0 || after.czxid == before.czxid);
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert_str_eq(events, "joined, left, joined, ");
  stop();
}
END_TEST

START_TEST(child_process_has_not_joined)
{
  int status;

  start("b");
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  pid_t child = fork();

  if (child == 0)
    _exit(lk_sync_membership_has_joined(a) ||
          lk_sync_membership_join(a, NULL) != LK_ERR_FORKED ||
          lk_sync_membership_leave(a) != LK_ERR_FORKED);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(lk_sync_membership_has_joined(a));
  stop();
}
END_TEST

/* ---- rosters ------------------------------------------------------------- */

static void check_entry(const lk_roster_entry *e, const char *name,
                        const char *data)
{
  /* A NUL follows each text. */
  ck_assert_str_eq((const char *)e->name.at, name);
  ck_assert_uint_eq(e->name.len, strlen(name));
  ck_assert_int_eq(e->err, 0);
  ck_assert_uint_eq(e->data.len, strlen(data));
  ck_assert_mem_eq(e->data.at, data, e->data.len + 1);
  ck_assert_int_eq(e->stat->data_length, (int)strlen(data));
}

START_TEST(roster_has_the_members_with_their_data)
{
  lk_sync_result *r;

  start("b");
  ck_assert_int_eq(lk_sync_roster_get(two, &r, "/g", NULL, &soon),
                   LK_ERR_NO_NODE);
  ck_assert_ptr_null(r);
  ck_assert_int_eq(lk_sync_membership_join(a, &soon), 0);
  ck_assert_int_eq(lk_sync_membership_set_data(b, lk_text("second")), 0);
  ck_assert_int_eq(lk_sync_membership_join(b, &soon), 0);
  ck_assert_int_eq(lk_sync_roster_get(two, &r, "/g", NULL, &soon), 0);
  ck_assert_uint_eq(r->count, 2);
  check_entry(&r->entries[0], "a", "first");
  check_entry(&r->entries[1], "b", "second");
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_roster_get(two, NULL, "/g", NULL, &soon), 0);
  stop();
}
END_TEST

START_TEST(roster_is_delivered_after_each_change)
{
  lk_sync_subscription *s;
  lk_sync_result *r;

  start("b");
  ck_assert_int_eq(lk_sync_subscribe_roster(&s, two, "/g", NULL), 0);
  ck_assert_int_eq(lk_sync_subscription_next(s, NULL, &soon), LK_ERR_NO_NODE);
  ck_assert_int_eq(lk_sync_membership_join(b, &soon), 0);
  do { /* the directory may be reported before the member */
    ck_assert_int_eq(lk_sync_subscription_next(s, &r, &soon), 0);
    size_t count = r->count;

    if (count == 1)
      check_entry(&r->entries[0], "b", "");
    lk_sync_result_free(r);
    if (count == 1)
      break;
  } while (true);
  ck_assert_int_eq(lk_sync_membership_set_data(b, lk_text("new")), 0);
  ck_assert_int_eq(lk_sync_subscription_next(s, &r, &soon), 0);
  ck_assert_uint_eq(r->count, 1);
  check_entry(&r->entries[0], "b", "new");
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_subscription_next(s, NULL, &brief), LK_ERR_DEADLINE);
  lk_sync_subscription_free(s);
  stop();
}
END_TEST

START_TEST(first_of_an_election_leads)
{
  const lk_roster_config config = {
      .size = sizeof config, .election = true, .layout = LK_LAYOUT_LATCH};
  const lk_lock_config lock = {.size = sizeof lock, .data = lk_text("me")};
  lk_sync_candidate *c;
  lk_sync_result *r;

  start("b");
  ck_assert_int_eq(
      lk_sync_election_new(&c, one, "/e", LK_LAYOUT_LATCH, &lock, NULL), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(c, &soon), 0);
  ck_assert_int_eq(lk_sync_roster_get(two, &r, "/e", &config, &soon), 0);
  ck_assert_uint_eq(r->count, 1);
  ck_assert_mem_eq(r->entries[0].data.at, "me", 3);
  ck_assert_uint_eq((uint64_t)r->entries[0].stat->czxid,
                    lk_sync_candidate_term(c));
  lk_sync_result_free(r);
  lk_sync_candidate_free(c);
  stop();
}
END_TEST

SUITE("memberships", member_joins_and_leaves,
      join_waits_while_the_name_is_taken, leave_ends_the_wait_of_another_thread,
      free_waits_until_the_call_of_another_thread_has_returned,
      free_ends_the_wait_of_another_thread, close_of_the_client_ends_the_wait,
      expired_member_joins_again, child_process_has_not_joined,
      roster_has_the_members_with_their_data,
      roster_is_delivered_after_each_change, first_of_an_election_leads)
