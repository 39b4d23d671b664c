/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/steps.h"

#include "differential/compare_trees.h"
#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { BASE_EVERY = 1000, BATCH = 8 };

/* ---- requests and replies ----------------------------------------------- */

static int32_t xid_for(slot *at, int32_t op)
{
  switch (op) {
  case LK_OPCODE_PING: return LK_XID_PING;
  case LK_OPCODE_AUTH: return LK_XID_AUTH;
  case LK_OPCODE_SET_WATCHES:
  case LK_OPCODE_SET_WATCHES2: return LK_XID_SET_WATCHES;
  default: return ++at->xid;
  }
}

static void ask(steps *s, slot *at, int32_t op, const lk_buf *body)
{
  s->count++;
  pair_add_request(s->pair, at->conn, xid_for(at, op), op,
                   lk_bytes_of(lk__buf_bytes(body), lk__buf_len(body)));
}

/* Notes the zxid of replies to ordinary requests, as a client does. */
static void note_zxid(slot *at, int32_t op, lk_bytes replies)
{
  struct lk_reply_header head;
  lk_reader r;

  lk__reader_init(&r, replies.at, replies.len);
  lk__record_decode(&lk__reply_header_record, &head, &r, NULL);
  if (op != LK_OPCODE_PING && head.zxid > at->last_zxid)
    at->last_zxid = head.zxid;
}

static void learn(steps *s, slot *at)
{
  const list *requests = &s->pair->conns[at->conn].requests;
  const list *replies = pair_replies(s->pair, at->conn);
  size_t next = 0;

  for (size_t i = 0; i < replies->count; i++) {
    int32_t op = replies->items[i].op;

    if (op == NORMAL_EVENT || op >= NORMAL_CONNECT_REPLY)
      continue;
    note_zxid(at, op, list_at(replies, i));
    generator_learn(&s->generator, op, list_at(requests, next++),
                    list_at(replies, i));
  }
}

static void receive(steps *s, slot *at)
{
  pair_receive(s->pair, at->conn);
  learn(s, at);
}

static void receive_close(steps *s, slot *at)
{
  pair_receive_close(s->pair, at->conn);
  learn(s, at);
  s->used[at->conn] = false;
  at->attached = false;
}

static void ping(steps *s, const slot *at)
{
  pair_add_request(s->pair, at->conn, LK_XID_PING, LK_OPCODE_PING, lk_text(""));
  pair_send(s->pair, at->conn);
}

/* Receives all pending events, first at `at`, which has seen the newest
 * zxid. */
static void settle(steps *s, slot *at)
{
  if (at->attached) {
    ping(s, at);
    receive(s, at);
  }
  for (slot *i = s->slots; i < s->slots + STEPS_SLOTS; i++)
    if (i->attached && i != at)
      ping(s, i);
  for (slot *i = s->slots; i < s->slots + STEPS_SLOTS; i++) {
    if (i->attached && i != at) {
      pair_settle(s->pair, i->conn);
      learn(s, i);
    }
  }
}

/* ---- connections -------------------------------------------------------- */

static unsigned free_conn(steps *s)
{
  unsigned conn = 0;

  while (s->used[conn])
    conn++;
  s->used[conn] = true;
  return conn;
}

static unsigned random_server(steps *s, const slot *at)
{
  return at->keeps_server ? at->server : sim_roll(&s->rng, s->servers);
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
                         int64_t session, bool right_password, int64_t zxid)
{
  static const int32_t timeouts[] = {0, -1, 1000, 40000, 50000, 1000000};

  *conn = free_conn(s);
  pair_open(s->pair, *conn, server);
  pair_connect(s->pair, *conn, session, right_password, zxid,
               timeouts[sim_roll(&s->rng, 6)]);
  pair_receive(s->pair, *conn);
  if (granted_session(s->pair, *conn) != 0)
    return true;
  pair_receive_close(s->pair, *conn);
  s->used[*conn] = false;
  return false;
}

