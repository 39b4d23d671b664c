/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call.h"
#include "sync/candidate.h"
#include "sync/request.h"

/* The requests of latchkey/client.h, acl.h, multi.h, ensemble.h, nodes.h and
   roster.h. Each has a function that starts it on the thread of the handle, and
   one that is called by the user. */

/* ---- requests about one node --------------------------------------------- */

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
  return lk_server_sync(lk__sync_client_of(r), r->path, call, lk__sync_on_done,
                        r);
}

static int start_add_watch(lk_sync_request *r, const lk_call *call)
{
  return lk_add_watch(lk__sync_client_of(r), r->path, r->mode, call,
                      lk__sync_on_done, r);
}

/* ---- calls about one node ------------------------------------------------ */

int lk_sync_create(lk_sync_client *c, lk_sync_result **out, const char *path,
                   lk_bytes data, const lk_acls *acl, int flags,
                   const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_create,
                                   .is_not_repeated = true,
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
                                   .is_not_repeated = true,
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
  const lk_sync_request request = {.start = start_delete,
                                   .is_not_repeated = true,
                                   .path = path,
                                   .version = version};

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
                                   .is_not_repeated = true,
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

int lk_sync_server_sync(lk_sync_client *c, const char *path,
                        const lk_sync_call *call)
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

/* ---- access lists and identities ----------------------------------------- */

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

static int start_auth(lk_sync_request *r, const lk_call *call)
{
  if (call->repeat || call->on_event != NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk_add_auth(lk__sync_client_of(r), r->scheme, r->data,
                     lk__sync_on_done, r);
}

static int start_get_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_get_acl(lk__sync_client_of(r), r->path, call, on_acl, r);
}

static int start_set_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_set_acl(lk__sync_client_of(r), r->path, r->acl, r->version, call,
                    lk__sync_on_stat, r);
}

static int start_who_am_i(lk_sync_request *r, const lk_call *call)
{
  return lk_who_am_i(lk__sync_client_of(r), call, on_identities, r);
}

