/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/allocate.h"
#include "sim/world/conditions.h"

#include <stdlib.h>
#include <string.h>

/* Invariants of contender nodes, from their create to their delete. */

/* opcodes of ZooKeeper's protocol */
enum { OP_DELETE = 2, OP_LIST = 12 };

/* ---- nodes and their contenders ----------------------------------------- */

static bool is_of_latchkey(const sim_entry *e)
{
  return (e->is_contender || e->is_permit) && !e->is_foreign && e->session != 0;
}

/* When the request was sent, in virtual time. If the clock had jumped just
 * before, `sent_ms` is the time after the jump. */
static int64_t sent_us(const sim_process *p, const lk_reply *reply)
{
  int64_t us = sim_process_true_us(p, reply->sent_ms);
  bool after_jump =
      p->jumped_us > 0 && p->jumped_us < us && us <= p->paused_until_us;

  return after_jump ? p->jumped_us : us;
}

/* A server has refused to delete the node, since permissions were missing
 * between the request and its reply. The client has reported the error and can
 * do no more, so the node is excused. */
static void excuse_undeletable(sim_checker *checker, const sim_fact *f)
{
  const sim_process *p = f->life->process;
  const lk_reply *reply = lk_client_reply(p->client);
  sim_entry *e = sim_entry_of(checker, f->contender->ct);

  if (f->contender->ct->state == LK_CONTENDER_FINISHED && e != NULL &&
      e->deleted_zxid == 0 && reply != NULL &&
      sim_dir_was_denied(checker, e->lock_index, sent_us(p, reply)))
    e->is_excused = true;
}

/* Each node of a living session has an owner. */
void sim_no_orphan(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_CONTENDER_STEP) {
    excuse_undeletable(checker, f);
    return;
  }
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    const sim_life *owner = sim_owner_of(checker, e);

    /* when a client closes, its contenders end, and the nodes end with the
     * session */
    if (!is_of_latchkey(e) || e->is_excused || owner == NULL ||
        owner->process->closing)
      continue;
    if (sim_contender_for(checker, e) == NULL)
      sim_violated(checker, "%s has no owner", e->path);
  }
}

static void check_is_the_only_node(sim_checker *checker,
                                   const sim_entry *created)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e != created && is_of_latchkey(e) && !e->is_excused && !e->ownerless &&
        e->session == created->session && sim_same_contender(e, created))
      sim_violated(checker, "%s exists when %s is created", e->name,
                   created->name);
  }
}

/* One contender never has two nodes. A second node is a violation only if the
 * contender can know of the first, and if it is not the late one of the two:
 * the history has excused that one by now. A contender cannot know that an
 * ownerless node was its own. */
void sim_create_ambiguity(sim_checker *checker, const sim_fact *f)
{
  for (const sim_entry *e = checker->history.existing;
       e != NULL && e->created_zxid == f->commit->zxid; e = e->next) {
    if (!e->is_excused)
      check_is_the_only_node(checker, e);
  }
}

static sim_xids *xids_of_page(sim_session *s, int32_t page)
{
  sim_xids *x = s->xids;

  while (x != NULL && x->page != page)
    x = x->next;
  if (x == NULL) {
    x = sim_allocate(sizeof *x);
    x->page = page;
    x->next = s->xids;
    s->xids = x;
  }
  return x;
}

/* Records that the xid is committed. false: it was committed before. Xids need
 * not be in order: a server whose session has moved twice can commit an old
 * write late. */
static bool note_committed(sim_session *s, int32_t xid)
{
  sim_xids *page = xids_of_page(s, xid / SIM_XIDS);
  unsigned char *byte = &page->bits[xid % SIM_XIDS / 8];
  unsigned char bit = (unsigned char)(1U << xid % 8);
  bool is_new = (*byte & bit) == 0;

  *byte |= bit;
  return is_new;
}

/* No xid is used twice in a session. */
void sim_xid_continues(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_COMMITTED) {
    const sim_commit *c = f->commit;

    bool is_of_client = c->xid > 0;

    if (is_of_client &&
        !note_committed(sim_history_session(&checker->history, c->session),
                        c->xid))
      sim_violated(checker, "xid %d is committed again", c->xid);
    return;
  }
  if (f->xid <= 0) /* a special xid, such as that of a ping */
    return;
  if (f->xid <= f->life->xid)
    sim_violated(checker, "%s sends xid %d after %d", f->life->process->name,
                 f->xid, f->life->xid);
  f->life->xid = f->xid;
}

