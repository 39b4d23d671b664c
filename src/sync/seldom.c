/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The requests that are rarer than those of ops.c. */

#include "sync/request.h"

/* ---- what comes back ----------------------------------------------------- */

static void on_acl(lk_client *client, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_acl_size(acl), &err);

    if (result != NULL)
      lk__result_set_acl(result, acl, stat);
  }
  lk__sync_request_complete(r, err);
}

static void on_paths(lk_client *client, int err, const lk_bytes *paths,
                     size_t count, void *arg)
{
  lk__sync_on_children(client, err, paths, count, NULL, arg);
}

static void on_count(lk_client *client, int err, int32_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r) && r->number != NULL)
    *r->number = count;
  lk__sync_request_complete(r, err);
}

static void on_identities(lk_client *client, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_ids_size(ids, count), &err);

    if (result != NULL)
      lk__result_set_ids(result, ids, count);
  }
  lk__sync_request_complete(r, err);
}

static void on_reads(lk_client *client, int err, const lk_read_result *reads,
                     size_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_reads_size(reads, count), &err);

    if (result != NULL)
      lk__result_set_reads(result, reads, count);
  }
  lk__sync_request_complete(r, err);
}

/* ---- what is asked ------------------------------------------------------- */

static int ask_create_ttl(lk_sync_request *r, const lk_call *call)
{
  return lk_create_ttl(lk__sync_client_of(r), r->path, r->data, r->acl,
                       r->flags, r->ttl_ms, call, lk__sync_on_created, r);
}

static int ask_count(lk_sync_request *r, const lk_call *call)
{
  return lk_count(lk__sync_client_of(r), r->path, call, on_count, r);
}

static int ask_ephemerals(lk_sync_request *r, const lk_call *call)
{
  return lk_ephemerals(lk__sync_client_of(r), r->path, call, on_paths, r);
}

static int ask_get_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_get_acl(lk__sync_client_of(r), r->path, call, on_acl, r);
}

static int ask_set_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_set_acl(lk__sync_client_of(r), r->path, r->acl, r->version, call,
                    lk__sync_on_stat, r);
}

static int ask_multi_read(lk_sync_request *r, const lk_call *call)
{
  return lk_multi_read(lk__sync_client_of(r), r->reads, r->count, call,
                       on_reads, r);
}

static int ask_who_am_i(lk_sync_request *r, const lk_call *call)
{
  return lk_who_am_i(lk__sync_client_of(r), call, on_identities, r);
}

static int ask_config(lk_sync_request *r, const lk_call *call)
{
  return lk_get_config(lk__sync_client_of(r), call, lk__sync_on_get, r);
}

static int ask_reconfig(lk_sync_request *r, const lk_call *call)
{
  return lk_reconfig(lk__sync_client_of(r), r->change, call, lk__sync_on_get,
                     r);
}

static int ask_add_watch(lk_sync_request *r, const lk_call *call)
{
  return lk_add_watch(lk__sync_client_of(r), r->path, r->mode, call,
                      lk__sync_on_done, r);
}

/* ---- the calls ----------------------------------------------------------- */

int lk_sync_create_ttl(lk_sync_client *c, lk_sync_result **out,
                       const char *path, lk_bytes data, const lk_acls *acl,
                       int flags, int64_t ttl_ms, const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_create_ttl,
                                .path = path,
                                .data = data,
                                .acl = acl,
                                .flags = flags,
                                .ttl_ms = ttl_ms};

  return lk__sync_request(c, &what, call, lk__result_create_room(path), out,
                          NULL);
}

int lk_sync_count(lk_sync_client *c, int32_t *out, const char *path,
                  const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_count, .path = path, .number = out};

  return lk__sync_request(c, &what, call, 0, NULL, NULL);
}

int lk_sync_ephemerals(lk_sync_client *c, lk_sync_result **out,
                       const char *prefix, const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_ephemerals, .path = prefix};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_get_acl(lk_sync_client *c, lk_sync_result **out, const char *path,
                    const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_get_acl, .path = path};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_set_acl(lk_sync_client *c, lk_stat *out, const char *path,
                    const lk_acls *acl, int32_t version,
                    const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_set_acl, .path = path, .acl = acl, .version = version};

  return lk__sync_request(c, &what, call, 0, NULL, out);
}

int lk_sync_multi_read(lk_sync_client *c, lk_sync_result **out,
                       const lk_read *reads, size_t count,
                       const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_multi_read, .reads = reads, .count = count};

  if (out != NULL)
    *out = NULL;
  if (reads == NULL && count > 0)
    return LK_ERR_BAD_ARGUMENT;
  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_who_am_i(lk_sync_client *c, lk_sync_result **out,
                     const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_who_am_i};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_get_config(lk_sync_client *c, lk_sync_result **out,
                       const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_config};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_reconfig(lk_sync_client *c, lk_sync_result **out,
                     const lk_reconfiguration *change, const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_reconfig, .change = change};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_add_watch(lk_sync_client *c, const char *path, lk_watch_mode mode,
                      const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_add_watch, .path = path, .mode = mode, .stays = true};

  return lk__sync_request(c, &what, call, 0, NULL, NULL);
}
