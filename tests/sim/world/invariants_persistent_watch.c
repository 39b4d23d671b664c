/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"

#include <string.h>

/*
 * Watches that stay. Their events must be those that the change log of what is
 * committed makes, one by one, from the zxid on at which the server has set
 * them; that it does so again after a reconnect is told before.
 *
 * Between the reconnect and the last answer to a setWatches a server makes up
 * for what the watches of one shot have missed, and such an event is told to
 * those that stay as well: then it need only be true.
 */

/* In the change log: there is no event. */
static const lk_event_type NOTHING = LK_EVENT_ENDED;

/* ---- events that must be reported --------------------------------------- */

/* What a watch is told of a change, or NOTHING. A server is silent about
 * what may not be read. */
static lk_event_type event_of(const sim_request *r, const sim_change *c)
{
  bool same = strcmp(c->path, r->path) == 0;
  bool comes_or_goes =
      c->type == LK_EVENT_CREATED || c->type == LK_EVENT_DELETED;

  if (c->type == NOTHING)
    return NOTHING;
  if (same ||
      (r->stay->mode == LK_WATCH_RECURSIVE && sim_is_below(c->path, r->path)))
    return (c->perms & LK_PERM_READ) != 0 ? c->type : NOTHING;
  if (r->stay->mode == LK_WATCH_PERSISTENT && comes_or_goes &&
      sim_is_child(c, r->path))
    return (c->dir_perms & LK_PERM_READ) != 0 ? LK_EVENT_CHILDREN : NOTHING;
  return NOTHING;
}

