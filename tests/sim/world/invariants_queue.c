/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/network.h"

#include <latchkey/multilock.h>

#include <string.h>

/* Invariants of the queue: its order and its grants. */

/* Beyond it the numbers of a queue cannot be trusted. */
#define LAST_SAFE ((int64_t)INT32_MAX - (1 << 20))

static bool is_unsafe(const sim_entry *e)
{
  return e->contends && (e->suffix < 0 || e->suffix > LAST_SAFE);
}

static bool is_fresh_grant(const sim_fact *f)
{
  return f->type == SIM_GOT && f->err == 0 && !f->handle->again;
}

/* Not when a part of it was taken away meanwhile, of which a client that lags
 * behind cannot know. */
static bool is_whole(const sim_checker *j, const sim_nodes *n)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i]->removed != 0 && sim_beyond_promise(j, n->at[i]))
      return false;
  }
  return true;
}

/* ---- two at a time ------------------------------------------------------ */

/* By lk_lock_ok() alone, not by its callbacks. */
bool sim_is_sure(const sim_checker *j, const sim_handle *h)
{
  return h->lock != NULL && !h->freeing && lk_lock_ok(h->lock) &&
         is_whole(j, &h->held);
}

static void judge_alone(sim_checker *j, const sim_handle *h,
                        const sim_handle **alone)
{
  for (size_t i = 0; i < h->nseats && h->kind != SIM_SEMAPHORE; i++) {
    unsigned at = h->places[i].lock_at;

    if (h->places[i].shares)
      continue;
    if (alone[at] != NULL)
      sim_violated(j, "%s and %s both hold %s", alone[at]->name, h->name,
                   j->world->locks[at]);
    alone[at] = h;
  }
}

/* Never two for whom lk_lock_ok() is true at the same moment. */
void sim_mutex_exclusion(sim_checker *j, const sim_fact *f)
{
  const sim_handle *alone[SIM_MOST_LOCKS] = {NULL};

  (void)f;
  SIM_EACH_HANDLE(j, h)
  {
    if (sim_is_sure(j, h))
      judge_alone(j, h, alone);
  }
}

/* ---- order -------------------------------------------------------------- */

/* Whether there is a place that only one of them can have. */
static bool compete(const sim_handle *a, const sim_handle *b)
{
  for (size_t i = 0; i < a->nseats; i++) {
    const sim_place *s = sim_place_at(b, (int)a->places[i].lock_at);

    if (s != NULL && !(s->shares && a->places[i].shares))
      return true;
  }
  return false;
}

/* A multi-lock that waits gives places back. */
static bool keeps_its_place(const sim_handle *h)
{
  return h->kind != SIM_MULTILOCK;
}

/* A node of an earlier attempt of its session, which took it for its own: the
 * word that revokes has replaced the data that tell whose it is. */
static bool is_older(const sim_entry *e, const sim_handle *h)
{
  return e->revoked && e->made_us < h->asked_us;
}

/* Who stood in the queue before another asked is granted before it. A writer
 * that reads as well takes no place in the queue for that, and who queues
 * locally may have one of its process that is older: see LOCAL-QUEUE. */
void sim_mutex_fifo(sim_checker *j, const sim_fact *f)
{
  if (!is_fresh_grant(f) || f->handle->held.count == 0 ||
      f->handle->held.at[0]->beside != NULL || f->handle->local ||
      is_older(f->handle->held.at[0], f->handle))
    return;
  SIM_EACH_HANDLE(j, h)
  {
    if (h->lock != NULL && h->wants && !h->again && keeps_its_place(h) &&
        compete(h, f->handle) && h->first_us > 0 &&
        h->first_us < f->handle->asked_us && !h->displaced)
      sim_violated(j,
                   "%s is granted before %s, which stood there when it asked",
                   f->handle->name, h->name);
  }
}

/* No contender is granted while a predecessor exists. */
void sim_no_barging(sim_checker *j, const sim_fact *f)
{
  const sim_entry *own;

  if (f->event != LK_CONTENDER_ON_GRANT)
    return;
  own = sim_entry_of(j, f->attempt->ct);
  for (const sim_entry *e = j->history.standing; own != NULL && e != NULL;
       e = e->next) {
    if (sim_ahead(e, own))
      sim_violated(j, "%s is granted, though %s stands", own->name, e->name);
  }
}

