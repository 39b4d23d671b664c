/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REQUEST_QUEUE_H
#define LK_PROTO_ENGINE_REQUEST_QUEUE_H

/**
 * @file
 * Requests that were accepted and have not completed: those that were sent, in
 * the order of their replies, and those that wait for a connection.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/ring.h"
#include "jute/record.h"
#include "proto/engine/request_deadlines.h"
#include "proto/engine/watch_table.h"

typedef struct lk_request {
  int32_t op;
  int32_t xid; /**< 0 until it is sent on a connection */
  int64_t sent_ms;
  lk_deadline *deadline; /**< or NULL */
  uint64_t end; /**< where its last byte is: of a sent request in the output of
                     the connection, else in all that was ever held */
  size_t len;   /**< of its frame, with the length field */
  size_t operations;  /**< of a multi */
  void (*done)(void); /**< its type follows from `op` */
  void *arg;
  lk_watch *watch;     /**< or NULL */
  unsigned char *copy; /**< its frame, where it may be repeated; or NULL */
  bool completed;      /**< only its place is kept, for the reply to come */
  int outcome; /**< the error with which it completes if no reply comes, where
                    that is known already; or 0 */
} lk_request;

typedef struct lk_engine_requests {
  lk_ring sent;             /**< lk_request: have an xid, in order */
  lk_ring waiting;          /**< lk_request: for the next connection */
  lk_ring late;             /**< lk_request: deadline in the past, never sent */
  lk_ring ending[2];        /**< `sent` and `waiting` of before, completing */
  size_t waiting_completed; /**< of `waiting`: completed, and still there */
  size_t open;              /**< accepted and not completed */
  lk_buf held;              /**< the frames of `waiting` */
  uint64_t held_end;        /**< bytes that were ever held */
  lk_buf path;              /**< scratch: a path with its chroot */
} lk_engine_requests;

/** A request to be queued. */
typedef struct lk_call_spec {
  int32_t op;
  const lk_record *rec; /**< of its body; NULL: none, or operations */
  const void *value;    /**< the body. A path at its begin is ignored: `path`
                             is encoded there */
  const char *chroot;   /**< put in front of `path` */
  const char *path;     /**< without the chroot, see lk__path_rest(); or NULL */
  const lk_op *ops;     /**< of a multi; or NULL */
  const lk_read *reads; /**< of a multi-read; or NULL */
  size_t operations;    /**< how many of these */
  const lk_call *call;  /**< a copy of the caller's options, or NULL */
  lk_watch_kind kind;   /**< of the watch that `call` may ask for */
  bool covered;         /**< a persistent watch serves that; watch_calls.c */
  void (*done)(void);
  void *arg;
} lk_call_spec;

/** `r` has moved to a ring, `waiting` or `sent`, and has its `end` there. */
static inline void lk__deadline_place(const lk_request *r, bool waits)
{
  if (r->deadline == NULL)
    return;
  r->deadline->end = r->end;
  r->deadline->waits = waits;
}

void lk__requests_init(lk_engine_requests *q, const lk_mem *mem);
void lk__requests_free(lk_engine_requests *q);

/** Whether a new request is accepted now: 0, or why not. */
int lk__request_refusal(lk_client *c);
/** The xid after the last one that was used. */
int32_t lk__request_next_xid(const lk_client *c);

/** The watches on the path of `spec`, NULL if there are none.
    @return 0 or LK_ERR_NO_MEMORY. */
int lk__request_find_watched(lk_client *c, const lk_call_spec *spec,
                             lk_watched **out);
/** Write a whole frame behind the end of `b`, without adding it yet.
    @return 0, LK_ERR_TOO_BIG (beyond `limit`), LK_ERR_NO_MEMORY, or why the
            operations cannot be encoded. */
int lk__request_encode(lk_buf *b, const lk_call_spec *spec, int32_t xid,
                       size_t limit, size_t *len);
/** Accept a request: it is written to the output, or waits. */
int lk__request_queue(lk_client *c, const lk_call_spec *spec);
/** `r` was just added to the waiting requests, and its frame to `held`. */
void lk__request_place_held(lk_client *c, lk_request *r);
/** Whether every sent request that ends before `until` has its reply. */
bool lk__requests_answered(const lk_client *c, uint64_t until);

/** Move waiting requests to the output of a new connection. Requests that its
    server does not support are set aside, to be completed by
    lk__requests_finish(). @return false: no memory, and nothing has moved. */
bool lk__requests_release(lk_client *c);

/** The reply to the oldest request cannot be taken: do not repeat it. */
void lk__request_forbid_retry(lk_client *c, bool too_big);
/** Set requests aside that a broken connection ends; `all`: every request.
    Requests that are made from now on are not among them. */
void lk__requests_detach(lk_client *c, bool all);
/** Complete what was set aside, with `err`; 0: each with its own outcome. */
void lk__requests_finish(lk_client *c, int err);
/** Complete requests whose own deadline has passed. */
void lk__requests_time_out(lk_client *c);

/* The end of the client: */

/** Why new requests are refused: LK_ERR_FORKED, CLOSED, AUTH_FAILED; or 0. */
int lk__client_refusal(const lk_client *c);

#endif
