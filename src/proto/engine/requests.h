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
 * The life of a request, by the lists of lk_engine_requests:
 *
 * - Acceptance: lk__request_queue() adds it to `sent` if there is a live
 *   connection, else to `waiting`. Its memory is an unused place in a chunk.
 * - `waiting` to `sent`: lk__requests_send_waiting(), on a new connection. A
 *   request that the server does not support goes to `ending` instead.
 * - `sent`, completion: lk__reply_take() in replies.c, at the reply. The reply
 *   belongs to the oldest request. A server may reject a request as unknown
 *   before it replies to older ones. With another reply to a later request, the
 *   connection ends: the server has dropped the oldest one.
 * - `sent` to `ending`: lk__requests_detach_sent(), at the loss of the
 *   connection. Requests that may be repeated (lk_call.repeat) go to `waiting`
 *   instead.
 * - `sent` and `waiting` to `ending`: lk__requests_detach_all(), when the
 *   session ends.
 * - `ending`, completion: lk__requests_finish(), or lk__requests_finish_all()
 *   when the session ends. Between detaching and finishing, listeners are
 *   notified of the new state.
 * - `sent` or `waiting`, completion at the deadline: lk__requests_time_out().
 *   A waiting request with LK_OFFLINE_FAIL gets its deadline when an attempt
 *   fails, by lk__requests_attempt_failed().
 * - `waiting`, completion by lk_request_cancel().
 *   After the last two, the request stays in its list, too: in `sent` until its
 * reply comes, in `waiting` because of its frame. It is `completed`, has
 * neither watch, copy nor deadline, and leaves its list without a callback.
 * - The end: lk__request_free(), after the completion.
 *
 * A request is in no list while its reply, or its end, is reported.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "jute/record.h"
#include "proto/engine/time.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

typedef struct lk_request {
  lk_link link; /**< in a list of lk_engine_requests, or in none; of an unused
                     one, `next` is the next one of its chunk, or NULL */
  struct lk_request_chunk *chunk; /**< which contains the request */
  lk_heap_node deadline; /**< in lk_engine_requests.deadlines, or in no heap */
  int32_t op;
  int32_t xid; /**< 0: not sent on a connection */
  int64_t sent_ms;
  uint64_t end; /**< of a sent request: position of the end of its frame in the
                     output of the connection */
  size_t len;   /**< bytes of the frame, with the length field */
  size_t operations; /**< number of operations of a multi or multiRead */
  /** The callback, whose type follows from `op`; or NULL. */
  void (*done)(void);
  void *arg;
  lk_watch *watch;     /**< the watch that the request sets, or NULL */
  unsigned char *copy; /**< a copy of the frame if the request may be repeated
                            on another connection; else NULL */
  lk_request_handle *handle; /**< the caller's, which names this request; or
                                  NULL */
  bool fails_offline;        /**< LK_OFFLINE_FAIL */
  bool completed; /**< the callback was invoked, or is being invoked */
  int outcome;    /**< the error with which the request completes if it gets no
                       reply; 0: not known yet */
} lk_request;

/** The memory of some requests. */
enum { LK_REQUEST_CHUNK = 8 };

typedef struct lk_request_chunk {
  lk_link link;    /**< in lk_engine_requests.chunks; or in no list, if all its
                        requests are used */
  lk_link *unused; /**< its unused requests, by lk_link.next; NULL: none */
  size_t used_count;
  lk_request requests[LK_REQUEST_CHUNK];
} lk_request_chunk;

/** The requests of a client, in lists of lk_request; see the life of a request
    above. */
typedef struct lk_engine_requests {
  lk_link sent;          /**< sent, in the order of their xids */
  lk_link waiting;       /**< wait for the next connection */
  lk_link ending;        /**< were set aside, and complete next */
  lk_link chunks;        /**< of lk_request_chunk: those with unused requests */
  size_t unused_count;   /**< of requests in `chunks` */
  lk_heap deadlines;     /**< of requests in `sent` and `waiting` */
  size_t open;           /**< requests that have not completed */
  lk_buf waiting_frames; /**< the frames of the requests in `waiting` */
  size_t completed_len;  /**< bytes in `waiting_frames` of those that have
                              completed */
  lk_buf path;           /**< scratch memory for a path with its chroot */
  uint64_t dropped; /**< opcodes of requests that a server has dropped, until a
                         request of this opcode gets a reply; bits as in
                         lk_unsupported.opcodes */
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
  void (*done)(void);
  void *arg;
} lk_call_spec;

void lk__requests_init(lk_engine_requests *q, const lk_mem *mem);
void lk__requests_free(lk_engine_requests *q, const lk_mem *mem);

/** When the next deadline of a request passes; LK_NEVER: there is none. */
static inline int64_t lk__requests_deadline(const lk_engine_requests *q)
{
  return q->deadlines.root == NULL ? LK_NEVER : q->deadlines.root->at;
}

/** The request that was sent first and has no reply; NULL: there is none. */
static inline lk_request *lk__requests_oldest(const lk_engine_requests *q)
{
  return lk__list_empty(&q->sent) ? NULL
                                  : LK_OWNER(q->sent.next, lk_request, link);
}

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
/** A connection attempt has failed: the requests that wait only for this one
    complete in the next lk__requests_time_out(), with LK_ERR_NOT_SENT. */
void lk__requests_attempt_failed(lk_client *c);

/** Invoke the callback of `r`. `body` is read only if `err` is 0. */
void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body);
/** Keep the memory of `r`, which is in no list and no heap, for new requests.
    If enough is kept, an empty chunk is freed. */
void lk__request_free(lk_client *c, lk_request *r);

/** Note that the connected server does not know `op`: it has replied
    UNIMPLEMENTED, and closes the connection. The client does not send it such a
    request again for a minute. */
void lk__request_note_unsupported(lk_client *c, int32_t op);
/** The connected server has dropped the requests from `oldest` on that were
    sent before `replied`. If a request of the same opcode was dropped before,
    the client does not send such a request to this server for a minute. A
    single one may have been lost by a server that knows it. */
void lk__requests_note_dropped(lk_client *c, const lk_request *oldest,
                               const lk_request *replied);
/** The requests without a reply may be unknown to the server: send a read that
    all servers know behind them. If the server drops the others, the reply to
    the read shows it. Does nothing if such a request is under way already. */
void lk__requests_send_known_read(lk_client *c);
/** A request of opcode `op` has its reply. */
void lk__requests_note_reply(lk_client *c, int32_t op);
/** Whether the connected server has rejected `op` in the last minute. */
bool lk__request_is_unsupported(const lk_client *c, int32_t op);
/** Why the client does not send `op` to the connected server:
    LK_ERR_UNIMPLEMENTED or LK_ERR_NOT_READ_ONLY; 0: it does. */
int lk__request_support_error(const lk_client *c, int32_t op);

#endif