/* ---- nodes deleted by others -------------------------------------------- */

static bool all_exist(const sim_nodes *n)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i]->deleted_zxid != 0)
      return false;
  }
  return n->count > 0;
}

static bool was_data_set(const sim_nodes *n)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i]->changed_us != 0)
      return true;
  }
  return false;
}

static void check_loss(sim_checker *checker, const sim_handle *h,
                       const lk_lock_event *e)
{
  if (h->lost || h->count == 0)
    sim_violated(checker, "%s is notified of LOST without holding", h->name);
  else if (e->err == LK_ERR_NO_NODE && all_exist(&h->held))
    sim_violated(checker, "%s is notified of LOST, and its node exists",
                 h->name);
}

/* These states follow each other in their enum. */
static bool is_queued_with_node(lk_contender_state s)
{
  return s >= LK_CONTENDER_LISTING && s <= LK_CONTENDER_CHECKING_OWN;
}

static void check_overdue_own_deleted(sim_checker *checker, sim_contender *a)
{
  const sim_entry *e = NULL;

  if (is_queued_with_node(a->ct->state) || lk__contender_holds(a->ct))
    e = sim_entry_of(checker, a->ct);
  if (e != NULL && e->deleted_zxid == 0)
    e = NULL;
  if (sim_own_deleted_is_overdue(checker, a->life, &a->own_deleted, e))
    sim_violated(checker, "no contender notices that %s is deleted", e->name);
}

static bool any_was_deleted_by(const sim_nodes *n, int64_t zxid)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i]->deleted_zxid != 0 && n->at[i]->deleted_zxid <= zxid)
      return true;
  }
  return false;
}

/* Once the own node is watched, the server sends the event before any reply
 * that shows a later zxid. */
static void check_holders_notified(sim_checker *checker, const sim_life *l,
                                   int64_t zxid)
{
  for (const sim_handle *h = l->handles; h != NULL; h = h->next) {
    if (sim_holds(h) && any_was_deleted_by(&h->held, zxid) &&
        h->node_is_watched && !was_data_set(&h->held) &&
        l->undisturbed_since_us < h->granted_us)
      sim_violated(checker,
                   "%s is not notified at once that its node is deleted",
                   h->name);
  }
}

/* The first heartbeat sets the watch. It was certainly sent if a later request
 * of the connection was sent three quarters of T after the grant. */
static void note_whether_watched(const sim_checker *checker, sim_handle *h,
                                 const sim_life *l, const lk_reply *reply)
{
  int32_t t = checker->world->longest_ms;

  if (!sim_holds(h) || !all_exist(&h->held))
    return;
  bool heartbeat_was_sent = reply->sent_ms > h->granted_ms + t * 3 / 4;

  h->node_is_watched =
      heartbeat_was_sent && l->undisturbed_since_us < h->granted_us &&
      !was_data_set(&h->held) &&
      !sim_fault_is_possible(checker->world, SIM_FAULT_THROTTLE) &&
      !sim_fault_is_possible(checker->world, SIM_FAULT_DENY);
}

static void check_reply(sim_checker *checker, const sim_fact *f)
{
  int64_t sent_us = sim_process_true_us(f->life->process, f->reply->sent_ms);

  if (sent_us > f->life->replied_us && sent_us <= sim_now_us(checker))
    f->life->replied_us = sent_us;
  check_holders_notified(checker, f->life, f->reply->zxid);
  for (sim_handle *h = f->life->handles; h != NULL; h = h->next)
    note_whether_watched(checker, h, f->life, f->reply);
}

/* The deletion of an own node is reported once, to its owner alone. */
void sim_own_deleted(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_REPLY) {
    check_reply(checker, f);
    return;
  }
  if (f->type == SIM_PERIODIC) {
    for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
      check_overdue_own_deleted(checker, a);
    return;
  }
  if (f->lock_event->type == LK_LOCK_EVENT_LOST)
    check_loss(checker, f->handle, f->lock_event);
  bool lost_by_deletion = f->lock_event->type == LK_LOCK_EVENT_PLACE_LOST &&
                          f->lock_event->err == LK_ERR_NO_NODE;

  if (!lost_by_deletion)
    return;
  f->handle->places_lost++;
  if (f->handle->places_lost > f->handle->nodes_taken)
    sim_violated(checker, "%s is notified that it lost its node, which exists",
                 f->handle->name);
}

