/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

#include <stdio.h>
#include <stdlib.h>

/* The functions broken_...() and count_...() return a text about an invariant
 * that does not hold, or NULL. */

enum { LENGTH_FIELD = 4 }; /* bytes */

/* ---- the connection ----------------------------------------------------- */

static bool state_fits(const lk_client *c, lk_moment moment)
{
  switch (c->connection.phase) {
  case LK_PHASE_LIVE:
    return c->session.state ==
           (c->connection.read_only ? LK_STATE_READ_ONLY : LK_STATE_CONNECTED);
  case LK_PHASE_PAUSE:
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL:
    return c->session.state == LK_STATE_CONNECTING ||
           c->session.state == LK_STATE_SUSPENDED ||
           /* The callbacks of the expired session run before the client is
            * LK_STATE_CONNECTING again. */
           (c->session.state == LK_STATE_EXPIRED && moment != LK_MOMENT_REST);
  case LK_PHASE_ENDED:
    return c->session.state == LK_STATE_CLOSED ||
           ((c->session.state == LK_STATE_EXPIRED ||
             c->session.state == LK_STATE_AUTH_FAILED) &&
            moment != LK_MOMENT_REST);
  }
  return false;
}

static const char *broken_phase(const lk_client *c, lk_moment moment)
{
  bool live = c->connection.phase == LK_PHASE_LIVE;
  bool in_sasl = c->connection.phase == LK_PHASE_SASL;
  bool connected = live || in_sasl || c->connection.phase == LK_PHASE_HANDSHAKE;
  bool mechanism_runs = c->sasl != NULL && c->sasl->must_end;
  /* During a callback of the mechanism `must_end` is false. */
  bool mechanism_must_run =
      in_sasl && moment == LK_MOMENT_REST && !c->nesting.free_wanted;

  if (!state_fits(c, moment))
    return "the state is not that of the phase";
  if (connected && c->connection.handshake_attempt != c->connection.attempt)
    return "live without a handshake on this attempt";
  if (live != (c->connection.number != 0))
    return "the number of the connection is not that of a live one";
  if (live && (c->session.identity.id == 0) != c->connection.read_only)
    return "connected without a session, or a session without a quorum";
  if (!live &&
      (c->move.wanted || c->pings.sent_ms.count > 0 ||
       c->set_watches.unanswered > 0 || c->connection.read_only ||
       c->auth.next_reply != NULL || c->rejected.op != 0 ||
       c->set_watches.retry_ms != LK_NEVER || c->watches.set_watches_under_way))
    return "something of a live connection outlives it";
  if ((mechanism_must_run && !mechanism_runs) || (mechanism_runs && !in_sasl))
    return "a SASL exchange without its connection, or the other way round";
  if (!connected && lk__buf_len(&c->output.bytes) > 0)
    return "output without a connection";
  if (c->output.limit != UINT64_MAX && !c->move.wanted && c->rejected.op == 0)
    return "a fence without a move, at a server that will not close";
  if (c->probe.number != 0 && !c->connection.read_only)
    return "a probe on a connection that has a quorum";
  if ((c->connection.phase == LK_PHASE_ENDED) != (c->session.final_err != 0))
    return "an end without its error, or the other way round";
  return NULL;
}

/* ---- requests ----------------------------------------------------------- */

static const lk_request *request_of(lk_link *l)
{
  return LK_OWNER(l, lk_request, link);
}

static const char *broken_sent(const lk_client *c)
{
  const lk_link *list = &c->requests.sent;
  uint64_t end = 0;
  int32_t xid = 0; /* of the request before */

  if (c->connection.phase != LK_PHASE_LIVE && !lk__list_empty(list))
    return "a request is under way without a connection";
  for (lk_link *l = list->next; l != list; l = l->next) {
    const lk_request *r = request_of(l);

    if (r->xid <= 0 || r->xid == xid)
      return "a request under way has no xid of its own";
    if (r->end <= end)
      return "places in the output do not ascend";
    xid = r->xid;
    end = r->end;
  }
  if (end > c->output.sent + lk__buf_len(&c->output.bytes))
    return "a request ends behind the output";
  if (c->close.sent && (lk__list_empty(list) ||
                        request_of(list->prev)->op != LK_OPCODE_CLOSE_SESSION))
    return "closeSession is not the last request under way";
  return NULL;
}

