/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/leader.h>

#include <stdio.h>

/* Candidates of elections, and candidates for locks. */

#define ELECTION "/e"

typedef struct candidate {
  test_client *p;
  lk_candidate *candidate;
  uint64_t term;      /* of the last ELECTED */
  char events[2048];  /* a line for each event of the candidate */
  int64_t retry_ms;   /* of the last event */
  unsigned callbacks; /* events so far */
  unsigned act_at;    /* the number of the event that calls `act` */
  void (*act)(struct candidate *c);
} candidate;

static model_server server;
static test_client one, two;
static candidate a, b;

static void on_event(lk_candidate *lc, const lk_candidate_event *e, void *arg)
{
  candidate *c = arg;
  size_t at = strlen(c->events);
  const char *err = lk_error_name(e->err);

  ck_assert_ptr_eq(lc, c->candidate);
  if (e->type == LK_CANDIDATE_EVENT_ELECTED) {
    ck_assert_uint_gt(e->term, c->term);
    ck_assert_uint_eq(e->term, lk_lock_token(lk_candidate_lock(lc)));
    c->term = e->term;
  }
  ck_assert_uint_eq(e->term, e->type == LK_CANDIDATE_EVENT_RETRYING ||
                                     e->type == LK_CANDIDATE_EVENT_ENDED
                                 ? 0
                                 : c->term);
  c->retry_ms = e->retry_ms;
  snprintf(c->events + at, sizeof c->events - at, "%s%s%s\n",
           lk_candidate_event_text(e->type), e->err == 0 ? "" : " ",
           e->err == 0 ? "" : err);
  if (++c->callbacks == c->act_at)
    c->act(c);
}

static lk_candidate_config config_of(candidate *c)
{
  return (lk_candidate_config){
      .size = sizeof(lk_candidate_config), .on_event = on_event, .arg = c};
}

static void candidate_init(candidate *c, test_client *p, lk_layout layout)
{
  lk_candidate_config config = config_of(c);

  *c = (candidate){.p = p};
  ck_assert_int_eq(lk_election_new(&c->candidate, p->link->client, ELECTION,
                                   layout, NULL, &config),
                   0);
}

static void begin(void)
{
  model_init(&server);
  test_client_init(&one, &server, NULL);
  test_client_init(&two, &server, NULL);
  candidate_init(&a, &one, LK_LAYOUT_LATCH);
  candidate_init(&b, &two, LK_LAYOUT_LATCH);
  model_turn(&server);
}

static void end(void)
{
  lk_candidate_free(a.candidate);
  lk_candidate_free(b.candidate);
  model_run(&server, T);
  ck_assert_uint_eq(model_children(&server, ELECTION), 0);
  test_client_free(&one);
  test_client_free(&two);
  model_done(&server);
}

static void check_events(candidate *c, const char *text)
{
  ck_assert_str_eq(c->events, text);
  c->events[0] = '\0';
}

static void start(candidate *c)
{
  ck_assert_int_eq(lk_candidate_start(c->candidate), 0);
  model_turn(&server);
}

static void resign(candidate *c)
{
  lk_candidate_resign(c->candidate);
}

static void expect_state(const candidate *c, lk_candidate_state state)
{
  ck_assert_str_eq(
      lk_candidate_state_text(lk_candidate_get_state(c->candidate)),
      lk_candidate_state_text(state));
}

/* The session of the client ends while the client cannot connect. */
static void expire_session(test_client *p)
{
  server.down = true;
  model_drop(p->link);
  model_expire(&server, p->link->last_session);
  server.down = false;
  model_run(&server, T / 4);
}

/* ---- the life of a candidate --------------------------------------------- */

START_TEST(candidates_lead_one_after_the_other)
{
  begin();
  expect_state(&a, LK_CANDIDATE_STOPPED);
  start(&a);
  start(&b);
  check_events(&a, "elected\n");
  check_events(&b, "");
  expect_state(&a, LK_CANDIDATE_LEADING);
  expect_state(&b, LK_CANDIDATE_WAITING);
  ck_assert(lk_candidate_ok(a.candidate));
  ck_assert(!lk_candidate_ok(b.candidate));
  resign(&a);
  check_events(&a, "deposed\n");
  expect_state(&a, LK_CANDIDATE_STOPPED);
  ck_assert(!lk_candidate_ok(a.candidate));
  model_turn(&server);
  check_events(&b, "elected\n");
  ck_assert_uint_gt(b.term, a.term);
  end();
}
END_TEST

