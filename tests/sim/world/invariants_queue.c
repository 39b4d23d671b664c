/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/network.h"

#include <latchkey/multilock.h>

#include <string.h>

/* Invariants of the queue: its order and its grants. */

/* The library does not trust larger sequence numbers, since the counter may
 * overflow. */
#define SEQUENCE_MAX_TRUSTED ((int64_t)INT32_MAX - (1 << 20))

static bool has_unsafe_number(const sim_entry *e)
{
  return e->is_contender && (e->suffix < 0 || e->suffix > SEQUENCE_MAX_TRUSTED);
}

static bool is_fresh_grant(const sim_fact *f)
{
  return f->type == SIM_ACQUIRE_ENDED && f->err == 0 && !f->handle->is_reentry;
}

/* Whether no node was deleted in a way that the client may not know of yet. */
static bool no_deletion_is_excused(const sim_checker *checker,
                                   const sim_nodes *n)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i]->deleted_zxid != 0 &&
        sim_deletion_is_excused(checker, n->at[i]))
      return false;
  }
  return true;
}

/* ---- exclusion ---------------------------------------------------------- */

/* The lease deadline alone counts, since a callback may come later. */
bool sim_certainly_holds(const sim_checker *checker, const sim_handle *h)
{
  return h->lock != NULL && !h->freeing &&
         sim_lease_lasts(h->process, h->lock) &&
         no_deletion_is_excused(checker, &h->held);
}

/* `alone`: for each lock, the handle before `h` that holds it alone; NULL: none
 * does. */
static void check_alone(sim_checker *checker, const sim_handle *h,
                        const sim_handle **alone)
{
  for (size_t i = 0; i < h->nplaces && h->kind != SIM_SEMAPHORE; i++) {
    unsigned lock = h->places[i].lock_index;

    if (h->places[i].shares)
      continue;
    if (alone[lock] != NULL)
      sim_violated(checker, "%s and %s both hold %s", alone[lock]->name,
                   h->name, checker->world->locks[lock]);
    alone[lock] = h;
  }
}

/* The leases of two handles of one mutex never last at the same time. */
void sim_mutex_exclusion(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *alone[SIM_MOST_LOCKS] = {NULL};

  (void)f;
  SIM_EACH_HANDLE(checker, h)
  {
    if (sim_certainly_holds(checker, h))
      check_alone(checker, h, alone);
  }
}

/* ---- order -------------------------------------------------------------- */

/* Whether there is a lock that only one of the handles can hold at a time. */
static bool exclude_each_other(const sim_handle *a, const sim_handle *b)
{
  for (size_t i = 0; i < a->nplaces; i++) {
    const sim_place *s = sim_place_at(b, (int)a->places[i].lock_index);

    if (s != NULL && !(s->shares && a->places[i].shares))
      return true;
  }
  return false;
}

/* Whether an acquire stays in the queue until it is granted. A waiting
 * multi-lock gives back members. */
static bool keeps_its_place(const sim_handle *h)
{
  return h->kind != SIM_MULTILOCK;
}

/* Whether the acquire has adopted a node of an earlier acquire of its session.
 * This happens after a revocation has replaced the data with the id. */
static bool is_adopted(const sim_entry *e, const sim_handle *h)
{
  return e->revoked && e->created_us < h->acquire_called_us;
}

/* Whether `h` is in the queue and was there before `later` called acquire. */
static bool was_queued_before(const sim_handle *h, const sim_handle *later)
{
  return h->lock != NULL && h->acquiring && !h->is_reentry &&
         keeps_its_place(h) && !h->displaced && h->first_node_us > 0 &&
         h->first_node_us < later->acquire_called_us;
}

/* A contender that was in the queue before another asked is granted first.
 * Excluded are downgrades, which take no new place in the queue. */
void sim_mutex_fifo(sim_checker *checker, const sim_fact *f)
{
  if (!is_fresh_grant(f) || f->handle->held.count == 0 ||
      f->handle->held.at[0]->downgraded_from != NULL ||
      is_adopted(f->handle->held.at[0], f->handle))
    return;
  SIM_EACH_HANDLE(checker, h)
  {
    if (was_queued_before(h, f->handle) && exclude_each_other(h, f->handle))
      sim_violated(checker,
                   "%s is granted before %s, which was queued before it",
                   f->handle->name, h->name);
  }
}

/* No contender is granted while a predecessor exists. */
void sim_no_barging(sim_checker *checker, const sim_fact *f)
{
  if (f->event != LK_CONTENDER_ON_GRANT)
    return;
  const sim_entry *own = sim_entry_of(checker, f->contender->ct);

  for (const sim_entry *e = checker->history.existing; own != NULL && e != NULL;
       e = e->next) {
    if (sim_excludes(e, own))
      sim_violated(checker, "%s is granted, though %s exists", own->name,
                   e->name);
  }
}

