/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_NETWORK_H
#define LK_SIM_WORLD_NETWORK_H

#include "sim/world/world.h"

/**
 * Connections of processes to servers, as TCP has them: bytes arrive in order,
 * late, in pieces of any size, or not at all. What a broken link holds back
 * comes when it is whole again, unless somebody has hung up.
 */
typedef struct sim_network sim_network;
typedef struct sim_pipe sim_pipe;

/** A node that is read where routes have a bandwidth, and its bytes. */
#define SIM_LARGE_PATH "/large"
enum { SIM_LARGE = 64 * 1024 };

/** Directions: to the server, to the process. */
enum { SIM_UP, SIM_DOWN };

/** What the kernel of a process knows of a connection. */
typedef enum sim_pipe_state {
  SIM_PIPE_DIALING,
  SIM_PIPE_OPEN,
  SIM_PIPE_REFUSED,
  SIM_PIPE_CLOSED, /**< by the server, after all bytes */
  SIM_PIPE_RESET   /**< broken; what was on its way is lost */
} sim_pipe_state;

/** What becomes of bytes between a process and a server. Faults add up. */
typedef struct sim_route {
  unsigned cut[2];     /**< by how many: nothing passes in this direction */
  int64_t delay_us[2]; /**< the least */
  int64_t kb_us;       /**< what 1,024 bytes down take; 0: nothing */
  unsigned proxies;    /**< new connections are taken and never answered */
} sim_route;

sim_network *sim_network_new(sim_world *w);
void sim_network_free(sim_network *n);

/* ---- for processes ------------------------------------------------------ */

/** Dial. `news` is called when there is something to look at. */
sim_pipe *sim_pipe_open(sim_network *n, unsigned process, unsigned server,
                        void (*news)(void *arg), void *arg);
sim_pipe_state sim_pipe_get_state(const sim_pipe *p);
unsigned sim_pipe_server(const sim_pipe *p);
/** Hand over bytes; the result is how many were taken. If it was not all,
    there will be news. */
size_t sim_pipe_send(sim_pipe *p, const void *bytes, size_t len);
/** How many bytes have arrived. */
size_t sim_pipe_arrived(const sim_pipe *p);
void sim_pipe_receive(sim_pipe *p, void *out, size_t len);
/** Hang up. The server learns it when it can, or never if it is `silent`. `p`
    is void; NULL is fine. */
void sim_pipe_close(sim_pipe *p, bool silent);

/* ---- what can go wrong -------------------------------------------------- */

sim_route *sim_network_route(sim_network *n, unsigned process, unsigned server);
/** After a change of routes: what was held back goes on. */
void sim_network_changed(sim_network *n);
/** The route has no bandwidth any more, also for bytes on their way. */
void sim_network_remove_bandwidth(sim_network *n, unsigned process,
                                  unsigned server);
/** Bytes arrive in pieces of this size at most; 0: in those they were sent. */
void sim_network_pieces(sim_network *n, size_t most);
/** Break the connection of a process once `bytes` more have arrived in that
    direction; SIZE_MAX: now. false: there is none. */
bool sim_network_reset(sim_network *n, unsigned process, int direction,
                       size_t bytes);
/** No connection breaks any more by what sim_network_reset() has asked for. */
void sim_network_cancel_resets(sim_network *n);
/** The machine of a server is going: its processes are told nothing. */
void sim_network_stop_host(sim_network *n, unsigned server);
/** The server to which a process is connected, or -1. */
int sim_network_server_of(const sim_network *n, unsigned process);

#endif
