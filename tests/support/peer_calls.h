/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_PEER_CALLS_H
#define LK_SUPPORT_PEER_CALLS_H

#include "jute/record.h"
#include "support/peer_things.h"

/** How the files of the peer start a request and complete it. */

/** The client's outputs, as a driver sees them. */
typedef struct peer_view {
  unsigned wakes;   /**< how many times the driver was woken */
  uint64_t attempt; /**< of lk_client_want() */
  size_t len;       /**< of lk_client_pending() */
  int64_t due;      /**< lk_client_deadline() */
} peer_view;

/** A request that is being made: see peer_begin() and peer_finish(). */
typedef struct peer_making {
  peer *p;
  peer_thing *t;
  lk_call call;
  const lk_call *opts; /**< `call`; NULL: the request has no options */
  peer_view before; /**< the view before the client's function was called */
} peer_making;

/** To be called before the client's function. `path`: the path of the watch, if
    the request sets one. */
void peer_begin(peer_making *m, peer *p, const peer_call *call,
                const char *path);
/** To be called with the result of the client's function; returns `err`. */
int peer_finish(peer_making *m, int err);
/** Note that the request is a write with `data`. If the data is the name of the
    request, the peer finds the request in the output. */
void peer_mark(peer_thing *t, lk_bytes data);

/** A request has completed: check that it was accepted and not yet complete,
   and update its watch. */
void peer_end(lk_client *c, peer_thing *t, int err);
/** Check that a reply has come if the request has succeeded, and that `err` may
    be the error of the reply. */
void peer_check_reply(peer *p, int err);
/** Log the completion with `value`, a record of type `rec` or NULL, and call
    the test. */
void peer_log_completion(peer_thing *t, int err, const lk_record *rec,
                         const void *value);

/** The callback of requests without a result; `arg` is the peer_thing. */
void peer_on_done(lk_client *c, int err, void *arg);
void peer_on_stat(lk_client *c, int err, const lk_stat *stat, void *arg);
void peer_on_get(lk_client *c, int err, const lk_bytes *data,
                 const lk_stat *stat, void *arg);
void peer_on_children(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg);
void peer_on_create(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg);

#endif
