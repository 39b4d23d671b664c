/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/steps.h"

#include "differential/compare_trees.h"
#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  NO_ZXID = 0,       /* of a client that has seen none */
  BASE_EVERY = 1000, /* requests below one base node */
  REQUESTS_MAX = 8   /* requests of one action */
};

/* ---- requests and replies ----------------------------------------------- */

static int32_t xid_for(session_slot *slot, int32_t op)
{
  switch (op) {
  case LK_OPCODE_PING: return LK_XID_PING;
  case LK_OPCODE_AUTH: return LK_XID_AUTH;
  case LK_OPCODE_SET_WATCHES:
  case LK_OPCODE_SET_WATCHES2: return LK_XID_SET_WATCHES;
  default: return ++slot->xid;
  }
}

static void add_request(steps *s, session_slot *slot, int32_t op,
                        const lk_buf *body)
{
  s->count++;
  pair_add_request(s->pair, slot->conn, xid_for(slot, op), op,
                   lk_bytes_of(lk__buf_bytes(body), lk__buf_len(body)));
}

/* Notes the zxid of replies to ordinary requests, as a client does. */
static void note_zxid(session_slot *slot, int32_t op, lk_bytes reply)
{
  struct lk_reply_header head;
  lk_reader r;

  lk__reader_init(&r, reply.at, reply.len);
  lk__record_decode(&lk__reply_header_record, &head, &r, NULL);
  if (op != LK_OPCODE_PING && head.zxid > slot->last_zxid)
    slot->last_zxid = head.zxid;
}

/* Lets the generator learn from the replies. */
static void learn(steps *s, session_slot *slot)
{
  const list *requests = &s->pair->conns[slot->conn].requests;
  const list *replies = pair_replies(s->pair, slot->conn);
  size_t next_request = 0;

  for (size_t i = 0; i < replies->count; i++) {
    int32_t op = replies->items[i].op;

    if (!normal_is_reply(op))
      continue;
    note_zxid(slot, op, list_at(replies, i));
    generator_learn(&s->generator, op, list_at(requests, next_request++),
                    list_at(replies, i));
  }
}

static void receive(steps *s, session_slot *slot)
{
  pair_receive(s->pair, slot->conn);
  learn(s, slot);
}

static void receive_close(steps *s, session_slot *slot)
{
  pair_receive_close(s->pair, slot->conn);
  learn(s, slot);
  s->conn_used[slot->conn] = false;
  slot->attached = false;
}

static void send_ping(steps *s, const session_slot *slot)
{
  pair_add_request(s->pair, slot->conn, LK_XID_PING, LK_OPCODE_PING,
                   lk_text(""));
  pair_send(s->pair, slot->conn);
}

/* Receives all pending events, first those of `slot`, which has seen the newest
 * zxid. */
static void settle(steps *s, session_slot *slot)
{
  if (slot->attached) {
    send_ping(s, slot);
    receive(s, slot);
  }
  for (session_slot *i = s->slots; i < s->slots + STEPS_SLOTS; i++)
    if (i->attached && i != slot)
      send_ping(s, i);
  for (session_slot *i = s->slots; i < s->slots + STEPS_SLOTS; i++) {
    if (i->attached && i != slot) {
      pair_settle(s->pair, i->conn);
      learn(s, i);
    }
  }
}

/* ---- connections -------------------------------------------------------- */

static unsigned take_unused_conn(steps *s)
{
  unsigned conn = 0;

  while (s->conn_used[conn])
    conn++;
  s->conn_used[conn] = true;
  return conn;
}

static unsigned random_server(steps *s, const session_slot *slot)
{
  return slot->keeps_server ? slot->server : sim_roll(&s->rng, s->servers);
}

/* The session in the connect reply; 0: none. */
static int64_t granted_session(const pair *p, unsigned conn)
{
  struct lk_connect_reply r = {0};
  const list *replies = pair_replies(p, conn);
  lk_bytes bytes;
  lk_reader in;

  if (replies->count == 0 || replies->items[0].op != NORMAL_CONNECT_REPLY)
    return 0;
  bytes = list_at(replies, 0);
  lk__reader_init(&in, bytes.at, bytes.len);
  lk__record_decode(&lk__connect_reply_record, &r, &in, NULL);
  return r.session_id;
}

/* Opens a connection with a handshake; false: refused and closed. */
static bool open_session(steps *s, unsigned *conn, unsigned server,
                         int64_t session, pair_password password,
                         int64_t last_zxid)
{
  static const int32_t timeouts[] = {0, -1, 1000, 40000, 50000, 1000000};

  *conn = take_unused_conn(s);
  pair_open(s->pair, *conn, server);
  pair_connect(
      s->pair, *conn, session, password, last_zxid,
      timeouts[sim_roll(&s->rng, sizeof timeouts / sizeof timeouts[0])]);
  pair_receive(s->pair, *conn);
  if (granted_session(s->pair, *conn) != 0)
    return true;
  pair_receive_close(s->pair, *conn);
  s->conn_used[*conn] = false;
  return false;
}

