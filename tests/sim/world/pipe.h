/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PIPE_H
#define LK_SIM_WORLD_PIPE_H

#include "sim/world/network.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/ring.h"

/**
 * The members of a connection and of the network, shared by pipe.c and
 * network.c.
 */

/** sim_flow.break_after of a connection that does not break. */
#define SIM_NEVER_BREAK SIZE_MAX

/** One direction of a connection. */
typedef struct sim_flow {
  lk_buf bytes;       /**< in flight */
  lk_ring parts;      /**< the segments of `bytes` */
  sim_job job;        /**< arrival of the first segment */
  int64_t last_us;    /**< when the last segment arrives */
  size_t break_after; /**< the connection breaks after this many bytes,
                         or SIM_NEVER_BREAK */
  bool lossy; /**< the connection is broken: bytes that are sent are lost */
} sim_flow;

struct sim_pipe {
  sim_network *network;
  lk_link link;
  unsigned process;
  unsigned server;
  void (*on_ready)(void *arg); /**< NULL: the process has closed */
  void *arg;
  sim_pipe_state state;
  bool waits_to_send; /**< the process waits for space to send */
  bool host_is_down;  /**< the machine of the server failed */
  lk_buf arrived;     /**< bytes that the process has received and not read */
  sim_conn *conn;     /**< the server's side, or NULL */
  sim_job connecting;
  bool answered; /**< connecting: the server's reply is in flight */
  bool refused;
  sim_flow flows[2];
};

struct sim_network {
  sim_world *world;
  sim_rng rng;
  lk_link pipes;
  lk_link freed_later; /**< pipes to be freed when no function uses them */
  sim_route *routes;   /**< a row for each process */
  size_t max_piece;    /**< or SIM_PIECES_OF_ANY_SIZE */
  bool has_faults; /**< false in scenario "calm": no partial writes, no silent
                      breaks */
};

/** Drop the bytes in flight in a direction. */
void sim_pipe_empty(sim_pipe *p, int direction);
/** Break the connection: one end or both notice. */
void sim_pipe_break(sim_pipe *p);
/** The route has no bandwidth limit any more: bytes in flight arrive after its
    delay. */
void sim_pipe_remove_bandwidth(sim_pipe *p);
/** Schedule the pipe for freeing if both sides have closed. */
void sim_pipe_free_if_unused(sim_pipe *p);
/** Free the scheduled pipes. */
void sim_pipes_free(sim_network *n);

#endif
