/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_TRANSPORT_H
#define LK_EV_TRANSPORT_H

#include "ev/address.h"

/** How a step ended. */
typedef enum lk_flow {
  LK_FLOW_DONE,   /**< all of it */
  LK_FLOW_READ,   /**< go on when the descriptor is readable */
  LK_FLOW_WRITE,  /**< go on when it is writable */
  LK_FLOW_END,    /**< the peer has closed; not of send() */
  LK_FLOW_FAILED, /**< `why` says why */
} lk_flow;

/** What each kind of transport begins with. */
typedef struct lk_transport {
  int fd; /**< -1 while closed */
  char why[192];
} lk_transport;

/** A kind of transport. No step blocks, and none sends after close. */
typedef struct lk_transport_type {
  size_t size; /**< of its object, which is zeroed but for `fd` at first */
  /** Begin to connect; `host`: the peer's name, borrowed. As handshake(). */
  lk_flow (*open)(lk_transport *t, const lk_address *to, const char *host);
  /** DONE: connected; else again when the descriptor is ready. */
  lk_flow (*handshake)(lk_transport *t);
  /** Send what fits now. `done`: bytes taken, also when it is not DONE. What
      was not taken is offered again, with more behind it. */
  lk_flow (*send)(lk_transport *t, const void *bytes, size_t len, size_t *done);
  /** DONE: `got` bytes, which are less than `size` only if no more are here. */
  lk_flow (*recv)(lk_transport *t, void *room, size_t size, size_t *got);
  /** Give the descriptor back and send nothing: in a forked child the
      connection is the parent's. */
  void (*close)(lk_transport *t);
} lk_transport_type;

extern const lk_transport_type lk__tcp;

/** Set `why` to "what: text of the errno `number`". Always LK_FLOW_FAILED. */
lk_flow lk__transport_fail(lk_transport *t, const char *what, int number);

#endif
