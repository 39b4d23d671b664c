/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_CHECK_ONE_SERVER_H
#define LK_SIM_CHECK_ONE_SERVER_H

#include "sim/model/raw_client.h"
#include "support/suite.h"

/**
 * @file One server of the model, with two raw clients.
 */

enum { CREATED = 1, DELETED, CHANGED, CHILDREN };

static sim_lab lab;
static sim_raw_client p, q;

static inline void setup_lab(const sim_ensemble_config *config)
{
  sim_lab_init(&lab, config, 1, NULL);
  sim_raw_client_init(&p, &lab);
  sim_raw_client_init(&q, &lab);
}

/* A standalone server and two connected clients. */
static inline void setup(void)
{
  const sim_ensemble_config config = {
      .servers = 1, .sweep_ms = 1000, .ttls = true};

  setup_lab(&config);
  ck_assert(sim_raw_client_connect(&p, 0, 10000, 0));
  ck_assert(sim_raw_client_connect(&q, 0, 10000, 0));
}

static inline void teardown(void)
{
  sim_raw_client_free(&p);
  sim_raw_client_free(&q);
  sim_lab_free(&lab);
}

static inline void expect_event(sim_raw_client *client, int32_t type,
                                const char *path)
{
  sim_reply r = sim_raw_client_next(client);

  ck_assert(!r.closed);
  ck_assert_int_eq(r.xid, LK_XID_EVENT);
  ck_assert_int_eq(r.zxid, -1);
  ck_assert_int_eq(lk__reader_int(&r.body), type);
  ck_assert_int_eq(lk__reader_int(&r.body), 3);
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

/* Create a node and check the name that the server gave it. */
static inline void create_as(sim_raw_client *client, const char *path,
                             int32_t flags, const char *made)
{
  sim_reply r =
      expect_reply(client, sim_raw_client_create(client, path, flags), 0);

  expect_text(&r, made);
}

static inline int set(sim_raw_client *client, const char *path, lk_bytes data)
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
      client, sim_raw_client_read(client, LK_OPCODE_EXISTS, path, false), 0);
  lk_stat stat;

  lk__reader_stat(&r.body, &stat);
  return stat;
}

#endif
