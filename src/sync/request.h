/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_REQUEST_H
#define LK_SYNC_REQUEST_H

#include "sync/call.h"
#include "sync/result.h"
#include "sync/subscription.h"

/** A transaction is sent only while a lock is held. */
typedef struct lk_sync_guard {
  lk_lock *const *lock; /**< where the lock is; NULL there: it was freed */
  uint64_t token;       /**< of the grant; 0: of any */
} lk_sync_guard;

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
  bool has_own_timer;   /**< its deadline is kept here, not by the client */
  bool is_not_repeated; /**< it cannot be repeated */
  bool sends_several;   /**< it sends several requests, which wait and cannot be
                             cancelled one by one */
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
  size_t count; /**< of `ops` or `reads` */
  const lk_reconfiguration *change;
  const lk_parents_config *parents;
  bool sole; /**< the argument of lk_create_reliable() */
  const lk_roster_config *roster;
  const lk_sync_guard *guard; /**< or NULL */
  lk_call options;
  lk_request_handle handle; /**< of the request, unless it sends several */

  /* Where the caller wants the result. NULL: that result is not wanted. */
  lk_sync_result **result_out;
  lk_stat *stat_out;
  int32_t *number_out; /**< the number of descendants */
  size_t *deleted_out; /**< the number of deleted nodes; updated while the
                            caller waits */
  /** Bytes for `result`, which are allocated before the request is sent, so
      that a write that was executed cannot fail for want of memory. */
  size_t result_room;

  /* The result, until the caller takes it. */
  lk_sync_result *result;
  lk_stat stat;
  lk_sync_watch *watch;
} lk_sync_request;

/** Send a copy of the request `from`, wait, and store the result. */
int lk__sync_request_do(lk_sync_client *c, const lk_sync_request *from,
                        const lk_sync_call *call);

/** Send `ops` as a transaction. `guard` NULL: no lock must be held. */
int lk__sync_multi_do(lk_sync_client *c, lk_sync_result **out,
                      const lk_sync_guard *guard, const lk_op *ops,
                      size_t count, const lk_sync_call *call);

/* ---- for the callbacks of the client ------------------------------------- */

/** Whether the caller still waits. If not, lk__sync_request_complete() is the
    only function that may be called. */
bool lk__sync_request_is_awaited(const lk_sync_request *r);
/** The client has completed the request with `err`. */
void lk__sync_request_complete(lk_sync_request *r, int err);
/** The result, with room for `size` bytes. NULL: the caller does not want it,
    or there is no memory; then `*err` is set to LK_ERR_NO_MEMORY. */
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
