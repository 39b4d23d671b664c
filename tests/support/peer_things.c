/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"
#include "support/peer_things.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names -------------------------------------------------------------- */

peer_thing *peer_thing_add(peer *p, const char *name)
{
  peer_thing *t = calloc(1, sizeof *t);

  if (t == NULL)
    abort();
  t->p = p;
  snprintf(t->name, sizeof t->name, "%s", name);
  t->next = p->things;
  p->things = t;
  return t;
}

peer_thing *peer_thing_find(peer *p, const char *name)
{
  peer_thing *t = p->things;

  while (t != NULL && strcmp(t->name, name) != 0)
    t = t->next;
  return t;
}

void peer_things_freed(peer *p)
{
  for (peer_thing *t = p->things; t != NULL; t = t->next) {
    peer_must(p, !t->accepted || t->ended == 1, "a request never ended");
    peer_must(p, !t->watch_is_set || t->ended == 1, "a watch never ended");
    t->attached = false;
  }
  p->base.attached = false;
}

void peer_things_done(peer *p)
{
  while (p->things != NULL) {
    peer_thing *t = p->things;

    p->things = t->next;
    free(t);
  }
}

size_t peer_open_requests(const peer *p)
{
  size_t count = 0;

  for (const peer_thing *t = p->things; t != NULL; t = t->next)
    if (t->accepted && t->ended == 0)
      count++;
  return count;
}

const char *peer_error(int err, char *room, size_t size)
{
  const char *name = err == 0 ? "ok" : lk_error_name(err);

  if (name == NULL) {
    snprintf(room, size, "%d", err);
    name = room;
  }
  return name;
}

void peer_react(peer *p, const char *name, const char *event)
{
  p->depth++;
  if (p->react != NULL)
    p->react(p, name, event);
  p->depth--;
}

/* ---- watches ------------------------------------------------------------ */

static const char *event_name(lk_event_type type)
{
  switch (type) {
  case LK_EVENT_ENDED: return "ended";
  case LK_EVENT_CREATED: return "created";
  case LK_EVENT_DELETED: return "deleted";
  case LK_EVENT_CHANGED: return "changed";
  case LK_EVENT_CHILDREN: return "children";
  case LK_EVENT_REREGISTERED: return "resumed";
  }
  return NULL;
}

/* Whether a watch may report `path`: that is its own path, or for a recursive
   watch also a path below. */
static bool may_report_path(const peer_thing *t, const char *path)
{
  size_t len = strlen(t->path);
  bool is_unknown = len == 0, is_root = len == 1;

  if (is_unknown || strcmp(t->path, path) == 0)
    return true;
  return t->is_recursive && strncmp(t->path, path, len) == 0 &&
         (is_root || path[len] == '/');
}

void peer_on_event(lk_client *c, lk_watch *w, const lk_event *event, void *arg)
{
  peer_thing *t = arg;
  peer *p = t->p;
  const char *name = event_name(event->type);
  bool is_last_event = !t->is_persistent || event->type == LK_EVENT_ENDED;
  char room[16];

  peer_must(p, p->client == c, "an event once freed");
  peer_must(p, t->watch_is_set && t->watch == w, "an event for no watch");
  peer_must(p, t->ended == 0, "a watch was told twice");
  if (is_last_event)
    t->ended++;
  bool has_ended = event->type == LK_EVENT_ENDED;

  peer_must(p, name != NULL && has_ended == (event->err != 0),
            "an event that is none");
  peer_must(p, t->is_persistent || event->type != LK_EVENT_REREGISTERED,
            "a watch that does not stay is back");
  peer_must(p, !t->is_recursive || event->type != LK_EVENT_CHILDREN,
            "children told to a watch of a tree");
  peer_must(p, strlen(event->path.at) == event->path.len,
            "an event's path does not end");
  peer_must(p, may_report_path(t, event->path.at), "an event of another path");
  peer_log_line(p, "%s: %s %s%s%s", t->name, name, (const char *)event->path.at,
                event->err == 0 ? "" : " ",
                event->err == 0 ? ""
                                : peer_error(event->err, room, sizeof room));
  t->in_last_callback = is_last_event;
  peer_react(p, t->name, name);
  /* The path must stay until the callback ends, even if it freed the client. */
  peer_must(p, strlen(event->path.at) == event->path.len,
            "an event's path went before its callback ended");
  t->in_last_callback = false;
  if (is_last_event)
    t->watch = NULL;
}

static void on_fire(lk_client *c, void *arg)
{
  peer_thing *t = arg;

  peer_must(t->p, t->p->client == c, "a timer once freed");
  peer_must(t->p, t->timer.node.at <= t->p->now, "a timer too early");
  peer_log_line(t->p, "%s: fired", t->name);
  peer_react(t->p, t->name, "fired");
}

void peer_cancel(peer *p, const char *name, bool on_server)
{
  peer_thing *t = peer_thing_find(p, name);

  if (p->client == NULL || t == NULL || t->watch == NULL)
    return;
  lk_watch_cancel(p->client, t->watch, on_server);
  if (t->in_last_callback)
    return; /* this is its last callback, which has counted the end */
  t->watch_is_set = false;
  t->watch = NULL;
  t->ended++;
}

/* ---- listeners ---------------------------------------------------------- */

