/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/steps.h"

#include "differential/compare_trees.h"
#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { BASE_EVERY = 1000, BATCH = 8 };

/* ---- requests and answers ----------------------------------------------- */

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
  pair_ask(s->pair, at->conn, xid_for(at, op), op,
           lk_bytes_of(lk__buf_bytes(body), lk__buf_len(body)));
}

/* As a client does: the zxid of answers to ordinary requests. */
static void note_zxid(slot *at, int32_t op, lk_bytes said)
{
  struct lk_reply_header head;
  lk_reader r;

  lk__reader_init(&r, said.at, said.len);
  lk__record_decode(&lk__reply_header_record, &head, &r, NULL);
  if (op != LK_OPCODE_PING && head.zxid > at->last_zxid)
    at->last_zxid = head.zxid;
}

static void learn(steps *s, slot *at)
{
  const list *asked = &s->pair->conns[at->conn].asked;
  const list *said = pair_said(s->pair, at->conn);
  size_t next = 0;

  for (size_t i = 0; i < said->count; i++) {
    int32_t op = said->items[i].op;

    if (op == PLAIN_EVENT || op >= PLAIN_HELLO)
      continue;
    note_zxid(at, op, list_at(said, i));
    generator_learn(&s->generator, op, list_at(asked, next++),
                    list_at(said, i));
  }
}

static void hear(steps *s, slot *at)
{
  pair_hear(s->pair, at->conn);
  learn(s, at);
}

static void hear_end(steps *s, slot *at)
{
  pair_hear_end(s->pair, at->conn);
  learn(s, at);
  s->used[at->conn] = false;
  at->attached = false;
}

static void ping(steps *s, const slot *at)
{
  pair_ask(s->pair, at->conn, LK_XID_PING, LK_OPCODE_PING, lk_text(""));
  pair_send(s->pair, at->conn);
}