int lk_sync_add_auth(lk_sync_client *c, const char *scheme, lk_bytes auth,
                     const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_auth,
                                   .is_not_repeated = true,
                                   .has_own_timer = true,
                                   .scheme = scheme,
                                   .data = auth};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_get_acl(lk_sync_client *c, lk_sync_result **out, const char *path,
                    const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_get_acl, .path = path, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_set_acl(lk_sync_client *c, lk_stat *out, const char *path,
                    const lk_acls *acl, int32_t version,
                    const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_set_acl,
                                   .is_not_repeated = true,
                                   .path = path,
                                   .acl = acl,
                                   .version = version,
                                   .stat_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_who_am_i(lk_sync_client *c, lk_sync_result **out,
                     const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_who_am_i, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

/* ---- several operations or reads in one request -------------------------- */

static void on_multi(lk_client *client, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  lk_sync_request *r = arg;
  bool has_results = err == 0 || count > 0; /* an error may come with some */

  if (has_results && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_ops_size(results, count), &err);

    if (result != NULL) {
      lk__result_set_ops(result, results, count);
      result->zxid = lk__sync_reply_zxid(client);
    }
  }
  lk__sync_request_complete(r, err);
}

static int start_multi(lk_sync_request *r, const lk_call *call)
{
  if (r->guard == NULL)
    return lk_multi(lk__sync_client_of(r), r->ops, r->count, call, on_multi, r);
  lk_lock *lock = *r->guard->lock;

  if (lock == NULL) /* the lock was freed meanwhile */
    return LK_ERR_CLOSED;
  if (r->guard->token != 0 && lk_lock_token(lock) != r->guard->token)
    return LK_ERR_LOST;
  return lk_lock_guarded_multi(lock, r->ops, r->count, call, on_multi, r);
}

int lk__sync_multi_do(lk_sync_client *c, lk_sync_result **out,
                      const lk_sync_guard *guard, const lk_op *ops,
                      size_t count, const lk_sync_call *call)
{
  if (out != NULL)
    *out = NULL;
  if (ops == NULL && count > 0)
    return LK_ERR_BAD_ARGUMENT;
  const lk_sync_request request = {.start = start_multi,
                                   .is_not_repeated = true,
                                   .ops = ops,
                                   .count = count,
                                   .guard = guard,
                                   .result_out = out,
                                   .result_room =
                                       lk__result_multi_room(ops, count)};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_multi(lk_sync_client *c, lk_sync_result **out, const lk_op *ops,
                  size_t count, const lk_sync_call *call)
{
  const lk_sync_guard *no_guard = NULL;

  return lk__sync_multi_do(c, out, no_guard, ops, count, call);
}

static int send_guarded_multi(lk_sync_candidate *c, lk_sync_result **out,
                              uint64_t term, const lk_op *ops, size_t count,
                              const lk_sync_call *call)
{
  const lk_sync_guard guard = {.lock = &c->source_lock, .token = term};

  if (term == 0) /* as lk_sync_candidate_term() returns it */
    return LK_ERR_NOT_HELD;
  atomic_fetch_add(&c->refs, 1);
  int err = lk__sync_multi_do(c->client, out, &guard, ops, count, call);

  lk__sync_candidate_unref(c);
  return err;
}

int lk_sync_candidate_guarded_multi(lk_sync_candidate *c, lk_sync_result **out,
                                    uint64_t term, const lk_op *ops,
                                    size_t count, const lk_sync_call *call)
{
  int cancel_state;

  if (out != NULL)
    *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  lk_sync_client *client = c->client; /* the candidate may be freed meanwhile */
  int err = lk__sync_enter(client, &cancel_state);

  if (err != 0)
    return err;
  err = send_guarded_multi(c, out, term, ops, count, call);
  lk__sync_leave(client, cancel_state);
  return err;
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

static int start_multi_read(lk_sync_request *r, const lk_call *call)
{
  return lk_multi_read(lk__sync_client_of(r), r->reads, r->count, call,
                       on_reads, r);
}

int lk_sync_multi_read(lk_sync_client *c, lk_sync_result **out,
                       const lk_read *reads, size_t count,
                       const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_multi_read,
                                   .reads = reads,
                                   .count = count,
                                   .result_out = out};

  if (out != NULL)
    *out = NULL;
  if (reads == NULL && count > 0)
    return LK_ERR_BAD_ARGUMENT;
  return lk__sync_request_do(c, &request, call);
}

/* ---- the servers of the ensemble ----------------------------------------- */

static int start_config(lk_sync_request *r, const lk_call *call)
{
  return lk_get_config(lk__sync_client_of(r), call, lk__sync_on_get, r);
}

static int start_reconfig(lk_sync_request *r, const lk_call *call)
{
  return lk_reconfig(lk__sync_client_of(r), r->change, call, lk__sync_on_get,
                     r);
}

int lk_sync_get_config(lk_sync_client *c, lk_sync_result **out,
                       const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_config, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_reconfig(lk_sync_client *c, lk_sync_result **out,
                     const lk_reconfiguration *change, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_reconfig,
                                   .is_not_repeated = true,
                                   .change = change,
                                   .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

/* ---- requests for trees and reliable writes ------------------------------ */

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

/* ---- calls for trees and reliable writes --------------------------------- */

int lk_sync_create_with_parents(lk_sync_client *c, lk_sync_result **out,
                                const char *path, lk_bytes data,
                                const lk_acls *acl, int flags,
                                const lk_parents_config *parents,
                                const lk_sync_call *call)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_parents_config);
  lk_parents_config parents_copy;
  const lk_sync_request request = {.start = start_create_with_parents,
                                   .sends_several = true,
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
  const lk_sync_request request = {.start = start_delete_recursive,
                                   .sends_several = true,
                                   .path = path,
                                   .deleted_out = deleted};

  if (deleted != NULL)
    *deleted = 0;
  return lk__sync_request_do(c, &request, call);
}

int lk_sync_create_reliable(lk_sync_client *c, lk_sync_result **out,
                            const char *path, lk_bytes data, const lk_acls *acl,
                            int flags, bool sole, const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_create_reliable,
                                   .sends_several = true,
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
                                   .sends_several = true,
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
                                   .sends_several = true,
                                   .path = path,
                                   .version = version,
                                   .sole = sole};

  return lk__sync_request_do(c, &request, call);
}

/* ---- rosters that are read once ------------------------------------------ */

static void on_roster(lk_client *client, int err,
                      const lk_roster_entry *entries, size_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result = lk__sync_request_result(
        r, lk__result_entries_size(entries, count), &err);

    if (result != NULL)
      lk__result_set_entries(result, entries, count);
  }
  lk__sync_request_complete(r, err);
}

static int start_roster_get(lk_sync_request *r, const lk_call *call)
{
  return lk_roster_get(lk__sync_client_of(r), r->path, r->roster, call,
                       on_roster, r);
}

int lk_sync_roster_get(lk_sync_client *c, lk_sync_result **out,
                       const char *path, const lk_roster_config *config,
                       const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_roster_get,
                                   .sends_several = true,
                                   .path = path,
                                   .roster = config,
                                   .result_out = out};

  return lk__sync_request_do(c, &request, call);
}
