/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_H
#define LK_NET_CONNECTION_H

/**
 * @file
 * A client's connection to one server: the lookup of the host, the race of its
 * addresses, the transfers, and the probe for a server with a quorum.
 */

#include "net/address.h"
#include "net/driver.h"
#include "net/probe.h"
#include "net/watched_transport.h"

/** What a connection is doing. */
typedef enum lk_connection_stage {
  LK_STAGE_NONE,       /**< the client wants no connection, or its attempt has
                            ended */
  LK_STAGE_RESOLVING,  /**< the addresses of the host are looked up */
  LK_STAGE_CONNECTING, /**< the race for a TCP or TLS connection is on */
  LK_STAGE_OPEN        /**< bytes can be sent and received */
} lk_connection_stage;

/** How many addresses are tried at a time, and how long the next one waits if
    the earlier ones are neither connected nor refused; the delay doubles each
    time (RFC 8305, section 5). */
enum {
  LK_RACE_MAX_OPEN = 3,
  LK_RACE_DELAY_MS = 250,
  LK_RACE_MAX_DELAY_MS = 1000
};

/** If all addresses have failed: how long a name server may take to add
    others. */
enum { LK_RACE_WAIT_MS = 500 };

/** A try to connect to one address. */
typedef struct lk_race_try {
  lk_watched_transport transport;
  struct lk_connection *connection;
  lk_address address;
  int64_t end_ms; /**< without a TCP connection by then it fails; INT64_MAX: it
                       has one */
  bool open;
} lk_race_try;

/**
 * The tries of a connection attempt at the addresses of its host. The first one
 * that is connected, with TLS if used, wins: its transport is that of the
 * connection, and the others are closed.
 */
typedef struct lk_race {
  lk_race_try tries[LK_RACE_MAX_OPEN]; /**< all transports but the first are
                                          made when they are needed */
  lk_loop_timer timer;   /**< for the next try, and for the ends of tries */
  int64_t last_start_ms; /**< when the last try began */
  int64_t next_start_ms; /**< when the next try begins, if none fails before */
  int64_t give_up_ms;    /**< when the attempt fails since all addresses have;
                              INT64_MAX: not all have */
  int64_t delay_ms;      /**< between the next try and the one behind it */
  int family;            /**< of the next try, if possible; at first that of the
                              last connection */
  lk_watched_transport *failed; /**< of the try that failed last; or NULL */
} lk_race;

/**
 * A client and its connection. The struct is freed when the client is freed and
 * no function that uses the struct runs any more.
 */
typedef struct lk_connection {
  lk_driver_shared *shared; /**< this struct owns one reference */
  lk_client *client;        /**< NULL: not made yet, or freed */
  size_t refs;              /**< one for the client, and one for each running
                                 function */
  lk_link link;             /**< in lk_driver.connections */
  lk_link update;           /**< in lk_driver_shared.updates */
  lk_heap_node deadline;    /**< in lk_driver_shared.deadlines, with the time of
                                 lk_client_deadline() or an earlier one */
  uint64_t ticked_in_round; /**< lk_driver_shared.round at the last call of
                                 lk_client_tick() */
  bool refs_loop;           /**< this connection keeps the loop running */

  lk_connection_stage stage;
  uint64_t attempt; /**< the lk_want.attempt being carried out; 0: none */
  uint16_t port;
  uint32_t address_index; /**< lk_want.address_index */
  bool is_literal;        /**< the host is an address */
  uint32_t reported; /**< the number in the last report of addresses; 0: there
                        was none in this attempt */
  lk_address_list addresses;
  lk_lookup lookup;
  lk_race race;
  lk_watched_transport *transport; /**< in LK_STAGE_OPEN, that of a try */
  int send_waits_for;         /**< the event that send() waits for; 0: none */
  int recv_waits_for;         /**< the event that recv() waits for; 0:
                                   LK_LOOP_READ */
  lk_probe_connection *probe; /**< NULL: no server is being probed */
} lk_connection;

/** Have lk__connection_update() called before the loop waits. */
void lk__connection_request_update(lk_connection *n);

/** NULL: no memory. The caller gets the only reference, which belongs to the
    client as soon as there is one. */
lk_connection *lk__connection_new(lk_driver_shared *x);
/** Make the transport that the options of the client ask for. Returns 0,
    LK_ERR_NO_MEMORY or LK_ERR_UNIMPLEMENTED (TLS in a build without it). */
int lk__connection_init_transport(lk_connection *n);
/** The client is freed, or could not be made: close the connection, and drop
    the client's reference. */
void lk__connection_detach_client(lk_connection *n);
/** Do what the client wants now: connect or close, probe a server, send, and
    watch for its deadline. */
void lk__connection_update(lk_connection *n);
/** The time of `deadline` has come, and `deadline` was removed from the heap.
 */
void lk__connection_on_deadline(lk_connection *n);
/** The probe has the reply of the server, `len` bytes of `reply`, and is freed;
    `len` 0: the probe failed. */
void lk__connection_on_probe_reply(lk_connection *n, const char *reply,
                                   size_t len);
/** Close without sending anything, and leave the loop. In a forked child this
    does not disturb the parent's connection. */
void lk__connection_abandon(lk_connection *n);

#endif
