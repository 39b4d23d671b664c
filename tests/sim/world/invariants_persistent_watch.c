/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"

#include <string.h>

/*
 * Persistent watches. From the zxid at which the server registered a watch, its
 * events must be exactly those of the change log. After a reconnect the watch
 * first reports its re-registration.
 *
 * Between the reconnect and the last reply to a setWatches, a server sends the
 * events that one-shot watches have missed. Persistent watches on the same path
 * receive these events, too. Of such an event it is only checked that it
 * happened.
 */

/* Stands for "no event": no watch of the simulation ends by a change. */
static const lk_event_type NO_EVENT = LK_EVENT_ENDED;

/* ---- events that must be reported --------------------------------------- */

/* The type of event that this watch receives for a change; NO_EVENT: none. */
static lk_event_type event_of(const sim_request *r, const sim_change *c)
{
  bool is_own_node = strcmp(c->path, r->path) == 0;
  bool appears_or_disappears =
      c->type == LK_EVENT_CREATED || c->type == LK_EVENT_DELETED;

  if (c->type == SIM_ACCESS_CHANGED)
    return NO_EVENT;
  if (is_own_node || (r->persistent->mode == LK_WATCH_RECURSIVE &&
                      sim_is_below(c->path, r->path)))
    return c->is_hidden ? NO_EVENT : c->type;
  if (r->persistent->mode == LK_WATCH_PERSISTENT && appears_or_disappears &&
      sim_is_child(c, r->path))
    return c->is_hidden_at_parent ? NO_EVENT : LK_EVENT_CHILDREN;
  return NO_EVENT;
}

/* The first change, from index `*at` on, that the watch must report; `*at`
 * becomes its index. NULL: there is none yet. */
static const sim_change *next_change(const sim_checker *checker,
                                     const sim_request *r, size_t *at)
{
  for (; *at < checker->change_log.count; (*at)++) {
    const sim_change *c = &checker->change_log.changes[*at];

    if (event_of(r, c) != NO_EVENT)
      return c;
  }
  return NULL;
}

/* Whether the watch reports the change as this event. */
static bool is_about(const sim_request *r, const sim_change *c,
                     const lk_event *e)
{
  const char *path = event_of(r, c) == LK_EVENT_CHILDREN ? r->path : c->path;

  return event_of(r, c) == e->type && strcmp(path, e->path.at) == 0;
}

/* ---- registration ------------------------------------------------------- */

static void set_registered(const sim_checker *checker, const sim_request *r,
                           int64_t zxid)
{
  r->persistent->registered = true;
  r->persistent->candidates[0] =
      sim_change_log_first_after(&checker->change_log, zxid);
  r->persistent->ncandidates = 1;
}

/* Whether a setWatches of this connection was throttled. */
static bool has_throttled_set_watches(const sim_received *received)
{
  for (size_t i = 0; i < received->count; i++) {
    if (received->frames[i].type == SIM_FRAME_THROTTLED)
      return true;
  }
  return false;
}

/* Whether it is unknown when the watch was registered on this connection,
 * because a setWatches was throttled. When the client repeats it, the watch
 * reports a second re-registration. */
static bool registration_is_late(const sim_received *received,
                                 const sim_request *r)
{
  return has_throttled_set_watches(received) &&
         (r->persistent->reregistrations == 1 || !r->persistent->registered);
}

/* Finds out when the watch was registered. The reconnect sends several
 * setWatches, one for each zxid that watches have; the last reply to them
 * registers the watch at the latest. `until`: the number of frames that the
 * client has reported. */
static void note_registration(const sim_checker *checker, const sim_life *l,
                              const sim_request *r, size_t until)
{
  const sim_received *received = &l->received;

  if (registration_is_late(received, r)) {
    r->persistent->registered = false;
    return;
  }
  size_t replies = 0;

  for (size_t i = 0; i < until && !r->persistent->registered; i++) {
    if (received->frames[i].type != SIM_FRAME_SET_WATCHES)
      continue;
    replies++;
    if (replies == received->at_reconnect)
      set_registered(checker, r, received->frames[i].zxid);
  }
}

/* Whether the event in that frame may be one that the server sends again: a
 * setWatches was outstanding, or one is repeated because it was throttled. */
static bool event_may_be_sent_again(const sim_received *received, size_t frame)
{
  size_t replies = 0;
  bool last_was_throttled = false;

  for (size_t i = 0; i < frame; i++) {
    if (sim_frame_is_event(&received->frames[i]))
      continue;
    replies++;
    last_was_throttled = received->frames[i].type == SIM_FRAME_THROTTLED;
  }
  return replies < received->set_watches_sent || last_was_throttled;
}

/* A persistent watch reports its re-registration once on each connection, and
 * again if it is registered late. */