static void check_grant_session(sim_checker *checker, const sim_handle *h)
{
  const lk_client *c = h->process->client;

  for (size_t i = 0; i < h->held.count; i++) {
    if (h->held.at[i]->session != 0 &&
        h->held.at[i]->session != lk_client_session(c).id)
      sim_violated(checker, "%s is granted with the node of another session",
                   h->name);
  }
}

/* All holders of the ended session must have been notified in the job that
 * ended it. */
static void check_expired_holders(sim_checker *checker)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    sim_life *l = &checker->lives[i];

    if (!l->must_report_loss)
      continue;
    for (const sim_handle *h = l->handles; h != NULL; h = h->next) {
      if (sim_holds(h) && h->held.count > 0 && l->process->client != NULL &&
          h->held.at[0]->session != lk_client_session(l->process->client).id)
        sim_violated(checker, "%s was not notified that its session has ended",
                     h->name);
    }
    l->must_report_loss = false;
  }
}

static void check_name_is_new(sim_checker *checker, const sim_entry *e)
{
  for (const sim_entry *o = e->older; o != NULL; o = o->older) {
    if (is_of_latchkey(e) && sim_same_contender(o, e) &&
        o->session != e->session)
      sim_violated(checker, "%s has the name that another session used",
                   e->name);
  }
}

/* The end of a session is reported once. No other session uses the names of its
 * nodes again. */
void sim_expiry(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_NODE_CREATED)
    check_name_is_new(checker, f->entry);
  else if (f->type == SIM_STATE && f->state == LK_STATE_EXPIRED)
    f->life->must_report_loss = true;
  else if (f->type == SIM_JOB_DONE)
    check_expired_holders(checker);
  else if (f->type == SIM_ACQUIRE_ENDED && f->err == 0 &&
           !f->handle->is_reentry)
    check_grant_session(checker, f->handle);
  else if (f->type == SIM_LOCK_EVENT &&
           f->lock_event->type == LK_LOCK_EVENT_LOST &&
           f->lock_event->err == LK_ERR_SESSION_EXPIRED &&
           lk_client_state(f->handle->process->client) != LK_STATE_EXPIRED)
    sim_violated(checker, "%s is notified of an expiry that did not happen",
                 f->handle->name);
}

/* ---- nodes after the end of an acquire ---------------------------------- */

static bool has_failed(sim_stop_reason why)
{
  return why == SIM_STOP_FAILED || why == SIM_STOP_TIMED_OUT;
}

static bool was_cancelled(sim_stop_reason why)
{
  return why == SIM_STOP_CANCELLED;
}

static bool was_released(sim_stop_reason why)
{
  return why == SIM_STOP_RELEASED || why == SIM_STOP_FREED;
}

/* A violation if a contender that was stopped for a selected reason leaves its
 * node undeleted for long. */
static void check_overdue_deletes(sim_checker *checker,
                                  bool (*is_selected)(sim_stop_reason why))
{
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next) {
    const sim_entry *e = NULL;

    if (!is_selected(a->stop_reason))
      continue;
    if (a->ct->state == LK_CONTENDER_CLEANING_UP)
      e = sim_entry_of(checker, a->ct);
    if (e != NULL &&
        (e->deleted_zxid != 0 ||
         sim_dir_was_denied(checker, e->lock_index,
                            sim_now_us(checker) - 2 * sim_T_us(checker))))
      e = NULL;
    if (sim_grace_is_over(checker, a->life, &a->undeleted, e))
      sim_violated(checker, "%s is not deleted", e->name);
  }
}

static bool has_connection(const sim_handle *h)
{
  return lk_client_state(h->process->client) == LK_STATE_CONNECTED;
}

static bool is_try_of_connection(const sim_handle *h)
{
  return h->acquiring && !h->is_reentry && h->needs_connection;
}

