/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_NETWORK_H
#define LK_SIM_NETWORK_H

#include "sim/world.h"

/**
 * Connections of processes to servers, as TCP has them: bytes arrive in order,
 * late, in pieces of any size, or not at all. What a broken link holds back
 * comes when it is whole again, unless somebody has hung up.
 */
typedef struct sim_network sim_network;
typedef struct sim_pipe sim_pipe;

/** Directions. */
enum { SIM_UP, SIM_DOWN }; /* to the server, to the process */

/** What the kernel of a process knows of a connection. */
typedef enum sim_pipe_state {
  SIM_PIPE_DIALING,
  SIM_PIPE_OPEN,
  SIM_PIPE_REFUSED,
  SIM_PIPE_CLOSED, /**< by the server, after all bytes */
  SIM_PIPE_RESET   /**< broken; what was on its way is lost */
} sim_pipe_state;

sim_network *sim_network_new(sim_world *w);
void sim_network_free(sim_network *n);

/* ---- for processes ------------------------------------------------------ */

/** Dial. `news` is called when there is something to look at. */
sim_pipe *sim_pipe_open(sim_network *n, unsigned process, unsigned server,
                        void (*news)(void *arg), void *arg);
/** CLOSED and RESET show once all that arrived was received. */
sim_pipe_state sim_pipe_look(const sim_pipe *p);
/** Hand over bytes; the result is how many were taken. If it was not all,
    there will be news. */
size_t sim_pipe_send(sim_pipe *p, const void *bytes, size_t len);
/** What has arrived: at most `most` bytes; valid until the next call. */
lk_bytes sim_pipe_receive(sim_pipe *p, size_t most);
/** Hang up. The server learns it when it can, or never if `silent`. `p` is
    void; NULL is fine. */
void sim_pipe_close(sim_pipe *p, bool silent);

/* ---- what can go wrong --------------------------------------------------- */

/** What becomes of bytes between a process and a server. */
typedef struct sim_route {
  bool cut[2];         /**< nothing passes in this direction */
  int64_t extra_us[2]; /**< more delay */
  bool proxy;          /**< new connections are taken and never answered */
} sim_route;

sim_route *sim_network_route(sim_network *n, unsigned process, unsigned server);
/** After a change of routes: what was held back goes on. */
void sim_network_changed(sim_network *n);
/** Bytes in pieces of this size at most; 0: whole. */
void sim_network_pieces(sim_network *n, size_t most);
/** Break the connections of a process now; false: there is none. */
bool sim_network_reset(sim_network *n, unsigned process);
/** Break its connection once `bytes` more have arrived in that direction. */
bool sim_network_reset_at(sim_network *n, unsigned process, int direction,
                          size_t bytes);

#endif
