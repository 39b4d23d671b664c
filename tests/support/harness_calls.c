/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"
#include "support/harness_calls.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- callbacks ---------------------------------------------------------- */

void harness_end(lk_client *c, harness_thing *t, int err)
{
  harness *h = t->h;
  harness_thing *w = t->watcher;

  harness_must(h, h->client == c, "told for another client, or once freed");
  harness_must(h, t->accepted, "ended before it was accepted");
  t->ended++;
  harness_must(h, t->ended == 1, "a request ended twice");
  harness_must(h, !t->marked || !t->was_sent || err != LK_ERR_NOT_SENT,
               "it left, and was not sent");
  harness_must(h, !t->marked || t->was_sent || err != LK_ERR_IN_DOUBT,
               "it never left, and is unknown");
  if (w == NULL || w->ended > 0)
    return;
  bool watch_is_set = err == 0 || (t->is_exists && err == LK_ERR_NO_NODE);

  if (watch_is_set) {
    w->watch_is_set = true;
  } else {
    w->ended++;
    w->watch = NULL;
  }
}

void harness_log_completion(harness_thing *t, int err, const lk_record *rec,
                            const void *value)
{
  harness *h = t->h;
  lk_buf text = wire_buf();
  char room[16];
  const char *name = harness_error(err, room, sizeof room);

  if (err == 0 && rec != NULL) {
    wire_say(&text, " ");
    if (!lk__record_print(rec, value, &text))
      abort();
  }
  wire_say(&text, "%c", '\0');
  harness_log_line(h, "%s: %s%s", t->name, name, (char *)lk__buf_bytes(&text));
  lk__buf_free(&text);
  harness_react(h, t->name, name);
}

void harness_check_reply(harness *h, int err)
{
  const lk_reply *reply = lk_client_reply(h->client);

  harness_must(h, err != 0 || reply != NULL, "it succeeded without an answer");
  if (reply == NULL)
    return;
  /* A server that has lost its leader may reply CONNECTION_LOSS to a write. */
  bool server_is_in_doubt =
      err == LK_ERR_IN_DOUBT && reply->err == LK_ERR_CONNECTION_LOSS;
  bool is_of_server = err > -1000; /* smaller numbers are of the library */

  harness_must(h, is_of_server || server_is_in_doubt,
               "a reply with an error that no server sends");
}

void harness_on_done(lk_client *c, int err, void *arg)
{
  harness_thing *t = arg;

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_log_completion(t, err, NULL, NULL);
}

static void on_auth(lk_client *c, int err, void *arg)
{
  harness_thing *t = arg;

  harness_end(c, t, err);
  harness_must(t->h, lk_client_reply(c) == NULL, "an answer to auth");
  harness_log_completion(t, err, NULL, NULL);
}

void harness_on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  harness_thing *t = arg;

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, (err == 0) == (stat != NULL), "a stat with an error");
  harness_log_completion(t, err, &lk__stat_reply_record, stat);
}

void harness_on_get(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  harness_thing *t = arg;
  struct lk_data_reply r = {.data = {NULL, 0}};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, (err == 0) == (data != NULL && stat != NULL),
               "data with an error");
  if (err == 0) {
    r.data = *data;
    r.stat = *stat;
  }
  harness_log_completion(t, err, &lk__data_reply_record, &r);
}

void harness_on_children(lk_client *c, int err, const lk_bytes *names,
                         size_t count, const lk_stat *stat, void *arg)
{
  harness_thing *t = arg;
  struct lk_names_stat_reply r = {.names = lk__vec_of(names, count)};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, err == 0 || (names == NULL && count == 0 && stat == NULL),
               "names with an error");
  if (stat != NULL)
    r.stat = *stat;
  harness_log_completion(t, err,
                         stat == NULL ? &lk__names_reply_record
                                      : &lk__names_stat_reply_record,
                         &r);
}

void harness_on_create(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  harness_thing *t = arg;
  struct lk_path_stat_reply r = {.path = lk_text(path)};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, (err == 0) == (path != NULL), "a path with an error");
  if (stat != NULL)
    r.stat = *stat;
  harness_log_completion(
      t, err,
      stat == NULL ? &lk__path_reply_record : &lk__path_stat_reply_record, &r);
}

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  harness_thing *t = arg;
  char room[16];

  harness_end(c, t, err);
  for (size_t i = 0; i < count; i++) {
    const lk_op_result *r = &results[i];

    harness_log_line(t->h, "  %d %s%s%s%s", (int)r->type,
                     harness_error(r->err, room, sizeof room),
                     r->path == NULL ? "" : " ", r->path == NULL ? "" : r->path,
                     r->stat == NULL ? "" : " stat");
  }
  harness_log_completion(t, err, NULL, NULL);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  harness_thing *t = arg;

  harness_end(c, t, err);
  harness_must(t->h, lk_client_state(c) == LK_STATE_CLOSED, "not closed");
  harness_log_completion(t, err, NULL, NULL);
}

/* ---- calls -------------------------------------------------------------- */

static harness_view view_of(harness *h)
{
  lk_want want;

  want = *lk_client_want(h->client);
  return (harness_view){h->wakes, want.attempt,
                        lk_client_pending(h->client).len,
                        lk_client_deadline(h->client)};
}