START_TEST(election_costs_as_much_as_a_lock)
{
  begin();
  start(&a); /* creates the directory */
  resign(&a);
  model_turn(&server);
  one.link->log[0] = '\0';
  start(&a);
  ck_assert(model_check_log(one.link, "create2 getChildren2"));
  start(&b);
  ck_assert(
      model_check_log(two.link, "create2 getChildren2 | getData getData"));
  resign(&a);
  model_turn(&server);
  check_events(&b, "elected\n");
  ck_assert_uint_le(model_count(two.link, "getChildren2"), 1);
  ck_assert_int_eq(a.retry_ms, 0); /* of DEPOSED */
  end();
}
END_TEST

START_TEST(leader_whose_node_is_deleted_takes_part_again_at_the_end)
{
  begin();
  start(&a);
  start(&b);
  model_run(&server, T); /* heartbeats have set a watch on the own node */
  model_delete(&server, model_child(&server, ELECTION, 0));
  model_turn(&server);
  check_events(&a, "elected\ndeposed NO_NODE\n");
  check_events(&b, "elected\n");
  expect_state(&a, LK_CANDIDATE_WAITING);
  model_run(&server, 150); /* the longest first pause */
  ck_assert_uint_eq(model_children(&server, ELECTION), 2);
  resign(&b);
  model_turn(&server);
  check_events(&a, "elected\n");
  end();
}
END_TEST

START_TEST(leader_whose_session_expires_takes_part_again)
{
  begin();
  start(&a);
  expire_session(&one);
  check_events(&a, "elected\ndeposed SESSION_EXPIRED\nelected\n");
  end();
}
END_TEST

START_TEST(candidate_that_waits_survives_the_expiry_of_its_session)
{
  begin();
  start(&a);
  start(&b);
  expire_session(&two);
  check_events(&b, "");
  resign(&a);
  model_turn(&server);
  check_events(&b, "elected\n");
  end();
}
END_TEST

START_TEST(leader_without_a_connection_is_unsure_until_it_is_renewed)
{
  begin();
  start(&a);
  uint64_t term = a.term;

  server.down = true;
  model_drop(one.link);
  model_run(&server, T);
  check_events(&a, "elected\nunsure\n");
  expect_state(&a, LK_CANDIDATE_UNSURE);
  ck_assert(!lk_candidate_ok(a.candidate));
  server.down = false;
  model_run(&server, T / 2);
  check_events(&a, "renewed\n");
  expect_state(&a, LK_CANDIDATE_LEADING);
  ck_assert_uint_eq(a.term, term);
  end();
}
END_TEST

START_TEST(unsure_leader_can_be_deposed)
{
  begin();
  start(&a);
  server.down = true;
  model_drop(one.link);
  model_run(&server, T);
  model_expire(&server, one.link->last_session);
  server.down = false;
  model_run(&server, T / 2);
  check_events(&a, "elected\nunsure\ndeposed SESSION_EXPIRED\nelected\n");
  server.down = true;
  model_drop(one.link);
  model_run(&server, T);
  resign(&a);
  check_events(&a, "unsure\ndeposed\n");
  server.down = false;
  end();
}
END_TEST

/* ---- pauses -------------------------------------------------------------- */

/* The next event of `a` is RETRYING, after a pause between `ms` and half as
 * much again. */
static void expect_retry(int64_t ms)
{
  check_events(&a, "retrying NO_AUTH\n");
  ck_assert_int_ge(a.retry_ms, ms);
  ck_assert_int_le(a.retry_ms, ms + ms / 2);
  model_run(&server, a.retry_ms);
}

