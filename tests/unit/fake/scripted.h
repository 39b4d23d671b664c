/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_SCRIPTED_H
#define LK_UNIT_FAKE_SCRIPTED_H

#include "unit/fake/loopback.h"

enum { SCRIPTED_REPLIES = 6 };

/**
 * A server on loopback without nodes. It sends the replies of a test, one after
 * the other. It keeps the requests as text, one line each, as wire_print()
 * writes them but without their xid. The model server answers handshakes, pings
 * and closeSession. Requests after the last reply get the error NO_AUTH.
 */
typedef struct scripted {
  loopback loopback; /**< the first member: serve() converts its pointer */

  /* The mutex of `loopback` protects these. */
  const char *const
      *replies; /**< "ZXID ERROR [BODY...]"; see support/words.h */
  size_t replies_sent;
  unsigned lost_request; /**< the request of this number gets no reply, but its
                              connection is closed; counts from 1; 0: none */
  unsigned requests;     /**< the number of requests received */
  lk_buf requests_text;
} scripted;

void scripted_start(scripted *s);
void scripted_stop(scripted *s);
/** Set up to SCRIPTED_REPLIES replies; NULL stands behind fewer ones. Forgets
    the requests received. */
void scripted_set(scripted *s, const char *const *replies,
                  unsigned lost_request);
/** Whether the text of the requests since scripted_set() is `text`. Otherwise
    prints both. */
bool scripted_was_asked(scripted *s, const char *text);
/** Send an event on all connections. */
void scripted_send_event(scripted *s, int32_t type, const char *path);

#endif