static bool may_be_reregistered(sim_checker *checker, const sim_request *r,
                                uint64_t connection)
{
  return r->connection != connection ||
         (r->persistent->reregistrations == 1 &&
          has_throttled_set_watches(
              &sim_life_of(checker, r->process)->received));
}

/* Whether the event is of a change that a one-shot watch of the client may have
 * missed. */
static bool was_missed(const sim_checker *checker, const sim_life *l,
                       const sim_request *r, const lk_event *e)
{
  size_t since_late =
      sim_change_log_first_after(&checker->change_log, l->received.late_zxid);
  size_t first = r->persistent->first_missed < since_late
                     ? r->persistent->first_missed
                     : since_late;

  for (size_t i = first; i < checker->change_log.count; i++) {
    const sim_change *c = &checker->change_log.changes[i];
    bool created_again = e->type == LK_EVENT_CHANGED &&
                         c->type == LK_EVENT_CREATED &&
                         strcmp(c->path, e->path.at) == 0;

    if (is_about(r, c, e) || created_again)
      return true;
  }
  return false;
}

/* ---- events that are reported ------------------------------------------- */

/* The index of the event among the received frames; received->count: no server
 * sent it. */
static size_t find_frame(const sim_received *received, const sim_request *r,
                         const lk_event *e)
{
  size_t i = r->persistent->next_frame > received->last_reported
                 ? r->persistent->next_frame
                 : received->last_reported;

  while (i < received->count &&
         (received->frames[i].type != (int32_t)e->type ||
          strcmp(received->frames[i].path, e->path.at) != 0))
    i++;
  return i;
}

/* Adds a place from which the next change may be reported. Candidates are
 * ascending. If there are too many, the oldest is dropped. */
static void add_candidate(sim_persistent_watch *s, size_t next)
{
  if (s->ncandidates > 0 && s->candidates[s->ncandidates - 1] >= next)
    return;
  if (s->ncandidates == SIM_MOST_CANDIDATES) {
    s->ncandidates--;
    memmove(s->candidates, s->candidates + 1,
            s->ncandidates * sizeof *s->candidates);
  }
  s->candidates[s->ncandidates++] = next;
}

/* Whether the event is the next change, or may be `sent_again` for an earlier
 * one. Updates the candidates. */
static bool event_is_possible(const sim_checker *checker, const sim_request *r,
                              const lk_event *e, bool sent_again)
{
  sim_persistent_watch before = *r->persistent;

  r->persistent->ncandidates = 0;
  for (size_t i = 0; i < before.ncandidates; i++) {
    size_t next = before.candidates[i];
    const sim_change *c =
        before.registered ? next_change(checker, r, &next) : NULL;

    if (sent_again)
      add_candidate(r->persistent, next);
    if (c != NULL && is_about(r, c, e))
      add_candidate(r->persistent, next + 1);
  }
  if (r->persistent->ncandidates > 0 || sent_again)
    return true;
  *r->persistent = before;
  return false;
}

static void check_reported_change(sim_checker *checker, sim_life *l,
                                  const sim_request *r, const lk_event *e)
{
  size_t frame = find_frame(&l->received, r, e);

  if (frame == l->received.count) {
    sim_violated(checker,
                 "a watch on %s reports %d of %s, which no server sent",
                 r->path, (int)e->type, (const char *)e->path.at);
    return;
  }
  l->received.last_reported = frame;
  r->persistent->next_frame = frame + 1;
  note_registration(checker, l, r, frame);
  bool sent_again = (event_may_be_sent_again(&l->received, frame) ||
                     registration_is_late(&l->received, r)) &&
                    (r->may_report_anything || was_missed(checker, l, r, e) ||
                     sim_event_may_be_late(checker, l, e));

  if (!event_is_possible(checker, r, e, sent_again)) {
    size_t next = r->persistent->candidates[0];
    const sim_change *c =
        r->persistent->registered ? next_change(checker, r, &next) : NULL;

    sim_violated(checker, "a watch on %s reports %d of %s, not of 0x%" PRIx64,
                 r->path, (int)e->type, (const char *)e->path.at,
                 c == NULL ? 0 : (uint64_t)c->zxid);
  }
}

/* The watch was registered by the last reply to a setWatches, if nothing was
 * reported since. Otherwise another request registered it, at an unknown
 * zxid. */
static void set_registered_late(const sim_checker *checker,
                                const sim_request *r,
                                const sim_received *received)
{
  size_t i = received->count; /* becomes 1 + the index of the last reply */

  while (i > 0 && received->frames[i - 1].type != SIM_FRAME_SET_WATCHES &&
         received->frames[i - 1].type != SIM_FRAME_THROTTLED)
    i--;
  if (i > 0 && received->frames[i - 1].type == SIM_FRAME_SET_WATCHES &&
      received->last_reported < i)
    set_registered(checker, r, received->frames[i - 1].zxid);
}

