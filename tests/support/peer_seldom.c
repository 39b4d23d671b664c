/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The calls that are rarer than those of peer_calls.c. */

#include "proto/wire/records.h"
#include "support/peer_calls.h"

/* ---- callbacks ---------------------------------------------------------- */

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  peer_thing *t = arg;
  struct lk_acl_reply r = {.acl = {NULL, 0}};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, (err == 0) == (acl != NULL && stat != NULL),
            "a list with an error");
  if (err == 0) {
    r.acl = lk__vec_of(acl->entries, acl->count);
    r.stat = *stat;
  }
  peer_log_completion(t, err, &lk__acl_reply_record, &r);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  peer_thing *t = arg;
  struct lk_names_reply r = {.names = lk__vec_of(paths, count)};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, err == 0 || (paths == NULL && count == 0),
            "paths with an error");
  peer_log_completion(t, err, &lk__names_reply_record, &r);
}

static void on_count(lk_client *c, int err, int32_t count, void *arg)
{
  peer_thing *t = arg;
  struct lk_count_reply r = {count};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, err == 0 || count == 0, "a number with an error");
  peer_log_completion(t, err, &lk__count_reply_record, &r);
}

static void on_identities(lk_client *c, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  peer_thing *t = arg;
  struct lk_who_am_i_reply r = {lk__vec_of(ids, count)};

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, err == 0 || (ids == NULL && count == 0),
            "identities with an error");
  peer_log_completion(t, err, &lk__who_am_i_reply_record, &r);
}

static void log_read(peer *p, const lk_read_result *r)
{
  struct lk_data_reply data = {.data = r->data};
  struct lk_names_reply names = {lk__vec_of(r->names, r->count)};
  lk_buf text = {.mem = &lk__mem_libc};
  char room[16];

  if (r->stat != NULL)
    data.stat = *r->stat;
  bool printed = r->type == LK_READ_GET
                     ? lk__record_print(&lk__data_reply_record, &data, &text)
                     : lk__record_print(&lk__names_reply_record, &names, &text);

  peer_must(p, printed, "no memory");
  peer_log_line(p, "  %d %s%s%.*s", (int)r->type,
                peer_error(r->err, room, sizeof room), r->err == 0 ? " " : "",
                r->err == 0 ? (int)lk__buf_len(&text) : 0,
                (const char *)lk__buf_bytes(&text));
  lk__buf_free(&text);
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  peer_thing *t = arg;

  peer_end(c, t, err);
  peer_check_reply(t->p, err);
  peer_must(t->p, err == 0 || (results == NULL && count == 0),
            "results with an error");
  for (size_t i = 0; i < count; i++)
    log_read(t->p, &results[i]);
  peer_log_completion(t, err, NULL, NULL);
}

/* ---- calls -------------------------------------------------------------- */

int peer_count(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(
      &m, lk_count_descendants(p->client, path, m.opts, on_count, m.t));
}

int peer_ephemerals(peer *p, const peer_call *call, const char *prefix)
{
  peer_making m;

  peer_begin(&m, p, call, prefix);
  return peer_finish(&m,
                     lk_ephemerals(p->client, prefix, m.opts, on_paths, m.t));
}

int peer_get_acl(peer *p, const peer_call *call, const char *path)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(&m, lk_get_acl(p->client, path, m.opts, on_acl, m.t));
}

int peer_set_acl(peer *p, const peer_call *call, const char *path,
                 const lk_acls *acl, int32_t version)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  return peer_finish(
      &m, lk_set_acl(p->client, path, acl, version, m.opts, peer_on_stat, m.t));
}

int peer_create_ttl(peer *p, const peer_call *call, const char *path,
                    lk_bytes data, int flags, int64_t ttl_ms)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  peer_mark(m.t, data);
  return peer_finish(&m, lk_create_ttl(p->client, path, data, NULL, flags,
                                       ttl_ms, m.opts, peer_on_create, m.t));
}

int peer_multi_read(peer *p, const peer_call *call, const lk_read *reads,
                    size_t count)
{
  peer_making m;

  peer_begin(&m, p, call, "");
  return peer_finish(
      &m, lk_multi_read(p->client, reads, count, m.opts, on_reads, m.t));
}

int peer_who_am_i(peer *p, const peer_call *call)
{
  peer_making m;

  peer_begin(&m, p, call, "");
  return peer_finish(&m, lk_who_am_i(p->client, m.opts, on_identities, m.t));
}

int peer_config(peer *p, const peer_call *call)
{
  peer_making m;

  peer_begin(&m, p, call, "/zookeeper/config");
  return peer_finish(&m, lk_get_config(p->client, m.opts, peer_on_get, m.t));
}

int peer_reconfig(peer *p, const peer_call *call,
                  const lk_reconfiguration *change)
{
  peer_making m;

  peer_begin(&m, p, call, "");
  return peer_finish(&m,
                     lk_reconfig(p->client, change, m.opts, peer_on_get, m.t));
}

int peer_add_watch(peer *p, const peer_call *call, const char *path,
                   lk_watch_mode mode)
{
  peer_making m;

  peer_begin(&m, p, call, path);
  if (m.t->watcher != NULL) {
    m.t->watcher->is_persistent = true;
    m.t->watcher->is_recursive = mode == LK_WATCH_RECURSIVE;
  }
  return peer_finish(
      &m, lk_add_watch(p->client, path, mode, m.opts, peer_on_done, m.t));
}
