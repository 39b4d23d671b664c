/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"

#include <string.h>

/*
 * Persistent watches. Their events must be exactly those of the change log,
 * from the zxid on at which the server registered them. Each re-registration is
 * reported before them.
 *
 * Between the reconnect and the last reply to a setWatches, a server sends
 * events that one-shot watches have missed. Persistent watches on the path
 * receive these events too, so such an event need only be true.
 */

/* A change without an event. */
static const lk_event_type NOTHING = LK_EVENT_ENDED;

/* ---- events that must be reported --------------------------------------- */

/* The event of a change for this watch, or NOTHING. A server sends no event of
 * a node that the client may not read. */
static lk_event_type event_of(const sim_request *r, const sim_change *c)
{
  bool same = strcmp(c->path, r->path) == 0;
  bool comes_or_goes =
      c->type == LK_EVENT_CREATED || c->type == LK_EVENT_DELETED;

  if (c->type == NOTHING)
    return NOTHING;
  if (same || (r->persistent->mode == LK_WATCH_RECURSIVE &&
               sim_is_below(c->path, r->path)))
    return (c->perms & LK_PERM_READ) != 0 ? c->type : NOTHING;
  if (r->persistent->mode == LK_WATCH_PERSISTENT && comes_or_goes &&
      sim_is_child(c, r->path))
    return (c->parent_perms & LK_PERM_READ) != 0 ? LK_EVENT_CHILDREN : NOTHING;
  return NOTHING;
}

/* The first change from `*at` on that the watch must report; NULL: none yet. */
static const sim_change *next_change(const sim_checker *checker,
                                     const sim_request *r, size_t *at)
{
  for (; *at < checker->change_log.count; (*at)++) {
    const sim_change *c = &checker->change_log.changes[*at];

    if (event_of(r, c) != NOTHING)
      return c;
  }
  return NULL;
}

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
static bool has_throttled_set_watches(const sim_received *h)
{
  size_t i = 0;

  while (i < h->count && h->frames[i].type != -2)
    i++;
  return i < h->count;
}

/* After a throttled setWatches the time of registration is not known. The watch
 * reports a second re-registration, perhaps for another reason. */
static bool registration_is_late(const sim_received *h, const sim_request *r)
{
  return has_throttled_set_watches(h) &&
         (r->persistent->reregistrations == 1 || !r->persistent->registered);
}

/* The reconnect sends one setWatches for each zxid; the last reply registers
 * the watch at the latest. `until`: the frames reported so far. */
static void note_registration(const sim_checker *checker, const sim_life *l,
                              const sim_request *r, size_t until)
{
  const sim_received *h = &l->received;

  if (registration_is_late(h, r)) {
    r->persistent->registered = false;
    return;
  }
  for (size_t i = 0, n = 0; i < until && !r->persistent->registered; i++) {
    if (h->frames[i].type == 0 && ++n == h->at_reconnect)
      set_registered(checker, r, h->frames[i].zxid);
  }
}

/* Whether a setWatches was outstanding before that frame, or is repeated
 * because it was throttled. */
