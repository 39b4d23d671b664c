/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_CHECK_THREE_SERVERS_H
#define LK_SIM_CHECK_THREE_SERVERS_H

#include "sim/model/raw_client.h"
#include "support/suite.h"

/**
 * @file Three servers of the model, with two raw clients.
 */

enum { TICK = 1000, T = 4000 };

static sim_lab lab;
static sim_raw_client p, q;
static unsigned leader, near, far; /* near and far: the two followers */

static struct {
  int64_t ended; /* the session that ended last */
  bool expired;
  size_t commits;
  int64_t zxid;
} reported;

static inline void on_committed(const sim_commit *c, const sim_tree *tree,
                                void *arg)
{
  (void)arg;
  ck_assert_int_gt(c->zxid, reported.zxid);
  ck_assert_int_eq(tree->zxid, c->zxid);
  reported.zxid = c->zxid;
  reported.commits++;
}

static inline void on_ended(int64_t session, bool expired, void *arg)
{
  (void)arg;
  reported.ended = session;
  reported.expired = expired;
}

static inline void setup_with(int64_t disk_us)
{
  const sim_ensemble_config config = {.tick_ms = TICK,
                                      .disk_delay_us = {disk_us, disk_us}};
  const sim_ensemble_hooks hooks = {.committed = on_committed,
                                    .session_ended = on_ended};

  memset(&reported, 0, sizeof reported);
  sim_lab_init(&lab, &config, 7, &hooks);
  leader = (unsigned)sim_ensemble_leader(lab.ensemble);
  near = (leader + 1) % 3;
  far = (leader + 2) % 3;
  sim_raw_client_init(&p, &lab);
  sim_raw_client_init(&q, &lab);
}

static inline void setup(void)
{
  setup_with(300);
}

static inline void teardown(void)
{
  sim_raw_client_free(&p);
  sim_raw_client_free(&q);
  sim_lab_free(&lab);
}

static inline void connect(sim_raw_client *client, unsigned server)
{
  ck_assert(sim_raw_client_connect(client, server, T, 0));
}

/* Lets `by` resume the session of `from`. */
static inline void copy_session(sim_raw_client *by, const sim_raw_client *from)
{
  by->session = from->session;
  memcpy(by->password, from->password, sizeof by->password);
}

static inline int exists(sim_raw_client *client, const char *path)
{
  return sim_raw_client_do_read(client, LK_OPCODE_EXISTS, path, false);
}

static inline void expect_closed(sim_raw_client *client)
{
  ck_assert(sim_raw_client_next(client).closed);
  ck_assert_ptr_null(client->conn);
}

static inline void cut(unsigned server, bool yes)
{
  sim_link_cut(lab.ensemble, server, (server + 1) % 3, yes);
  sim_link_cut(lab.ensemble, server, (server + 2) % 3, yes);
}

/* Pings every 100 ms for this time; false: the server closed the connection. */
static inline bool ping_for(sim_raw_client *client, int64_t ms)
{
  for (; ms > 0 && client->conn != NULL; ms -= 100) {
    sim_raw_client_send_as(client, LK_XID_PING, LK_OPCODE_PING, NULL);
    sim_lab_run(&lab, 100);
  }
  return client->conn != NULL;
}

#endif
