/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_CONN_H
#define LK_EV_CONN_H

#include <latchkey/client.h>

#include <ev.h>

#include "base/list.h"
#include "ev/resolve.h"

/** How far a client's transport is. */
typedef enum lk_stage {
  LK_STAGE_NONE, /**< none, or this attempt is over */
  LK_STAGE_RESOLVING,
  LK_STAGE_CONNECTING,
  LK_STAGE_OPEN
} lk_stage;

/** See inquiry.c. */
typedef struct lk_inquiry lk_inquiry;

/**
 * A client and its transport. It lives until the client is freed and none of
 * its functions is on the stack any more.
 */
typedef struct lk_conn {
  struct lk_ev *ev;  /**< kept by each conn */
  lk_client *client; /**< NULL: freed */
  size_t users;      /**< the client, and each function that is at work */
  lk_link all;       /**< in lk_ev.conns */
  lk_link dirty;     /**< in lk_ev.dirty: to be settled before the loop waits */
  lk_heap_node due;  /**< in lk_ev.due: its deadline, or earlier */
  uint64_t ticked;   /**< the turn it was last told of a deadline */
  bool live;         /**< keeps the loop running */

  lk_stage stage;
  uint64_t attempt; /**< the client's wish that is being seen to; 0: none */
  uint16_t port;
  uint32_t address; /**< which of `list` */
  char *host;       /**< whose addresses `list` has */
  lk_address *list;
  size_t count;
  lk_address used; /**< of `list`, in the last attempt; its family 0: none */
  lk_lookup lookup;

  const lk_transport_type *type;
  lk_transport *transport;
  ev_io io;
  int watched; /**< what `io` waits for; 0: it is stopped */
  int send_on; /**< what has to happen before more can be sent; 0: nothing */
  int recv_on; /**< likewise, besides EV_READ */
  lk_inquiry *inquiry; /**< the client's second wish, under way; or NULL */
} lk_conn;

/** NULL: no memory. The one use is the caller's, for the client to come. */
lk_conn *lk__conn_new(struct lk_ev *ev);
/** The client's transport: as its config says. LK_ERR_NO_MEMORY,
    LK_ERR_UNIMPLEMENTED. */
int lk__conn_init_transport(lk_conn *n);
/** Its client is gone, or never came: give up the transport and that use. */
void lk__conn_leave(lk_conn *n);
/** Do before the loop waits what its client wishes. */
void lk__conn_touch(lk_conn *n);
void lk__conn_settle(lk_conn *n);
/** `due` has passed; it is not in the heap. */
void lk__conn_ring(lk_conn *n);
/** In a forked child: close without a word, and let the loop go. */
void lk__conn_abandon(lk_conn *n);

#endif
