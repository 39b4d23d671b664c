/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_H
#define LK_NET_CONNECTION_H

#include <latchkey/client.h>

#include <ev.h>

#include "base/list.h"
#include "net/resolver.h"

/** How far a client's transport is. */
typedef enum lk_connection_stage {
  LK_STAGE_NONE, /**< none, or this attempt is over */
  LK_STAGE_RESOLVING,
  LK_STAGE_CONNECTING,
  LK_STAGE_OPEN
} lk_connection_stage;

/** See inquiry.c. */
typedef struct lk_probe_connection lk_probe_connection;

/**
 * A client and its transport. It lives until the client is freed and none of
 * its functions is on the stack any more.
 */
typedef struct lk_connection {
  struct lk_ev *ev;  /**< kept by each conn */
  lk_client *client; /**< NULL: freed */
  size_t users;      /**< the client, and each function that is at work */
  lk_link all;       /**< in lk_ev.conns */
  lk_link dirty;     /**< in lk_ev.dirty: to be settled before the loop waits */
  lk_heap_node due;  /**< in lk_ev.due: its deadline, or earlier */
  uint64_t ticked;   /**< the turn it was last told of a deadline */
  bool live;         /**< keeps the loop running */

  lk_connection_stage stage;
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
  lk_probe_connection
      *inquiry; /**< the client's second wish, under way; or NULL */
} lk_connection;

/** NULL: no memory. The one use is the caller's, for the client to come. */
lk_connection *lk__connection_new(struct lk_ev *ev);
/** The client's transport: as its config says. LK_ERR_NO_MEMORY,
    LK_ERR_UNIMPLEMENTED. */
int lk__connection_init_transport(lk_connection *n);
/** Its client is gone, or never came: give up the transport and that use. */
void lk__connection_detach_client(lk_connection *n);
/** Do before the loop waits what its client wishes. */
void lk__connection_schedule_update(lk_connection *n);
void lk__connection_update(lk_connection *n);
/** `due` has passed; it is not in the heap. */
void lk__connection_on_deadline(lk_connection *n);
/** In a forked child: close without a word, and let the loop go. */
void lk__connection_abandon(lk_connection *n);

#endif