static bool was_waiting(lk_contender_state s)
{
  return s == LK_CONTENDER_SETTING_WATCHES || s == LK_CONTENDER_WAITING ||
         s == LK_CONTENDER_READING_PREDECESSORS;
}

/* Checks a grant without a new list against the last list. The list forbids the
 * grant if it showed a number that is not trusted, or a predecessor that may
 * have been downgraded. No predecessor may have been deleted after the own
 * node; NO-BARGING checks those that are not deleted. */
static void check_last_list(sim_checker *checker, const sim_contender *a,
                            const sim_entry *own)
{
  int64_t last_deletion_zxid = 0; /* of the predecessors in the list */

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (!e->is_contender || e->lock_index != own->lock_index ||
        !sim_entry_existed_at(e, a->list_zxid))
      continue;
    if (!has_unsafe_number(own) && has_unsafe_number(e))
      sim_violated(checker, "%s is granted, though the list showed %s",
                   own->name, e->name);
    if (e->suffix >= own->suffix || e->created_zxid > own->created_zxid ||
        (own->is_reader && e->is_reader))
      continue;
    if (e->is_write_side && !own->is_reader)
      sim_violated(checker, "%s is granted, though %s may have been downgraded",
                   own->name, e->name);
    if (e->deleted_zxid > last_deletion_zxid)
      last_deletion_zxid = e->deleted_zxid;
  }
  if (own->deleted_zxid != 0 && own->deleted_zxid < last_deletion_zxid)
    sim_violated(checker, "%s is granted, and its predecessor still exists",
                 own->name);
}

/* A deletion alone grants only where rule H proves the lock. */
void sim_handoff_rule(sim_checker *checker, const sim_fact *f)
{
  const sim_contender *a = f->contender;

  if (f->event != LK_CONTENDER_ON_GRANT || !was_waiting(f->state_before))
    return;
  const sim_entry *own = sim_entry_of(checker, a->ct);

  if (own == NULL)
    return;
  if (lk_client_connection(f->life->process->client) != a->list_connection)
    sim_violated(checker,
                 "%s is granted on another connection than it listed on",
                 own->name);
  if (a->ct->own.watch == NULL || a->ct->own.watched_on != a->list_connection)
    sim_violated(checker, "%s is granted without a watch on it", own->name);
  check_last_list(checker, a, own);
}

/* ---- liveness ----------------------------------------------------------- */

/* Whether the contender has or wants a node and is not granted. These states
 * follow each other in their enum. */
static bool is_queued(lk_contender_state s)
{
  return s >= LK_CONTENDER_PAUSED && s <= LK_CONTENDER_CHECKING_OWN;
}

static bool is_first(const sim_checker *checker, const sim_entry *own)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (sim_excludes(e, own))
      return false;
  }
  return true;
}

/* Whether permissions were missing: the deletion of a node that may not be read
 * sends no event, and a node that its owner may not delete remains. */
static bool event_may_be_missing(const sim_checker *checker,
                                 const sim_handle *h)
{
  return h != NULL && sim_handle_was_denied(checker, h, h->acquire_called_us);
}

static bool has_excused_node(const sim_checker *checker, const sim_handle *h)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->is_excused && sim_place_at(h, e->lock_index) != NULL)
      return true;
  }
  return false;
}

/* Whether the permit `own` and all others fit into the number of permits. */
static bool has_room(const sim_checker *checker, const sim_entry *own)
{
  int32_t count = 0;

  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->lock_index == own->lock_index)
      count++;
  }
  return count <= sim_limit_since(checker, sim_now_us(checker));
}

/* Whether a round trip takes longer than T/4. A grant needs evidence that is
 * younger than the lease allows, and on such a route no reply is young enough
 * when it arrives. */
static bool route_is_too_slow(const sim_checker *checker, const sim_life *l)
{
  sim_network *n = checker->world->network;
  unsigned process = l->process->index;
  int server = sim_network_server_of(n, process);

  if (server < 0)
    return false;
  const sim_route *r = sim_network_route(n, process, (unsigned)server);

  return r->delay_us[SIM_UP] + r->delay_us[SIM_DOWN] >
         checker->world->shortest_ms * SIM_MS / 4;
}

static bool is_next(const sim_checker *checker, const sim_entry *own)
{
  return own->is_permit ? has_room(checker, own) : is_first(checker, own);
}

static void check_overdue_grant(sim_checker *checker, sim_contender *a)
{
  const sim_entry *own =
      is_queued(a->ct->state) ? sim_entry_of(checker, a->ct) : NULL;

  if (own != NULL &&
      (own->deleted_zxid != 0 || event_may_be_missing(checker, own->handle) ||
       route_is_too_slow(checker, a->life) || !is_next(checker, own)))
    own = NULL;
  if (sim_grace_is_over(checker, a->life, &a->first_ungranted, own))
    sim_violated(checker, "%s is first and is not granted", own->name);
}