static void start_session(steps *s, session_slot *slot)
{
  slot->server = random_server(s, slot);
  slot->attached = open_session(s, &slot->conn, slot->server, PAIR_NEW_SESSION,
                                PAIR_RIGHT_PASSWORD, NO_ZXID);
  slot->session = granted_session(s->pair, slot->conn);
  slot->xid = 0;
  slot->last_zxid = 0;
}

static void set_watches(steps *s, session_slot *slot)
{
  int64_t zxid = slot->last_zxid - sim_roll(&s->rng, 20);
  lk_buf body = wire_buf();
  int32_t op =
      generator_set_watches(&s->generator, zxid < 0 ? NO_ZXID : zxid, &body);

  add_request(s, slot, op, &body);
  receive(s, slot);
  lk__buf_free(&body);
}

static void resume(steps *s, session_slot *slot)
{
  int64_t zxid = sim_chance(&s->rng, 900) ? slot->last_zxid : NO_ZXID;

  slot->server = random_server(s, slot);
  slot->attached = open_session(s, &slot->conn, slot->server, slot->session,
                                PAIR_RIGHT_PASSWORD, zxid);
  if (slot->attached && sim_chance(&s->rng, 700))
    set_watches(s, slot);
}

static void close_connection(steps *s, session_slot *slot)
{
  pair_close(s->pair, slot->conn);
  s->conn_used[slot->conn] = false;
  slot->attached = false;
}

/* ---- actions of a session ----------------------------------------------- */

static void add_random_request(steps *s, session_slot *slot,
                               int32_t (*append_random)(generator *, lk_buf *))
{
  lk_buf body = wire_buf();
  int32_t op = append_random(&s->generator, &body);

  add_request(s, slot, op, &body);
  lk__buf_free(&body);
}

static void do_requests(steps *s, session_slot *slot)
{
  uint32_t count = 1 + sim_roll(&s->rng, REQUESTS_MAX);

  do
    add_random_request(s, slot, generator_request);
  while (--count > 0 && !s->generator.wait_for_reply);
  receive(s, slot);
}

/* Another session sends a sync and further requests: after the sync, a follower
 * has applied what the session `before` was just told. A leader answers a sync
 * at once, so none is sent there. Returns the session that sent requests
 * last. */
static session_slot *do_sync(steps *s, session_slot *before)
{
  session_slot *slot = &s->slots[sim_roll(&s->rng, STEPS_SLOTS)];
  struct lk_path_request r = {lk_text(s->generator.base)};
  lk_buf body = wire_buf();

  if (s->generator.wait_for_reply || !slot->attached ||
      (slot->server == 0 && s->servers > 1))
    return before;
  wire_record(&body, &lk__path_request_record, &r);
  add_request(s, slot, LK_OPCODE_SYNC, &body);
  lk__buf_free(&body);
  do_requests(s, slot);
  return slot;
}

/* An auth request is sent alone, since servers answer it out of order. If it is
 * refused, the connection is closed, but not the session. */
static void do_auth(steps *s, session_slot *slot)
{
  bool known_scheme = sim_chance(&s->rng, 800);
  lk_buf body = wire_buf();

  if (known_scheme)
    generator_auth(&s->generator, &body);
  else
    generator_auth_of_unknown_scheme(&s->generator, &body);
  add_request(s, slot, LK_OPCODE_AUTH, &body);
  lk__buf_free(&body);
  receive(s, slot);
  if (!known_scheme) {
    receive_close(s, slot);
    resume(s, slot);
  }
}

/* A close deletes the session's nodes in no particular order. */
static void do_close(steps *s, session_slot *slot)
{
  unsigned conn;

  s->pair->any_order = true;
  pair_add_request(s->pair, slot->conn, ++slot->xid, LK_OPCODE_CLOSE_SESSION,
                   lk_text(""));
  receive(s, slot);
  receive_close(s, slot);
  settle(s, slot);
  s->pair->any_order = false;
  if (sim_chance(&s->rng, 500) &&
      open_session(s, &conn, random_server(s, slot), slot->session,
                   PAIR_RIGHT_PASSWORD, slot->last_zxid))
    abort(); /* both sides accepted a session that was closed */
  start_session(s, slot);
}

static void do_drop_connection(steps *s, session_slot *slot)
{
  if (slot->keeps_server) {
    do_requests(s, slot);
    return;
  }
  close_connection(s, slot);
  if (sim_chance(&s->rng, 500))
    resume(s, slot);
}

