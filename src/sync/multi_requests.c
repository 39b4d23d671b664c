/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call_entry.h"
#include "sync/candidate.h"
#include "sync/candidate_state.h"
#include "sync/lock_owners.h"
#include "sync/request.h"

/* Several operations or reads in one request: latchkey/multi.h. */

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

int lk_sync_lock_guarded_multi(lk_sync_lock *l, lk_sync_result **out,
                               const lk_op *ops, size_t count,
                               const lk_sync_call *call)
{
  int err = lk__sync_refusal(lk__sync_lock_client(l));

  if (out != NULL)
    *out = NULL;
  if (err != 0)
    return err;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  const lk_sync_guard guard = {.lock = &owner->recipe};

  return lk__sync_multi_do(l->client, out, &guard, ops, count, call);
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