START_TEST(candidate_retries_after_pauses_that_double)
{
  static const int64_t pauses_ms[] = {100,  200,  400,   800,  1600,
                                      3200, 6400, 10000, 10000};

  begin();
  model_create(&server, ELECTION);
  model_deny(&server, ELECTION, LK_PERM_CREATE);
  start(&a);
  for (size_t i = 0; i < sizeof pauses_ms / sizeof pauses_ms[0]; i++)
    expect_retry(pauses_ms[i]);
  check_events(&a, "retrying NO_AUTH\n");
  expect_state(&a, LK_CANDIDATE_WAITING);
  model_deny(&server, ELECTION, 0);
  model_run(&server, 15000);
  check_events(&a, "elected\n");
  end();
}
END_TEST

/* `a` was deposed, and takes part again in the second half of `ms`. */
static void expect_pause(int64_t ms)
{
  check_events(&a, "elected\ndeposed NO_NODE\n");
  ck_assert_int_ge(a.retry_ms, ms);
  ck_assert_int_le(a.retry_ms, ms + ms / 2);
  model_run(&server, ms - 1);
  check_events(&a, "");
  model_run(&server, ms / 2 + 1);
}

static void depose(void)
{
  ck_assert_int_eq(lk_lock_verify(lk_candidate_lock(a.candidate), NULL, NULL),
                   0);
  model_turn(&server); /* the verify has set a watch */
  model_delete(&server, model_child(&server, ELECTION, 0));
  model_turn(&server);
}

START_TEST(long_term_ends_the_doubling_of_pauses)
{
  begin();
  start(&a);
  depose();
  expect_pause(100);
  depose();
  expect_pause(200);
  depose();
  expect_pause(400);
  model_run(&server, 10000);
  depose();
  expect_pause(100);
  check_events(&a, "elected\n");
  end();
}
END_TEST

START_TEST(pauses_can_be_chosen)
{
  lk_candidate_config config = config_of(&a);

  begin();
  lk_candidate_free(a.candidate);
  config.pause_ms = 20000; /* more than the default of max_pause_ms */
  ck_assert_int_eq(lk_election_new(&a.candidate, one.link->client, ELECTION,
                                   LK_LAYOUT_LATCH, NULL, &config),
                   0);
  start(&a);
  depose();
  expect_pause(20000);
  depose();
  expect_pause(20000);
  check_events(&a, "elected\n");
  end();
}
END_TEST

/* ---- calls in each state, and the end of the client ---------------------- */

START_TEST(candidate_that_takes_part_is_not_started_twice)
{
  begin();
  start(&a);
  start(&a);
  start(&b);
  start(&b);
  ck_assert_uint_eq(model_children(&server, ELECTION), 2);
  check_events(&a, "elected\n");
  end();
}
END_TEST

START_TEST(candidate_resigns_in_any_state)
{
  begin();
  resign(&a); /* STOPPED */
  start(&a);
  ck_assert_int_eq(lk_candidate_start(b.candidate), 0);
  resign(&b); /* the create is under way */
  model_turn(&server);
  start(&b);
  resign(&b); /* waits for its predecessor */
  model_turn(&server);
  ck_assert_uint_eq(model_children(&server, ELECTION), 1);
  check_events(&b, "");
  depose();
  resign(&a); /* pauses */
  check_events(&a, "elected\ndeposed NO_NODE\n");
  model_run(&server, 1000);
  check_events(&a, "");
  expect_state(&a, LK_CANDIDATE_STOPPED);
  end();
}
END_TEST

static void start_again(candidate *c)
{
  ck_assert_int_eq(lk_candidate_start(c->candidate), 0);
}

START_TEST(leader_that_resigns_can_start_again_at_once)
{
  begin();
  start(&a);
  start(&b);
  a.act_at = 2; /* DEPOSED */
  a.act = start_again;
  resign(&a);
  expect_state(&a, LK_CANDIDATE_WAITING);
  model_turn(&server);
  check_events(&a, "elected\ndeposed\n");
  check_events(&b, "elected\n");
  resign(&b);
  model_turn(&server);
  check_events(&a, "elected\n");
  end();
}
END_TEST

