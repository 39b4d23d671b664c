/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_SCRIPTED_H
#define LK_UNIT_FAKE_SCRIPTED_H

#include "unit/fake/loopback.h"

enum { SCRIPTED_REPLIES = 6 };

/**
 * A server on loopback that knows no node: it gives the replies that a test
 * says, one after the other, and keeps the requests as text, one line each, as
 * wire_print() writes them but without their xid. Handshakes, pings and
 * closeSession are answered as ever; what comes behind the last reply is
 * refused with NO_AUTH.
 */
typedef struct scripted {
  loopback loopback; /**< first */

  /* Under its mutex. */
  const char *const *replies; /**< "ZXID ERROR [BODY...]"; see support/words.h */
  size_t given;               /**< how many of them */
  unsigned lost;     /**< which request is lost with its connection; 0: none */
  unsigned requests; /**< how many have come */
  lk_buf asked;
} scripted;

void scripted_start(scripted *s);
void scripted_stop(scripted *s);
/** Up to SCRIPTED_REPLIES, NULL behind the last if they are fewer. */
void scripted_set(scripted *s, const char *const *replies, unsigned lost);
/** Whether the requests since then are exactly these; says which they were. */
bool scripted_was_asked(scripted *s, const char *text);
/** Send an event on all connections. */
void scripted_send_event(scripted *s, int32_t type, const char *path);

#endif