static bool was_parked(lk_contender_state s)
{
  return s == LK_CONTENDER_SETTING_WATCHES || s == LK_CONTENDER_WAITING ||
         s == LK_CONTENDER_READING_PREDECESSORS;
}

/* The last list forbids a grant before another list. */
static void judge_list(sim_checker *j, const sim_contender *a,
                       const sim_entry *own)
{
  int64_t last = 0;

  for (const sim_entry *e = j->history.newest; e != NULL; e = e->older) {
    if (!e->contends || e->lock_at != own->lock_at ||
        !sim_stood(e, a->list_zxid))
      continue;
    if (!is_unsafe(own) && is_unsafe(e))
      sim_violated(j, "%s is granted, though the list showed %s", own->name,
                   e->name);
    if (e->suffix >= own->suffix || e->made > own->made ||
        (own->reader && e->reader))
      continue;
    if (e->writ && !own->reader)
      sim_violated(j, "%s is granted, though %s may have turned into a reader",
                   own->name, e->name);
    if (e->removed > last)
      last = e->removed;
  }
  if (own->removed != 0 && own->removed < last)
    sim_violated(j, "%s is granted, and its predecessor still exists",
                 own->name);
}

/* A deletion alone grants only where it proves the lock. */
void sim_handoff_rule(sim_checker *j, const sim_fact *f)
{
  const sim_contender *a = f->attempt;
  const sim_entry *own;

  if (f->event != LK_CONTENDER_ON_GRANT || !was_parked(f->before))
    return;
  own = sim_entry_of(j, a->ct);
  if (own == NULL)
    return;
  if (lk_client_connection(f->life->process->client) != a->list_connection)
    sim_violated(j, "%s is granted on another connection than it listed on",
                 own->name);
  if (a->ct->own.watch == NULL || a->ct->own.watched_on != a->list_connection)
    sim_violated(j, "%s is granted without a watch on it", own->name);
  judge_list(j, a, own);
}

/* ---- going on ----------------------------------------------------------- */

/* It wants to hold, and can do something about it. */
static bool stands_in_line(lk_contender_state s)
{
  return s >= LK_CONTENDER_PAUSED && s <= LK_CONTENDER_CHECKING_OWN;
}

static bool is_first(const sim_checker *j, const sim_entry *own)
{
  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    if (sim_ahead(e, own))
      return false;
  }
  return true;
}

/* No event comes of a node that could not be read when it was deleted, and one
 * that its owner may not delete stands on. */
static bool may_be_blind(const sim_checker *j, const sim_handle *h)
{
  return h != NULL && sim_denies(j, h, h->asked_us);
}

static bool is_blind(const sim_checker *j, const sim_entry *own)
{
  return own->behind != NULL ? sim_denied(j, own->lock_at, own->made_us)
                             : may_be_blind(j, own->of);
}

static bool is_left(const sim_checker *j, const sim_handle *h)
{
  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    if (e->left && sim_place_at(h, e->lock_at) != NULL)
      return true;
  }
  return false;
}

/* Of permits there are enough by now. */
static bool has_room(const sim_checker *j, const sim_entry *own)
{
  int32_t count = 0;

  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next)
    count += e->lock_at == own->lock_at;
  return count <= sim_limit_since(j, sim_now_us(j));
}

/* A grant rests on a lease, and the proof of one takes a round trip, a gap of
 * T/4, and two more if it was asked for in between: where each takes as long as
 * the gap, none may ever be young enough. */
static bool crawls(const sim_checker *j, const sim_life *l)
{
  sim_network *n = j->world->network;
  unsigned process = l->process->index;
  int server = sim_network_whose(n, process);

  if (server < 0)
    return false;
  const sim_route *r = sim_network_route(n, process, (unsigned)server);

  return r->delay_us[SIM_UP] + r->delay_us[SIM_DOWN] >
         j->world->shortest_ms * SIM_MS / 4;
}

static void patrol_attempt(sim_checker *j, sim_contender *a)
{
  const sim_entry *own =
      stands_in_line(a->ct->state) ? sim_entry_of(j, a->ct) : NULL;

  if (own != NULL &&
      (own->removed != 0 || is_blind(j, own) || crawls(j, a->life) ||
       !(own->lease ? has_room(j, own) : is_first(j, own))))
    own = NULL;
  if (sim_overdue(j, a->life, &a->first, own))
    sim_violated(j, "%s comes first and is not granted", own->name);
}

