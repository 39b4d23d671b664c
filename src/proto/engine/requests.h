/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REQUESTS_H
#define LK_PROTO_ENGINE_REQUESTS_H

/**
 * @file
 * Requests that were accepted and have not completed. "Sent" means that the
 * frame is in the output of the connection; lk_request.end tells whether the
 * driver has taken all of it. Other frames have no lk_request: pings, the
 * identities of lk_add_auth() and the setWatches of a reconnect, whose replies
 * are known by their xids, and the tokens of SASL.
 *
 * The life of a request, by the rings of lk_engine_requests:
 *
 * - Acceptance: lk__request_queue() adds it to `sent` if there is a live
 *   connection, else to `waiting`.
 * - `waiting` to `sent`: lk__requests_send_waiting(), on a new connection. A
 *   request that the server does not support goes to `ending_sent` instead.
 * - `sent`, completion: lk__reply_take() in replies.c, at the reply. The reply
 *   belongs to the oldest request. A request that the server rejects as unknown
 *   before it replies to older ones completes, too, but stays in `sent`.
 * - `sent` to `ending_sent`: lk__requests_detach_sent(), when the connection is
 *   lost. Requests that may be repeated (lk_call.repeat) go on to `waiting`.
 * - `sent` to `ending_sent`, `waiting` to `ending_waiting`:
 *   lk__requests_detach_all(), when the session ends.
 * - `ending_sent`, then `ending_waiting`, completion: lk__requests_finish(), or
 *   lk__requests_finish_all() when the session ends. Between detaching and
 *   finishing, listeners are notified of the new state.
 * - `sent` or `waiting`, completion at the deadline: lk__requests_time_out().
 *   The request stays in its ring, too.
 *
 * A request that has completed and stays is `completed`. It has neither watch,
 * copy nor deadline, and leaves its ring without a callback.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/ring.h"
#include "jute/record.h"
#include "proto/engine/time.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

/** The deadline of a request in the ring `sent` or `waiting`. A request has no
    fixed address, since its ring moves it. So a deadline knows its request by
    lk_request.end, by which the requests of a ring are sorted, and finds it by
    a binary search. */
typedef struct lk_deadline {
  lk_heap_node node;         /**< in lk_request_deadlines.heap */
  uint64_t end;              /**< lk_request.end of its request */
  bool is_waiting;           /**< its request is in the ring `waiting`; else in
                                  `sent` */
  struct lk_deadline *spare; /**< the next one in lk_request_deadlines.spares */
} lk_deadline;

/** The deadlines of all requests of a client. */
typedef struct lk_request_deadlines {
  lk_heap heap;        /**< of lk_deadline */
  lk_deadline *spares; /**< a list of unused ones, or NULL */
  size_t nspares;      /**< length of that list */
} lk_request_deadlines;

typedef struct lk_request {
  int32_t op;
  int32_t xid; /**< 0: not sent on a connection */
  int64_t sent_ms;
  lk_deadline *deadline; /**< NULL: the request has none */
  uint64_t end; /**< position of the end of its frame: of a sent request, in the
                     output of the connection; of a waiting one, in all bytes
                     that were ever added to `waiting_frames` */
  size_t len;   /**< bytes of the frame, with the length field */
  size_t operations; /**< number of operations of a multi or multiRead */
  /** The callback, whose type follows from `op`; or NULL. */
  void (*done)(void);
  void *arg;
  lk_watch *watch;     /**< the watch that the request sets, or NULL */
  unsigned char *copy; /**< a copy of the frame if the request may be repeated
                            on another connection; else NULL */
  bool completed; /**< the callback was invoked; the request stays in its ring
                       until its reply has come, or in `waiting` until the
                       waiting requests are sent */
  int outcome;    /**< the error with which the request completes if it gets no
                       reply; 0: not known yet */
} lk_request;

/** The requests of a client, in rings of lk_request; see the life of a request
    above. */