START_TEST(closed_client_ends_its_candidates)
{
  candidate pausing, leading;

  begin();
  start(&b);
  model_run(&server, T);
  candidate_init(&leading, &one, LK_LAYOUT_CURATOR);
  start(&leading);
  start(&a);
  model_create(&server, "/e2");
  model_deny(&server, "/e2", LK_PERM_CREATE);
  lk_candidate_config config = config_of(&pausing);

  pausing = (candidate){.p = &one};
  ck_assert_int_eq(lk_election_new(&pausing.candidate, one.link->client, "/e2",
                                   LK_LAYOUT_KAZOO, NULL, &config),
                   0);
  start(&pausing);
  check_events(&pausing, "retrying NO_AUTH\n");
  ck_assert_int_eq(lk_client_close(one.link->client, NULL, NULL), 0);
  check_events(&a, "ended CLOSED\n");
  check_events(&leading, "elected\ndeposed CLOSED\nended CLOSED\n");
  model_turn(&server);
  check_events(&pausing, "ended CLOSED\n");
  expect_state(&a, LK_CANDIDATE_STOPPED);
  ck_assert_int_eq(lk_candidate_start(a.candidate), LK_ERR_CLOSED);
  resign(&a);
  lk_candidate_free(leading.candidate);
  lk_candidate_free(pausing.candidate);
  end();
}
END_TEST

static void expect_no_retry(candidate *c)
{
  ck_assert_int_eq(c->retry_ms, 0);
}

START_TEST(final_expiry_ends_the_candidates_of_a_client)
{
  lk_client_config c = {
      .size = sizeof c, .session_timeout_ms = T, .one_session = true};
  test_client three;
  candidate leading, waiting, pausing;

  begin();
  failing_mem_init(&three.mem);
  c.mem = &three.mem.mem;
  three.link = model_client(&server, &c);
  candidate_init(&leading, &three, LK_LAYOUT_LATCH);
  candidate_init(&waiting, &three, LK_LAYOUT_LATCH);
  lk_candidate_config config = config_of(&pausing);

  pausing = (candidate){.p = &three};
  model_create(&server, "/e2");
  model_deny(&server, "/e2", LK_PERM_CREATE);
  ck_assert_int_eq(lk_election_new(&pausing.candidate, three.link->client,
                                   "/e2", LK_LAYOUT_KAZOO, NULL, &config),
                   0);
  model_turn(&server);
  start(&leading);
  leading.act_at = 2; /* deposed */
  leading.act = expect_no_retry;
  start(&waiting);
  start(&pausing);
  expire_session(&three);
  check_events(&leading,
               "elected\ndeposed SESSION_EXPIRED\nended SESSION_EXPIRED\n");
  check_events(&waiting, "ended SESSION_EXPIRED\n");
  check_events(&pausing, "retrying NO_AUTH\nended SESSION_EXPIRED\n");
  ck_assert_int_eq(lk_client_deadline(three.link->client), INT64_MAX);
  ck_assert_int_eq(lk_candidate_start(leading.candidate), LK_ERR_CLOSED);
  lk_candidate_free(leading.candidate);
  lk_candidate_free(waiting.candidate);
  lk_candidate_free(pausing.candidate);
  test_client_free(&three);
  end();
}
END_TEST

START_TEST(candidate_can_be_freed_after_its_client)
{
  begin();
  start(&a);
  start(&b);
  lk_client_free(one.link->client);
  check_events(&a, "elected\ndeposed CLOSED\nended CLOSED\n");
  lk_client_free(two.link->client);
  check_events(&b, "ended CLOSED\n");
  lk_candidate_free(a.candidate);
  lk_candidate_free(b.candidate);
  ck_assert_uint_eq(one.mem.live, 0);
  ck_assert_uint_eq(two.mem.live, 0);
  model_done(&server);
}
END_TEST

/* ---- frees in callbacks -------------------------------------------------- */

static void free_candidate(candidate *c)
{
  lk_candidate_free(c->candidate);
  c->candidate = NULL;
}

static void free_client(candidate *c)
{
  lk_client_free(c->p->link->client);
}