static bool may_make_up_events(const sim_received *h, size_t frame)
{
  size_t answered = 0;
  int32_t last = 0;

  for (size_t i = 0; i < frame; i++) {
    if (h->frames[i].type > 0)
      continue;
    answered++;
    last = h->frames[i].type;
  }
  return answered < h->set_watches_sent || last == -2;
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

/* Whether the event is of a change that a one-shot watch may have missed. */
static bool was_missed(const sim_checker *checker, const sim_life *l,
                       const sim_request *r, const lk_event *e)
{
  size_t mended =
      sim_change_log_first_after(&checker->change_log, l->received.late_zxid);
  size_t i = r->persistent->first_missed < mended ? r->persistent->first_missed
                                                  : mended;

  for (; i < checker->change_log.count; i++) {
    const sim_change *c = &checker->change_log.changes[i];
    bool made_anew = e->type == LK_EVENT_CHANGED &&
                     c->type == LK_EVENT_CREATED &&
                     strcmp(c->path, e->path.at) == 0;

    if (is_about(r, c, e) || made_anew)
      return true;
  }
  return false;
}

/* ---- events that are reported ------------------------------------------- */

/* The index of the event in the received frames; `count`: there is none. */
static size_t find_frame(const sim_received *h, const sim_request *r,
                         const lk_event *e)
{
  size_t i = r->persistent->next_frame > h->last_reported
                 ? r->persistent->next_frame
                 : h->last_reported;

  while (i < h->count && (h->frames[i].type != (int32_t)e->type ||
                          strcmp(h->frames[i].path, e->path.at) != 0))
    i++;
  return i;
}

/* Candidates are ascending. If there are too many, the oldest is dropped. */
static void add_candidate(sim_persistent_watch *s, size_t next)
{
  if (s->ncandidates > 0 && s->candidates[s->ncandidates - 1] >= next)
    return;
  if (s->ncandidates == SIM_MOST_PLACES)
    memmove(s->candidates, s->candidates + 1,
            --s->ncandidates * sizeof *s->candidates);
  s->candidates[s->ncandidates++] = next;
}

/* Whether the event is the next change, or is `made_up` for a missed one.
 * Updates the candidates. */
static bool can_be_told(const sim_checker *checker, const sim_request *r,
                        const lk_event *e, bool made_up)
{
  sim_persistent_watch was = *r->persistent;

  r->persistent->ncandidates = 0;
  for (size_t i = 0; i < was.ncandidates; i++) {
    size_t at = was.candidates[i];
    const sim_change *c = was.registered ? next_change(checker, r, &at) : NULL;

    if (made_up)
      add_candidate(r->persistent, at);
    if (c != NULL && is_about(r, c, e))
      add_candidate(r->persistent, at + 1);
  }
  if (r->persistent->ncandidates > 0 || made_up)
    return true;
  *r->persistent = was;
  return false;
}

static void check_told(sim_checker *checker, sim_life *l, const sim_request *r,
                       const lk_event *e)
{
  size_t at = find_frame(&l->received, r, e);

  if (at == l->received.count) {
    sim_violated(checker,
                 "a watch on %s reports %d of %s, which no server sent",
                 r->path, (int)e->type, (const char *)e->path.at);
    return;
  }
  l->received.last_reported = at;
  r->persistent->next_frame = at + 1;
  note_registration(checker, l, r, at);
  bool made_up = (may_make_up_events(&l->received, at) ||
                  registration_is_late(&l->received, r)) &&
                 (r->may_report_anything || was_missed(checker, l, r, e) ||
                  sim_event_may_be_late(checker, l, e));

  if (!can_be_told(checker, r, e, made_up)) {
    size_t next = r->persistent->candidates[0];
    const sim_change *c =
        r->persistent->registered ? next_change(checker, r, &next) : NULL;

    sim_violated(checker, "a watch on %s reports %d of %s, not of 0x%" PRIx64,
                 r->path, (int)e->type, (const char *)e->path.at,
                 c == NULL ? 0 : (uint64_t)c->zxid);
  }
}

/* It is reported behind the last reply to a setWatches, or later, if another
 * request registered the watch. */
static void set_registered_late(const sim_checker *checker,
                                const sim_request *r, const sim_received *h)
{
  size_t i = h->count;

  while (i > 0 && h->frames[i - 1].type != 0 && h->frames[i - 1].type != -2)
    i--;
  if (i > 0 && h->frames[i - 1].type == 0 && h->last_reported < i)
    set_registered(checker, r, h->frames[i - 1].zxid);
}

static void check_back(sim_checker *checker, sim_request *r,
                       uint64_t connection)
{
  if (!may_be_reregistered(checker, r, connection))
    sim_violated(checker,
                 "a watch on %s reports a re-registration without a reconnect",
                 r->path);
  else if (r->until_disconnect)
    sim_violated(checker, "a watch on %s outlives its connection", r->path);
  r->persistent->reregistrations =
      r->connection == connection ? r->persistent->reregistrations + 1 : 1;
  r->connection = connection;
  r->persistent->registered = false;
  r->persistent->first_missed = r->persistent->candidates[0];
  r->persistent->next_frame = 0;
  if (r->persistent->reregistrations > 1)
    set_registered_late(checker, r,
                        &sim_life_of(checker, r->process)->received);
}

static void check_persistent_event(sim_checker *checker, sim_life *l,
                                   sim_request *r, const lk_event *e)
{
  uint64_t connection = lk_client_connection(r->process->client);

  if (!r->watch_registered)
    sim_violated(checker, "a watch on %s reports %d without being registered",
                 r->path, (int)e->type);
  else if (e->type == LK_EVENT_REREGISTERED)
    check_back(checker, r, connection);
  else if (e->type == LK_EVENT_ENDED) {
    if (e->err == 0 ||
        (e->err == LK_ERR_CONNECTION_LOSS && !r->until_disconnect))
      sim_violated(checker, "a watch on %s ends with %d", r->path, e->err);
  } else if (r->connection != connection)
    sim_violated(checker, "a watch on %s reports %d before its re-registration",
                 r->path, (int)e->type);
  else
    check_told(checker, l, r, e);
}

/* ---- events that are missing -------------------------------------------- */

/* Removes candidates whose change was due at `zxid`. If none remains, returns
 * the change that is missing and keeps the last candidate. */
static const sim_change *drop_passed_candidates(const sim_checker *checker,
                                                const sim_request *r,
                                                int64_t zxid)
{
  sim_persistent_watch was = *r->persistent;
  const sim_change *due = NULL;

  r->persistent->ncandidates = 0;
  for (size_t i = 0; i < was.ncandidates; i++) {
    const sim_change *c = next_change(checker, r, &was.candidates[i]);

    if (c == NULL || c->zxid > zxid)
      add_candidate(r->persistent, was.candidates[i]);
    else
      due = c;
  }
  if (r->persistent->ncandidates > 0)
    return NULL;
  r->persistent->candidates[0] = was.candidates[was.ncandidates - 1];
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
      sim_received_set_watches_sent(f->life, f->xid);
  } else if (!checker->world->all_requests)
    return;
  else if (f->type == SIM_REPLY)
    check_missing_events(checker, f->life, f->reply);
  else if (r->persistent == NULL)
    return;
  else if (f->type == SIM_WATCH_EVENT)
    check_persistent_event(checker, sim_life_of(checker, r->process), r,
                           f->watch_event);
  else if (r->watch_registered) {
    set_registered(checker, r, r->watch_zxid);
    r->persistent->first_missed = r->persistent->candidates[0];
  }
}