/* The first contender is granted soon after it can know that it is first. */
void sim_no_lost_wakeup(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_PATROL) {
    for (sim_contender *a = j->attempts; a != NULL; a = a->next)
      patrol_attempt(j, a);
    return;
  }
  SIM_EACH_HANDLE(j, h)
  {
    if (h->lock != NULL && h->wants && !may_be_blind(j, h) && !is_left(j, h))
      sim_violated(j, "%s still waits", h->name);
  }
}

/* The first contender in the queue, of any client. */
static const sim_entry *first_of(const sim_checker *j, size_t lock_at)
{
  const sim_entry *first = NULL;

  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    if (e->contends && e->lock_at == (int)lock_at &&
        (first == NULL || e->suffix < first->suffix))
      first = e;
  }
  return first;
}

static bool is_wanted(const sim_checker *j, size_t lock_at)
{
  bool wanted = false;

  SIM_EACH_HANDLE(j, h)
  wanted = wanted || (h->lock != NULL && h->wants &&
                      sim_place_at(h, (int)lock_at) != NULL);
  return wanted;
}

/* What the dead leave goes with their sessions: within T + 2 ticks after all
 * was healed, and as much again for a new leader to begin. */
void sim_crash_everywhere(sim_checker *j, const sim_fact *f)
{
  const sim_world *w = j->world;
  int64_t limit = 2 * (sim_T_us(j) + 2 * w->config.tick_ms * SIM_MS);

  (void)f;
  if (j->calming_us == 0 || sim_now_us(j) - j->calming_us < limit)
    return;
  for (size_t i = 0; i < w->nlocks; i++) {
    const sim_entry *e = first_of(j, i);

    if (e != NULL && is_wanted(j, i) && sim_owner_of(j, e) == NULL)
      sim_violated(j, "%s has no owner and keeps others out", e->name);
  }
}

/* ---- contenders that are refused ---------------------------------------- */

/* Of its session: that of another may still stand. */
static const sim_entry *own_at(const sim_checker *j, const sim_handle *h,
                               int lock_at)
{
  int64_t session = lk_client_session(h->process->client).id;

  for (const sim_entry *e = j->history.newest; e != NULL; e = e->older) {
    if (e->of == h && e->acquire == h->acquire && e->lock_at == lock_at &&
        e->session == session)
      return e;
  }
  return NULL;
}

/* How many a list of that state showed before it; where it has no node there,
 * all that keep it out. */
static size_t count_ahead(const sim_checker *j, const sim_place *s,
                          const sim_entry *own, int64_t zxid)
{
  size_t n = 0;

  for (const sim_entry *e = j->history.newest; e != NULL; e = e->older)
    n += e->contends && e->lock_at == (int)s->lock_at && sim_stood(e, zxid) &&
         !(e->reader && s->shares) &&
         (own == NULL || !sim_stood(own, zxid) ||
          (e != own && e->suffix < own->suffix));
  return n;
}

static void judge_refusal(sim_checker *j, const sim_handle *h)
{
  const lk_reply *a = lk_client_reply(h->process->client);
  bool some = a == NULL || h->local;

  for (size_t i = 0; !some && i < h->nseats; i++) {
    const sim_entry *own = own_at(j, h, (int)h->places[i].lock_at);

    some = count_ahead(j, &h->places[i], own, a->zxid) > h->most;
  }
  if (!some || h->most == 0)
    sim_violated(j, "%s has %zu predecessors and is refused", h->name, h->most);
}

/* Who waits behind so many at most waits behind no more, and is not turned away
 * behind them. */
void sim_queue_full(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->type == SIM_GOT ? f->handle : f->attempt->handle;

  if (f->type == SIM_GOT) {
    if (f->err == LK_ERR_QUEUE_FULL)
      judge_refusal(j, h);
    return;
  }
  if (f->event != LK_CONTENDER_ON_PREDECESSORS || h == NULL || h->most == 0 ||
      was_parked(f->before))
    return;
  const sim_entry *own = sim_entry_of(j, f->attempt->ct);
  const sim_place *s = own == NULL ? NULL : sim_place_at(h, own->lock_at);

  if (s != NULL && count_ahead(j, s, own, f->attempt->list_zxid) > h->most)
    sim_violated(j, "%s waits behind more than %zu", h->name, h->most);
}

/* ---- numbers ------------------------------------------------------------ */