/* Check that the client has woken the driver if it wants more than before. A
   driver that is not woken does not call the client. In a callback no wakeup is
   needed. */
static void check_woken(harness *h, harness_view before)
{
  if (h->depth > 0)
    return;
  harness_view now = view_of(h);

  bool was_woken = now.wakes != before.wakes;
  bool wants_more = now.attempt != before.attempt || now.len > before.len ||
                    now.due < before.due;

  harness_must(h, was_woken || !wants_more, "the driver was not woken");
}

void harness_mark(harness_thing *t, lk_bytes data)
{
  t->marked = data.len == strlen(t->name) && data.len > 0 &&
              memcmp(data.at, t->name, data.len) == 0;
}

void harness_begin(harness_making *m, harness *h, const harness_call *call,
                   const char *path)
{
  *m = (harness_making){.h = h, .t = harness_thing_add(h, call->name)};
  m->call = (lk_call){.size = sizeof m->call,
                      .timeout_ms = call->timeout_ms,
                      .repeat = call->repeat,
                      .until_disconnect = call->until_disconnect,
                      .offline = call->fails_offline ? LK_OFFLINE_FAIL
                                                     : LK_OFFLINE_WAIT,
                      .handle = call->cancellable ? &m->t->handle : NULL};
  if (call->watch != NULL) {
    harness_thing *w = harness_thing_add(h, call->watch);

    m->t->watcher = w;
    snprintf(w->path, sizeof w->path, "%s",
             strlen(path) < sizeof w->path ? path : "");
    m->call.on_event = harness_on_event;
    m->call.watch_arg = w;
    m->call.watch = &w->watch;
  }
  bool has_options = call->watch != NULL || call->timeout_ms != 0 ||
                     call->repeat || call->fails_offline || call->cancellable;

  if (has_options)
    m->opts = &m->call;
  m->before = view_of(h);
}

int harness_finish(harness_making *m, int err)
{
  char room[16];

  check_woken(m->h, m->before);
  m->t->accepted = err == 0;
  if (err == 0)
    return 0;
  if (m->t->watcher != NULL)
    harness_must(m->h, m->t->watcher->watch == NULL,
                 "a watch that was refused");
  harness_log_line(m->h, "%s: refused %s", m->t->name,
                   harness_error(err, room, sizeof room));
  return err;
}

void harness_cancel_request(harness *h, const char *name)
{
  harness_thing *t = harness_thing_find(h, name);
  char room[16];

  if (t == NULL || h->client == NULL)
    return;
  int ended = t->ended;
  int err = lk_request_cancel(h->client, &t->handle);

  if (err != 0) {
    harness_must(h, t->ended == ended, "it ends, but is not cancelled");
    harness_log_line(h, "%s: not cancelled: %s", name,
                     harness_error(err, room, sizeof room));
    return;
  }
  harness_must(h, t->ended == 1 && ended == 0, "cancelled, and it goes on");
  harness_must(h, !t->was_sent, "cancelled though it left");
  t->was_cancelled = true;
}

int harness_get(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(&m,
                        lk_get(h->client, path, m.opts, harness_on_get, m.t));
}

int harness_exists(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  m.t->is_exists = true;
  return harness_finish(
      &m, lk_exists(h->client, path, m.opts, harness_on_stat, m.t));
}

int harness_children(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(
      &m, lk_get_children(h->client, path, m.opts, harness_on_children, m.t));
}

int harness_create(harness *h, const harness_call *call, bool with_stat,
                   const char *path, lk_bytes data, int flags)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  harness_mark(m.t, data);
  return harness_finish(&m, with_stat
                                ? lk_create2(h->client, path, data, NULL, flags,
                                             m.opts, harness_on_create, m.t)
                                : lk_create(h->client, path, data, NULL, flags,
                                            m.opts, harness_on_create, m.t));
}

int harness_delete(harness *h, const harness_call *call, const char *path,
                   int32_t version)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(
      &m, lk_delete(h->client, path, version, m.opts, harness_on_done, m.t));
}

int harness_set(harness *h, const harness_call *call, const char *path,
                lk_bytes data, int32_t version)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(
      &m, lk_set(h->client, path, data, version, m.opts, harness_on_stat, m.t));
}

int harness_sync(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(
      &m, lk_server_sync(h->client, path, m.opts, harness_on_done, m.t));
}

int harness_multi(harness *h, const harness_call *call, const lk_op *ops,
                  size_t count)
{
  harness_making m;

  harness_begin(&m, h, call, "");
  if (count > 0)
    harness_mark(m.t, ops[0].data);
  return harness_finish(&m,
                        lk_multi(h->client, ops, count, m.opts, on_multi, m.t));
}

int harness_auth(harness *h, const char *name, const char *scheme,
                 lk_bytes auth)
{
  harness_call call = {.name = name};
  harness_making m;

  harness_begin(&m, h, &call, "");
  return harness_finish(&m, lk_add_auth(h->client, scheme, auth, on_auth, m.t));
}

int harness_close(harness *h, const char *name)
{
  harness_call call = {.name = name};
  harness_making m;

  harness_begin(&m, h, &call, "");
  return harness_finish(&m, lk_client_close(h->client, on_closed, m.t));
}

void harness_free(harness *h)
{
  if (h->client != NULL)
    lk_client_free(h->client);
}
