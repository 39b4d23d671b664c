/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The checks in builds with --enable-debug. Each test breaks an invariant by
 * hand, and the check must name that invariant.
 */

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

#include "support/peer.h"
#include "support/suite.h"
#include "support/wire.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static peer *p;

static void say(lk_buf *b)
{
  peer_receive(p, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

/* Make a client with two outstanding requests, a one-shot watch that is set,
   and one whose request has no reply yet. */
static void begin(void)
{
  const lk_client_config config = {.size = sizeof config};
  lk_buf b = wire_buf();

  p = calloc(1, sizeof *p);
  failing_mem_init(&p->mem);
  p->mute = true;
  ck_assert_int_eq(peer_init(p, &config), 0);
  peer_settle(p);
  peer_connected(p);
  wire_welcome(&b, 7, 30000);
  say(&b);
  peer_exists(p, &(peer_call){.name = "e", .watch = "we"}, "/a");
  peer_settle(p);
  b = wire_buf();
  wire_reply(&b, p->client->session.last_xid, 1, LK_ERR_NO_NODE);
  say(&b);
  peer_get(p, &(peer_call){.name = "g1", .watch = "w1"}, "/a");
  peer_get(p, &(peer_call){.name = "g2", .timeout_ms = 500}, "/b");
  peer_settle(p);
}

/* The same without a connection: the requests wait. */
static void begin_waiting(void)
{
  begin();
  peer_failed(p, 0, NULL);
  peer_get(p, &(peer_call){.name = "g3", .watch = "w3"}, "/a");
  peer_get(p, &(peer_call){.name = "g4", .timeout_ms = 500}, "/b");
}

static void end(void)
{
  peer_done(p);
  free(p);
}

static lk_request *sent(lk_client *c, size_t i)
{
  return lk__ring_at(&c->requests.sent, i);
}

static lk_request *waiting(lk_client *c, size_t i)
{
  return lk__ring_at(&c->requests.waiting, i);
}

static void harm_state(lk_client *c)
{
  c->session.state = LK_STATE_SUSPENDED;
}

static void harm_greeted(lk_client *c)
{
  c->connection.attempt++;
}

static void harm_connection(lk_client *c)
{
  c->connection.number = 0;
}

static void harm_session(lk_client *c)
{
  c->session.identity.id = 0;
}

static void harm_moving(lk_client *c)
{
  c->move.wanted = true;
}

static void harm_out(lk_client *c)
{
  c->output.bytes.end = c->output.bytes.start + 1;
}

static void harm_fence(lk_client *c)
{
  c->output.limit = 5;
}

static void harm_probe(lk_client *c)
{
  c->probe.number = 1;
}

static void harm_final_err(lk_client *c)
{
  c->session.final_err = LK_ERR_CLOSED;
}

static void harm_listeners(lk_client *c)
{
  c->listeners.last = NULL;
}

static void harm_telling(lk_client *c)
{
  c->listeners.notifying = (struct lk_notification *)(void *)c->listeners.first;
}

static void harm_sent(lk_client *c)
{
  c->connection.phase = LK_PHASE_HANDSHAKE;
  c->session.state = LK_STATE_SUSPENDED;
  c->connection.number = 0;
}

static void harm_xid(lk_client *c)
{
  sent(c, 1)->xid = sent(c, 0)->xid;
}

static void harm_place(lk_client *c)
{
  sent(c, 1)->end = sent(c, 0)->end;
}

static void harm_last_place(lk_client *c)
{
  sent(c, 1)->end += 1;
}

static void harm_close(lk_client *c)
{
  c->close.sent = true;
}

static void harm_waiting_xid(lk_client *c)
{
  waiting(c, 0)->xid = 5;
}

static void harm_held(lk_client *c)
{
  c->requests.held.end++;
}

static void harm_held_less(lk_client *c)
{
  c->requests.held.end--;
}

static void harm_held_frame(lk_client *c)
{
  waiting(c, 0)->op = LK_OPCODE_SYNC;
}

static void harm_waiting_live(lk_client *c)
{
  c->connection.phase = LK_PHASE_LIVE;
  c->session.state = LK_STATE_CONNECTED;
  c->connection.number = 1;
  c->connection.handshake_attempt = c->connection.attempt;
}

static void harm_ended(lk_client *c)
{
  sent(c, 0)->completed = true;
}

static void harm_open(lk_client *c)
{
  c->requests.open++;
}

static void harm_deadline(lk_client *c)
{
  sent(c, 1)->end--; /* the entry of its deadline has the old place */
}

static void harm_held_place(lk_client *c)
{
  waiting(c, 1)->end = waiting(c, 0)->end;
}

static void harm_held_ended(lk_client *c)
{
  c->requests.waiting_completed++;
}

static void harm_pending(lk_client *c)
{
  sent(c, 0)->watch = NULL;
}

static void harm_standing(lk_client *c)
{
  c->watches.standing++;
}

static void harm_standing_less(lk_client *c)
{
  c->watches.standing--;
}

static void harm_under_way(lk_client *c)
{
  sent(c, 0)->watch->on->pending_count[LK_WATCH_KIND_DATA]++;
}

static void mend_under_way(lk_client *c)
{
  sent(c, 0)->watch->on->pending_count[LK_WATCH_KIND_DATA]--;
}

static void harm_pending_stands(lk_client *c)
{
  sent(c, 0)->watch->standing = true;
}

static void mend_pending_stands(lk_client *c)
{
  sent(c, 0)->watch->standing = false;
}

/* A function that breaks an invariant, the name of the invariant, and what has
   to be restored besides the client and its requests. */
typedef struct harm {
  void (*run)(lk_client *c);
  const char *words;
  void (*undo)(lk_client *c);
} harm;

static const harm live[] = {
    {harm_state, "state", NULL},
    {harm_greeted, "without a handshake", NULL},
    {harm_connection, "number of the connection", NULL},
    {harm_session, "without a session", NULL},
    {harm_fence, "fence", NULL},
    {harm_probe, "probe", NULL},
    {harm_final_err, "an end", NULL},
    {harm_listeners, "last listener", NULL},
    {harm_telling, "being notified", NULL},
    {harm_sent, "under way without a connection", NULL},
    {harm_xid, "xid of its own", NULL},
    {harm_place, "do not ascend", NULL},
    {harm_last_place, "behind the output", NULL},
    {harm_close, "closeSession", NULL},
    {harm_ended, "keeps what it had", NULL},
    {harm_open, "in no ring", NULL},
    {harm_deadline, "deadline is not", NULL},
    {harm_pending, "pending without its request", NULL},
    {harm_standing, "fewer watches", NULL},
    {harm_standing_less, "more watches", NULL},
    {harm_under_way, "counted wrong", mend_under_way},
    {harm_pending_stands, "pending in a wrong list", mend_pending_stands},
};

static const harm away[] = {
    {harm_moving, "outlives it", NULL},
    {harm_out, "output without", NULL},
    {harm_waiting_xid, "waits has an xid", NULL},
    {harm_held_place, "held do not ascend", NULL},
    {harm_held_ended, "waits is counted wrong", NULL},
    {harm_held, "is more than", NULL},
    {harm_held_less, "is less than", NULL},
    {harm_held_frame, "is not the frames", NULL},
    {harm_waiting_live, "waits though", NULL},
};

static void do_harm(const harm *h)
{
  lk_client *c = p->client, whole = *c;
  lk_ring *ring =
      c->requests.sent.count > 0 ? &c->requests.sent : &c->requests.waiting;
  lk_request requests[2];

  for (size_t i = 0; i < 2; i++)
    memcpy(&requests[i], lk__ring_at(ring, i), sizeof requests[i]);
  ck_assert_ptr_null(lk__invariants_broken(c, LK_MOMENT_REST));
  h->run(c);
  const char *broken = lk__invariants_broken(c, LK_MOMENT_REST);

  ck_assert_msg(broken != NULL && strstr(broken, h->words) != NULL,
                "not \"%s\" but \"%s\"", h->words,
                broken == NULL ? "nothing" : broken);
  memcpy(c, &whole, sizeof whole);
  for (size_t i = 0; i < 2; i++)
    memcpy(lk__ring_at(ring, i), &requests[i], sizeof requests[i]);
  if (h->undo != NULL)
    h->undo(c);
}

START_TEST(each_broken_invariant_is_named)
{
  begin();
  for (size_t i = 0; i < sizeof live / sizeof live[0]; i++)
    do_harm(&live[i]);
  end();
  begin_waiting();
  for (size_t i = 0; i < sizeof away / sizeof away[0]; i++)
    do_harm(&away[i]);
  end();
}
END_TEST

/* The states that a client may have between two connections. It has EXPIRED
   only during a call, until the new session begins. */
START_TEST(states_without_a_connection_are_known)
{
  begin_waiting();
  for (lk_moment m = LK_MOMENT_ANSWER; m <= LK_MOMENT_REST; m++) {
    for (lk_state s = LK_STATE_CONNECTING; s <= LK_STATE_CLOSED; s++) {
      bool fits = s == LK_STATE_CONNECTING || s == LK_STATE_SUSPENDED ||
                  (s == LK_STATE_EXPIRED && m != LK_MOMENT_REST);

      p->client->session.state = s;
      ck_assert((lk__invariants_broken(p->client, m) == NULL) == fits);
    }
  }
  p->client->session.state = LK_STATE_SUSPENDED;
  end();
}
END_TEST

/* How a child process ends in which the client counts one request too many. */
static int end_of_harmed(void)
{
  pid_t child;
  int status;

  begin();
  child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    p->client->requests.open++;
    lk_client_tick(p->client);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  end();
  return status;
}

START_TEST(only_a_debug_build_aborts)
{
#ifdef LK_DEBUG
  ck_assert(WIFSIGNALED(end_of_harmed()));
#else
  ck_assert_int_eq(end_of_harmed(), 0);
#endif
}
END_TEST

SUITE("invariants", each_broken_invariant_is_named,
      states_without_a_connection_are_known, only_a_debug_build_aborts)
