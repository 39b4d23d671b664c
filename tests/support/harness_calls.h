/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_HARNESS_CALLS_H
#define LK_SUPPORT_HARNESS_CALLS_H

#include "jute/record.h"
#include "support/harness_things.h"

/** How the files of the harness start a request and complete it. */

/** The client's outputs, as a driver sees them. */
typedef struct harness_view {
  unsigned wakes;   /**< how many times the driver was woken */
  uint64_t attempt; /**< of lk_client_want() */
  size_t len;       /**< of lk_client_pending() */
  int64_t due;      /**< lk_client_deadline() */
} harness_view;

/** A request that is being made: see harness_begin() and harness_finish(). */
typedef struct harness_making {
  harness *h;
  harness_thing *t;
  lk_call call;
  const lk_call *opts; /**< `call`; NULL: the request has no options */
  harness_view before; /**< the view before the client's function was called */
} harness_making;

/** To be called before the client's function. `path`: the path of the watch, if
    the request sets one. */
void harness_begin(harness_making *m, harness *h, const harness_call *call,
                   const char *path);
/** To be called with the result of the client's function; returns `err`. */
int harness_finish(harness_making *m, int err);
/** Note that the request is a write with `data`. If the data is the name of the
    request, the harness finds the request in the output. */
void harness_mark(harness_thing *t, lk_bytes data);

/** A request has completed: check that it was accepted and not yet complete,
    and update its watch. */
void harness_end(lk_client *c, harness_thing *t, int err);
/** Check that a reply has come if the request has succeeded, and that `err` may
    be the error of the reply. */
void harness_check_reply(harness *h, int err);
/** Log the completion with `value`, a record of type `rec` or NULL, and call
    the test. */
void harness_log_completion(harness_thing *t, int err, const lk_record *rec,
                            const void *value);

/** The callback of requests without a result; `arg` is the harness_thing. */
void harness_on_done(lk_client *c, int err, void *arg);
void harness_on_stat(lk_client *c, int err, const lk_stat *stat, void *arg);
void harness_on_get(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg);
void harness_on_children(lk_client *c, int err, const lk_bytes *names,
                         size_t count, const lk_stat *stat, void *arg);
void harness_on_create(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg);

#endif