/* The first contender is granted soon after it can know that it is first. */
void sim_no_lost_wakeup(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_PERIODIC) {
    for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
      check_overdue_grant(checker, a);
    return;
  }
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->lock != NULL && h->acquiring && !event_may_be_missing(checker, h) &&
        !has_excused_node(checker, h))
      sim_violated(checker, "%s still waits", h->name);
  }
}

/* The first contender node of the queue, of any client. */
static sim_entry *first_in_queue(const sim_checker *checker, size_t lock_index)
{
  sim_entry *first = NULL;

  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->is_contender && e->lock_index == (int)lock_index &&
        (first == NULL || e->suffix < first->suffix))
      first = e;
  }
  return first;
}

static bool is_wanted(const sim_checker *checker, size_t lock_index)
{
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->lock != NULL && h->acquiring &&
        sim_place_at(h, (int)lock_index) != NULL)
      return true;
  }
  return false;
}

/* The nodes of a session that no client has any more are deleted when it
 * expires, within T + 2 ticks. The election of a leader may take as long again.
 * The time begins when the faults are over, or when the checker first finds the
 * node without an owner: a callback that took long may end, and its client may
 * give up its session, after the last fault. */
void sim_crash_everywhere(sim_checker *checker, const sim_fact *f)
{
  const sim_world *w = checker->world;
  int64_t limit = 2 * (sim_T_us(checker) + 2 * w->config.tick_ms * SIM_MS);

  (void)f;
  if (checker->faults_over_us == 0)
    return;
  for (size_t i = 0; i < w->nlocks; i++) {
    sim_entry *e = first_in_queue(checker, i);

    if (e == NULL)
      continue;
    if (sim_owner_of(checker, e) != NULL) { /* perhaps a resumed session */
      e->unowned_since_us = 0;
      continue;
    }
    if (e->unowned_since_us == 0)
      e->unowned_since_us = sim_now_us(checker);
    if (sim_now_us(checker) - e->unowned_since_us >= limit &&
        is_wanted(checker, i))
      sim_violated(checker, "%s has no owner and blocks others", e->name);
  }
}

/* ---- contenders that are refused ---------------------------------------- */

/* The node of the handle's acquire in that queue, with the current session. A
 * node of the last session may still exist. */
static const sim_entry *own_at(const sim_checker *checker, const sim_handle *h,
                               int lock_index)
{
  int64_t session = lk_client_session(h->process->client).id;

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e->handle == h && e->acquire_number == h->acquire_number &&
        e->lock_index == lock_index && e->session == session)
      return e;
  }
  return NULL;
}

/* The number of predecessors that a list at `zxid` showed. If the own node did
 * not exist then, all contenders that exclude it count. */
static size_t count_predecessors(const sim_checker *checker,
                                 const sim_place *place, const sim_entry *own,
                                 int64_t zxid)
{
  bool own_existed = own != NULL && sim_entry_existed_at(own, zxid);
  size_t n = 0;

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    bool is_in_list = e->is_contender &&
                      e->lock_index == (int)place->lock_index &&
                      sim_entry_existed_at(e, zxid);
    bool share_lock = e->is_reader && place->shares;

    if (is_in_list && !share_lock &&
        (!own_existed || (e != own && e->suffix < own->suffix)))
      n++;
  }
  return n;
}

static void check_refusal(sim_checker *checker, const sim_handle *h)
{
  const lk_reply *reply = lk_client_reply(h->process->client);
  bool limit_is_exceeded = reply == NULL; /* or it is unknown */

  for (size_t i = 0; !limit_is_exceeded && i < h->nplaces; i++) {
    const sim_entry *own = own_at(checker, h, (int)h->places[i].lock_index);

    limit_is_exceeded = count_predecessors(checker, &h->places[i], own,
                                           reply->zxid) > h->max_queue;
  }
  if (!limit_is_exceeded || h->max_queue == 0)
    sim_violated(checker, "%s has %zu predecessors and is refused", h->name,
                 h->max_queue);
}

/* A limit of predecessors is never exceeded, and nothing below it is
 * refused. */
void sim_queue_full(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h =
      f->type == SIM_ACQUIRE_ENDED ? f->handle : f->contender->handle;

  if (f->type == SIM_ACQUIRE_ENDED) {
    if (f->err == LK_ERR_QUEUE_FULL)
      check_refusal(checker, h);
    return;
  }
  if (f->event != LK_CONTENDER_ON_PREDECESSORS || h == NULL ||
      h->max_queue == 0 || was_waiting(f->state_before))
    return;
  const sim_entry *own = sim_entry_of(checker, f->contender->ct);
  const sim_place *place =
      own == NULL ? NULL : sim_place_at(h, own->lock_index);

  if (place != NULL &&
      count_predecessors(checker, place, own, f->contender->list_zxid) >
          h->max_queue)
    sim_violated(checker, "%s waits behind more than %zu", h->name,
                 h->max_queue);
}