/* A second connection takes over the session. The first is closed at once if it
 * is on the same server. Otherwise it is closed by its first write, unless that
 * is invalid or an empty multi; at a leader, which checks sessions, by any
 * request. */
static void do_move(steps *s, session_slot *slot)
{
  session_slot old = *slot;

  slot->server = random_server(s, slot);
  slot->attached = open_session(s, &slot->conn, slot->server, slot->session,
                                PAIR_RIGHT_PASSWORD, slot->last_zxid);
  if (slot->server == old.server) {
    receive_close(s, &old);
    return;
  }
  add_random_request(s, &old, generator_read);
  receive(s, &old);
  add_random_request(s, &old, generator_set);
  receive_close(s, &old);
  /* The failed write got a zxid that was in no reply; this write gets the next
   * one. */
  slot->xid = old.xid;
  add_random_request(s, slot, generator_set);
  receive(s, slot);
}

/* A connect request with the wrong password is refused, but closes the
 * session's connection to that server. */
static void do_wrong_password(steps *s, session_slot *slot)
{
  unsigned conn, server = sim_roll(&s->rng, s->servers);

  if (open_session(s, &conn, server, slot->session, PAIR_WRONG_PASSWORD,
                   NO_ZXID))
    abort(); /* both sides accepted it */
  if (slot->attached && server == slot->server)
    receive_close(s, slot);
  if (!slot->attached && slot->keeps_server)
    resume(s, slot);
}

/* A server refuses a client that has seen a later zxid. */
static void do_connect_with_future_zxid(steps *s, session_slot *slot)
{
  unsigned conn;

  if (open_session(s, &conn, sim_roll(&s->rng, s->servers), PAIR_NEW_SESSION,
                   PAIR_RIGHT_PASSWORD, slot->last_zxid + 100000))
    abort(); /* both sides accepted it */
}

static void step(steps *s)
{
  session_slot *slot = &s->slots[sim_roll(&s->rng, STEPS_SLOTS)];
  uint32_t roll = sim_roll(&s->rng, 1000);

  if (!slot->attached) {
    if (roll < 150)
      resume(s, slot);
    else if (roll < 160)
      do_wrong_password(s, slot);
  } else if (roll < 10)
    do_close(s, slot);
  else if (roll < 30)
    do_drop_connection(s, slot);
  else if (roll < 40)
    do_move(s, slot);
  else if (roll < 45)
    do_wrong_password(s, slot);
  else if (roll < 48)
    do_connect_with_future_zxid(s, slot);
  else if (roll < 60)
    do_auth(s, slot);
  else if (roll < 75)
    set_watches(s, slot);
  else {
    do_requests(s, slot);
    if (sim_chance(&s->rng, 100))
      slot = do_sync(s, slot);
  }
  settle(s, slot);
}

/* ---- base nodes and the whole run --------------------------------------- */

static void compare_all_below(steps *s, session_slot *slot, const char *path)
{
  int32_t before = slot->xid;

  compare_trees(s->pair, slot->conn, &slot->xid, path);
  s->count += (uint64_t)(slot->xid - before);
}

/* Compares all nodes below the base node and continues below a new one. Nodes
 * that no session may delete remain below the old one. */
static void new_base(steps *s)
{
  struct lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {.acl = lk__vec_of(&open, 1)};
  lk_buf body = wire_buf();
  session_slot *slot = &s->slots[0];
  char name[16];

  compare_all_below(s, slot, s->nbases == 0 ? "/" : s->generator.base);
  snprintf(name, sizeof name, "/e%u", ++s->nbases);
  generator_move(&s->generator, name);
  r.path = lk_text(name);
  wire_record(&body, &lk__create_request_record, &r);
  add_request(s, slot, LK_OPCODE_CREATE2, &body);
  receive(s, slot);
  lk__buf_free(&body);
  settle(s, slot);
  s->next_base = s->count + BASE_EVERY;
}

/* The sessions start one after the other, since the zxids of their creation are
 * compared as well. */
static void start_sessions(steps *s)
{
  for (session_slot *slot = s->slots; slot < s->slots + STEPS_SLOTS; slot++) {
    unsigned i = (unsigned)(slot - s->slots);

    slot->keeps_server = i < s->servers; /* one session at each server */
    slot->server = i % s->servers;
    start_session(s, slot);
    settle(s, slot);
  }
}

uint64_t steps_run(pair *p, unsigned servers, uint64_t seed, uint64_t count)
{
  steps s = {.pair = p, .servers = servers, .rng = {seed}};

  s.generator.rng = sim_rng_fork(&s.rng, 1);
  start_sessions(&s);
  new_base(&s);
  while (s.count < count) {
    if (s.count >= s.next_base)
      new_base(&s);
    step(&s);
  }
  compare_all_below(&s, &s.slots[0], "/");
  return s.count;
}