/* The change at `*at` or behind it of which it must be told; NULL: none yet. */
static const sim_change *next_change(const sim_checker *j, const sim_request *r,
                                     size_t *at)
{
  for (; *at < j->change_log.count; (*at)++) {
    const sim_change *c = &j->change_log.changes[*at];

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

/* ---- when it stands ----------------------------------------------------- */

static void arm(const sim_checker *j, const sim_request *r, int64_t zxid)
{
  r->stay->armed = true;
  r->stay->next[0] = sim_change_log_behind(&j->change_log, zxid);
  r->stay->count = 1;
}

/* Whether a setWatches of this connection was throttled. */
static bool is_late(const sim_received *h)
{
  size_t i = 0;

  while (i < h->count && h->heard[i].type != -2)
    i++;
  return i < h->count;
}

/* Then it is not known here when this watch was set again: not before it is
 * told so once more, and perhaps by something else. */
static bool waits(const sim_received *h, const sim_request *r)
{
  return is_late(h) && (r->stay->back == 1 || !r->stay->armed);
}

/* It is set again with the setWatches of the reconnect, which are one for each
 * zxid: not behind the last of them. `until`: what has been told so far. */
static void see_armed(const sim_checker *j, const sim_life *l,
                      const sim_request *r, size_t until)
{
  const sim_received *h = &l->received;

  if (waits(h, r)) {
    r->stay->armed = false;
    return;
  }
  for (size_t i = 0, n = 0; i < until && !r->stay->armed; i++) {
    if (h->heard[i].type == 0 && ++n == h->together)
      arm(j, r, h->heard[i].zxid);
  }
}

/* Whether a setWatches had not been answered before that was heard, or is to
 * be repeated, since it was throttled. */
static bool makes_up(const sim_received *h, size_t heard)
{
  size_t answered = 0;
  int32_t last = 0;

  for (size_t i = 0; i < heard; i++) {
    if (h->heard[i].type > 0)
      continue;
    answered++;
    last = h->heard[i].type;
  }
  return answered < h->asked || last == -2;
}

/* What stays is told that it is back with the connection; and once more, when
 * it is set again only later. */
static bool is_back(sim_checker *j, const sim_request *r, uint64_t connection)
{
  return r->connection != connection ||
         (r->stay->back == 1 && is_late(&sim_life_of(j, r->process)->received));
}

/* Whether it is true of what one may have missed. */
static bool was_missed(const sim_checker *j, const sim_life *l,
                       const sim_request *r, const lk_event *e)
{
  size_t mended =
      sim_change_log_behind(&j->change_log, l->received.mended_zxid);
  size_t i = r->stay->away < mended ? r->stay->away : mended;

  for (; i < j->change_log.count; i++) {
    const sim_change *c = &j->change_log.changes[i];
    bool made_anew = e->type == LK_EVENT_CHANGED &&
                     c->type == LK_EVENT_CREATED &&
                     strcmp(c->path, e->path.at) == 0;

    if (is_about(r, c, e) || made_anew)
      return true;
  }
  return false;
}

/* ---- events that are reported ------------------------------------------- */

/* Where that event stands in what was heard; `count`: nowhere. */
static size_t find(const sim_received *h, const sim_request *r,
                   const lk_event *e)
{
  size_t i = r->stay->heard > h->told ? r->stay->heard : h->told;

  while (i < h->count && (h->heard[i].type != (int32_t)e->type ||
                          strcmp(h->heard[i].path, e->path.at) != 0))
    i++;
  return i;
}

/* What comes is larger than all before it, or the last one again. Of too many
 * the oldest are forgotten. */
static void add_place(sim_stay *s, size_t next)
{
  if (s->count > 0 && s->next[s->count - 1] >= next)
    return;
  if (s->count == SIM_MOST_PLACES)
    memmove(s->next, s->next + 1, --s->count * sizeof *s->next);
  s->next[s->count++] = next;
}

/* The event is the next change, or is `made_up` for one that was missed. false:
 * neither can be. */
static bool can_be_told(const sim_checker *j, const sim_request *r,
                        const lk_event *e, bool made_up)
{
  sim_stay was = *r->stay;

  r->stay->count = 0;
  for (size_t i = 0; i < was.count; i++) {
    size_t at = was.next[i];
    const sim_change *c = was.armed ? next_change(j, r, &at) : NULL;

    if (made_up)
      add_place(r->stay, at);
    if (c != NULL && is_about(r, c, e))
      add_place(r->stay, at + 1);
  }
  if (r->stay->count > 0 || made_up)
    return true;
  *r->stay = was;
  return false;
}

static void judge_told(sim_checker *j, sim_life *l, const sim_request *r,
                       const lk_event *e)
{
  size_t at = find(&l->received, r, e);

  if (at == l->received.count) {
    sim_violated(j, "a watch on %s reports %d of %s, which no server sent",
                 r->path, (int)e->type, (const char *)e->path.at);
    return;
  }
  l->received.told = at;
  r->stay->heard = at + 1;
  see_armed(j, l, r, at);
  bool made_up =
      (makes_up(&l->received, at) || waits(&l->received, r)) &&
      (r->fires || was_missed(j, l, r, e) || sim_is_told_late(j, l, e));

  if (!can_be_told(j, r, e, made_up)) {
    size_t next = r->stay->next[0];
    const sim_change *c = r->stay->armed ? next_change(j, r, &next) : NULL;

    sim_violated(j, "a watch on %s reports %d of %s, not of 0x%" PRIx64,
                 r->path, (int)e->type, (const char *)e->path.at,
                 c == NULL ? 0 : (uint64_t)c->zxid);
  }
}

/* It is told so behind the last answer; or later, if it was registered by
 * something else. */
static void arm_late(const sim_checker *j, const sim_request *r,
                     const sim_received *h)
{
  size_t i = h->count;

  while (i > 0 && h->heard[i - 1].type != 0 && h->heard[i - 1].type != -2)
    i--;
  if (i > 0 && h->heard[i - 1].type == 0 && h->told < i)
    arm(j, r, h->heard[i - 1].zxid);
}

static void judge_back(sim_checker *j, sim_request *r, uint64_t connection)
{
  if (!is_back(j, r, connection))
    sim_violated(j, "a watch on %s is back, and never was away", r->path);
  else if (r->until_disconnect)
    sim_violated(j, "a watch on %s outlives its connection", r->path);
  r->stay->back = r->connection == connection ? r->stay->back + 1 : 1;
  r->connection = connection;
  r->stay->armed = false;
  r->stay->away = r->stay->next[0];
  r->stay->heard = 0;
  if (r->stay->back > 1)
    arm_late(j, r, &sim_life_of(j, r->process)->received);
}

static void judge_event(sim_checker *j, sim_life *l, sim_request *r,
                        const lk_event *e)
{
  uint64_t connection = lk_client_connection(r->process->client);

  if (!r->stands)
    sim_violated(j, "a watch on %s reports %d without being registered",
                 r->path, (int)e->type);
  else if (e->type == LK_EVENT_REREGISTERED)
    judge_back(j, r, connection);
  else if (e->type == LK_EVENT_ENDED) {
    if (e->err == 0 ||
        (e->err == LK_ERR_CONNECTION_LOSS && !r->until_disconnect))
      sim_violated(j, "a watch on %s ends with %d", r->path, e->err);
  } else if (r->connection != connection)
    sim_violated(j, "a watch on %s reports %d before its re-registration",
                 r->path, (int)e->type);
  else
    judge_told(j, l, r, e);
}

/* ---- events that are missing -------------------------------------------- */

/* Where a change is due by then it cannot be. The result is such a change, if
 * that is so everywhere; the last place is left then. */
static const sim_change *drop_places(const sim_checker *j, const sim_request *r,
                                     int64_t zxid)
{
  sim_stay was = *r->stay;
  const sim_change *due = NULL;

  r->stay->count = 0;
  for (size_t i = 0; i < was.count; i++) {
    const sim_change *c = next_change(j, r, &was.next[i]);

    if (c == NULL || c->zxid > zxid)
      add_place(r->stay, was.next[i]);
    else
      due = c;
  }
  if (r->stay->count > 0)
    return NULL;
  r->stay->next[0] = was.next[was.count - 1];
  r->stay->count = 1;
  return due;
}

static void judge_silent(sim_checker *j, const sim_life *l,
                         const sim_request *r, const lk_reply *a)
{
  if (r->connection != a->connection) {
    sim_violated(j, "a watch on %s does not report its re-registration",
                 r->path);
    return;
  }
  see_armed(j, l, r, l->received.count);
  if (!r->stay->armed)
    return;
  const sim_change *due = drop_places(j, r, a->zxid);

  if (due != NULL)
    sim_violated(
        j, "a watch on %s does not report 0x%" PRIx64 " before 0x%" PRIx64,
        r->path, (uint64_t)due->zxid, (uint64_t)a->zxid);
}

static void judge_silence(sim_checker *j, const sim_life *l, const lk_reply *a)
{
  if (a->zxid <= 0) /* a handshake */
    return;
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->stay != NULL && r->stands)
      judge_silent(j, l, r, a);
  }
}

/* A watch that stays is told of each change, once and in order, or that it was
 * away. */
void sim_watch_stays(sim_checker *j, const sim_fact *f)
{
  sim_request *r = f->request;

  if (f->type == SIM_SENT) {
    if (sim_hears(j->world) &&
        (f->op == LK_OPCODE_SET_WATCHES || f->op == LK_OPCODE_SET_WATCHES2))
      sim_received_asked(f->life, f->xid);
  } else if (!j->world->all_requests)
    return;
  else if (f->type == SIM_ANSWER)
    judge_silence(j, f->life, f->answer);
  else if (r->stay == NULL)
    return;
  else if (f->type == SIM_EVENT)
    judge_event(j, sim_life_of(j, r->process), r, f->watched);
  else if (r->stands) {
    arm(j, r, r->since);
    r->stay->away = r->stay->next[0];
  }
}
