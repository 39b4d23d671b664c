/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PIPE_H
#define LK_SIM_WORLD_PIPE_H

#include "sim/world/network.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/ring.h"

/**
 * A connection, as pipe.c and network.c know it.
 */

/** One direction of it. */
typedef struct sim_flow {
  lk_buf bytes;  /**< on their way */
  lk_ring parts; /**< what they are made of */
  sim_job job;   /**< the first of them arrives */
  int64_t last_us;
  size_t break_after; /**< the connection breaks after so many; SIZE_MAX: not */
  bool lossy;  /**< broken: what is sent is swallowed */
} sim_flow;

struct sim_pipe {
  sim_network *network;
  lk_link link;
  unsigned process;
  unsigned server;
  void (*news)(void *arg); /**< NULL: the process has hung up */
  void *arg;
  sim_pipe_state state;
  bool waits_to_send; /**< the process waits until it can send more */
  bool host_is_down;  /**< the server's machine went with it */
  lk_buf arrived; /**< at the process */
  sim_conn *conn; /**< the server's side, or NULL */
  sim_job dialing;
  bool answered; /**< dialing: the answer is on its way back */
  bool refused;
  sim_flow flows[2];
};

struct sim_network {
  sim_world *world;
  sim_rng rng;
  lk_link pipes;
  lk_link freed_later; /**< freed when nobody is in them any more */
  sim_route *routes; /**< a row for each process */
  size_t pieces;
  bool has_faults; /**< ends are not always clean */
};

/** Forget what is on its way in a direction. */
void sim_pipe_empty(sim_pipe *p, int direction);
/** It breaks now: one end or both learn of it. */
void sim_pipe_break(sim_pipe *p);
/** Its route has no bandwidth any more: the bytes on their way to the process
    arrive after the route's delay. */
void sim_pipe_remove_bandwidth(sim_pipe *p);
/** Neither side knows it any more? Then it is buried. */
void sim_pipe_free_if_unused(sim_pipe *p);
/** Free those that are. */
void sim_pipes_free(sim_network *n);

#endif