/* ---- tokens and sequence numbers ---------------------------------------- */

/* The fencing token of a node: its czxid. A downgraded reader keeps the token
 * of its write node. */
static uint64_t token_of(const sim_entry *e)
{
  return (uint64_t)(e->downgraded_from == NULL
                        ? e->created_zxid
                        : e->downgraded_from->created_zxid);
}

static void check_token(sim_checker *checker, const sim_handle *h)
{
  const sim_entry *e = h->held.count == 0 ? NULL : h->held.at[0];
  const char *path = lk_lock_node(h->lock);
  uint64_t largest = 0;

  for (size_t i = 0; i < h->held.count; i++) {
    if (token_of(h->held.at[i]) > largest)
      largest = token_of(h->held.at[i]);
  }
  for (size_t i = 0; h->kind == SIM_MULTILOCK && i < h->held.count; i++) {
    const sim_entry *member = h->held.at[i];
    const char *dir = checker->world->locks[member->lock_index];

    if (lk_multilock_token(h->lock, dir) != token_of(member))
      sim_violated(checker, "%s has token 0x%" PRIx64 " for %s", h->name,
                   lk_multilock_token(h->lock, dir), member->path);
  }
  if (e == NULL || lk_lock_token(h->lock) != largest || path == NULL ||
      strcmp(path, e->path) != 0)
    sim_violated(checker,
                 "%s has token 0x%" PRIx64 ", and its node is of 0x%" PRIx64,
                 h->name, lk_lock_token(h->lock), largest);
}

/* Whether the node was created by the process that had the session before, and
 * an acquire has adopted it. */
static bool is_inherited(const sim_handle *h, const sim_entry *e)
{
  return e->creator_session != NULL && e->creator_session->resumed &&
         is_adopted(e, h);
}

/* Each exclusive grant has a larger token than the one before. Readers have no
 * order. */
static void check_growth(sim_checker *checker, const sim_handle *h,
                         const sim_entry *e)
{
  uint64_t *last = &checker->last_token[e->lock_index];

  if (e->is_reader || !e->is_contender || is_inherited(h, e))
    return;
  if (token_of(e) <= *last)
    sim_violated(checker, "%s has token 0x%" PRIx64 " after 0x%" PRIx64,
                 h->name, token_of(e), *last);
  *last = token_of(e);
}

/* Fencing tokens grow, and are the czxids of the own nodes. */
void sim_token_monotone(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (!is_fresh_grant(f))
    return;
  check_token(checker, h);
  for (size_t i = 0;
       i < h->held.count && no_deletion_is_excused(checker, &h->held); i++)
    check_growth(checker, h, h->held.at[i]);
}

/* Whether both nodes may have one number: a write node and a reader that it was
 * downgraded to, or two such readers. */
static bool may_have_same_number(const sim_entry *a, const sim_entry *b)
{
  return a->downgraded_from == b || b->downgraded_from == a ||
         (a->downgraded_from != NULL &&
          a->downgraded_from == b->downgraded_from);
}

/* Whether another node had the same number at `zxid`. */
static bool has_twin(const sim_checker *checker, const sim_entry *own,
                     int64_t zxid)
{
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e != own && e->is_contender && e->lock_index == own->lock_index &&
        e->suffix == own->suffix && !may_have_same_number(e, own) &&
        sim_entry_existed_at(e, zxid))
      return true;
  }
  return false;
}

static bool was_ever_unsafe(const sim_checker *checker, const sim_handle *h)
{
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (has_unsafe_number(e) && sim_place_at(h, e->lock_index) != NULL)
      return true;
  }
  return false;
}

/* Sequence numbers that cannot be trusted grant nothing. */
void sim_seq_unsafe(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->err == LK_ERR_SEQ_UNSAFE && !was_ever_unsafe(checker, h))
    sim_violated(checker,
                 "%s is refused, though the counter is not near its maximum",
                 h->name);
  if (!is_fresh_grant(f))
    return;
  for (size_t i = 0; i < h->held.count; i++) {
    const sim_entry *e = h->held.at[i];
    const sim_contender *a = sim_contender_for(checker, e);

    if (has_unsafe_number(e))
      sim_violated(checker, "%s is granted with the number %" PRId64, h->name,
                   e->suffix);
    if (e->is_contender && a != NULL && has_twin(checker, e, a->list_zxid))
      sim_violated(checker, "%s is granted with the number of another node",
                   h->name);
  }
}