static void close_client(candidate *c)
{
  ck_assert_int_eq(lk_client_close(c->p->link->client, NULL, NULL), 0);
}

/* Events of all types: elected, unsure, renewed, deposed, retrying, deposed by
 * resign(), and ended. */
static void run_through_all_events(void)
{
  start(&a);
  server.down = true;
  model_drop(one.link);
  model_run(&server, T);
  server.down = false;
  model_run(&server, T / 2);
  if (a.candidate == NULL ||
      lk_client_state(one.link->client) != LK_STATE_CONNECTED)
    return;
  if (lk_candidate_get_state(a.candidate) == LK_CANDIDATE_LEADING)
    depose();
  if (a.candidate == NULL || one.link->client == NULL)
    return;
  model_deny(&server, ELECTION, LK_PERM_CREATE);
  model_run(&server, 150);
  model_deny(&server, ELECTION, 0);
  model_run(&server, 400);
}

START_TEST(callback_may_free_close_or_resign)
{
  static void (*const acts[])(candidate * c) = {free_candidate, resign,
                                                close_client};
  enum { ALL_EVENTS = 6 };

  for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
    for (unsigned n = 1; n <= ALL_EVENTS; n++) {
      begin();
      a.act_at = n;
      a.act = acts[i];
      run_through_all_events();
      ck_assert_uint_ge(a.callbacks, n);
      end();
    }
  }
}
END_TEST

START_TEST(callback_may_free_the_client)
{
  begin();
  a.act_at = 1;
  a.act = free_client;
  start(&a);
  check_events(&a, "elected\ndeposed CLOSED\nended CLOSED\n");
  lk_candidate_free(a.candidate);
  lk_candidate_free(b.candidate);
  test_client_free(&two);
  ck_assert_uint_eq(one.mem.live, 0);
  model_done(&server);
}
END_TEST

START_TEST(candidate_without_memory_retries)
{
  for (size_t n = 1;; n++) {
    begin();
    one.mem.fail_at = one.mem.count + n;
    int err = lk_candidate_start(a.candidate);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
    if (err != 0)
      start(&a);
    model_run(&server, T);
    bool failed = failing_mem_failed(&one.mem);

    one.mem.fail_at = 0;
    expect_state(&a, LK_CANDIDATE_LEADING);
    end();
    if (!failed)
      break;
    ck_assert_uint_lt(n, 100);
  }
}
END_TEST

/* ---- names, and other locks ---------------------------------------------- */

/* The name of the node that a candidate of this layout creates, without its
 * random part. */
static const char *name_of(lk_layout layout)
{
  static char name[64];
  candidate c;

  candidate_init(&c, &one, layout);
  start(&c);
  const char *path = model_child(&server, ELECTION, 0);
  const char *after = strchr(path, layout == LK_LAYOUT_KAZOO ? '_' : 'l');

  snprintf(name, sizeof name, "%s", after);
  lk_candidate_free(c.candidate);
  model_turn(&server);
  return name;
}

START_TEST(each_layout_has_the_names_of_its_peers)
{
  begin();
  ck_assert_str_eq(name_of(LK_LAYOUT_LATCH), "latch-0000000000");
  model_delete(&server, ELECTION);
  ck_assert_str_eq(name_of(LK_LAYOUT_CURATOR), "lock-0000000000");
  model_delete(&server, ELECTION);
  ck_assert_str_eq(name_of(LK_LAYOUT_KAZOO), "__lock__0000000000");
  end();
}
END_TEST

/* A latch and a mutex in one directory ignore each other, as in Curator. */
START_TEST(latch_ignores_nodes_of_locks)
{
  candidate selector;

  begin();
  candidate_init(&selector, &two, LK_LAYOUT_CURATOR);
  start(&selector);
  start(&a);
  check_events(&selector, "elected\n");
  check_events(&a, "elected\n");
  lk_candidate_free(selector.candidate);
  end();
}
END_TEST

