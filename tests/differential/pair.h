/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_PAIR_H
#define LK_DIFFERENTIAL_PAIR_H

#include "differential/counts.h"
#include "differential/list.h"
#include "differential/normal_form.h"
#include "differential/recent.h"
#include "differential/side.h"

/**
 * Two sides that are told the same and must say the same. What they say is
 * compared when it is listened to; the first difference ends the program with
 * its recent requests.
 */
typedef struct pair_conn {
  list asked;         /**< since the last pair_hear() */
  list said[2];       /**< what came for it, and events, in plain form */
  size_t answered[2]; /**< how many of `asked` */
  int32_t xid;        /**< of the last one */
  lk_buf out[2];      /**< not sent yet */
  bool heard;
} pair_conn;

typedef struct pair {
  side *sides[2];
  normal_form normal_form[2];
  pair_conn conns[SIDE_CONNS];
  bool any_order;  /**< of events between two replies */
  uint64_t number; /**< of requests so far */
  recent recent;
  counts counts;
} pair;

pair *pair_new(side *a, side *b);
void pair_free(pair *p);

void pair_open(pair *p, unsigned conn, unsigned server);
void pair_close(pair *p, unsigned conn);

/** Ask for a session: a new one (0), or one by its number. */
void pair_hello(pair *p, unsigned conn, int64_t session, bool right_password,
                int64_t last_zxid, int32_t timeout_ms);
/** Ask something. */
void pair_ask(pair *p, unsigned conn, int32_t xid, int32_t op, lk_bytes body);
/** Send what was asked. */
void pair_send(pair *p, unsigned conn);
/** Send, and wait until all is answered or the connection closed. */
void pair_hear(pair *p, unsigned conn);
/** Hear a ping, again if need be, until the servers behind a connection have
    seen all that any has. */
void pair_settle(pair *p, unsigned conn);
/** Hear; and if that is not the last answer's error, ask that again. */
void pair_await(pair *p, unsigned conn, int err);
/** Wait until both servers have closed the connection, and close it. */
void pair_hear_end(pair *p, unsigned conn);

/** What both said on a connection, until the next question. */
static inline const list *pair_said(const pair *p, unsigned conn)
{
  return &p->conns[conn].said[0];
}

#endif
