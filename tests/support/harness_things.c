/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"
#include "support/harness_things.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names -------------------------------------------------------------- */

harness_thing *harness_thing_add(harness *h, const char *name)
{
  harness_thing *t = calloc(1, sizeof *t);

  if (t == NULL)
    abort();
  t->h = h;
  snprintf(t->name, sizeof t->name, "%s", name);
  t->next = h->things;
  h->things = t;
  return t;
}

harness_thing *harness_thing_find(harness *h, const char *name)
{
  harness_thing *t = h->things;

  while (t != NULL && strcmp(t->name, name) != 0)
    t = t->next;
  return t;
}

void harness_things_freed(harness *h)
{
  for (harness_thing *t = h->things; t != NULL; t = t->next) {
    harness_must(h, !t->accepted || t->ended == 1, "a request never ended");
    harness_must(h, !t->watch_is_set || t->ended == 1, "a watch never ended");
    t->attached = false;
  }
  h->base.attached = false;
}

void harness_things_done(harness *h)
{
  while (h->things != NULL) {
    harness_thing *t = h->things;

    h->things = t->next;
    free(t);
  }
}

size_t harness_open_requests(const harness *h)
{
  size_t count = 0;

  for (const harness_thing *t = h->things; t != NULL; t = t->next)
    if (t->accepted && t->ended == 0)
      count++;
  return count;
}

const char *harness_error(int err, char *room, size_t size)
{
  const char *name = err == 0 ? "ok" : lk_error_name(err);

  if (name == NULL) {
    snprintf(room, size, "%d", err);
    name = room;
  }
  return name;
}