START_TEST(identity_is_the_data_of_the_node)
{
  lk_lock_config lock = {.size = sizeof lock, .data = lk_text("host-7")};
  lk_candidate_config config = config_of(&a);

  begin();
  lk_candidate_free(a.candidate);
  ck_assert_int_eq(lk_election_new(&a.candidate, one.link->client, ELECTION,
                                   LK_LAYOUT_LATCH, &lock, &config),
                   0);
  start(&a);
  const sim_node *node = model_node(&server, model_child(&server, ELECTION, 0));

  ck_assert_uint_eq((size_t)node->stat.data_length, strlen("host-7"));
  ck_assert_mem_eq(node->data, "host-7", (size_t)node->stat.data_length);
  end();
}
END_TEST

/* The connection breaks at one request, before or after it is executed. */
static void take_part_after_break(unsigned n, bool cut_after, bool waits)
{
  begin();
  if (waits)
    start(&b);
  one.link->requests = 0;
  one.link->cut_at = n;
  one.link->cut_after = cut_after;
  start(&a);
  model_run(&server, 2 * T);
  if (waits) {
    expect_state(&a, LK_CANDIDATE_WAITING);
    ck_assert_uint_eq(model_children(&server, ELECTION), 2);
    resign(&b);
    model_run(&server, T);
  }
  expect_state(&a, LK_CANDIDATE_LEADING);
  ck_assert(lk_candidate_ok(a.candidate));
  check_events(&a, "elected\n");
  ck_assert_uint_eq(model_children(&server, ELECTION), 1);
  end();
}

START_TEST(broken_connection_leaves_one_node_of_a_candidate)
{
  enum { REQUESTS = 12 };

  for (unsigned n = 1; n <= REQUESTS; n++) {
    for (int i = 0; i < 4; i++)
      take_part_after_break(n, i % 2 != 0, i / 2 != 0);
  }
}
END_TEST

/* A candidate for a lock of the caller, which gets the lock back. */
START_TEST(lock_is_usable_before_and_after_its_candidate)
{
  lock_pair lp;
  lk_candidate_config config = config_of(&a);
  lk_candidate *second;

  lock_pair_begin(&lp, NULL, NULL);
  lock_pair_hold(&lp);
  ck_assert_int_eq(lk_candidate_new(&second, lp.a.lock, NULL), LK_ERR_STATE);
  ck_assert_ptr_null(second);
  a = (candidate){.p = &lp.two};
  ck_assert_int_eq(lk_candidate_new(&a.candidate, lp.b.lock, &config), 0);
  ck_assert_int_eq(lk_candidate_new(&second, lp.b.lock, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_candidate_start(a.candidate), 0);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.b, "waiting 1 0000000000\n"));
  locker_release(&lp.a);
  model_turn(&lp.server);
  check_events(&a, "elected\n");
  lk_candidate_free(a.candidate);
  check_events(&a, "");
  model_turn(&lp.server);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  locker_request(&lp.b);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(locker_check_events(&lp.b, ""));
  lock_pair_end(&lp);
}
END_TEST

SUITE("candidate", broken_connection_leaves_one_node_of_a_candidate,
      candidates_lead_one_after_the_other, election_costs_as_much_as_a_lock,
      leader_whose_node_is_deleted_takes_part_again_at_the_end,
      leader_whose_session_expires_takes_part_again,
      candidate_that_waits_survives_the_expiry_of_its_session,
      leader_without_a_connection_is_unsure_until_it_is_renewed,
      unsure_leader_can_be_deposed, candidate_retries_after_pauses_that_double,
      long_term_ends_the_doubling_of_pauses, pauses_can_be_chosen,
      candidate_that_takes_part_is_not_started_twice,
      candidate_resigns_in_any_state,
      leader_that_resigns_can_start_again_at_once,
      closed_client_ends_its_candidates,
      final_expiry_ends_the_candidates_of_a_client,
      candidate_can_be_freed_after_its_client,
      callback_may_free_close_or_resign, callback_may_free_the_client,
      candidate_without_memory_retries, each_layout_has_the_names_of_its_peers,
      latch_ignores_nodes_of_locks, identity_is_the_data_of_the_node,
      lock_is_usable_before_and_after_its_candidate)
