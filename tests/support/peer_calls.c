/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"
#include "support/peer_calls.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- callbacks ---------------------------------------------------------- */

void peer_end(lk_client *c, peer_thing *t, int err)
{
  peer *p = t->p;
  peer_thing *w = t->watcher;

  peer_must(p, p->client == c, "told for another client, or once freed");
  peer_must(p, t->accepted, "ended before it was accepted");
  t->ended++;
  peer_must(p, t->ended == 1, "a request ended twice");
  peer_must(p, !t->marked || !t->was_sent || err != LK_ERR_NOT_SENT,
            "it left, and was not sent");
  peer_must(p, !t->marked || t->was_sent || err != LK_ERR_IN_DOUBT,
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

void peer_log_completion(peer_thing *t, int err, const lk_record *rec,
                         const void *value)
{
  peer *p = t->p;
  lk_buf text = wire_buf();
  char room[16];
  const char *name = peer_error(err, room, sizeof room);

  if (err == 0 && rec != NULL) {
    wire_say(&text, " ");
    if (!lk__record_print(rec, value, &text))
      abort();
  }
  wire_say(&text, "%c", '\0');
  peer_log_line(p, "%s: %s%s", t->name, name, (char *)lk__buf_bytes(&text));
  lk__buf_free(&text);
  peer_react(p, t->name, name);
}

void peer_check_reply(peer *p, int err)
{
  const lk_reply *reply = lk_client_reply(p->client);

  peer_must(p, err != 0 || reply != NULL, "it succeeded without an answer");
  if (reply == NULL)
    return;
  /* A server that has lost its leader may reply CONNECTION_LOSS to a write. */
  bool server_is_in_doubt =
      err == LK_ERR_IN_DOUBT && reply->err == LK_ERR_CONNECTION_LOSS;
  bool is_of_server = err > -1000; /* smaller numbers are of the library */

  peer_must(p, is_of_server || server_is_in_doubt,
            "a reply with an error that no server sends");
}

void peer_on_done(lk_client *c, int err, void *arg)
{
  peer_thing *t = arg;

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_log_completion(t, err, NULL, NULL);
}

static void on_auth(lk_client *c, int err, void *arg)
{
  peer_thing *t = arg;

  peer_end(c, t, err);
  peer_must(t->p, lk_client_reply(c) == NULL, "an answer to auth");
  peer_log_completion(t, err, NULL, NULL);
}

void peer_on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  peer_thing *t = arg;

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, (err == 0) == (stat != NULL), "a stat with an error");
  peer_log_completion(t, err, &lk__stat_reply_record, stat);
}

void peer_on_get(lk_client *c, int err, const lk_bytes *data,
                 const lk_stat *stat, void *arg)
{
  peer_thing *t = arg;
  struct lk_data_reply r = {.data = {NULL, 0}};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, (err == 0) == (data != NULL && stat != NULL),
            "data with an error");
  if (err == 0) {
    r.data = *data;
    r.stat = *stat;
  }
  peer_log_completion(t, err, &lk__data_reply_record, &r);
}

void peer_on_children(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  peer_thing *t = arg;
  struct lk_names_stat_reply r = {.names = lk__vec_of(names, count)};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, err == 0 || (names == NULL && count == 0 && stat == NULL),
            "names with an error");
  if (stat != NULL)
    r.stat = *stat;
  peer_log_completion(t, err,
                      stat == NULL ? &lk__names_reply_record
                                   : &lk__names_stat_reply_record,
                      &r);
}

void peer_on_create(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  peer_thing *t = arg;
  struct lk_path_stat_reply r = {.path = lk_text(path)};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, (err == 0) == (path != NULL), "a path with an error");
  if (stat != NULL)
    r.stat = *stat;
  peer_log_completion(
      t, err,
      stat == NULL ? &lk__path_reply_record : &lk__path_stat_reply_record, &r);
}

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  peer_thing *t = arg;
  char room[16];

  peer_end(c, t, err);
  for (size_t i = 0; i < count; i++) {
    const lk_op_result *r = &results[i];

    peer_log_line(t->p, "  %d %s%s%s%s", (int)r->type,
                  peer_error(r->err, room, sizeof room),
                  r->path == NULL ? "" : " ", r->path == NULL ? "" : r->path,
                  r->stat == NULL ? "" : " stat");
  }
  peer_log_completion(t, err, NULL, NULL);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  peer_thing *t = arg;

  peer_end(c, t, err);
  peer_must(t->p, lk_client_state(c) == LK_STATE_CLOSED, "not closed");
  peer_log_completion(t, err, NULL, NULL);
}

