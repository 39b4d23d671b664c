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

typedef struct slot {
  bool attached;
  bool keeps_server; /**< the session stays at one server, so no reply it gets
                        is older than the last */
  unsigned conn;
  unsigned server;
  int64_t session;
  int32_t xid;
  int64_t last_zxid;
} slot;

typedef struct steps {
  pair *pair;
  unsigned servers;
  sim_rng rng;
  generator generator;
  slot slots[STEPS_SLOTS];
  bool used[SIDE_CONNS]; /**< connections in use */
  uint64_t count;        /**< requests, without the pings in between */
  unsigned nbases;       /**< base nodes used so far */
  /** number of requests after which the next base is used */
  uint64_t next_base;
} steps;

/** Make at least `count` requests, and compare all nodes at the end. Returns
    the number of requests. */
uint64_t steps_run(pair *p, unsigned servers, uint64_t seed, uint64_t count);

#endif