static void check_tries(sim_checker *checker)
{
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->lock != NULL && is_try_of_connection(h) && !has_connection(h))
      sim_violated(checker, "%s goes on trying without a connection", h->name);
  }
}

/* A try ends with the connection, and is the only acquire that does. An acquire
 * that timed out leaves nothing. */
void sim_timeout_clean(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_PERIODIC) {
    check_overdue_deletes(checker, has_failed);
    check_tries(checker);
    return;
  }
  if (f->err == LK_ERR_NOT_CONNECTED &&
      (!f->handle->needs_connection || has_connection(f->handle)))
    sim_violated(checker, "%s has no need of a connection, or has one",
                 f->handle->name);
  bool tried_once = f->handle->timeout_ms == SIM_TRY;
  bool had_deadline = f->handle->timeout_ms > 0;

  if ((f->err == LK_ERR_BUSY && !tried_once) ||
      (f->err == LK_ERR_DEADLINE && !had_deadline))
    sim_violated(checker, "%s waited for %" PRId64 " ms and gets %s",
                 f->handle->name, f->handle->timeout_ms, lk_error_name(f->err));
}

/* A cancelled acquire is never granted and leaves nothing. */
void sim_cancel_everywhere(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_PERIODIC)
    check_overdue_deletes(checker, was_cancelled);
  else if (f->type == SIM_ACQUIRE_ENDED && f->err == 0 && f->handle->cancelling)
    sim_violated(checker, "%s is granted while it cancels", f->handle->name);
  else if (f->type == SIM_CANCEL_RETURNED && f->err != 0)
    sim_violated(checker, "%s is cancelled, and the acquire remains",
                 f->handle->name);
}

/* Whether the delete of the released node was sent, or will be sent before any
 * other request. The delete may come later if the contender first has to check
 * whose node it is. */
static bool delete_comes_first(const sim_contender *a)
{
  const lk_contender *ct = a->ct;

  return was_released(a->stop_reason) &&
         ct->state == LK_CONTENDER_CLEANING_UP &&
         ct->own.state == LK_OWN_CREATED && ct->pause.backoff.next_ms == 0 &&
         !ct->cleanup.recovering &&
         !lk__own_node_needs_verification(&ct->own,
                                          lk__contender_connection(ct));
}

/* Notes the contenders of the client that were released before this one creates
 * its node in the same directory. */
static void note_released_before(const sim_checker *checker, sim_contender *a)
{
  a->nreleased_before = 0;
  for (const sim_contender *o = checker->contenders; o != NULL; o = o->next) {
    if (o->ct->lease == a->ct->lease && delete_comes_first(o) &&
        strcmp(o->ct->own.dir, a->ct->own.dir) == 0 &&
        a->nreleased_before <
            sizeof a->released_before / sizeof *a->released_before)
      a->released_before[a->nreleased_before++] = o->ct;
  }
}

/* If the contender's list shows a node that was released before, its delete was
 * not sent first. */
static void check_not_behind_released(sim_checker *checker,
                                      const sim_contender *a)
{
  for (size_t i = 0; i < a->nreleased_before; i++) {
    const lk_contender *o = a->released_before[i];
    const sim_entry *e = sim_entry_of(checker, o);

    if (e != NULL && sim_entry_existed_at(e, a->list_zxid) &&
        o->pause.backoff.next_ms == 0 &&
        !lk__own_node_needs_verification(&o->own, lk__contender_connection(o)))
      sim_violated(checker, "%s queues behind %s, which was released before",
                   a->handle->name, e->name);
  }
}

static size_t count_deletes_to_send(const sim_checker *checker,
                                    const sim_life *l)
{
  size_t n = 0;

  for (const sim_contender *a = checker->contenders; a != NULL; a = a->next) {
    if (a->life == l && delete_comes_first(a))
      n++;
  }
  return n;
}

/* On a new connection the pending deletes are sent first, after the reads that
 * they need. A client that closes sends none, since its nodes end with the
 * session. */
static void check_deletes_sent_first(sim_checker *checker, sim_life *l,
                                     const sim_fact *f)
{
  bool has_special_xid = f->xid < 0; /* such as a ping or a setWatches */

  if (l->deletes_to_send == 0 || has_special_xid || l->process->closing)
    return;
  if (f->op == OP_DELETE)
    l->deletes_to_send--;
  else if (f->op != OP_LIST && !f->is_recovery)
    sim_violated(checker, "%s sends op %d before its deletes", l->process->name,
                 f->op);
}

