/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"
#include "sim/model/raw_client.h"
#include "support/suite.h"

#include <stdio.h>

/**
 * @file
 * The simulated ensemble in bad weather: whatever happens, its servers end with
 * one tree, and the same seed tells the same story.
 */

enum { CLIENTS = 5, STEPS = 400, SEEDS = 300 };

typedef struct storm {
  sim_lab lab;
  sim_rng rng;
  sim_raw_client clients[CLIENTS];
  uint64_t heard; /* all that clients were told, as one number */
} storm;

static storm st;

static void take_in(sim_raw_client *p)
{
  while (sim_raw_client_has(p) && p->conn != NULL) {
    sim_reply r = sim_raw_client_next(p);

    if (r.closed)
      return;
    st.heard = st.heard * 31 + (uint64_t)r.xid * 7 + (uint64_t)r.zxid;
    st.heard = st.heard * 31 + (uint64_t)r.err;
    for (; r.body.at < r.body.end; r.body.at++)
      st.heard = st.heard * 31 + *r.body.at;
  }
}

static void some_request(sim_raw_client *p)
{
  char path[32];

  snprintf(path, sizeof path, "/d%u", sim_roll(&st.rng, 3));
  if (sim_roll(&st.rng, 3) > 0)
    snprintf(path + 3, sizeof path - 3, "/n%u", sim_roll(&st.rng, 4));
  switch (sim_roll(&st.rng, 8)) {
  case 0: sim_raw_client_create(p, path, 0); break;
  case 1: sim_raw_client_create(p, path, 3); break;
  case 2: sim_raw_client_create(p, path, 4); break;
  case 3: sim_raw_client_delete(p, path); break;
  case 4: sim_raw_client_read(p, LK_OPCODE_GET_CHILDREN2, path, true); break;
  case 5: sim_raw_client_read(p, LK_OPCODE_EXISTS, path, true); break;
  case 6: sim_raw_client_read(p, LK_OPCODE_GET_DATA, path, true); break;
  case 7: sim_raw_client_sync(p, path); break;
  }
}

static void some_client(void)
{
  sim_raw_client *p = &st.clients[sim_roll(&st.rng, CLIENTS)];

  take_in(p);
  if (p->conn == NULL || sim_roll(&st.rng, 20) == 0) {
    sim_raw_client_hang_up(p);
    if (!sim_raw_client_connect(p, sim_roll(&st.rng, 3), 4000, 0))
      p->session = 0;
    return;
  }
  for (unsigned i = sim_roll(&st.rng, 4) + 1; i > 0 && p->conn != NULL; i--)
    some_request(p);
}

static void some_fault(void)
{
  sim_ensemble *e = st.lab.ensemble;
  unsigned a = sim_roll(&st.rng, 3), b = (a + 1) % 3;
  sim_server *s = sim_lab_server(&st.lab, a);

  switch (sim_roll(&st.rng, 8)) {
  case 0: sim_server_crash(s); break;
  case 1: sim_server_start(s); break;
  case 2: sim_server_stop(s); break;
  case 3: sim_server_continue(s); break;
  case 4: sim_link_cut(e, a, b, true); break;
  case 5: sim_link_cut(e, a, b, false); break;
  case 6: sim_link_slow(e, a, b, sim_roll(&st.rng, 2) * 50 * SIM_MS); break;
  case 7: sim_operator_delete(e, "/d1/n1"); break;
  }
}

static void calm_down(void)
{
  for (unsigned i = 0; i < 3; i++) {
    sim_server_start(sim_lab_server(&st.lab, i));
    sim_server_continue(sim_lab_server(&st.lab, i));
    sim_link_cut(st.lab.ensemble, i, (i + 1) % 3, false);
    sim_link_slow(st.lab.ensemble, i, (i + 1) % 3, 0);
  }
  ck_assert(sim_lab_wait_serving(&st.lab));
  sim_lab_run(&st.lab, 6000); /* the sessions have expired, too */
}

static void same_nodes(const sim_node *a, const sim_tree *t)
{
  const sim_node *b = sim_tree_find(t, a->path);

  ck_assert_ptr_nonnull(b);
  ck_assert_mem_eq(&a->stat, &b->stat, sizeof a->stat);
  ck_assert_int_eq(a->counter, b->counter);
  ck_assert_int_eq(a->container, b->container);
  for (const sim_node *k = a->children; k != NULL; k = k->next)
    same_nodes(k, t);
}

static void same_trees(const sim_tree *a, const sim_tree *b)
{
  ck_assert_uint_eq(a->count, b->count);
  ck_assert_uint_eq(a->nsessions, b->nsessions);
  same_nodes(a->root, b);
}

static void play(uint64_t seed)
{
  /* Commits often come before a server has logged them. */
  const sim_ensemble_config config = {.tick_ms = 500,
                                      .disk_delay_us = {50, 20000}};

  st = (storm){.rng = {seed}};
  sim_lab_init(&st.lab, &config, seed, NULL);
  for (int i = 0; i < CLIENTS; i++)
    sim_raw_client_init(&st.clients[i], &st.lab);
  for (int step = 0; step < STEPS; step++) {
    some_client();
    if (sim_roll(&st.rng, 20) == 0)
      some_fault();
    sim_lab_run(&st.lab, sim_roll(&st.rng, 30));
  }
  calm_down();
  ck_assert_uint_eq(sim_ensemble_committed_tree(st.lab.ensemble)->nsessions, 0);
  for (unsigned i = 0; i < 3; i++)
    same_trees(sim_ensemble_committed_tree(st.lab.ensemble),
               &sim_lab_server(&st.lab, i)->tree);
  for (int i = 0; i < CLIENTS; i++)
    take_in(&st.clients[i]);
}

static void finish(void)
{
  for (int i = 0; i < CLIENTS; i++)
    sim_raw_client_free(&st.clients[i]);
  sim_lab_free(&st.lab);
}

START_TEST(all_servers_end_with_one_tree)
{
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    play(seed);
    finish();
  }
}
END_TEST

START_TEST(seed_gives_one_schedule)
{
  for (uint64_t seed = 0; seed < 20; seed++) {
    play(seed);
    uint64_t heard = st.heard, jobs = st.lab.agenda.done;

    finish();
    play(seed);
    ck_assert_uint_eq(st.heard, heard);
    ck_assert_uint_eq(st.lab.agenda.done, jobs);
    finish();
    play(seed + 1000);
    ck_assert_uint_ne(st.heard, heard);
    finish();
  }
}
END_TEST

SUITE("faults", all_servers_end_with_one_tree, seed_gives_one_schedule)