static void check_reregistration(sim_checker *checker, sim_request *r,
                                 uint64_t connection)
{
  if (!may_be_reregistered(checker, r, connection))
    sim_violated(checker,
                 "a watch on %s reports a re-registration without a reconnect",
                 r->path);
  else if (r->until_disconnect)
    sim_violated(checker, "a watch on %s outlives its connection", r->path);
  if (r->connection != connection)
    r->persistent->reregistrations = 0;
  r->persistent->reregistrations++;
  r->connection = connection;
  r->persistent->registered = false;
  r->persistent->first_missed = r->persistent->candidates[0];
  r->persistent->next_frame = 0;
  if (r->persistent->reregistrations > 1)
    set_registered_late(checker, r,
                        &sim_life_of(checker, r->process)->received);
}

static void check_end_of_watch(sim_checker *checker, const sim_request *r,
                               const lk_event *e)
{
  if (e->err == 0 || (e->err == LK_ERR_CONNECTION_LOSS && !r->until_disconnect))
    sim_violated(checker, "a watch on %s ends with %d", r->path, e->err);
}

static void check_persistent_event(sim_checker *checker, sim_life *l,
                                   sim_request *r, const lk_event *e)
{
  uint64_t connection = lk_client_connection(r->process->client);

  if (!r->watch_registered)
    sim_violated(checker, "a watch on %s reports %d without being registered",
                 r->path, (int)e->type);
  else if (e->type == LK_EVENT_REREGISTERED)
    check_reregistration(checker, r, connection);
  else if (e->type == LK_EVENT_ENDED)
    check_end_of_watch(checker, r, e);
  else if (r->connection != connection)
    sim_violated(checker, "a watch on %s reports %d before its re-registration",
                 r->path, (int)e->type);
  else
    check_reported_change(checker, l, r, e);
}

/* ---- events that are missing -------------------------------------------- */

/* Removes the candidates whose next change should have been reported before a
 * reply of `zxid`. If none remains, returns the change that is missing and
 * keeps the last candidate. */
static const sim_change *drop_passed_candidates(const sim_checker *checker,
                                                const sim_request *r,
                                                int64_t zxid)
{
  sim_persistent_watch before = *r->persistent;
  const sim_change *due = NULL;

  r->persistent->ncandidates = 0;
  for (size_t i = 0; i < before.ncandidates; i++) {
    const sim_change *c = next_change(checker, r, &before.candidates[i]);

    if (c == NULL || c->zxid > zxid)
      add_candidate(r->persistent, before.candidates[i]);
    else
      due = c;
  }
  if (r->persistent->ncandidates > 0)
    return NULL;
  r->persistent->candidates[0] = before.candidates[before.ncandidates - 1];
  r->persistent->ncandidates = 1;
  return due;
}

static void check_missing_event(sim_checker *checker, const sim_life *l,
                                const sim_request *r, const lk_reply *a)
{
  if (r->connection != a->connection) {
    sim_violated(checker, "a watch on %s does not report its re-registration",
                 r->path);
    return;
  }
  note_registration(checker, l, r, l->received.count);
  if (!r->persistent->registered)
    return;
  const sim_change *due = drop_passed_candidates(checker, r, a->zxid);

  if (due != NULL)
    sim_violated(checker,
                 "a watch on %s does not report 0x%" PRIx64
                 " before 0x%" PRIx64,
                 r->path, (uint64_t)due->zxid, (uint64_t)a->zxid);
}

static void check_missing_events(sim_checker *checker, const sim_life *l,
                                 const lk_reply *a)
{
  if (a->zxid <= 0) /* a connect reply */
    return;
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->persistent != NULL && r->watch_registered)
      check_missing_event(checker, l, r, a);
  }
}

/* A persistent watch reports each change once and in order, or that it was
 * interrupted. */
void sim_watch_stays(sim_checker *checker, const sim_fact *f)
{
  sim_request *r = f->request;

  if (f->type == SIM_SENT) {
    if (sim_is_recording_frames(checker->world) &&
        (f->op == LK_OPCODE_SET_WATCHES || f->op == LK_OPCODE_SET_WATCHES2))
      sim_received_set_watches_sent(f->life);
    return;
  }
  if (!checker->world->all_requests) /* there are no persistent watches */
    return;
  if (f->type == SIM_REPLY) {
    check_missing_events(checker, f->life, f->reply);
    return;
  }
  if (r->persistent == NULL)
    return;
  if (f->type == SIM_WATCH_EVENT) {
    check_persistent_event(checker, sim_life_of(checker, r->process), r,
                           f->watch_event);
  } else if (r->watch_registered) {
    set_registered(checker, r, r->watch_zxid);
    r->persistent->first_missed = r->persistent->candidates[0];
  }
}
