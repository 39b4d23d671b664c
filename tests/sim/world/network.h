/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_NETWORK_H
#define LK_SIM_WORLD_NETWORK_H

#include "sim/world/world.h"

/**
 * TCP connections of processes to servers. Bytes arrive in order, delayed, in
 * pieces of any size, or not at all. Bytes held back by a cut route arrive when
 * it is restored, unless an end was closed.
 */
typedef struct sim_network sim_network;
typedef struct sim_pipe sim_pipe;

/** A large node, which is read over routes with limited bandwidth. */
#define SIM_LARGE_PATH "/large"
enum { SIM_LARGE = 64 * 1024 };

/** For sim_network_limit_pieces(): do not split. */
enum { SIM_PIECES_OF_ANY_SIZE = 0 };

/** Directions of a connection: up to the server, down to the process. */
enum { SIM_UP, SIM_DOWN };

/** How a process closes a connection. */
typedef enum sim_close_mode {
  SIM_CLOSE,         /**< the server notices it later */
  SIM_CLOSE_SILENTLY /**< the server never notices it */
} sim_close_mode;

/** The state of a connection for the process. */
typedef enum sim_pipe_state {
  SIM_PIPE_CONNECTING,
  SIM_PIPE_OPEN,
  SIM_PIPE_REFUSED,
  SIM_PIPE_CLOSED, /**< by the server, behind all its bytes */
  SIM_PIPE_RESET   /**< broken; bytes in flight are lost */
} sim_pipe_state;

/** The route between a process and a server. Several faults may be active. */
typedef struct sim_route {
  /** number of faults that drop all bytes in this direction */
  unsigned cut[2];
  int64_t delay_us[2]; /**< least delay in each direction */
  int64_t us_per_kb;   /**< time for 1,024 bytes to the process; 0: no limit */
  /** number of faults that accept connections and never answer */
  unsigned proxies;
} sim_route;

sim_network *sim_network_new(sim_world *w);
void sim_network_free(sim_network *n);

/* ---- for processes ------------------------------------------------------ */

/** Connect. `on_ready` is called when the state of the connection changes, and
    when bytes arrive. */
sim_pipe *sim_pipe_open(sim_network *n, unsigned process, unsigned server,
                        void (*on_ready)(void *arg), void *arg);
sim_pipe_state sim_pipe_get_state(const sim_pipe *p);
unsigned sim_pipe_server(const sim_pipe *p);
/** Send bytes; returns the number accepted. If not all, `on_ready` is called
    when there is space. */
size_t sim_pipe_send(sim_pipe *p, const void *bytes, size_t len);
/** The number of bytes that have arrived. */
size_t sim_pipe_arrived(const sim_pipe *p);
void sim_pipe_receive(sim_pipe *p, void *out, size_t len);
/** Close. `p` must not be used any more; NULL is allowed. */
void sim_pipe_close(sim_pipe *p, sim_close_mode mode);

/* ---- faults ------------------------------------------------------------- */

sim_route *sim_network_route(sim_network *n, unsigned process, unsigned server);
/** Call after a change of routes: bytes that were held back continue. */
void sim_network_changed(sim_network *n);
/** Remove the bandwidth limit of a route, also for bytes in flight. */
void sim_network_remove_bandwidth(sim_network *n, unsigned process,
                                  unsigned server);
/** Split bytes into pieces of this size at most; 0: do not split. */
void sim_network_limit_pieces(sim_network *n, size_t most);
/** Break the connection of a process. false: it has none. */
bool sim_network_reset(sim_network *n, unsigned process);
/** Break the connection of a process when `bytes` more have passed in that
    direction. false: the process has no connection. */
bool sim_network_reset_after(sim_network *n, unsigned process, int direction,
                             size_t bytes);
/** Cancel all pending sim_network_reset_after(). */
void sim_network_cancel_resets(sim_network *n);
/** The machine of a server fails. It closes no connection, so that processes do
    not notice. */
void sim_network_stop_host(sim_network *n, unsigned server);
/** Whether the server of a process's connection replies to pings only. */
bool sim_network_is_mute(const sim_network *n, unsigned process);
/** The server to which a process is connected, or -1. */
int sim_network_server_of(const sim_network *n, unsigned process);

#endif
