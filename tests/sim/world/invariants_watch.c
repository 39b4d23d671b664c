/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include <string.h>

/* Events of one-shot watches: a server sends an event before any reply that
 * shows the change. */

/* The first change that a watch must report. */
typedef struct change {
  int64_t zxid; /* INT64_MAX: none */
  lk_event_type type;
} change;

static const change no_change = {INT64_MAX, LK_EVENT_ENDED};

/* Notes a change if it is the first one after `since`. If there are several of
 * one transaction, the last call is kept. */
static void note_if_first(change *first, int64_t zxid, int64_t since,
                          lk_event_type type)
{
  if (zxid > since && zxid <= first->zxid)
    *first = (change){zxid, type};
}

static change change_of_children(const sim_checker *checker, int64_t since)
{
  change first = no_change;

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (!sim_is_request_node(e))
      continue;
    note_if_first(&first, e->created_zxid, since, LK_EVENT_CHILDREN);
    note_if_first(&first, e->deleted_zxid, since, LK_EVENT_CHILDREN);
  }
  return first;
}

static change change_of_node(const sim_checker *checker, const sim_request *r)
{
  change first = no_change;

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e->lock_index != SIM_NO_LOCK || strcmp(e->path, r->path) != 0)
      continue;
    note_if_first(&first, e->deleted_zxid, r->watch_zxid, LK_EVENT_DELETED);
    for (const sim_version *v = e->newest; v != NULL; v = v->older) {
      if (v->zxid != e->created_zxid)
        note_if_first(&first, v->zxid, r->watch_zxid, LK_EVENT_CHANGED);
    }
    note_if_first(&first, e->created_zxid, r->watch_zxid, LK_EVENT_CREATED);
  }
  return first;
}

static change first_change(const sim_checker *checker, const sim_request *r)
{
  return r->verb == SIM_CHILDREN ? change_of_children(checker, r->watch_zxid)
                                 : change_of_node(checker, r);
}

/* Whether the server may miss the change: it cannot know that a missing node
 * was created and deleted again while the client was not connected. */
static bool may_be_lost(const sim_checker *checker, const sim_request *r,
                        int64_t zxid, change c)
{
  return r->connection != lk_client_connection(r->process->client) &&
         c.type == LK_EVENT_CREATED &&
         sim_history_at(&checker->history, r->path, zxid) == NULL;
}

static bool has_persistent_watch(const sim_life *l, const char *path)
{
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->persistent != NULL && strcmp(r->path, path) == 0)
      return true;
  }
  return false;
}

/* Whether the event may come later than the change: the client repeats a
 * throttled setWatches after a pause. */
static bool event_may_be_late(const sim_checker *checker, const sim_life *l,
                              sim_request *r)
{
  if (!r->throttled)
    return false;
  /* the grace period begins when the setWatches is answered, which takes longer
   * on a slow route or in a paused process */
  if (r->late_since_us == 0 || r->late_since_us < l->undisturbed_since_us ||
      sim_received_awaits_set_watches(&l->received))
    r->late_since_us = sim_now_us(checker);
  return sim_now_us(checker) - r->late_since_us <= sim_grace_us(checker);
}

static void check_missing_one_shot_events(sim_checker *checker,
                                          const sim_life *l, int64_t zxid)
{
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if (!r->watch_registered || r->persistent != NULL)
      continue;
    change c = first_change(checker, r);

    if (c.zxid <= zxid && !may_be_lost(checker, r, zxid, c) &&
        !event_may_be_late(checker, l, r))
      sim_violated(checker,
                   "%s is not notified of 0x%" PRIx64
                   " on %s before 0x%" PRIx64,
                   l->process->name, (uint64_t)c.zxid, r->path, (uint64_t)zxid);
  }
}

/* Whether the event has the type of the change. After a reconnect the server
 * only knows that something has changed, so other types are right as well. */
static bool event_fits_change(const sim_request *r, lk_event_type reported,
                              change c)
{
  bool same_connection =
      r->connection == lk_client_connection(r->process->client);

  if (c.zxid == no_change.zxid)
    return false;
  if (same_connection || c.type == LK_EVENT_CHILDREN)
    return reported == c.type;
  return reported != LK_EVENT_CHILDREN;
}

/* Whether a server may report the change as this event. A server compares
 * zxids, so it reports a node that was deleted and created again as changed. */
static bool may_be_reported_as(const sim_change *c, const sim_request *r,
                               const lk_event *e)
{
  bool created_again =
      e->type == LK_EVENT_CHANGED && c->type == LK_EVENT_CREATED;

  if (e->type == LK_EVENT_CHILDREN)
    return sim_is_child(c, r->path);
  return (created_again || c->type == e->type) && strcmp(c->path, r->path) == 0;
}

/* Whether the event is of a change after `zxid`. */
static bool has_happened(const sim_checker *checker, const sim_request *r,
                         const lk_event *e, int64_t zxid)
{
  size_t i = sim_change_log_first_after(&checker->change_log, zxid);

  for (; i < checker->change_log.count; i++) {
    const sim_change *c = &checker->change_log.changes[i];

    if (may_be_reported_as(c, r, e))
      return true;
  }
  return false;
}

