/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_CHECK_THREE_SERVERS_H
#define LK_SIM_CHECK_THREE_SERVERS_H

#include <latchkey/client.h>

#include "sim/model/raw_client.h"
#include "support/suite.h"

/**
 * @file Three servers of the model, with two raw clients.
 */

enum { TICK_MS = 1000, TIMEOUT_MS = 4000, NO_ZXID_SEEN = 0 };

static sim_lab lab;
static sim_raw_client p, q;
static unsigned leader, near, far; /* `near` and `far` are the followers */

/* What the hooks of the ensemble have reported. */
static struct {
  int64_t ended; /* the session that ended last; 0: none yet */
  bool expired;  /* that session expired; it was not closed */
  size_t commits;
  int64_t zxid; /* of the last commit */
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

static inline void setup_with_disk_delay(int64_t disk_us)
{
  const sim_ensemble_config config = {.tick_ms = TICK_MS,
                                      .disk_delay_us = {disk_us, disk_us}};
  const sim_ensemble_hooks hooks = {.committed = on_committed,
                                    .session_ended = on_ended};

  memset(&reported, 0, sizeof reported);
  const uint64_t seed = 7;

  sim_lab_init(&lab, &config, seed, &hooks);
  leader = (unsigned)sim_ensemble_leader(lab.ensemble);
  near = (leader + 1) % 3;
  far = (leader + 2) % 3;
  sim_raw_client_init(&p, &lab);
  sim_raw_client_init(&q, &lab);
}

static inline void setup(void)
{
  setup_with_disk_delay(300);
}

static inline void teardown(void)
{
  sim_raw_client_free(&p);
  sim_raw_client_free(&q);
  sim_lab_free(&lab);
}

static inline void connect(sim_raw_client *client, unsigned server)
{
  ck_assert(sim_raw_client_connect(client, server, TIMEOUT_MS, NO_ZXID_SEEN));
}

/* Lets `by` resume the session of `from`. */
static inline void copy_session(sim_raw_client *by, const sim_raw_client *from)
{
  by->session = from->session;
  memcpy(by->password, from->password, sizeof by->password);
}

static inline int exists(sim_raw_client *client, const char *path)
{
  return sim_raw_client_do_read(client, LK_OPCODE_EXISTS, path);
}

static inline void expect_closed(sim_raw_client *client)
{
  ck_assert(sim_raw_client_next(client).closed);
  ck_assert_ptr_null(client->conn);
}

/* Cuts the links to both other servers. */
static inline void cut_off(unsigned server)
{
  sim_link_cut(lab.ensemble, server, (server + 1) % 3);
  sim_link_cut(lab.ensemble, server, (server + 2) % 3);
}

static inline void restore_links(unsigned server)
{
  sim_link_restore(lab.ensemble, server, (server + 1) % 3);
  sim_link_restore(lab.ensemble, server, (server + 2) % 3);
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