static void start_session(steps *s, slot *at)
{
  at->server = random_server(s, at);
  at->attached = open_session(s, &at->conn, at->server, 0, true, 0);
  at->session = granted_session(s->pair, at->conn);
  at->xid = 0;
  at->last_zxid = 0;
}

static void set_watches(steps *s, slot *at)
{
  int64_t zxid = at->last_zxid - sim_roll(&s->rng, 20);
  lk_buf body = wire_buf();
  int32_t op = generator_set_watches(&s->generator, zxid < 0 ? 0 : zxid, &body);

  ask(s, at, op, &body);
  receive(s, at);
  lk__buf_free(&body);
}

static void resume(steps *s, slot *at)
{
  int64_t zxid = sim_chance(&s->rng, 900) ? at->last_zxid : 0;

  at->server = random_server(s, at);
  at->attached =
      open_session(s, &at->conn, at->server, at->session, true, zxid);
  if (at->attached && sim_chance(&s->rng, 700))
    set_watches(s, at);
}

static void close_connection(steps *s, slot *at)
{
  pair_close(s->pair, at->conn);
  s->used[at->conn] = false;
  at->attached = false;
}

/* ---- actions of a session ----------------------------------------------- */

static void add_random_request(steps *s, slot *at,
                               int32_t (*detail)(generator *, lk_buf *))
{
  lk_buf body = wire_buf();
  int32_t op = detail(&s->generator, &body);

  ask(s, at, op, &body);
  lk__buf_free(&body);
}

static void do_requests(steps *s, slot *at)
{
  uint32_t count = 1 + sim_roll(&s->rng, BATCH);

  do
    add_random_request(s, at, generator_request);
  while (--count > 0 && !s->generator.last);
  receive(s, at);
}

/* After a sync at a follower, another session sees what was just answered. A
 * leader answers a sync at once, so it is not used. Returns the session that
 * sent requests last. */
static slot *do_sync(steps *s, slot *before)
{
  slot *at = &s->slots[sim_roll(&s->rng, STEPS_SLOTS)];
  struct lk_path_request r = {lk_text(s->generator.base)};
  lk_buf body = wire_buf();

  if (s->generator.last || !at->attached || (at->server == 0 && s->servers > 1))
    return before;
  wire_record(&body, &lk__path_request_record, &r);
  ask(s, at, LK_OPCODE_SYNC, &body);
  lk__buf_free(&body);
  do_requests(s, at);
  return at;
}

/* An auth request is sent alone, since servers answer it out of order. If it is
 * refused, the connection is closed, but not the session. */
static void do_auth(steps *s, slot *at)
{
  bool known = sim_chance(&s->rng, 800);
  lk_buf body = wire_buf();

  generator_auth(&s->generator, known, &body);
  ask(s, at, LK_OPCODE_AUTH, &body);
  lk__buf_free(&body);
  receive(s, at);
  if (!known) {
    receive_close(s, at);
    resume(s, at);
  }
}

/* A close deletes the session's nodes in no particular order. */
static void do_close(steps *s, slot *at)
{
  unsigned conn;

  s->pair->any_order = true;
  pair_add_request(s->pair, at->conn, ++at->xid, LK_OPCODE_CLOSE_SESSION,
                   lk_text(""));
  receive(s, at);
  receive_close(s, at);
  settle(s, at);
  s->pair->any_order = false;
  if (sim_chance(&s->rng, 500) &&
      open_session(s, &conn, random_server(s, at), at->session, true,
                   at->last_zxid))
    abort(); /* both sides accept a session that was closed */
  start_session(s, at);
}

static void do_drop_connection(steps *s, slot *at)
{
  if (at->keeps_server) {
    do_requests(s, at);
    return;
  }
  close_connection(s, at);
  if (sim_chance(&s->rng, 500))
    resume(s, at);
}

/* A second connection takes over the session. The first is closed at once if it
 * is on the same server. Otherwise it is closed by its first write, unless that
 * is invalid or an empty multi; at a leader, which checks sessions, by any
 * request. */
