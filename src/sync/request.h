/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_REQUEST_H
#define LK_SYNC_REQUEST_H

#include "sync/lock_owner.h"
#include "sync/result.h"
#include "sync/watch.h"

/**
 * A blocking call that sends a request. If the call is interrupted, the client
 * still completes the request later. So caller and client have a reference
 * each.
 */
typedef struct lk_sync_request {
  lk_blocking_call call;
  unsigned refs; /**< of caller and client; under the client's mutex */

  /* The request. The caller owns what pointers point to, until `start` has
     returned. */
  /** Sends the request. Returns 0, or why it was refused. */
  int (*start)(struct lk_sync_request *r, const lk_call *call);
  bool has_own_timer; /**< its deadline is kept here, not by the client */
  bool watches_missing_node; /**< after LK_ERR_NO_NODE the watch is set, too */
  const char *path;
  const char *scheme;
  lk_bytes data;
  const lk_acls *acl;
  int flags;
  int32_t version;
  int64_t ttl_ms;
  lk_watch_mode mode;
  bool is_persistent; /**< it sets a persistent watch */
  const lk_op *ops;
  const lk_read *reads;
  const lk_reconfiguration *change;
  size_t count;
  const lk_parents_config *parents;
  bool sole;
  size_t *deleted; /**< number of deleted nodes, while the caller waits */
  lk_lock_owner *lock_owner; /**< of the lock that must be held; or NULL */
  lk_call options;

  /* The result. */
  bool wants_result; /**< the caller wants `result` */
  lk_sync_result *result;
  lk_stat stat;
  int32_t *number; /**< of the caller, or NULL */
  lk_sync_watch *watch;
} lk_sync_request;

/** Send the request `what`, wait, and store the result in `*out` and `*stat`.
    Each of these may be NULL. `room` bytes for the result are allocated before
    the request is sent, so that a write that was executed cannot fail for want
    of memory. */
int lk__sync_request(lk_sync_client *c, const lk_sync_request *what,
                     const lk_sync_call *call, size_t room,
                     lk_sync_result **out, lk_stat *stat);

/* ---- for the callbacks of the client ------------------------------------- */

/** Whether the caller still waits. If not, only lk__sync_request_complete() may
    be called. */
bool lk__sync_request_is_awaited(const lk_sync_request *r);
/** The client has completed the request with `err`. */
void lk__sync_request_complete(lk_sync_request *r, int err);
/** The result, with room for `size` bytes. NULL: it is not wanted, or there is
    no memory: `*err` is LK_ERR_NO_MEMORY. */
lk_sync_result *lk__sync_request_result(lk_sync_request *r, size_t size,
                                        int *err);

static inline lk_client *lk__sync_client_of(const lk_sync_request *r)
{
  return r->call.client->client;
}

/** The zxid of the reply whose callback runs. */
int64_t lk__sync_reply_zxid(const lk_client *client);

/* Callbacks of the usual requests; `arg` is the lk_sync_request. */
void lk__sync_on_done(lk_client *client, int err, void *arg);
void lk__sync_on_stat(lk_client *client, int err, const lk_stat *stat,
                      void *arg);
void lk__sync_on_created(lk_client *client, int err, const char *path,
                         const lk_stat *stat, void *arg);
void lk__sync_on_get(lk_client *client, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg);
void lk__sync_on_children(lk_client *client, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg);

#endif
