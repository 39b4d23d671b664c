/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_PAIR_H
#define LK_DIFFERENTIAL_PAIR_H

#include "differential/counts.h"
#include "differential/list.h"
#include "differential/normal_form.h"
#include "differential/recent.h"
#include "differential/side.h"

/**
 * Two sides that get the same requests and must give the same replies. Replies
 * are compared when they are received. The first difference prints the recent
 * requests and ends the program. Arrays of two have an element for each side.
 */
enum { PAIR_NEW_SESSION = 0 /**< in place of a session's number */ };

typedef enum pair_password {
  PAIR_RIGHT_PASSWORD,
  PAIR_WRONG_PASSWORD
} pair_password;

typedef struct pair_conn {
  list requests;      /**< sent after `replies` were last compared */
  list replies[2];    /**< replies and events in normal form */
  size_t nreplies[2]; /**< number of `requests` that are answered */
  int32_t xid;        /**< of the last request */
  lk_buf out[2];      /**< bytes that are not sent yet */
  bool compared; /**< the replies were compared: the next request clears both
                    lists */
} pair_conn;

typedef struct pair {
  side *sides[2];
  normal_form normal_form[2];
  pair_conn conns[SIDE_CONNS];
  bool any_order;  /**< the order of events between two replies is ignored */
  uint64_t number; /**< of the last request */
  recent recent;
  counts counts;
} pair;

pair *pair_new(side *a, side *b);
void pair_free(pair *p);

void pair_open(pair *p, unsigned conn, unsigned server);
void pair_close(pair *p, unsigned conn);

/** Add a connect request. `session`: its number, or PAIR_NEW_SESSION;
    `last_zxid`: in normal form. */
void pair_connect(pair *p, unsigned conn, int64_t session,
                  pair_password password, int64_t last_zxid,
                  int32_t timeout_ms);
/** Add a request to those that pair_send() sends. */
void pair_add_request(pair *p, unsigned conn, int32_t xid, int32_t op,
                      lk_bytes body);
/** Send the requests that were added. */
void pair_send(pair *p, unsigned conn);
/** Send, and receive until all requests are answered or the connection
    closes. */
void pair_receive(pair *p, unsigned conn);
/** Receive, and repeat the last request until its reply shows that the server
    of each side has seen the largest zxid. The caller has added a ping. */
void pair_settle(pair *p, unsigned conn);
/** Receive, and repeat the last request until its error is `err`. */
void pair_await(pair *p, unsigned conn, int err);
/** Wait until both servers have closed the connection, and close it. */
void pair_receive_close(pair *p, unsigned conn);

/** The replies and events of a connection, which are equal on both sides. Valid
    until the next request. */
static inline const list *pair_replies(const pair *p, unsigned conn)
{
  return &p->conns[conn].replies[0];
}

#endif