/* A late setWatches reports all changes since its zxid. So the watch may report
 * a change that it has reported before, or that is older than the watch. */
static bool is_sent_again(const sim_checker *checker, const sim_request *r,
                          const lk_event *e)
{
  int64_t zxid = r->late_set_watches - 1; /* it is stored as 1 + zxid */

  return r->late_set_watches != 0 && has_happened(checker, r, e, zxid);
}

/* Whether the event is of a step within one transaction, such as the set of a
 * node that the same multi then deletes. The history has only the last of these
 * changes, but the change log has all. */
static bool is_step_of_transaction(const sim_checker *checker,
                                   const sim_request *r, const lk_event *e,
                                   int64_t zxid)
{
  size_t i = sim_change_log_first_after(&checker->change_log, zxid - 1);

  for (; i < checker->change_log.count &&
         checker->change_log.changes[i].zxid == zxid;
       i++) {
    const sim_change *c = &checker->change_log.changes[i];

    if (c->type == e->type && strcmp(c->path, r->path) == 0)
      return true;
  }
  return false;
}

/* Whether the one-shot watch `r` may report the event now. A watch that was
 * registered with a read-only server may report any event. */
static bool may_be_reported_late(const sim_checker *checker,
                                 const sim_request *r, const lk_event *e)
{
  bool has_late_events =
      r->may_report_anything || r->throttled || r->late_set_watches != 0;
  bool reported_before = r->event_us != 0 && r->event_us != sim_now_us(checker);

  return has_late_events && !reported_before && r->persistent == NULL &&
         strcmp(r->path, e->path.at) == 0 &&
         (r->may_report_anything ||
          event_fits_change(r, e->type, first_change(checker, r)));
}

bool sim_event_may_be_late(const sim_checker *checker, const sim_life *l,
                           const lk_event *e)
{
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (may_be_reported_late(checker, r, e))
      return true;
  }
  return false;
}

/* Whether the server sent the event for another watch of the client. An event
 * names only a path, and the client passes it to all its watches on that path,
 * also to one whose own read already showed the change. DELETED is sent only if
 * the node is missing: if the read of this watch showed the node, it was
 * deleted since. The other types are sent only if the node exists. */
static bool is_meant_for_other_watch(const sim_checker *checker,
                                     const sim_request *r, const lk_event *e)
{
  bool exists_now = e->type != LK_EVENT_DELETED;
  bool own_read_found_it =
      sim_history_at(&checker->history, r->path, r->watch_zxid) != NULL;
  bool own_read_showed_this = exists_now == own_read_found_it;

  return (r->verb == SIM_CHILDREN || own_read_showed_this) &&
         sim_event_may_be_late(checker, &checker->lives[r->process->index], e);
}

/* Whether the event is of a later change than the first, while the setWatches
 * that reports the first change is outstanding. */
static bool is_overtaken(const sim_checker *checker, sim_request *r,
                         const lk_event *e)
{
  return has_happened(checker, r, e, r->watch_zxid) &&
         event_may_be_late(checker, &checker->lives[r->process->index], r);
}

/* Whether something has happened that explains the event. */
static bool event_is_explained(const sim_checker *checker, sim_request *r,
                               const lk_event *e)
{
  change c = first_change(checker, r);

  return event_fits_change(r, e->type, c) ||
         is_step_of_transaction(checker, r, e, c.zxid) ||
         is_sent_again(checker, r, e) ||
         is_meant_for_other_watch(checker, r, e) || is_overtaken(checker, r, e);
}

/* Whether the watch may end with this error. A watch on the path of a persistent
 * one may have no watch of its own on the server. */
static bool may_end(const sim_checker *checker, const sim_request *r, int err)
{
  switch (err) {
  case LK_ERR_CONNECTION_LOSS:
  case LK_ERR_NO_WATCHER:
    return (r->until_disconnect && err == LK_ERR_CONNECTION_LOSS) ||
           has_persistent_watch(&checker->lives[r->process->index], r->path);
  default: return true;
  }
}

static void check_one_shot_event(sim_checker *checker, sim_request *r,
                                 const lk_event *e)
{
  const lk_client *c = r->process->client;

  r->event_us = sim_now_us(checker);
  if (!r->watch_registered)
    sim_violated(checker, "a watch on %s reports %d without being registered",
                 r->path, (int)e->type);
  else if (e->type == LK_EVENT_ENDED && !may_end(checker, r, e->err))
    sim_violated(checker, "a watch on %s ends with %s", r->path,
                 lk_error_name(e->err));
  else if (e->type != LK_EVENT_ENDED && r->until_disconnect &&
           r->connection != lk_client_connection(c))
    sim_violated(checker, "a watch on %s outlives its connection", r->path);
  else if (e->type != LK_EVENT_ENDED && !r->may_report_anything &&
           !event_is_explained(checker, r, e))
    sim_violated(checker, "a watch on %s reports %d, which did not happen",
                 r->path, (int)e->type);
}

/* A one-shot watch reports one event, before any reply that shows the
 * change. */
void sim_watch_events(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_REPLY)
    check_missing_one_shot_events(checker, f->life, f->reply->zxid);
  else if (f->request->persistent == NULL)
    check_one_shot_event(checker, f->request, f->watch_event);
}
