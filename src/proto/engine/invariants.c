/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/invariants.h"

#include "jute/reader.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the connection ----------------------------------------------------- */

static bool state_fits(const lk_client *c, lk_moment moment)
{
  switch (c->phase) {
  case LK_PHASE_LIVE:
    return c->state == (c->no_quorum ? LK_STATE_READ_ONLY : LK_STATE_CONNECTED);
  case LK_PHASE_PAUSE:
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL:
    return c->state == LK_STATE_CONNECTING || c->state == LK_STATE_SUSPENDED ||
           (c->state == LK_STATE_EXPIRED && moment != LK_MOMENT_REST);
  case LK_PHASE_ENDED:
    return c->state == LK_STATE_EXPIRED || c->state == LK_STATE_AUTH_FAILED ||
           c->state == LK_STATE_CLOSED;
  }
  return false;
}

static const char *broken_phase(const lk_client *c, lk_moment moment)
{
  bool live = c->phase == LK_PHASE_LIVE;
  bool proving = c->phase == LK_PHASE_SASL;
  bool greeted = live || proving || c->phase == LK_PHASE_HANDSHAKE;
  bool running = c->sasl != NULL && c->sasl->running;

  if (!state_fits(c, moment))
    return "the state is not that of the phase";
  if (greeted && c->greeted != c->attempt)
    return "live without a handshake on this attempt";
  if (live != (c->connection != 0))
    return "the number of the connection is not that of a live one";
  if (live && (c->session.id == 0) != c->no_quorum)
    return "connected without a session, or a session without a quorum";
  if (!live && (c->moving || c->pings.count > 0 || c->rearms_out > 0 ||
                c->no_quorum || c->auth_next != NULL || c->unknown_op != 0 ||
                c->rearm_ms != LK_NEVER || c->watches.on_its_way))
    return "something of a live connection outlives it";
  if (proving ? moment == LK_MOMENT_REST && !running && !c->free_wanted
              : running)
    return "a SASL exchange without its connection, or the other way round";
  if (!greeted && lk__buf_len(&c->out) > 0)
    return "output without a connection";
  if (c->fence != UINT64_MAX && !c->moving && c->unknown_op == 0)
    return "a fence without a move, at a server that will not close";
  if (c->probe != 0 && !c->no_quorum)
    return "a probe on a connection that has a quorum";
  if ((c->phase == LK_PHASE_ENDED) != (c->final_err != 0))
    return "an end without its error, or the other way round";
  return NULL;
}

/* ---- requests ----------------------------------------------------------- */

static const lk_request *at(const lk_ring *ring, size_t i)
{
  return lk__ring_at(ring, i);
}

static const char *broken_sent(const lk_client *c)
{
  uint64_t end = 0;

  if (c->phase != LK_PHASE_LIVE && c->sent.count > 0)
    return "a request is under way without a connection";
  for (size_t i = 0; i < c->sent.count; i++) {
    const lk_request *r = at(&c->sent, i);

    if (r->xid <= 0 || (i > 0 && r->xid == at(&c->sent, i - 1)->xid))
      return "a request under way has no xid of its own";
    if (r->end <= end)
      return "places in the output do not ascend";
    end = r->end;
  }
  if (end > c->out_sent + lk__buf_len(&c->out))
    return "a request ends behind the output";
  if (c->close_sent &&
      (c->sent.count == 0 ||
       at(&c->sent, c->sent.count - 1)->op != LK_OPCODE_CLOSE_SESSION))
    return "closeSession is not the last request under way";
  return NULL;
}

static const char *broken_waiting(const lk_client *c, lk_moment moment)
{
  const unsigned char *frame = lk__buf_bytes(&c->held);
  size_t left = lk__buf_len(&c->held), ended = 0;
  uint64_t end = 0;

  if (c->phase == LK_PHASE_LIVE && moment == LK_MOMENT_REST &&
      c->waiting.count > 0)
    return "a request waits though there is a connection";
  for (size_t i = 0; i < c->waiting.count; i++) {
    const lk_request *r = at(&c->waiting, i);
    lk_reader in;

    if (r->xid != 0)
      return "a request that waits has an xid";
    if (r->end <= end)
      return "places in what is held do not ascend";
    end = r->end;
    ended += r->ended;
    if (r->len > left)
      return "what is held is less than the frames of what waits";
    lk__reader_init(&in, frame, r->len);
    int32_t len = lk__reader_int(&in);

    lk__reader_int(&in);
    if (len < 0 || (size_t)len + 4 != r->len || lk__reader_int(&in) != r->op)
      return "what is held is not the frames of what waits";
    frame += r->len;
    left -= r->len;
  }
  if (ended != c->waiting_ended)
    return "what has completed and waits is counted wrong";
  return left == 0 ? NULL
                   : "what is held is more than the frames of what waits";
}

/* Those of a ring that have not completed, and their watches. */
static bool deadline_fits(const lk_client *c, const lk_ring *ring,
                          const lk_request *r)
{
  const lk_deadline *d = r->deadline;

  return !r->ended && lk__heap_has(&d->node) && d->end == r->end &&
         d->node.at >= c->deadlines.root->at &&
         ring == (d->waits ? &c->waiting : &c->sent);
}

static const char *count_open(const lk_client *c, const lk_ring *ring,
                              size_t *open, size_t *watches)
{
  for (size_t i = 0; i < ring->count; i++) {
    const lk_request *r = at(ring, i);

    if (r->ended && (r->watch != NULL || r->copy != NULL))
      return "a request that has completed keeps what it had";
    if (r->deadline != NULL && !deadline_fits(c, ring, r))
      return "a deadline is not that of its request";
    *open += !r->ended;
    *watches += r->watch != NULL;
  }
  return NULL;
}

