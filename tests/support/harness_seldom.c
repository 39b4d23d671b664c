/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The calls that are rarer than those of harness_calls.c. */

#include "proto/wire/records.h"
#include "support/harness_calls.h"

/* ---- callbacks ---------------------------------------------------------- */

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  harness_thing *t = arg;
  struct lk_acl_reply r = {.acl = {NULL, 0}};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, (err == 0) == (acl != NULL && stat != NULL),
               "a list with an error");
  if (err == 0) {
    r.acl = lk__vec_of(acl->entries, acl->count);
    r.stat = *stat;
  }
  harness_log_completion(t, err, &lk__acl_reply_record, &r);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  harness_thing *t = arg;
  struct lk_paths_reply r = {.paths = lk__vec_of(paths, count)};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, err == 0 || (paths == NULL && count == 0),
               "paths with an error");
  harness_log_completion(t, err, &lk__paths_reply_record, &r);
}

static void on_count(lk_client *c, int err, int32_t count, void *arg)
{
  harness_thing *t = arg;
  struct lk_count_reply r = {count};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, err == 0 || count == 0, "a number with an error");
  harness_log_completion(t, err, &lk__count_reply_record, &r);
}

static void on_identities(lk_client *c, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  harness_thing *t = arg;
  struct lk_who_am_i_reply r = {lk__vec_of(ids, count)};

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, err == 0 || (ids == NULL && count == 0),
               "identities with an error");
  harness_log_completion(t, err, &lk__who_am_i_reply_record, &r);
}

static void log_read(harness *h, const lk_read_result *r)
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

  harness_must(h, printed, "no memory");
  harness_log_line(h, "  %d %s%s%.*s", (int)r->type,
                   harness_error(r->err, room, sizeof room),
                   r->err == 0 ? " " : "",
                   r->err == 0 ? (int)lk__buf_len(&text) : 0,
                   (const char *)lk__buf_bytes(&text));
  lk__buf_free(&text);
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  harness_thing *t = arg;

  harness_end(c, t, err);
  harness_check_reply(t->h, err);
  harness_must(t->h, err == 0 || (results == NULL && count == 0),
               "results with an error");
  for (size_t i = 0; i < count; i++)
    log_read(t->h, &results[i]);
  harness_log_completion(t, err, NULL, NULL);
}

/* ---- calls -------------------------------------------------------------- */

int harness_count(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(
      &m, lk_count_descendants(h->client, path, m.opts, on_count, m.t));
}

int harness_ephemerals(harness *h, const harness_call *call, const char *prefix)
{
  harness_making m;

  harness_begin(&m, h, call, prefix);
  return harness_finish(
      &m, lk_ephemerals(h->client, prefix, m.opts, on_paths, m.t));
}

int harness_get_acl(harness *h, const harness_call *call, const char *path)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(&m, lk_get_acl(h->client, path, m.opts, on_acl, m.t));
}

int harness_set_acl(harness *h, const harness_call *call, const char *path,
                    const lk_acls *acl, int32_t version)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  return harness_finish(&m, lk_set_acl(h->client, path, acl, version, m.opts,
                                       harness_on_stat, m.t));
}

int harness_create_ttl(harness *h, const harness_call *call, const char *path,
                       lk_bytes data, int flags, int64_t ttl_ms)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  harness_mark(m.t, data);
  return harness_finish(&m,
                        lk_create_ttl(h->client, path, data, NULL, flags,
                                      ttl_ms, m.opts, harness_on_create, m.t));
}

int harness_multi_read(harness *h, const harness_call *call,
                       const lk_read *reads, size_t count)
{
  harness_making m;

  harness_begin(&m, h, call, "");
  return harness_finish(
      &m, lk_multi_read(h->client, reads, count, m.opts, on_reads, m.t));
}

int harness_who_am_i(harness *h, const harness_call *call)
{
  harness_making m;

  harness_begin(&m, h, call, "");
  return harness_finish(&m, lk_who_am_i(h->client, m.opts, on_identities, m.t));
}

int harness_config(harness *h, const harness_call *call)
{
  harness_making m;

  harness_begin(&m, h, call, "/zookeeper/config");
  return harness_finish(&m,
                        lk_get_config(h->client, m.opts, harness_on_get, m.t));
}

int harness_reconfig(harness *h, const harness_call *call,
                     const lk_reconfiguration *change)
{
  harness_making m;

  harness_begin(&m, h, call, "");
  return harness_finish(
      &m, lk_reconfig(h->client, change, m.opts, harness_on_get, m.t));
}

int harness_add_watch(harness *h, const harness_call *call, const char *path,
                      lk_watch_mode mode)
{
  harness_making m;

  harness_begin(&m, h, call, path);
  if (m.t->watcher != NULL) {
    m.t->watcher->is_persistent = true;
    m.t->watcher->is_recursive = mode == LK_WATCH_RECURSIVE;
  }
  return harness_finish(
      &m, lk_add_watch(h->client, path, mode, m.opts, harness_on_done, m.t));
}
