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
  lk_client *client;        /**< NULL: freed */
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
  uint32_t address_index; /**< lk_want.address_index */
  lk_address_list addresses;
  lk_lookup lookup;
  lk_watched_transport transport;
  int send_waits_for;         /**< events until more can be sent; 0: none */
  int recv_waits_for;         /**< events until more can be received; 0:
                                         LK_LOOP_READ */
  lk_probe_connection *probe; /**< or NULL */
} lk_connection;

/** No reference is left. */
void lk__connection_free(lk_connection *n);
static inline void lk__connection_unref(lk_connection *n)
{
  if (--n->refs == 0)
    lk__connection_free(n);
}
/** Have lk__connection_update() called before the loop waits. */
void lk__connection_request_update(lk_connection *n);
/** Have lk__connection_on_deadline() called at `at_ms`, or earlier. */
void lk__connection_set_deadline(lk_connection *n, int64_t at_ms);
/** Whether it keeps the loop running. */
static inline void lk__connection_hold_loop(lk_connection *n, bool hold)
{
  if (hold == n->holds_loop)
    return;
  n->holds_loop = hold;
  lk__loop_hold(n->shared->loop, hold);
}

#endif