static const char *broken_rings(const lk_client *c, lk_moment moment,
                                size_t *watches)
{
  const lk_ring *rings[] = {&c->sent, &c->waiting, &c->late, &c->ending[0],
                            &c->ending[1]};
  const char *broken = NULL;
  size_t open = 0;

  for (int i = 0; i < 5 && broken == NULL; i++)
    broken = count_open(c, rings[i], &open, watches);
  if (broken != NULL)
    return broken;
  if (open != c->open && moment != LK_MOMENT_ANSWER)
    return "an accepted request is in no ring, or in two";
  if (moment == LK_MOMENT_REST && c->ending[0].count + c->ending[1].count > 0)
    return "a request is set aside and not completed";
  return NULL;
}

/* ---- watches ------------------------------------------------------------ */

typedef struct tally {
  size_t standing, added, recursive, pending, missing;
} tally;

/* The counts of what is under way on a path. */
static bool counts_fit(const lk_watched *on)
{
  uint32_t under_way[LK_WATCH_KINDS] = {0}, held[LK_WATCH_KINDS] = {0};

  for (lk_link *l = on->pending.next; l != &on->pending; l = l->next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, link);

    under_way[w->kind]++;
    held[w->kind] += w->held;
  }
  return memcmp(under_way, on->under_way, sizeof under_way) == 0 &&
         memcmp(held, on->held, sizeof held) == 0;
}

static bool is_on(const lk_watched *on, const lk_watch *w)
{
  return w->on == on && !lk__list_empty(&w->link);
}

static const char *count_watched(const lk_watched *on, tally *t)
{
  size_t watches = 0;

  for (int i = 0; i < LK_WATCH_KINDS; i++) {
    t->missing +=
        on->missing[i] != LK_REGISTERED && !lk__list_empty(&on->kinds[i]);
    for (lk_link *l = on->kinds[i].next; l != &on->kinds[i]; l = l->next) {
      const lk_watch *w = LK_OWNER(l, lk_watch, link);

      if (!is_on(on, w) || w->kind != (lk_watch_kind)i || !w->standing ||
          w->cb == NULL)
        return "a watch stands in a wrong list";
      watches++;
      t->standing++;
      t->added += lk__watch_stays(w->kind);
      t->recursive += w->kind == LK_WATCH_KIND_RECURSIVE;
    }
  }
  for (lk_link *l = on->pending.next; l != &on->pending; l = l->next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, link);

    if (!is_on(on, w) || w->standing)
      return "a watch is pending in a wrong list";
    watches++;
    t->pending++;
  }
  if (!counts_fit(on))
    return "watches under way are counted wrong";
  return on->refs < watches ? "a path has more watches than references" : NULL;
}

static const char *broken_watches(const lk_client *c, lk_moment moment,
                                  size_t pending)
{
  const lk_watches *ws = &c->watches;
  const char *broken = NULL;
  tally t = {0, 0, 0, 0, 0};

  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL && broken == NULL;
       n = lk__map_next(n))
    broken = count_watched((lk_watched *)(void *)n, &t);
  if (broken != NULL)
    return broken;
  if (t.pending != pending)
    return "a watch is pending without its request, or the other way round";
  if (t.standing > ws->standing || t.added > ws->added ||
      t.recursive > ws->recursive)
    return "more watches stand than are counted";
  if (moment == LK_MOMENT_REST &&
      (t.standing != ws->standing || t.added != ws->added ||
       t.recursive != ws->recursive))
    return "fewer watches stand than are counted";
  if (moment == LK_MOMENT_REST && c->phase == LK_PHASE_LIVE && t.missing > 0 &&
      c->rearms_out == 0 && c->rearm_ms == LK_NEVER && !c->closing &&
      !c->watch_lost)
    return "a watch is not registered, and no setWatches will come";
  return NULL;
}

/* ---- the rest ----------------------------------------------------------- */

static const char *broken_listeners(const lk_client *c, lk_moment moment)
{
  const lk_listener *prev = NULL;

  for (const lk_listener *l = c->listeners; l != NULL; prev = l, l = l->next) {
    if (l->prev != prev)
      return "a listener is attached twice, or was freed while attached";
  }
  if (c->listeners_last != prev)
    return "the last listener is another one";
  if (moment == LK_MOMENT_REST && (c->telling != NULL || c->answer != NULL))
    return "somebody is being told, though no callback is running";
  return NULL;
}

const char *lk__invariants_broken(const lk_client *c, lk_moment moment)
{
  const char *broken = broken_phase(c, moment);
  size_t watches = 0;

  if (broken == NULL)
    broken = broken_listeners(c, moment);
  if (broken == NULL)
    broken = broken_sent(c);
  if (broken == NULL)
    broken = broken_waiting(c, moment);
  if (broken == NULL)
    broken = broken_rings(c, moment, &watches);
  if (broken == NULL)
    broken = broken_watches(c, moment, watches);
  return broken;
}

#ifdef LK_DEBUG
void lk__invariants_check(lk_client *c, lk_moment moment)
{
  size_t size = c->sent.count + c->waiting.count + c->late.count +
                c->ending[0].count + c->ending[1].count + c->watches.standing +
                c->watches.adding;

  /* So that a burst of requests costs no more than a multiple of its size. */
  if (++c->unchecked < size / 16)
    return;
  c->unchecked = 0;
  const char *broken = lk__invariants_broken(c, moment);

  if (broken == NULL)
    return;
  fprintf(stderr, "latchkey: an invariant is broken: %s\n", broken);
  abort();
}
#endif