static const char *broken_waiting(const lk_client *c, lk_moment moment)
{
  const lk_link *list = &c->requests.waiting;
  const unsigned char *frame = lk__buf_bytes(&c->requests.waiting_frames);
  size_t left = lk__buf_len(&c->requests.waiting_frames), completed_len = 0;

  if (c->connection.phase == LK_PHASE_LIVE && moment == LK_MOMENT_REST &&
      !lk__list_empty(list))
    return "a request waits though there is a connection";
  for (lk_link *l = list->next; l != list; l = l->next) {
    const lk_request *r = request_of(l);
    lk_reader in;

    if (r->xid != 0)
      return "a request that waits has an xid";
    if (r->completed)
      completed_len += r->len;
    if (r->len > left)
      return "a waiting request has less than its frame";
    lk__reader_init(&in, frame, r->len);
    int32_t len = lk__reader_int(&in);

    lk__reader_int(&in); /* the xid, which is set when the frame is sent */
    if (len < 0 || (size_t)len + LENGTH_FIELD != r->len ||
        lk__reader_int(&in) != r->op)
      return "a waiting request has another frame";
    frame += r->len;
    left -= r->len;
  }
  if (completed_len != c->requests.completed_len)
    return "what has completed and waits is counted wrong";
  return left == 0 ? NULL : "there are more frames than waiting requests";
}

/* Whether the request is in no heap, or in the heap of deadlines as one that
 * needs it: `list` is `sent` or `waiting`, and it has not completed. */
static bool deadline_fits(const lk_client *c, const lk_link *list,
                          const lk_request *r)
{
  const lk_heap_node *root = c->requests.deadlines.root;

  return !lk__heap_has(&r->deadline) ||
         (!r->completed && root != NULL && r->deadline.at >= root->at &&
          (list == &c->requests.sent || list == &c->requests.waiting));
}

/* Count the requests of a list that have not completed, and their watches. */
static const char *count_open(const lk_client *c, const lk_link *list,
                              size_t *open, size_t *watches)
{
  for (lk_link *l = list->next; l != list; l = l->next) {
    const lk_request *r = request_of(l);

    if (l->next->prev != l)
      return "a request is in two lists";
    if (r->completed && (r->watch != NULL || r->copy != NULL))
      return "a request that has completed keeps what it had";
    if (!deadline_fits(c, list, r))
      return "a deadline is not that of its request";
    if (!r->completed)
      (*open)++;
    if (r->watch != NULL)
      (*watches)++;
  }
  return NULL;
}

static const char *broken_chunks(const lk_client *c)
{
  const lk_link *list = &c->requests.chunks;
  size_t unused_count = 0;

  for (lk_link *l = list->next; l != list; l = l->next) {
    const lk_request_chunk *chunk = LK_OWNER(l, lk_request_chunk, link);
    size_t in_chunk = 0;

    for (lk_link *u = chunk->unused; u != NULL; u = u->next) {
      if (request_of(u)->chunk != chunk ||
          lk__heap_has(&request_of(u)->deadline))
        return "an unused request is not in its chunk alone";
      in_chunk++;
    }
    if (in_chunk == 0 || in_chunk + chunk->used_count != LK_REQUEST_CHUNK)
      return "the requests of a chunk are counted wrong";
    unused_count += in_chunk;
  }
  return unused_count == c->requests.unused_count
             ? NULL
             : "unused requests are counted wrong";
}

static const char *broken_lists(const lk_client *c, lk_moment moment,
                                size_t *watches)
{
  const lk_link *lists[] = {&c->requests.sent, &c->requests.waiting,
                            &c->requests.ending};
  const char *broken = broken_chunks(c);
  size_t open = 0;

  for (size_t i = 0; i < sizeof lists / sizeof lists[0] && broken == NULL; i++)
    broken = count_open(c, lists[i], &open, watches);
  if (broken != NULL)
    return broken;
  if (c->input.request_in_no_list)
    open++;
  if (open != c->requests.open)
    return "an accepted request is in no list, or in two";
  if (moment == LK_MOMENT_REST && !lk__list_empty(&c->requests.ending))
    return "a request is set aside and not completed";
  return NULL;
}

/* ---- watches ------------------------------------------------------------ */

/* Numbers of watches, counted in the lists of all paths. */
typedef struct tally {
  size_t standing, added, recursive, pending;
  size_t missing; /* pairs of path and kind whose watches are not registered */
} tally;

