/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_STEPS_H
#define LK_DIFFERENTIAL_STEPS_H

#include "differential/generator.h"
#include "differential/pair.h"

/**
 * Several sessions that live at random on both sides of a pair: they ask,
 * lose their connection and come back, move, close. One does something at a
 * time, and then all others are asked what they saw, so that only one thing
 * can happen.
 */
enum { STEPS_SLOTS = 5 };

typedef struct slot {
  bool attached;
  bool settled; /**< it never leaves its server, so that this is up to date */
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
  bool used[SIDE_CONNS]; /**< connections */
  uint64_t count;        /**< requests so far, the pings between not counted */
  unsigned bases;        /**< how many corners of the tree so far */
  uint64_t next_base;    /**< after how many requests the next one */
} steps;

/** Make `count` requests, or a few more, and compare all nodes. How many it
    were. */
uint64_t steps_run(pair *p, unsigned servers, uint64_t seed, uint64_t count);

#endif
