/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_RACE_H
#define LK_NET_CONNECTION_RACE_H

#include "net/address_list.h"
#include "net/watched_transport.h"

struct lk_connection;

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

#endif