/* The zxid of a node that one was granted with; a writer that turns into a
 * reader keeps its own. */
static uint64_t token_of(const sim_entry *e)
{
  return (uint64_t)(e->beside == NULL ? e->made : e->beside->made);
}

static void judge_token(sim_checker *j, const sim_handle *h)
{
  const sim_entry *e = h->held.count == 0 ? NULL : h->held.at[0];
  const char *path = lk_lock_node(h->lock);
  uint64_t should = 0;

  for (size_t i = 0; i < h->held.count; i++) {
    uint64_t token = token_of(h->held.at[i]);

    should = token > should ? token : should;
  }
  for (size_t i = 0; h->kind == SIM_MULTILOCK && i < h->held.count; i++) {
    const sim_entry *part = h->held.at[i];
    const char *dir = j->world->locks[part->lock_at];

    if (lk_multilock_token(h->lock, dir) != token_of(part))
      sim_violated(j, "%s has token 0x%" PRIx64 " for %s", h->name,
                   lk_multilock_token(h->lock, dir), part->path);
  }
  if (e == NULL || lk_lock_token(h->lock) != should || path == NULL ||
      strcmp(path, e->path) != 0)
    sim_violated(j, "%s has token 0x%" PRIx64 ", and its node is of 0x%" PRIx64,
                 h->name, lk_lock_token(h->lock), should);
}

/* Held by the process that had the session before, and taken over by an acquire
 * of the same session: is_older() says how. */
static bool is_inherited(const sim_handle *h, const sim_entry *e)
{
  return e->by != NULL && e->by->resumed && is_older(e, h);
}

/* Of those who are alone each has a larger one, or the next turn with the same;
 * readers fence nothing. */
static void judge_growth(sim_checker *j, const sim_handle *h,
                         const sim_entry *e)
{
  uint64_t *last = &j->token[e->lock_at];
  uint64_t *turn = &j->turn[e->lock_at];
  uint64_t own = lk_lock_handoffs(h->lock);

  if (e->reader || !e->contends || is_inherited(h, e))
    return;
  if (token_of(e) < *last || (token_of(e) == *last && own <= *turn))
    sim_violated(j, "%s has token 0x%" PRIx64 " after 0x%" PRIx64, h->name,
                 token_of(e), *last);
  *last = token_of(e);
  *turn = own;
}

/* Tokens grow, and are the zxids that made the nodes. */
void sim_token_monotone(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (!is_fresh_grant(f))
    return;
  judge_token(j, h);
  for (size_t i = 0; i < h->held.count && is_whole(j, &h->held); i++)
    judge_growth(j, h, h->held.at[i]);
}

/* A writer shares its number with the reader it turns into, and with one that
 * it has given up. */
static bool may_share(const sim_entry *a, const sim_entry *b)
{
  return a->beside == b || b->beside == a ||
         (a->beside != NULL && a->beside == b->beside);
}

static bool has_twin(const sim_checker *j, const sim_entry *own, int64_t zxid)
{
  for (const sim_entry *e = j->history.newest; e != NULL; e = e->older) {
    if (e != own && e->contends && e->lock_at == own->lock_at &&
        e->suffix == own->suffix && !may_share(e, own) && sim_stood(e, zxid))
      return true;
  }
  return false;
}

static bool was_ever_unsafe(const sim_checker *j, const sim_handle *h)
{
  for (const sim_entry *e = j->history.newest; e != NULL; e = e->older) {
    if (is_unsafe(e) && sim_place_at(h, e->lock_at) != NULL)
      return true;
  }
  return false;
}

/* Sequence numbers that cannot be trusted grant nothing. */
void sim_seq_unsafe(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->err == LK_ERR_SEQ_UNSAFE && !was_ever_unsafe(j, h))
    sim_violated(j, "%s is refused, though the counter is far from its end",
                 h->name);
  if (!is_fresh_grant(f))
    return;
  for (size_t i = 0; i < h->held.count; i++) {
    const sim_entry *e = h->held.at[i];
    const sim_contender *a = sim_contender_for(j, e);

    if (is_unsafe(e))
      sim_violated(j, "%s is granted with the number %" PRId64, h->name,
                   e->suffix);
    if (e->contends && a != NULL && has_twin(j, e, a->list_zxid))
      sim_violated(j, "%s is granted with a number that another has", h->name);
  }
}
