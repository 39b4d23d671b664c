/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_REQUEST_H
#define LK_SYNC_REQUEST_H

#include "sync/holder.h"
#include "sync/result.h"
#include "sync/watch.h"

/**
 * An errand that is a request. The client may answer it when its caller has
 * long gone, so that it belongs to both.
 */
typedef struct lk_sync_request {
  lk_blocking_call errand;
  unsigned refs; /**< the caller, the client. Under the client's mutex */

  /* What is asked. The caller's memory, until it is accepted. */
  int (*ask)(struct lk_sync_request *r, const lk_call *call);
  bool untimed;    /**< the client does not know its deadline */
  bool until_made; /**< a watch may stand without a node */
  const char *path;
  const char *scheme;
  lk_bytes data;
  const lk_acls *acl;
  int flags;
  int32_t version;
  int64_t ttl_ms;
  lk_watch_mode mode;
  bool stays; /**< the watch that it sets */
  const lk_op *ops;
  const lk_read *reads;
  const lk_reconfiguration *change;
  size_t count;
  const lk_parents_config *parents;
  bool sole;
  size_t *deleted; /**< how many nodes so far, as long as the caller waits */
  lk_holder *holder; /**< NULL: whether a lock is held or not */
  lk_call options;

  /* What came of it. */
  bool wanted; /**< a result, not a stat */
  lk_sync_result *result;
  lk_stat stat;
  int32_t *number; /**< where it is wanted, or NULL */
  lk_sync_watch *watch;
} lk_sync_request;

/** Make one of `what` with room for a result of `room` bytes, ask, and wait.
    `out`, `stat`: where the caller wants what came of it, or NULL. */
int lk__sync_request(lk_sync_client *c, const lk_sync_request *what,
                     const lk_sync_call *call, size_t room,
                     lk_sync_result **out, lk_stat *stat);

/* ---- for the callbacks of the client ------------------------------------- */

/** Whether the caller still waits; otherwise only the next is to be called. */
bool lk__sync_request_is_awaited(const lk_sync_request *r);
/** It ended. */
void lk__sync_request_complete(lk_sync_request *r, int err);
/** The result, with room for `size` bytes. NULL: none is wanted, or
    (`*err` is LK_ERR_NO_MEMORY then) can be had. */
lk_sync_result *lk__sync_request_result(lk_sync_request *r, size_t size,
                                        int *err);

static inline lk_client *lk__sync_client_of(const lk_sync_request *r)
{
  return r->errand.client->client;
}

/* What ends the usual requests; `arg` is the request. */
void lk__sync_on_done(lk_client *client, int err, void *arg);
void lk__sync_on_stat(lk_client *client, int err, const lk_stat *stat,
                      void *arg);
void lk__sync_on_created(lk_client *client, int err, const char *path,
                         const lk_stat *stat, void *arg);
void lk__sync_on_get(lk_client *client, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg);
void lk__sync_on_children(lk_client *client, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg);

/** lk_multi(), or lk_lock_guarded() for a holder. */
int lk__sync_multi(lk_sync_client *c, lk_sync_result **out, lk_holder *holder,
                   const lk_op *ops, size_t count, const lk_sync_call *call);

#endif
