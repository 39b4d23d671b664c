/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* The calls of latchkey/nodes.h. */

/* ---- callbacks ----------------------------------------------------------- */

/* Tell the caller, if it still waits, how many nodes have been deleted. */
static void report_deleted(lk_sync_request *r, size_t deleted)
{
  if (lk__sync_request_is_awaited(r) && r->deleted_out != NULL)
    *r->deleted_out = deleted;
}

/* Returns whether to go on: if the call was interrupted, the rest of the tree
   is not deleted. */
static bool on_delete_progress(lk_client *client, size_t deleted, void *arg)
{
  (void)client;
  report_deleted(arg, deleted);
  return lk__sync_request_is_awaited(arg);
}

static void on_deleted(lk_client *client, int err, size_t deleted, void *arg)
{
  (void)client;
  report_deleted(arg, deleted);
  lk__sync_request_complete(arg, err);
}

/* ---- requests ------------------------------------------------------------ */

static int start_create_with_parents(lk_sync_request *r, const lk_call *call)
{
  return lk_create_with_parents(lk__sync_client_of(r), r->path, r->data, r->acl,
                                r->flags, r->parents, call, lk__sync_on_created,
                                r);
}

static int start_delete_recursive(lk_sync_request *r, const lk_call *call)
{
  return lk_delete_recursive(lk__sync_client_of(r), r->path, call,
                             on_delete_progress, on_deleted, r);
}

static int start_create_reliable(lk_sync_request *r, const lk_call *call)
{
  return lk_create_reliable(lk__sync_client_of(r), r->path, r->data, r->acl,
                            r->flags, r->sole, call, lk__sync_on_created, r);
}

static int start_set_reliable(lk_sync_request *r, const lk_call *call)
{
  return lk_set_reliable(lk__sync_client_of(r), r->path, r->data, r->version,
                         r->sole, call, lk__sync_on_stat, r);
}

static int start_delete_reliable(lk_sync_request *r, const lk_call *call)
{
  return lk_delete_reliable(lk__sync_client_of(r), r->path, r->version, r->sole,
                            call, lk__sync_on_done, r);
}

/* ---- the calls ----------------------------------------------------------- */

int lk_sync_create_with_parents(lk_sync_client *c, lk_sync_result **out,
                                const char *path, lk_bytes data,
                                const lk_acls *acl, int flags,
                                const lk_parents_config *parents,
                                const lk_sync_call *call)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_parents_config);
  lk_parents_config parents_copy;
  const lk_sync_request request = {.start = start_create_with_parents,
                                   .path = path,
                                   .data = data,
                                   .acl = acl,
                                   .flags = flags,
                                   .parents = &parents_copy,
                                   .result_out = out,
                                   .result_room = lk__result_create_room(path)};

  if (out != NULL)
    *out = NULL;
  int err = lk__sync_copy_options(c, &sized, &parents_copy, parents);

  if (err != 0)
    return err;
  return lk__sync_request_do(c, &request, call);
}

int lk_sync_delete_recursive(lk_sync_client *c, size_t *deleted,
                             const char *path, const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_delete_recursive, .path = path, .deleted_out = deleted};

  if (deleted != NULL)
    *deleted = 0;
  return lk__sync_request_do(c, &request, call);
}

int lk_sync_create_reliable(lk_sync_client *c, lk_sync_result **out,
                            const char *path, lk_bytes data, const lk_acls *acl,
                            int flags, bool sole, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_create_reliable,
                                   .path = path,
                                   .data = data,
                                   .acl = acl,
                                   .flags = flags,
                                   .sole = sole,
                                   .result_out = out,
                                   .result_room = lk__result_create_room(path)};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_set_reliable(lk_sync_client *c, lk_stat *out, const char *path,
                         lk_bytes data, int32_t version, bool sole,
                         const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_set_reliable,
                                   .path = path,
                                   .data = data,
                                   .version = version,
                                   .sole = sole,
                                   .stat_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_delete_reliable(lk_sync_client *c, const char *path,
                            int32_t version, bool sole,
                            const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_delete_reliable,
                                   .path = path,
                                   .version = version,
                                   .sole = sole};

  return lk__sync_request_do(c, &request, call);
}
