/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_CHECK_ONE_SERVER_H
#define LK_SIM_CHECK_ONE_SERVER_H

#include <latchkey/client.h>

#include "sim/model/raw_client.h"
#include "support/suite.h"

/**
 * @file One server of the model, with two raw clients.
 */

enum { TIMEOUT_MS = 10000, NO_ZXID_SEEN = 0 };

static sim_lab lab;
static sim_raw_client p, q;

static inline void setup_lab(const sim_ensemble_config *config)
{
  const uint64_t seed = 1;

  sim_lab_init(&lab, config, seed, NULL);
  sim_raw_client_init(&p, &lab);
  sim_raw_client_init(&q, &lab);
}

/* A standalone server and two connected clients. */
static inline void setup(void)
{
  const sim_ensemble_config config = {
      .servers = 1, .sweep_ms = 1000, .ttls = true};

  setup_lab(&config);
  ck_assert(sim_raw_client_connect(&p, 0, TIMEOUT_MS, NO_ZXID_SEEN));
  ck_assert(sim_raw_client_connect(&q, 0, TIMEOUT_MS, NO_ZXID_SEEN));
}

static inline void teardown(void)
{
  sim_raw_client_free(&p);
  sim_raw_client_free(&q);
  sim_lab_free(&lab);
}

enum { SYNC_CONNECTED = 3 }; /* the state in each event */

static inline void expect_event(sim_raw_client *client, int32_t type,
                                const char *path)
{
  sim_reply r = sim_raw_client_next(client);

  ck_assert(!r.closed);
  ck_assert_int_eq(r.xid, LK_XID_EVENT);
  ck_assert_int_eq(r.zxid, -1);
  ck_assert_int_eq(lk__reader_int(&r.body), type);
  ck_assert_int_eq(lk__reader_int(&r.body), SYNC_CONNECTED);
  lk_bytes text = lk__reader_bytes(&r.body);

  ck_assert_uint_eq(text.len, strlen(path));
  ck_assert_mem_eq(text.at, path, text.len);
}

static inline sim_reply expect_reply(sim_raw_client *client, int32_t xid,
                                     int err)
{
  sim_reply r = sim_raw_client_next(client);

  ck_assert(!r.closed);
  ck_assert_int_eq(r.xid, xid);
  ck_assert_int_eq(r.err, err);
  return r;
}

static inline void expect_text(sim_reply *r, const char *text)
{
  lk_bytes b = lk__reader_bytes(&r->body);

  ck_assert_int_eq(r->body.err, 0);
  ck_assert_uint_eq(b.len, strlen(text));
  ck_assert_mem_eq(b.at, text, b.len);
}

/* Creates a node and expects this path in the reply. */
static inline void create_as(sim_raw_client *client, const char *path,
                             int32_t flags, const char *expected)
{
  sim_reply r =
      expect_reply(client, sim_raw_client_create(client, path, flags), 0);

  expect_text(&r, expected);
}

static inline int set_data(sim_raw_client *client, const char *path,
                           lk_bytes data)
{
  struct lk_set_data_request r = {lk_text(path), data, -1};
  int32_t xid = sim_raw_client_send(client, LK_OPCODE_SET_DATA, &r);
  sim_reply reply;

  do
    reply = sim_raw_client_next(client);
  while (!reply.closed && reply.xid != xid);
  return reply.err;
}

static inline lk_stat stat_of(sim_raw_client *client, const char *path)
{
  sim_reply r = expect_reply(
      client, sim_raw_client_read(client, LK_OPCODE_EXISTS, path), 0);
  lk_stat stat;

  lk__reader_stat(&r.body, &stat);
  return stat;
}

#endif
