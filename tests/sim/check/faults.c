/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"
#include "sim/model/raw_client.h"
#include "support/suite.h"

#include <stdio.h>

/**
 * @file The model under random faults: afterwards all servers have equal trees,
 * and a seed always gives the same schedule.
 */

enum { SERVERS = 3, CLIENTS = 5, STEPS = 400, SEEDS = 300, TIMEOUT_MS = 4000 };
enum { NO_ZXID_SEEN = 0, NO_SESSION = 0 };

typedef struct fault_run {
  sim_lab lab;
  sim_rng rng;
  sim_raw_client clients[CLIENTS];
  uint64_t reply_digest; /* of all replies and events so far */
} fault_run;

static fault_run run;

static void add_to_digest(uint64_t value)
{
  run.reply_digest = run.reply_digest * 31 + value;
}

static void digest_replies(sim_raw_client *client)
{
  while (sim_raw_client_has_bytes(client) && client->conn != NULL) {
    sim_reply r = sim_raw_client_next(client);

    if (r.closed)
      return;
    add_to_digest((uint64_t)r.xid);
    add_to_digest((uint64_t)r.zxid);
    add_to_digest((uint64_t)r.err);
    for (; r.body.at < r.body.end; r.body.at++)
      add_to_digest(*r.body.at);
  }
}

static void send_random_request(sim_raw_client *client)
{
  char path[32]; /* /d0 to /d2, or one of the nodes /n0 to /n3 below them */
  int len = snprintf(path, sizeof path, "/d%u", sim_roll(&run.rng, 3));

  if (sim_roll(&run.rng, 3) > 0)
    snprintf(path + len, sizeof path - (size_t)len, "/n%u",
             sim_roll(&run.rng, 4));
  switch (sim_roll(&run.rng, 8)) {
  case 0: sim_raw_client_create(client, path, LK_PERSISTENT); break;
  case 1:
    sim_raw_client_create(client, path, LK_EPHEMERAL | LK_SEQUENTIAL);
    break;
  case 2: sim_raw_client_create(client, path, LK_CONTAINER); break;
  case 3: sim_raw_client_delete(client, path); break;
  case 4: sim_raw_client_watch(client, LK_OPCODE_GET_CHILDREN2, path); break;
  case 5: sim_raw_client_watch(client, LK_OPCODE_EXISTS, path); break;
  case 6: sim_raw_client_watch(client, LK_OPCODE_GET_DATA, path); break;
  case 7: sim_raw_client_sync(client, path); break;
  }
}

static void act_as_random_client(void)
{
  sim_raw_client *client = &run.clients[sim_roll(&run.rng, CLIENTS)];

  digest_replies(client);
  if (client->conn == NULL || sim_roll(&run.rng, 20) == 0) {
    sim_raw_client_hang_up(client);
    if (!sim_raw_client_connect(client, sim_roll(&run.rng, SERVERS), TIMEOUT_MS,
                                NO_ZXID_SEEN))
      client->session = NO_SESSION; /* the next connect creates one */
    return;
  }
  for (unsigned i = sim_roll(&run.rng, 4) + 1; i > 0 && client->conn != NULL;
       i--)
    send_random_request(client);
}

static void inject_random_fault(void)
{
  sim_ensemble *e = run.lab.ensemble;
  unsigned a = sim_roll(&run.rng, SERVERS), b = (a + 1) % SERVERS;
  sim_server *s = sim_lab_server(&run.lab, a);

  switch (sim_roll(&run.rng, 8)) {
  case 0: sim_server_crash(s); break;
  case 1: sim_server_start(s); break;
  case 2: sim_server_stop(s); break;
  case 3: sim_server_continue(s); break;
  case 4: sim_link_cut(e, a, b); break;
  case 5: sim_link_restore(e, a, b); break;
  case 6: sim_link_slow(e, a, b, sim_roll(&run.rng, 2) * 50 * SIM_MS); break;
  case 7: sim_operator_delete(e, "/d1/n1"); break;
  }
}

static void end_faults(void)
{
  for (unsigned i = 0; i < SERVERS; i++) {
    sim_server_start(sim_lab_server(&run.lab, i));
    sim_server_continue(sim_lab_server(&run.lab, i));
    sim_link_restore(run.lab.ensemble, i, (i + 1) % SERVERS);
    sim_link_slow(run.lab.ensemble, i, (i + 1) % SERVERS, 0);
  }
  ck_assert(sim_lab_wait_serving(&run.lab));
  sim_lab_run(&run.lab, 6000); /* until the sessions have expired, too */
}

static void check_nodes_equal(const sim_node *a, const sim_tree *t)
{
  const sim_node *b = sim_tree_find(t, a->path);

  ck_assert_ptr_nonnull(b);
  ck_assert_mem_eq(&a->stat, &b->stat, sizeof a->stat);
  ck_assert_int_eq(a->counter, b->counter);
  ck_assert_int_eq(a->container, b->container);
  for (const sim_node *k = a->children; k != NULL; k = k->next)
    check_nodes_equal(k, t);
}

static void check_trees_equal(const sim_tree *a, const sim_tree *b)
{
  ck_assert_uint_eq(a->count, b->count);
  ck_assert_uint_eq(a->nsessions, b->nsessions);
  check_nodes_equal(a->root, b);
}

static void run_schedule(uint64_t seed)
{
  /* With slow disks, commits often arrive before a server has logged the
   * proposals. */
  const sim_ensemble_config config = {.tick_ms = 500,
                                      .disk_delay_us = {50, 20000}};

  run = (fault_run){.rng = {seed}};
  sim_lab_init(&run.lab, &config, seed, NULL);
  for (int i = 0; i < CLIENTS; i++)
    sim_raw_client_init(&run.clients[i], &run.lab);
  for (int step = 0; step < STEPS; step++) {
    act_as_random_client();
    if (sim_roll(&run.rng, 20) == 0)
      inject_random_fault();
    sim_lab_run(&run.lab, sim_roll(&run.rng, 30));
  }
  end_faults();
  ck_assert_uint_eq(sim_ensemble_committed_tree(run.lab.ensemble)->nsessions,
                    0);
  for (unsigned i = 0; i < SERVERS; i++)
    check_trees_equal(sim_ensemble_committed_tree(run.lab.ensemble),
                      &sim_lab_server(&run.lab, i)->tree);
  for (int i = 0; i < CLIENTS; i++)
    digest_replies(&run.clients[i]);
}

static void free_run(void)
{
  for (int i = 0; i < CLIENTS; i++)
    sim_raw_client_free(&run.clients[i]);
  sim_lab_free(&run.lab);
}

START_TEST(all_servers_end_with_equal_trees)
{
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    run_schedule(seed);
    free_run();
  }
}
END_TEST

START_TEST(seed_gives_one_schedule)
{
  for (uint64_t seed = 0; seed < 20; seed++) {
    run_schedule(seed);
    uint64_t reply_digest = run.reply_digest, jobs = run.lab.agenda.done;

    free_run();
    run_schedule(seed);
    ck_assert_uint_eq(run.reply_digest, reply_digest);
    ck_assert_uint_eq(run.lab.agenda.done, jobs);
    free_run();
    run_schedule(seed + 1000);
    ck_assert_uint_ne(run.reply_digest, reply_digest);
    free_run();
  }
}
END_TEST

SUITE("faults", all_servers_end_with_equal_trees, seed_gives_one_schedule)