typedef struct lk_engine_requests {
  lk_ring sent;           /**< sent, in the order of their xids */
  lk_ring waiting;        /**< wait for the next connection */
  lk_ring ending_sent;    /**< were set aside from `sent`, or are not supported
                               by a new server; complete next */
  lk_ring ending_waiting; /**< were set aside from `waiting`; complete behind
                               those of `ending_sent` */
  size_t waiting_completed; /**< requests in `waiting` that have completed */
  size_t open;              /**< requests that have not completed */
  lk_buf waiting_frames;    /**< the frames of the requests in `waiting` */
  uint64_t waiting_end;     /**< number of bytes that were ever added to
                               `waiting_frames` */
  lk_buf path;              /**< scratch memory for a path with its chroot */
} lk_engine_requests;

/** A request to be queued. */
typedef struct lk_call_spec {
  int32_t op;
  const lk_record *rec; /**< the record of the body; NULL: the body is empty or
                             consists of operations */
  const void *value;    /**< the body; if `path` is not NULL, it is encoded in
                             place of the path in `value` */
  const char *chroot;   /**< put in front of `path` */
  const char *path;     /**< see lk__path_rest(); NULL: the body has no path */
  const lk_op *ops;     /**< the operations of a multi, not NULL even if there
                             are none; in other requests NULL */
  const lk_read *reads; /**< the operations of a multiRead, in the same way */
  size_t operations;    /**< number of `ops` or `reads` */
  lk_call options;      /**< a copy of the caller's options */
  const lk_call *call;  /**< `options`; NULL: the caller gave none */
  lk_watch_kind kind;   /**< the kind of the watch that `call` may ask for */
  bool covered;         /**< a persistent watch serves that watch, see
                             watch_calls.c */
  void (*done)(void);
  void *arg;
} lk_call_spec;

void lk__requests_init(lk_engine_requests *q, const lk_mem *mem);
void lk__requests_free(lk_engine_requests *q);

/** Remove the deadline of `r`, if it has one. */
void lk__deadline_drop(lk_request_deadlines *all, const lk_mem *mem,
                       lk_request *r);
/** When the next deadline passes; LK_NEVER: there is none. */
static inline int64_t lk__deadline_next(const lk_request_deadlines *all)
{
  return all->heap.root == NULL ? LK_NEVER : all->heap.root->at;
}
/** Free the unused deadlines; all others must have been dropped. */
void lk__deadlines_free(lk_request_deadlines *all, const lk_mem *mem);

/** Why a new request is refused now; 0: it is accepted. */
int lk__request_refusal(lk_client *c);
/** The xid after the last one that was used. */
int32_t lk__request_next_xid(const lk_client *c);

/** Set `*out` to the watches on the path of `spec`; NULL: there are none.
    @return 0 or LK_ERR_NO_MEMORY. */
int lk__request_find_watched(lk_client *c, const lk_call_spec *spec,
                             lk_watched **out);
/** Accept a request: write it to the output of the live connection, or let it
    wait for one.
    @return 0, or why it is not accepted. */
int lk__request_queue(lk_client *c, const lk_call_spec *spec);
/** Whether every sent request whose `end` is at most `until` has its reply. */
bool lk__requests_have_replies(const lk_client *c, uint64_t until);

/** Send the waiting requests on a new connection. Requests that its server does
    not support are set aside, to be completed by lk__requests_finish().
    @return false: there is no memory, and no request was sent. */
bool lk__requests_send_waiting(lk_client *c);

/** The reply to the oldest request is malformed or too big: if the request is a
    read, do not repeat it on the next connection, where it would get the same
    reply. It completes with `outcome`. */
void lk__request_forbid_retry(lk_client *c, int outcome);
/** Set aside the requests that complete because the connection broke. A
    callback may make new requests while lk__requests_finish() completes those
    that were set aside. */
void lk__requests_detach_sent(lk_client *c);
/** Set aside every request, since the session has ended. */
void lk__requests_detach_all(lk_client *c);
/** Complete the requests that were set aside, each with its own outcome. */
void lk__requests_finish(lk_client *c);
/** The session has ended: complete the requests that were set aside with `err`.
 */
void lk__requests_finish_all(lk_client *c, int err);
/** Complete requests whose own deadline has passed. */
void lk__requests_time_out(lk_client *c);

/** Invoke the callback of `r`. `body` is read only if `err` is 0. */
void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body);

#endif