/* Whether the counts of pending watches on a path are those of its list. */
static bool pending_counts_fit(const lk_watched *on)
{
  uint32_t pending[LK_WATCH_KINDS] = {0}, unsent[LK_WATCH_KINDS] = {0};

  for (lk_link *l = on->pending.next; l != &on->pending; l = l->next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, link);

    pending[w->kind]++;
    if (w->unsent)
      unsent[w->kind]++;
  }
  return memcmp(pending, on->pending_count, sizeof pending) == 0 &&
         memcmp(unsent, on->unsent_count, sizeof unsent) == 0;
}

static bool is_on(const lk_watched *on, const lk_watch *w)
{
  return w->on == on && !lk__list_empty(&w->link);
}

static const char *count_watched(const lk_watched *on, tally *t)
{
  bool has_staying = !lk__list_empty(&on->kinds[LK_WATCH_KIND_PERSISTENT]) ||
                     !lk__list_empty(&on->kinds[LK_WATCH_KIND_RECURSIVE]);
  size_t watches = 0;

  for (int i = 0; i < LK_WATCH_KINDS; i++) {
    if (on->missing_after[i] != LK_REGISTERED &&
        !lk__list_empty(&on->kinds[i])) {
      if (has_staying && !lk__watch_stays((lk_watch_kind)i))
        return "a one-shot watch is not registered beside a persistent one";
      t->missing++;
    }
    for (lk_link *l = on->kinds[i].next; l != &on->kinds[i]; l = l->next) {
      const lk_watch *w = LK_OWNER(l, lk_watch, link);

      if (!is_on(on, w) || w->kind != (lk_watch_kind)i || !w->standing ||
          w->cb == NULL)
        return "a watch stands in a wrong list";
      watches++;
      t->standing++;
      if (lk__watch_stays(w->kind))
        t->added++;
      if (w->kind == LK_WATCH_KIND_RECURSIVE)
        t->recursive++;
    }
  }
  for (lk_link *l = on->pending.next; l != &on->pending; l = l->next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, link);

    if (!is_on(on, w) || w->standing)
      return "a watch is pending in a wrong list";
    watches++;
    t->pending++;
  }
  if (!pending_counts_fit(on))
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
    broken = count_watched(lk__watched_of_node(n), &t);
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
  if (!lk__list_empty(&ws->ended) && c->connection.phase != LK_PHASE_LIVE)
    return "a watch that the server lost outlives the connection";
  if (moment == LK_MOMENT_REST && c->connection.phase == LK_PHASE_LIVE &&
      t.missing > 0 && c->set_watches.unanswered == 0 &&
      c->set_watches.retry_ms == LK_NEVER && !c->close.begun)
    return "a watch is not registered, and no setWatches will come";
  return NULL;
}

/* ---- the rest ----------------------------------------------------------- */

static const char *broken_list_of_listeners(const lk_client *c, int list)
{
  const lk_link *all = &c->listeners[list].members;

  for (lk_link *l = all->next; l != all; l = l->next) {
    if (l->next->prev != l || l->prev->next != l)
      return "a listener is attached twice, or was freed while attached";
    if (list == LK_LISTENERS_OF_REPLIES &&
        LK_OWNER(l - list, lk_listener, in_list)->reply == NULL)
      return "a listener has no function for replies any more";
  }
  return NULL;
}

static const char *broken_listeners(const lk_client *c, lk_moment moment)
{
  for (int list = 0; list < LK_LISTENER_LISTS; list++) {
    const char *broken = broken_list_of_listeners(c, list);

    if (broken != NULL)
      return broken;
    if (moment == LK_MOMENT_REST &&
        (c->listeners[list].innermost != NULL || c->input.reply != NULL))
      return "a listener is being notified, though no callback is running";
  }
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
    broken = broken_lists(c, moment, &watches);
  if (broken == NULL)
    broken = broken_watches(c, moment, watches);
  return broken;
}

#ifdef LK_DEBUG
void lk__invariants_check(lk_client *c, lk_moment moment)
{
  size_t members = c->requests.open + c->watches.standing;

  /* A check takes time proportional to `members`. With one check in members /
   * 16 calls, the checks during a burst of requests take time proportional to
   * the number of requests. */
  if (++c->unchecked < members / 16)
    return;
  c->unchecked = 0;
  const char *broken = lk__invariants_broken(c, moment);

  if (broken == NULL)
    return;
  fprintf(stderr, "latchkey: an invariant is broken: %s\n", broken);
  abort();
}
#endif
