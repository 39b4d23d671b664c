/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_STEPS_H
#define LK_DIFFERENTIAL_STEPS_H

#include "differential/generator.h"
#include "differential/pair.h"

/**
 * Random actions of several sessions on both sides of a pair: requests,
 * reconnects, moves, closes. After each action of one session, the events of
 * all others are received and compared, so that the outcome does not depend on
 * timing.
 */
enum { STEPS_SLOTS = 5 };

/** A session, which a later one replaces when it is closed. */
typedef struct session_slot {
  bool attached;     /**< the session has a connection, `conn` */
  bool keeps_server; /**< the session stays at one server, so no reply it gets
                        is older than the last */
  unsigned conn;
  unsigned server;
  int64_t session;   /**< its number */
  int32_t xid;       /**< of the last request */
  int64_t last_zxid; /**< the largest seen in replies, in normal form */
} session_slot;

typedef struct steps {
  pair *pair;
  unsigned servers;
  sim_rng rng;
  generator generator;
  session_slot slots[STEPS_SLOTS];
  bool conn_used[SIDE_CONNS];
  uint64_t count;  /**< requests so far, without the pings in between */
  unsigned nbases; /**< base nodes so far; see generator.h */
  /** number of requests after which the next base is used */
  uint64_t next_base;
} steps;

/** Make at least `count` requests, and compare all nodes at the end. Returns
    the number of requests. */
uint64_t steps_run(pair *p, unsigned servers, uint64_t seed, uint64_t count);

#endif
