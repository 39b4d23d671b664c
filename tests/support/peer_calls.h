/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_PEER_CALLS_H
#define LK_SUPPORT_PEER_CALLS_H

#include "jute/record.h"
#include "support/peer_things.h"

/** The start and the completion of a request, for the files of the peer. */

/** The client's outputs, as a driver sees them. */
typedef struct peer_view {
  unsigned wakes;
  uint64_t attempt;
  size_t len;
  int64_t due;
} peer_view;

/** A request before and after its call. */
typedef struct peer_making {
  peer *p;
  peer_thing *t;
  lk_call call;
  const lk_call *opts; /**< NULL: none */
  peer_view before;
} peer_making;

/** Before the call. `path`: of the watch, if it sets one. */
void peer_begin(peer_making *m, peer *p, const peer_call *call,
                const char *path);
/** After the call, with its result, which is returned. */
int peer_finish(peer_making *m, int err);
/** The request is a write with `data`. If that is its name, the peer can find
    it in the output. */
void peer_mark(peer_thing *t, lk_bytes data);

/** A request completed: check that it may, and update its watch. */
void peer_end(lk_client *c, peer_thing *t, int err);
/** Check that there is a reply if there must be one, and only then. */
void peer_check_answer(peer *p, int err);
/** Log the completion with `value`, a record of type `rec` or NULL, and call
    the test. */
void peer_log_completion(peer_thing *t, int err, const lk_record *rec,
                         const void *value);

/** Completes requests without a result; `arg` is the peer_thing. */
void peer_on_done(lk_client *c, int err, void *arg);
void peer_on_stat(lk_client *c, int err, const lk_stat *stat, void *arg);
void peer_on_get(lk_client *c, int err, const lk_bytes *data,
                 const lk_stat *stat, void *arg);
void peer_on_children(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg);
void peer_on_create(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg);

#endif