void harness_react(harness *h, const char *name, const char *event)
{
  h->depth++;
  if (h->react != NULL)
    h->react(h, name, event);
  h->depth--;
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
static bool may_report_path(const harness_thing *t, const char *path)
{
  size_t len = strlen(t->path);
  bool is_unknown = len == 0, is_root = len == 1;

  if (is_unknown || strcmp(t->path, path) == 0)
    return true;
  return t->is_recursive && strncmp(t->path, path, len) == 0 &&
         (is_root || path[len] == '/');
}

void harness_on_event(lk_client *c, lk_watch *w, const lk_event *event,
                      void *arg)
{
  harness_thing *t = arg;
  harness *h = t->h;
  const char *name = event_name(event->type);
  bool is_last_event = !t->is_persistent || event->type == LK_EVENT_ENDED;
  char room[16];

  harness_must(h, h->client == c, "an event once freed");
  harness_must(h, t->watch_is_set && t->watch == w, "an event for no watch");
  harness_must(h, t->ended == 0, "a watch was told twice");
  if (is_last_event)
    t->ended++;
  bool has_ended = event->type == LK_EVENT_ENDED;

  harness_must(h, name != NULL && has_ended == (event->err != 0),
               "an event that is none");
  harness_must(h, t->is_persistent || event->type != LK_EVENT_REREGISTERED,
               "a watch that does not stay is back");
  harness_must(h, !t->is_recursive || event->type != LK_EVENT_CHILDREN,
               "children told to a watch of a tree");
  harness_must(h, strlen(event->path.at) == event->path.len,
               "an event's path does not end");
  harness_must(h, may_report_path(t, event->path.at),
               "an event of another path");
  harness_log_line(
      h, "%s: %s %s%s%s", t->name, name, (const char *)event->path.at,
      event->err == 0 ? "" : " ",
      event->err == 0 ? "" : harness_error(event->err, room, sizeof room));
  t->in_last_callback = is_last_event;
  harness_react(h, t->name, name);
  /* The path must stay until the callback ends, even if it freed the client. */
  harness_must(h, strlen(event->path.at) == event->path.len,
               "an event's path went before its callback ended");
  t->in_last_callback = false;
  if (is_last_event)
    t->watch = NULL;
}

static void on_fire(lk_client *c, void *arg)
{
  harness_thing *t = arg;

  harness_must(t->h, t->h->client == c, "a timer once freed");
  harness_must(t->h, t->timer.node.at <= t->h->now, "a timer too early");
  harness_log_line(t->h, "%s: fired", t->name);
  harness_react(t->h, t->name, "fired");
}

static void on_removed(lk_client *c, int err, void *arg)
{
  harness_thing *t = arg;
  char room[16];

  harness_must(t->h, t->h->client == c, "removed for another client");
  harness_must(t->h, t->removing, "removed twice, or not at all");
  t->removing = false;
  harness_log_line(t->h, "%s: removed: %s", t->name,
                   harness_error(err, room, sizeof room));
  harness_react(t->h, t->name, "removed");
}

static void remove_watch(harness_thing *t)
{
  int err = lk_watch_remove(t->h->client, t->watch, on_removed, t);
  char room[16];

  t->removing = err == 0;
  if (err != 0)
    harness_log_line(t->h, "%s: not removed: %s", t->name,
                     harness_error(err, room, sizeof room));
}

void harness_cancel(harness *h, const char *name, bool on_server)
{
  harness_thing *t = harness_thing_find(h, name);

  if (h->client == NULL || t == NULL || t->watch == NULL)
    return;
  if (on_server)
    remove_watch(t);
  else
    lk_watch_cancel(h->client, t->watch);
  if (t->in_last_callback)
    return; /* this is its last callback, which has counted the end */
  t->watch_is_set = false;
  t->watch = NULL;
  t->ended++;
}

/* ---- listeners ---------------------------------------------------------- */

/* Which state may follow which. */
static bool state_may_follow(const harness *h, lk_state from, lk_state to)
{
  switch (to) {
  case LK_STATE_CONNECTING: return from == LK_STATE_EXPIRED;
  case LK_STATE_CONNECTED:
    return from == LK_STATE_CONNECTING || from == LK_STATE_SUSPENDED;
  case LK_STATE_READ_ONLY:
    return h->read_only && h->session == 0 &&
           (from == LK_STATE_CONNECTING || from == LK_STATE_SUSPENDED);
  case LK_STATE_SUSPENDED:
    return from == LK_STATE_CONNECTED || from == LK_STATE_READ_ONLY;
  case LK_STATE_EXPIRED:
    return h->session != 0 && (from == LK_STATE_SUSPENDED ||
                               (from == LK_STATE_CONNECTING && h->resumed));
  case LK_STATE_AUTH_FAILED:
    return from == LK_STATE_CONNECTED || from == LK_STATE_READ_ONLY ||
           (h->proves &&
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
  case LK_STATE_READ_ONLY: return err == 0;
  case LK_STATE_SUSPENDED:           /* 0: the client moves to another server */
  case LK_STATE_CLOSED: return true; /* see closed_without_reason() */
  case LK_STATE_EXPIRED:
  case LK_STATE_AUTH_FAILED: return err != 0;
  }
  return false;
}

/* CLOSED has an error if and only if another end of the client precedes it. */
static bool closed_without_reason(lk_state from, lk_state state, int err)
{
  bool has_ended = from == LK_STATE_EXPIRED || from == LK_STATE_AUTH_FAILED;

  return state == LK_STATE_CLOSED && has_ended != (err != 0);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  harness_thing *t = arg;
  harness *h = t->h;
  char room[16];

  harness_must(h, h->client == c && t->attached, "a listener that is none");
  harness_must(h, lk_client_state(c) == state, "another state than is told");
  harness_must(h, error_fits_state(state, err), "a state with a wrong error");
  if (t == &h->base) {
    harness_must(h, state_may_follow(h, h->state, state),
                 "a state out of order");
    harness_must(h, !closed_without_reason(h->state, state, err),
                 "closed without its reason, or with another one");
    harness_must(
        h,
        h->sasl == NULL || h->sasl->proved ||
            (state != LK_STATE_CONNECTED && state != LK_STATE_READ_ONLY),
        "connected ahead of the SASL exchange's end");
    h->state = state;
    if (state == LK_STATE_CONNECTED)
      h->session = lk_client_session(c).id;
    if (state == LK_STATE_EXPIRED) {
      h->session = 0;
      h->xid = 0;
    }
  }
  harness_log_line(h, "%s%s%s%s%s", t->name, t->name[0] == '\0' ? "" : ": ",
                   lk_state_text(state), err == 0 ? "" : " ",
                   err == 0 ? "" : harness_error(err, room, sizeof room));
  harness_react(h, t == &h->base ? "state" : t->name, lk_state_text(state));
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
  harness_thing *t = arg;
  harness *h = t->h;
  char room[16];

  harness_must(h, h->client == c && t->attached, "a listener that is none");
  harness_must(h, evidence_name(a->evidence) != NULL, "an unknown proof");
  bool has_evidence = a->evidence != LK_EVIDENCE_NONE;
  bool has_session = lk_client_session(c).id != 0;

  harness_must(h, has_evidence == has_session,
               "a proof without a session, or none with one");
  harness_must(h, a->sent_ms <= a->received_ms && a->received_ms <= h->now,
               "an answer from the future");
  harness_must(h, a->connection == lk_client_connection(c) && a->connection > 0,
               "an answer of another connection");
  if (!t->logs_replies)
    return;
  harness_log_line(h, "%s: %s, %s, zxid %" PRId64 ", sent at %" PRId64, t->name,
                   evidence_name(a->evidence),
                   harness_error(a->err, room, sizeof room), a->zxid,
                   a->sent_ms - h->log_start);
  harness_react(h, t->name, "answer");
}

static void on_attempt(lk_client *c, int err, const char *why, void *arg)
{
  harness_thing *t = arg;
  harness *h = t->h;
  const char *last_why;
  char room[16];

  harness_must(h, h->client == c && t->attached, "a listener that is none");
  harness_must(h, err == lk_client_last_error(c, &last_why) && why == last_why,
               "another error than the last one");
  harness_must(
      h, h->state == LK_STATE_CONNECTING || h->state == LK_STATE_SUSPENDED,
      "an attempt that fails in another state");
  harness_log_line(h, "%s: attempt fails %s %s", t->name,
                   harness_error(err, room, sizeof room), why);
  harness_react(h, t->name, "attempt");
}

static void attach(harness_thing *t)
{
  t->attached = true;
  t->listener = (lk_listener){.size = sizeof(lk_listener),
                              .state = on_state,
                              .reply = on_reply,
                              .arg = t};
  if (t->logs_attempts)
    t->listener.attempt = on_attempt;
  lk_client_attach(t->h->client, &t->listener);
}

void harness_listen_base(harness *h)
{
  h->base.h = h;
  h->state = lk_client_state(h->client);
  attach(&h->base);
}

void harness_listen(harness *h, const char *name, bool logs_replies,
                    bool logs_attempts)
{
  if (h->client == NULL)
    return;
  harness_thing *t = harness_thing_add(h, name);

  t->logs_replies = logs_replies;
  t->logs_attempts = logs_attempts;
  attach(t);
}

void harness_unlisten(harness *h, const char *name)
{
  harness_thing *t = harness_thing_find(h, name);

  if (t == NULL || h->client == NULL)
    return;
  t->attached = false; /* detaching again has no effect */
  lk_client_detach(h->client, &t->listener);
}

/* ---- timers ------------------------------------------------------------- */

void harness_timer(harness *h, const char *name, int64_t in_ms)
{
  harness_thing *t = harness_thing_find(h, name);

  if (h->client == NULL)
    return;
  if (t == NULL) {
    t = harness_thing_add(h, name);
    t->timer.fire = on_fire;
    t->timer.arg = t;
  }
  lk_timer_start(h->client, &t->timer, h->now + in_ms);
}

void harness_stop(harness *h, const char *name)
{
  harness_thing *t = harness_thing_find(h, name);

  if (t != NULL && h->client != NULL)
    lk_timer_stop(h->client, &t->timer);
}