/* When a release completes, its nodes are deleted. */
static void check_released_nodes(sim_checker *checker, const sim_handle *h)
{
  for (size_t i = 0; i < h->releasing_nodes.count; i++) {
    const sim_entry *e = h->releasing_nodes.at[i];

    if (e->deleted_zxid == 0 &&
        e->session == lk_client_session(h->process->client).id)
      sim_violated(checker, "%s is notified that %s is deleted, and it exists",
                   h->name, e->name);
  }
}

static bool creates_node(lk_contender_state s)
{
  return s == LK_CONTENDER_CREATING || s == LK_CONTENDER_CREATING_PARENTS;
}

/* A release is never lost and precedes later requests. */
void sim_release_async(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_STATE && f->state == LK_STATE_CONNECTED)
    f->life->deletes_to_send = count_deletes_to_send(checker, f->life);
  else if (f->type == SIM_SENT)
    check_deletes_sent_first(checker, f->life, f);
  else if (f->type == SIM_CONTENDER_STEP &&
           creates_node(f->contender->ct->state))
    note_released_before(checker, f->contender);
  else if (f->type == SIM_CONTENDER_STEP &&
           f->event == LK_CONTENDER_ON_PREDECESSORS &&
           creates_node(f->state_before))
    check_not_behind_released(checker, f->contender);
  else if (f->type == SIM_RELEASE_ENDED && f->err == 0)
    check_released_nodes(checker, f->handle);
  else if (f->type == SIM_PERIODIC)
    check_overdue_deletes(checker, was_released);
}

/* ---- errors of an acquire ----------------------------------------------- */

/* No acquire fails because its directory was deleted: it starts again. It gives
 * up after several times, so an acquire with many deletions is not checked. */
void sim_container_reap(sim_checker *checker, const sim_fact *f)
{
  enum { MANY_NODES = 3, MANY_DIRECTORIES = 10 };

  const sim_handle *h = f->handle;
  unsigned vanished = sim_dirs_vanished(checker, h) - h->dirs_vanished;

  if (f->err == LK_ERR_NO_NODE && h->nodes_taken < MANY_NODES &&
      vanished < MANY_DIRECTORIES)
    sim_violated(checker, "%s fails; its directory went %u times, its node %u",
                 h->name, vanished, h->nodes_taken);
}

/* NO_AUTH is reported only if permissions were missing. */
void sim_acl(sim_checker *checker, const sim_fact *f)
{
  bool no_auth = f->type == SIM_LOCK_EVENT
                     ? f->lock_event->type == LK_LOCK_EVENT_UNWATCHED
                     : f->err == LK_ERR_NO_AUTH;

  if (no_auth &&
      !sim_handle_was_denied(checker, f->handle,
                             f->handle->acquire_called_us - sim_T_us(checker)))
    sim_violated(checker, "%s gets NO_AUTH, and nothing is denied",
                 f->handle->name);
}

/* No transient error of a server or connection ends an acquire: only errors of
 * this list may. */
void sim_throttled(sim_checker *checker, const sim_fact *f)
{
  switch (f->err) {
  case 0:
  case LK_ERR_BUSY:
  case LK_ERR_NOT_CONNECTED: /* see sim_timeout_clean() */
  case LK_ERR_QUEUE_FULL:
  case LK_ERR_DEADLINE:
  case LK_ERR_CANCELLED:
  case LK_ERR_CLOSED:
  case LK_ERR_LOST:
  case LK_ERR_NOT_HELD:
  case LK_ERR_UNSURE:
  case LK_ERR_NO_AUTH:
  case LK_ERR_NO_NODE:
  case LK_ERR_SEQ_UNSAFE:
  case LK_ERR_SESSION_EXPIRED: break;
  case LK_ERR_NO_MEMORY:
    if (sim_fault_is_possible(checker->world, SIM_FAULT_STARVE))
      break;
    /* fall through */
  default:
    if (!sim_fault_is_possible(checker->world, SIM_FAULT_ERRORS))
      sim_violated(checker, "%s gets %s", f->handle->name,
                   lk_error_name(f->err));
  }
}