static void do_move(steps *s, slot *at)
{
  slot old = *at;

  at->server = random_server(s, at);
  at->attached =
      open_session(s, &at->conn, at->server, at->session, true, at->last_zxid);
  if (at->server == old.server) {
    receive_close(s, &old);
    return;
  }
  add_random_request(s, &old, generator_read);
  receive(s, &old);
  add_random_request(s, &old, generator_set);
  receive_close(s, &old);
  /* The failed write got a zxid that was in no reply; this write gets the next
   * one. */
  at->xid = old.xid;
  add_random_request(s, at, generator_set);
  receive(s, at);
}

/* A connect request with the wrong password is refused, but closes the
 * session's connection to that server. */
static void do_wrong_password(steps *s, slot *at)
{
  unsigned conn, server = sim_roll(&s->rng, s->servers);

  if (open_session(s, &conn, server, at->session, false, 0))
    abort();
  if (at->attached && server == at->server)
    receive_close(s, at);
  if (!at->attached && at->keeps_server)
    resume(s, at);
}

/* A server refuses a client that has seen a later zxid. */
static void do_future_zxid(steps *s, slot *at)
{
  unsigned conn;

  if (open_session(s, &conn, sim_roll(&s->rng, s->servers), 0, true,
                   at->last_zxid + 100000))
    abort();
}

static void step(steps *s)
{
  slot *at = &s->slots[sim_roll(&s->rng, STEPS_SLOTS)];
  uint32_t detail = sim_roll(&s->rng, 1000);

  if (!at->attached) {
    if (detail < 150)
      resume(s, at);
    else if (detail < 160)
      do_wrong_password(s, at);
  } else if (detail < 10)
    do_close(s, at);
  else if (detail < 30)
    do_drop_connection(s, at);
  else if (detail < 40)
    do_move(s, at);
  else if (detail < 45)
    do_wrong_password(s, at);
  else if (detail < 48)
    do_future_zxid(s, at);
  else if (detail < 60)
    do_auth(s, at);
  else if (detail < 75)
    set_watches(s, at);
  else {
    do_requests(s, at);
    if (sim_chance(&s->rng, 100))
      at = do_sync(s, at);
  }
  settle(s, at);
}

/* ---- all of it ---------------------------------------------------------- */

static void walk(steps *s, slot *at, const char *path)
{
  int32_t before = at->xid;

  compare_trees(s->pair, at->conn, &at->xid, path);
  s->count += (uint64_t)(at->xid - before);
}

/* Compares all nodes and continues below a new node. Nodes that no session may
 * delete remain below the old one. */
static void new_base(steps *s)
{
  struct lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {.acl = lk__vec_of(&open, 1)};
  lk_buf body = wire_buf();
  slot *at = &s->slots[0];
  char name[16];

  walk(s, at, s->nbases == 0 ? "/" : s->generator.base);
  snprintf(name, sizeof name, "/e%u", ++s->nbases);
  generator_move(&s->generator, name);
  r.path = lk_text(name);
  wire_record(&body, &lk__create_request_record, &r);
  ask(s, at, LK_OPCODE_CREATE2, &body);
  receive(s, at);
  lk__buf_free(&body);
  settle(s, at);
  s->next_base = s->count + BASE_EVERY;
}

/* The sessions start one after the other, since the zxids of their creation are
 * compared as well. */
static void begin(steps *s)
{
  for (slot *at = s->slots; at < s->slots + STEPS_SLOTS; at++) {
    at->keeps_server = at < s->slots + s->servers;
    at->server = (unsigned)(at - s->slots) % s->servers;
    start_session(s, at);
    settle(s, at);
  }
}

uint64_t steps_run(pair *p, unsigned servers, uint64_t seed, uint64_t count)
{
  steps s = {.pair = p, .servers = servers, .rng = {seed}};

  s.generator.rng = sim_rng_fork(&s.rng, 1);
  begin(&s);
  new_base(&s);
  while (s.count < count) {
    if (s.count >= s.next_base)
      new_base(&s);
    step(&s);
  }
  walk(&s, &s.slots[0], "/");
  return s.count;
}