/* ---- calls -------------------------------------------------------------- */

static peer_view view_of(peer *p)
{
  lk_want want;

  lk_client_want(p->client, &want);
  return (peer_view){p->wakes, want.attempt, lk_client_pending(p->client).len,
                     lk_client_deadline(p->client)};
}

/* Check that the client has woken the driver if it wants more than before. A
   driver that is not woken does not call the client. In a callback no wakeup is
   needed. */
static void check_woken(peer *p, peer_view before)
{
  if (p->depth > 0)
    return;
  peer_view now = view_of(p);

  bool was_woken = now.wakes != before.wakes;
  bool wants_more = now.attempt != before.attempt || now.len > before.len ||
                    now.due < before.due;

  peer_must(p, was_woken || !wants_more, "the driver was not woken");
}

void peer_mark(peer_thing *t, lk_bytes data)
{
  t->marked = data.len == strlen(t->name) && data.len > 0 &&
              memcmp(data.at, t->name, data.len) == 0;
}

void peer_begin(peer_making *m, peer *p, const peer_call *call,
                const char *path)
{
  *m = (peer_making){.p = p, .t = peer_thing_add(p, call->name)};
  m->call = (lk_call){.size = sizeof m->call,
                      .timeout_ms = call->timeout_ms,
                      .repeat = call->repeat,
                      .until_disconnect = call->until_disconnect};
  if (call->watch != NULL) {
    peer_thing *w = peer_thing_add(p, call->watch);

    m->t->watcher = w;
    snprintf(w->path, sizeof w->path, "%s",
             strlen(path) < sizeof w->path ? path : "");
    m->call.on_event = peer_on_event;
    m->call.watch_arg = w;
    m->call.watch = &w->watch;
  }
  bool has_options =
      call->watch != NULL || call->timeout_ms != 0 || call->repeat;

  if (has_options)
    m->opts = &m->call;
  m->before = view_of(p);
}

int peer_finish(peer_making *m, int err)
{
  char room[16];

  check_woken(m->p, m->before);
  m->t->accepted = err == 0;
  if (err == 0)
    return 0;
  if (m->t->watcher != NULL)
    peer_must(m->p, m->t->watcher->watch == NULL, "a watch that was refused");
  peer_log_line(m->p, "%s: refused %s", m->t->name,
                peer_error(err, room, sizeof room));
  return err;
}

int peer_get(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(&m, lk_get(p->client, path, m.opts, peer_on_get, m.t));
}

int peer_exists(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  m.t->is_exists = true;
  return peer_finish(&m, lk_exists(p->client, path, m.opts, peer_on_stat, m.t));
}

int peer_children(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(
      &m, lk_get_children(p->client, path, m.opts, peer_on_children, m.t));
}

int peer_create(peer *p, const peer_call *call, bool with_stat,
                const char *path, lk_bytes data, int flags)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  peer_mark(m.t, data);
  return peer_finish(&m, with_stat
                             ? lk_create2(p->client, path, data, NULL, flags,
                                          m.opts, peer_on_create, m.t)
                             : lk_create(p->client, path, data, NULL, flags,
                                         m.opts, peer_on_create, m.t));
}

int peer_delete(peer *p, const peer_call *call, const char *path,
                int32_t version)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(
      &m, lk_delete(p->client, path, version, m.opts, peer_on_done, m.t));
}

int peer_set(peer *p, const peer_call *call, const char *path, lk_bytes data,
             int32_t version)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(
      &m, lk_set(p->client, path, data, version, m.opts, peer_on_stat, m.t));
}

int peer_sync(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(&m, lk_sync(p->client, path, m.opts, peer_on_done, m.t));
}

int peer_multi(peer *p, const peer_call *call, const lk_op *ops, size_t count)
{
  peer_making m;

  peer_begin(&m, p, call, "");
  if (count > 0)
    peer_mark(m.t, ops[0].data);
  return peer_finish(&m,
                     lk_multi(p->client, ops, count, m.opts, on_multi, m.t));
}

int peer_auth(peer *p, const char *name, const char *scheme, lk_bytes auth)
{
  peer_call call = {.name = name};
  peer_making m;

  peer_begin(&m, p, &call, "");
  return peer_finish(&m, lk_add_auth(p->client, scheme, auth, on_auth, m.t));
}

int peer_close(peer *p, const char *name)
{
  peer_call call = {.name = name};
  peer_making m;

  peer_begin(&m, p, &call, "");
  return peer_finish(&m, lk_client_close(p->client, on_closed, m.t));
}

void peer_free(peer *p)
{
  if (p->client != NULL)
    lk_client_free(p->client);
}