/* All see what there is to see: first `at`, which knows best how much. */
static void settle(steps *s, slot *at)
{
  if (at->attached) {
    ping(s, at);
    hear(s, at);
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

static unsigned some_server(steps *s, const slot *at)
{
  return at->settled ? at->server : sim_roll(&s->rng, s->servers);
}

/* Which session was granted; 0: none. */
static int64_t granted(const pair *p, unsigned conn)
{
  struct lk_connect_reply r = {0};
  const list *said = pair_said(p, conn);
  lk_bytes bytes;
  lk_reader in;

  if (said->count == 0 || said->items[0].op != PLAIN_HELLO)
    return 0;
  bytes = list_at(said, 0);
  lk__reader_init(&in, bytes.at, bytes.len);
  lk__record_decode(&lk__connect_reply_record, &r, &in, NULL);
  return r.session_id;
}

/* A connection with a handshake; false: it was refused, and is gone. */
static bool shake_hands(steps *s, unsigned *conn, unsigned server,
                        int64_t session, bool right_password, int64_t zxid)
{
  static const int32_t timeouts[] = {0, -1, 1000, 40000, 50000, 1000000};

  *conn = free_conn(s);
  pair_open(s->pair, *conn, server);
  pair_hello(s->pair, *conn, session, right_password, zxid,
             timeouts[sim_roll(&s->rng, 6)]);
  pair_hear(s->pair, *conn);
  if (granted(s->pair, *conn) != 0)
    return true;
  pair_hear_end(s->pair, *conn);
  s->used[*conn] = false;
  return false;
}

static void join(steps *s, slot *at)
{
  at->server = some_server(s, at);
  at->attached = shake_hands(s, &at->conn, at->server, 0, true, 0);
  at->session = granted(s->pair, at->conn);
  at->xid = 0;
  at->last_zxid = 0;
}

static void set_watches(steps *s, slot *at)
{
  int64_t zxid = at->last_zxid - sim_roll(&s->rng, 20);
  lk_buf body = wire_buf();
  int32_t op = generator_set_watches(&s->generator, zxid < 0 ? 0 : zxid, &body);

  ask(s, at, op, &body);
  hear(s, at);
  lk__buf_free(&body);
}

static void resume(steps *s, slot *at)
{
  int64_t zxid = sim_chance(&s->rng, 900) ? at->last_zxid : 0;

  at->server = some_server(s, at);
  at->attached = shake_hands(s, &at->conn, at->server, at->session, true, zxid);
  if (at->attached && sim_chance(&s->rng, 700))
    set_watches(s, at);
}

static void drop(steps *s, slot *at)
{
  pair_close(s->pair, at->conn);
  s->used[at->conn] = false;
  at->attached = false;
}

/* ---- what a session may do ---------------------------------------------- */

static void ask_something(steps *s, slot *at,
                          int32_t (*what)(generator *, lk_buf *))
{
  lk_buf body = wire_buf();
  int32_t op = what(&s->generator, &body);

  ask(s, at, op, &body);
  lk__buf_free(&body);
}

static void do_requests(steps *s, slot *at)
{
  uint32_t count = 1 + sim_roll(&s->rng, BATCH);

  do
    ask_something(s, at, generator_request);
  while (--count > 0 && !s->generator.last);
  hear(s, at);
}

/* What has just been answered is seen behind a sync, at any follower; a leader
   answers that at once, whatever it has left to do. Who asked last. */
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

/* Alone: servers answer it out of order. One that is refused ends the
   connection, not the session. */
static void do_auth(steps *s, slot *at)
{
  bool known = sim_chance(&s->rng, 800);
  lk_buf body = wire_buf();

  generator_auth(&s->generator, known, &body);
  ask(s, at, LK_OPCODE_AUTH, &body);
  lk__buf_free(&body);
  hear(s, at);
  if (!known) {
    hear_end(s, at);
    resume(s, at);
  }
}

/* Nodes of a session go in no order. */
static void do_close(steps *s, slot *at)
{
  unsigned conn;

  s->pair->any_order = true;
  pair_ask(s->pair, at->conn, ++at->xid, LK_OPCODE_CLOSE_SESSION, lk_text(""));
  hear(s, at);
  hear_end(s, at);
  settle(s, at);
  s->pair->any_order = false;
  if (sim_chance(&s->rng, 500) && shake_hands(s, &conn, some_server(s, at),
                                              at->session, true, at->last_zxid))
    abort(); /* both agree that an ended session lives */
  join(s, at);
}

static void do_leave(steps *s, slot *at)
{
  if (at->settled) {
    do_requests(s, at);
    return;
  }
  drop(s, at);
  if (sim_chance(&s->rng, 500))
    resume(s, at);
}

/* A second connection takes the session away from the first, which ends at
   once on the same server, else with its first write (unless that is wrong in
   itself, or a multi of nothing); on the leader, which looks after the
   sessions, with its first request of any kind. */
static void do_move(steps *s, slot *at)
{
  slot old = *at;

  at->server = some_server(s, at);
  at->attached =
      shake_hands(s, &at->conn, at->server, at->session, true, at->last_zxid);
  if (at->server == old.server) {
    hear_end(s, &old);
    return;
  }
  ask_something(s, &old, generator_read);
  hear(s, &old);
  ask_something(s, &old, generator_set);
  hear_end(s, &old);
  /* That failed with a zxid which nobody was told; this has the next one. */
  at->xid = old.xid;
  ask_something(s, at, generator_set);
  hear(s, at);
}

/* Somebody with the wrong password is refused, and yet ends the session's
   connection to that server. */
static void do_intrude(steps *s, slot *at)
{
  unsigned conn, server = sim_roll(&s->rng, s->servers);

  if (shake_hands(s, &conn, server, at->session, false, 0))
    abort();
  if (at->attached && server == at->server)
    hear_end(s, at);
  if (!at->attached && at->settled)
    resume(s, at);
}

/* Nobody is served who has seen more than the server. */
static void do_run_ahead(steps *s, slot *at)
{
  unsigned conn;

  if (shake_hands(s, &conn, sim_roll(&s->rng, s->servers), 0, true,
                  at->last_zxid + 100000))
    abort();
}

static void step(steps *s)
{
  slot *at = &s->slots[sim_roll(&s->rng, STEPS_SLOTS)];
  uint32_t what = sim_roll(&s->rng, 1000);

  if (!at->attached) {
    if (what < 150)
      resume(s, at);
    else if (what < 160)
      do_intrude(s, at);
  } else if (what < 10)
    do_close(s, at);
  else if (what < 30)
    do_leave(s, at);
  else if (what < 40)
    do_move(s, at);
  else if (what < 45)
    do_intrude(s, at);
  else if (what < 48)
    do_run_ahead(s, at);
  else if (what < 60)
    do_auth(s, at);
  else if (what < 75)
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

/* Compare what there is, and go on in a fresh corner: what nobody may delete
   stays behind in this one. */
static void new_base(steps *s)
{
  struct lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {.acl = lk__vec_of(&open, 1)};
  lk_buf body = wire_buf();
  slot *at = &s->slots[0];
  char name[16];

  walk(s, at, s->bases == 0 ? "/" : s->generator.base);
  snprintf(name, sizeof name, "/e%u", ++s->bases);
  generator_move(&s->generator, name);
  r.path = lk_text(name);
  wire_record(&body, &lk__create_request_record, &r);
  ask(s, at, LK_OPCODE_CREATE2, &body);
  hear(s, at);
  lk__buf_free(&body);
  settle(s, at);
  s->next_base = s->count + BASE_EVERY;
}

/* One after another: their zxids are compared as well. */
static void begin(steps *s)
{
  for (slot *at = s->slots; at < s->slots + STEPS_SLOTS; at++) {
    at->settled = at < s->slots + s->servers;
    at->server = (unsigned)(at - s->slots) % s->servers;
    join(s, at);
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
