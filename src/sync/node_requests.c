/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* The requests of latchkey/client.h about one node. */

/* ---- requests ------------------------------------------------------------ */

static void on_paths(lk_client *client, int err, const lk_bytes *paths,
                     size_t count, void *arg)
{
  const lk_stat *no_stat = NULL;

  lk__sync_on_children(client, err, paths, count, no_stat, arg);
}

static void on_count(lk_client *client, int err, int32_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r) && r->number_out != NULL)
    *r->number_out = count;
  lk__sync_request_complete(r, err);
}

static int start_create(lk_sync_request *r, const lk_call *call)
{
  return lk_create2(lk__sync_client_of(r), r->path, r->data, r->acl, r->flags,
                    call, lk__sync_on_created, r);
}

static int start_create_ttl(lk_sync_request *r, const lk_call *call)
{
  return lk_create_ttl(lk__sync_client_of(r), r->path, r->data, r->acl,
                       r->flags, r->ttl_ms, call, lk__sync_on_created, r);
}

static int start_delete(lk_sync_request *r, const lk_call *call)
{
  return lk_delete(lk__sync_client_of(r), r->path, r->version, call,
                   lk__sync_on_done, r);
}

static int start_exists(lk_sync_request *r, const lk_call *call)
{
  return lk_exists(lk__sync_client_of(r), r->path, call, lk__sync_on_stat, r);
}

static int start_get(lk_sync_request *r, const lk_call *call)
{
  return lk_get(lk__sync_client_of(r), r->path, call, lk__sync_on_get, r);
}

static int start_set(lk_sync_request *r, const lk_call *call)
{
  return lk_set(lk__sync_client_of(r), r->path, r->data, r->version, call,
                lk__sync_on_stat, r);
}

static int start_children(lk_sync_request *r, const lk_call *call)
{
  return lk_get_children(lk__sync_client_of(r), r->path, call,
                         lk__sync_on_children, r);
}

static int start_count(lk_sync_request *r, const lk_call *call)
{
  return lk_count_descendants(lk__sync_client_of(r), r->path, call, on_count,
                              r);
}

static int start_ephemerals(lk_sync_request *r, const lk_call *call)
{
  return lk_ephemerals(lk__sync_client_of(r), r->path, call, on_paths, r);
}

static int start_sync(lk_sync_request *r, const lk_call *call)
{
  return lk_sync(lk__sync_client_of(r), r->path, call, lk__sync_on_done, r);
}

static int start_add_watch(lk_sync_request *r, const lk_call *call)
{
  return lk_add_watch(lk__sync_client_of(r), r->path, r->mode, call,
                      lk__sync_on_done, r);
}

/* ---- calls --------------------------------------------------------------- */

int lk_sync_create(lk_sync_client *c, lk_sync_result **out, const char *path,
                   lk_bytes data, const lk_acls *acl, int flags,
                   const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_create,
                                   .path = path,
                                   .data = data,
                                   .acl = acl,
                                   .flags = flags,
                                   .result_out = out,
                                   .result_room = lk__result_create_room(path)};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_create_ttl(lk_sync_client *c, lk_sync_result **out,
                       const char *path, lk_bytes data, const lk_acls *acl,
                       int flags, int64_t ttl_ms, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_create_ttl,
                                   .path = path,
                                   .data = data,
                                   .acl = acl,
                                   .flags = flags,
                                   .ttl_ms = ttl_ms,
                                   .result_out = out,
                                   .result_room = lk__result_create_room(path)};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_delete(lk_sync_client *c, const char *path, int32_t version,
                   const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_delete, .path = path, .version = version};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_exists(lk_sync_client *c, lk_stat *out, const char *path,
                   const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_exists,
                                   .path = path,
                                   .watches_missing_node = true,
                                   .stat_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_get(lk_sync_client *c, lk_sync_result **out, const char *path,
                const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_get, .path = path, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_set(lk_sync_client *c, lk_stat *out, const char *path,
                lk_bytes data, int32_t version, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_set,
                                   .path = path,
                                   .data = data,
                                   .version = version,
                                   .stat_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_get_children(lk_sync_client *c, lk_sync_result **out,
                         const char *path, const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_children, .path = path, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_count_descendants(lk_sync_client *c, int32_t *out, const char *path,
                              const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_count, .path = path, .number_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_ephemerals(lk_sync_client *c, lk_sync_result **out,
                       const char *prefix, const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_ephemerals, .path = prefix, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_sync(lk_sync_client *c, const char *path, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_sync, .path = path};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_add_watch(lk_sync_client *c, const char *path, lk_watch_mode mode,
                      const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_add_watch,
                                   .path = path,
                                   .mode = mode,
                                   .is_persistent = true};

  return lk__sync_request_do(c, &request, call);
}