/* Which state may follow which. */
static bool state_may_follow(const peer *p, lk_state from, lk_state to)
{
  switch (to) {
  case LK_STATE_CONNECTING: return from == LK_STATE_EXPIRED;
  case LK_STATE_CONNECTED:
    return from == LK_STATE_CONNECTING || from == LK_STATE_SUSPENDED;
  case LK_STATE_READ_ONLY:
    return p->read_only && p->session == 0 &&
           (from == LK_STATE_CONNECTING || from == LK_STATE_SUSPENDED);
  case LK_STATE_SUSPENDED:
    return from == LK_STATE_CONNECTED || from == LK_STATE_READ_ONLY;
  case LK_STATE_EXPIRED:
    return p->session != 0 && (from == LK_STATE_SUSPENDED ||
                               (from == LK_STATE_CONNECTING && p->resumed));
  case LK_STATE_AUTH_FAILED:
    return from == LK_STATE_CONNECTED || from == LK_STATE_READ_ONLY ||
           (p->proves &&
            (from == LK_STATE_CONNECTING || from == LK_STATE_SUSPENDED));
  case LK_STATE_CLOSED: return from != LK_STATE_CLOSED;
  }
  return false;
}

static bool error_fits_state(lk_state state, int err)
{
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
  case LK_STATE_CLOSED: return err == 0;
  case LK_STATE_SUSPENDED:
    return true; /* 0: the client moves to another server */
  case LK_STATE_EXPIRED:
  case LK_STATE_AUTH_FAILED: return err != 0;
  }
  return false;
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  peer_thing *t = arg;
  peer *p = t->p;
  char room[16];

  peer_must(p, p->client == c && t->attached, "a listener that is none");
  peer_must(p, lk_client_state(c) == state, "another state than is told");
  peer_must(p, error_fits_state(state, err), "a state with a wrong error");
  if (t == &p->base) {
    peer_must(p, state_may_follow(p, p->state, state), "a state out of order");
    peer_must(p,
              p->sasl == NULL || p->sasl->proved ||
                  (state != LK_STATE_CONNECTED && state != LK_STATE_READ_ONLY),
              "connected ahead of the SASL exchange's end");
    p->state = state;
    if (state == LK_STATE_CONNECTED)
      p->session = lk_client_session(c).id;
    if (state == LK_STATE_EXPIRED) {
      p->session = 0;
      p->xid = 0;
    }
  }
  peer_log_line(p, "%s%s%s%s%s", t->name, t->name[0] == '\0' ? "" : ": ",
                lk_state_text(state), err == 0 ? "" : " ",
                err == 0 ? "" : peer_error(err, room, sizeof room));
  peer_react(p, t == &p->base ? "state" : t->name, lk_state_text(state));
}

static const char *evidence_name(lk_evidence evidence)
{
  switch (evidence) {
  case LK_EVIDENCE_NONE: return "none";
  case LK_EVIDENCE_CONTACT: return "contact";
  case LK_EVIDENCE_LEADER: return "leader";
  case LK_EVIDENCE_COMMIT: return "commit";
  case LK_EVIDENCE_RESUMED: return "resumed";
  case LK_EVIDENCE_NEW_SESSION: return "new session";
  }
  return NULL;
}

static void on_reply(lk_client *c, const lk_reply *a, void *arg)
{
  peer_thing *t = arg;
  peer *p = t->p;
  char room[16];

  peer_must(p, p->client == c && t->attached, "a listener that is none");
  peer_must(p, evidence_name(a->evidence) != NULL, "an unknown proof");
  bool has_evidence = a->evidence != LK_EVIDENCE_NONE;
  bool has_session = lk_client_session(c).id != 0;

  peer_must(p, has_evidence == has_session,
            "a proof without a session, or none with one");
  peer_must(p, a->sent_ms <= a->received_ms && a->received_ms <= p->now,
            "an answer from the future");
  peer_must(p, a->connection == lk_client_connection(c) && a->connection > 0,
            "an answer of another connection");
  if (!t->logs_replies)
    return;
  peer_log_line(p, "%s: %s, %s, zxid %" PRId64 ", sent at %" PRId64, t->name,
                evidence_name(a->evidence),
                peer_error(a->err, room, sizeof room), a->zxid,
                a->sent_ms - p->log_start);
  peer_react(p, t->name, "answer");
}

static void attach(peer_thing *t)
{
  t->attached = true;
  t->listener = (lk_listener){.state = on_state, .reply = on_reply, .arg = t};
  lk_client_attach(t->p->client, &t->listener);
}

void peer_listen_base(peer *p)
{
  p->base.p = p;
  p->state = lk_client_state(p->client);
  attach(&p->base);
}

void peer_listen(peer *p, const char *name, bool logs_replies)
{
  if (p->client == NULL)
    return;
  peer_thing *t = peer_thing_add(p, name);

  t->logs_replies = logs_replies;
  attach(t);
}

void peer_unlisten(peer *p, const char *name)
{
  peer_thing *t = peer_thing_find(p, name);

  if (t == NULL || p->client == NULL)
    return;
  t->attached = false; /* detaching again has no effect */
  lk_client_detach(p->client, &t->listener);
}

/* ---- timers ------------------------------------------------------------- */

void peer_timer(peer *p, const char *name, int64_t in_ms)
{
  peer_thing *t = peer_thing_find(p, name);

  if (p->client == NULL)
    return;
  if (t == NULL) {
    t = peer_thing_add(p, name);
    t->timer.fire = on_fire;
    t->timer.arg = t;
  }
  lk_timer_start(p->client, &t->timer, p->now + in_ms);
}

void peer_stop(peer *p, const char *name)
{
  peer_thing *t = peer_thing_find(p, name);

  if (t != NULL && p->client != NULL)
    lk_timer_stop(p->client, &t->timer);
}
