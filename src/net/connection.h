/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_H
#define LK_NET_CONNECTION_H

#include "net/address_list.h"
#include "net/driver_shared.h"
#include "net/probe_connection.h"
#include "net/watched_transport.h"

/** How far the connection of a client is. */
typedef enum lk_connection_stage {
  LK_STAGE_NONE, /**< none is wanted, or this attempt has failed */
  LK_STAGE_RESOLVING,
  LK_STAGE_CONNECTING,
  LK_STAGE_OPEN
} lk_connection_stage;

/**
 * A client and its connection. It lives until the client is freed and none of
 * its functions is on the stack any more.
 */
typedef struct lk_connection {
  lk_driver_shared *shared; /**< each connection has a reference */
  lk_client *client;       /**< NULL: freed */
  size_t refs;           /**< the client's, and one of each running function */
  lk_link link;          /**< in the driver's list */
  lk_link update;        /**< in lk_driver_shared.updates */
  lk_heap_node deadline; /**< in lk_driver_shared.deadlines: the client's, or
                              earlier */
  uint64_t ticked;       /**< the round of the last lk_client_tick() */
  bool holds_loop;       /**< keeps the loop running */

  lk_connection_stage stage;
  uint64_t attempt; /**< lk_want.attempt that this is about; 0: none */
  uint16_t port;
  uint32_t address_index; /**< lk_want.address */
  lk_address_list addresses;
  lk_lookup lookup;
  lk_watched_transport transport;
  int send_waits_for;         /**< events until more can be sent; 0: none */
  int recv_waits_for;         /**< likewise, besides LK_LOOP_READ */
  lk_probe_connection *probe; /**< or NULL */
} lk_connection;

/** NULL: no memory. The one reference is the caller's, for the client to come.
 */
lk_connection *lk__connection_new(lk_driver_shared *x);
/** Choose the transport that its client's options ask for.
    LK_ERR_NO_MEMORY, LK_ERR_UNIMPLEMENTED. */
int lk__connection_init_transport(lk_connection *n);
/** The client is gone, or was never made: close, and drop its reference. */
void lk__connection_detach_client(lk_connection *n);
/** Have lk__connection_update() called before the loop waits. */
void lk__connection_request_update(lk_connection *n);
/** Do what the client wants now: connect, send, set its deadline. */
void lk__connection_update(lk_connection *n);
/** `deadline` has passed, and was removed from the heap. */
void lk__connection_on_deadline(lk_connection *n);
/** In a forked child: close without sending, and let the loop go. */
void lk__connection_abandon(lk_connection *n);

#endif
